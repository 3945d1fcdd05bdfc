"""Files of a page: screenshots, recordings, and the model that is loaded again."""

import io

import numpy as np
import pytest
from view.visitor import Visitor

import jaxsim
from jaxsim.batch.trajectory import load_trajectory
from jaxsim.enums import DisableBit
from jaxsim.view.browser.live import Live
from jaxsim.view.browser.panel.recorder import MOTION, PAGE, Recorder
from jaxsim.view.browser.panel.screenshot import png_of
from jaxsim.view.browser.reload import reload_model

MODEL = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <body {body}>
      <joint {joint} axis="0 1 0"/>
      <geom name="ball" size="0.1" pos="1 0 0"/>
    </body>
    {more}
  </worldbody>
</mujoco>
"""
MORE = '<body name="b" pos="0 3 0"><joint name="c"/><geom name="new" size="0.2"/></body>'


def arm(named=True, more=""):
    names = {"body": 'name="arm"', "joint": 'name="elbow"'} if named else {"body": "", "joint": ""}
    return MODEL.format(**names, more=more)


def move_state(m):
    d = jaxsim.make_data(m)
    return d.replace(qpos=d.qpos + 0.5, qvel=d.qvel - 2.0, time=d.time + 3.0)


def test_a_screenshot_is_over_white():
    image = pytest.importorskip("PIL.Image", reason="the extra view is not installed")
    pixels = np.zeros((4, 6, 4), np.uint8)
    pixels[1, 2] = (200, 10, 20, 255)
    with image.open(io.BytesIO(png_of(pixels))) as picture:
        found = np.asarray(picture)
    assert found.shape == (4, 6, 3)
    assert found[1, 2].tolist() == [200, 10, 20]
    assert (found[0] == 255).all()


@pytest.mark.parametrize("kind", [PAGE, MOTION])
def test_a_recording_is_a_page_or_a_motion(kind, tmp_path):
    m = jaxsim.load_model(arm())
    d = jaxsim.make_data(m)
    recorder = Recorder(m, str(tmp_path / "arm.xml"))
    assert recorder.stop(kind) is None
    recorder.add(d)  # not started
    recorder.start()
    # 1 kHz is thinned to 60 Hz; then the world is reset, and runs on
    times = np.concatenate([np.arange(0, 0.5, 0.001), np.arange(0, 0.2, 0.02)])
    for time in times:
        recorder.add(d.replace(time=d.time + time, qpos=d.qpos + time))
    assert 0.6 < recorder.seconds < 0.75
    name, content = recorder.stop(kind)
    assert name == f"arm.{'html' if kind == PAGE else 'npz'}"
    if kind == PAGE:
        assert b"<html" in content[:1000].lower()
        return
    (tmp_path / name).write_bytes(content)
    motion = load_trajectory(tmp_path / name)
    assert motion.header["path"] == str(tmp_path / "arm.xml")
    time, qpos = motion["time"][:, 0], motion["qpos"][:, 0, 0]
    assert (np.diff(time) > 0.0166).all()
    assert 35 < len(time) < 45
    assert qpos.argmin() in (0, len(qpos) - 10)


def test_a_changed_file_keeps_the_state_of_what_has_the_same_name(tmp_path):
    path = tmp_path / "arm.xml"
    m = jaxsim.load_model(arm())
    path.write_text(arm(more=MORE))
    new, d, report = reload_model(path, m, move_state(m))
    assert "same names" in report
    np.testing.assert_allclose(d.qpos, [0.5, 0])
    np.testing.assert_allclose(d.qvel, [-2, 0])
    assert float(d.time) == 3
    assert new.njnt == 2


def test_without_names_the_order_counts_or_the_world_starts_again(tmp_path):
    path = tmp_path / "arm.xml"
    m = jaxsim.load_model(arm(named=False))
    path.write_text(arm(named=False).replace('size="0.1"', 'size="0.3"'))
    new, d, report = reload_model(path, m, move_state(m))
    assert "same order" in report
    np.testing.assert_allclose(d.qpos, [0.5])
    np.testing.assert_allclose(new.geom_size[0, 0], 0.3)
    path.write_text(arm(named=False, more=MORE))
    new, d, report = reload_model(path, m, move_state(m))
    assert "initial state" in report
    np.testing.assert_allclose(d.qpos, [0, 0])


def test_a_page_follows_its_file(tmp_path):
    """A new body appears, a mistake is reported and changes nothing."""
    path = tmp_path / "arm.xml"
    path.write_text(arm())
    with (
        Live(jaxsim.load_model(path), source=str(path), port=0) as live,
        Visitor(live.viewer.server) as visitor,
    ):
        first = live.simulation
        visitor.wait(lambda: first.ready or first.fault)
        visitor.press("Step")
        visitor.wait(lambda: float(first.d.time) > 0)
        visitor.set("inertia boxes", True)
        visitor.wait(lambda: "inertia" in live.viewer.scene.marks.visible)
        path.write_text(arm(more=MORE))
        visitor.press("Reload")
        visitor.wait(lambda: "/bodies/b/new" in visitor.nodes)
        visitor.wait(lambda: live.simulation is not first and live.simulation.ready)
        assert float(live.simulation.d.time) == float(first.d.time)
        assert "inertia" in live.viewer.scene.marks.visible
        visitor.wait(lambda: any(c["label"] == "c" for c in visitor.controls.values()))

        path.write_text("<mujoco><worldbody><geom siz='1'/></worldbody></mujoco>")
        assert "<geom> has no attribute 'siz'" in live.reload()
        visitor.wait(lambda: live.simulation.ready)
        visitor.press("Step")
        visitor.wait(lambda: float(live.simulation.d.time) > 0.015)
        assert live.simulation.fault is None


def test_options_change_while_the_world_runs():
    with (
        Live(jaxsim.load_model(arm()), port=0) as live,
        Visitor(live.viewer.server) as visitor,
    ):
        world = live.simulation
        visitor.wait(lambda: world.ready or world.fault)
        visitor.set("gravity", [0.0, 0.0, 5.0])
        visitor.wait(lambda: float(world.m.opt.gravity[2]) == 5)
        visitor.set("gravity", [0.0, 0.0, 1e8])  # out of bounds: dropped
        visitor.set("timestep", 0.005)
        visitor.wait(lambda: float(world.m.opt.timestep) == 0.005)
        visitor.press("Step")
        visitor.wait(lambda: float(world.d.time) == 0.005)
        assert float(world.m.opt.gravity[2]) == 5
        assert float(world.d.qvel[0]) < 0  # upwards
        visitor.set("iterations", 7)
        visitor.wait(lambda: world.m.opt.iterations == 7)
        visitor.set("contact", False)
        visitor.wait(lambda: world.m.opt.disableflags == DisableBit.CONTACT)
        assert world.fault is None


def test_an_option_that_is_rejected_is_set_back():
    from jaxsim.view.browser import simulation

    m, failures = jaxsim.load_model(arm()), []
    world = simulation.Simulation(m, lambda d: None)
    world.set_options(failures.append, timestep=np.zeros(3))
    world._answer()
    assert world.m is m
    assert len(failures) == 1
    assert "timestep" in str(failures[0])
