"""A world that runs on a page: play, pause, step, keyframes, sliders, pulling, curves."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from view.visitor import Visitor

import jaxsim
from jaxsim.enums import State
from jaxsim.view import Viewer
from jaxsim.view.browser.live import Live, control_bounds, joint_bounds
from jaxsim.view.browser.panel.plots import SensorPlots
from jaxsim.view.browser.panel.tables import markdown_table, model_tables

MODEL = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="arm" pos="0 0 1">
      <joint name="elbow" axis="0 1 0" damping="0.6"/>
      <geom name="arm" type="capsule" fromto="0 0 0 0.5 0 0" size="0.03"/>
      <site name="tip" pos="0.5 0 0"/>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="elbow" ctrllimited="true" ctrlrange="-2 3"/></actuator>
  <sensor><jointpos name="angle" joint="elbow"/><framepos objtype="site" objname="tip"/></sensor>
  <keyframe><key name="hanging" qpos="1.5" ctrl="0.5"/></keyframe>
</mujoco>
"""

DRAG = {
    "type": "SceneNodeDragMessage", "instance_index": None, "start_screen_pos": (0.5, 0.5),
    "end_screen_pos": (0.6, 0.5), "button": "left", "modifier": "cmd/ctrl", "owner": "",
}  # fmt: skip


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(MODEL)


@pytest.mark.slow
def test_a_world_runs_and_is_touched(m):
    with Live(m, port=0) as live, Visitor(live.viewer.server) as visitor:
        world = live.simulation
        visitor.wait(lambda: world.ready or world.fault)
        assert world.fault is None
        assert world.paused
        assert float(world.d.time) == 0

        # one step, that of the physics
        visitor.press("Step")
        visitor.wait(lambda: float(world.d.time) > 0)
        one = jax.jit(jaxsim.step)(m, jaxsim.make_data(m))
        np.testing.assert_allclose(world.d.qpos, one.qpos, rtol=1e-9)

        # a joint is posed, and the page is notified
        visitor.set("elbow", 0.7)
        visitor.wait(lambda: np.allclose(world.d.qpos, 0.7, atol=1e-3))
        half = [np.cos(0.35), 0, np.sin(0.35), 0]
        at = "/bodies/arm"
        visitor.wait(lambda: np.allclose(visitor.nodes.get(at, {}).get("wxyz", 0), half, atol=1e-3))

        # a keyframe with its controls
        visitor.set("keyframe", "hanging")
        visitor.wait(lambda: np.allclose(world.d.qpos, 1.5) and np.allclose(world.ctrl, 0.5))
        visitor.wait(lambda: slider(visitor, "motor") == 0.5)
        visitor.wait(lambda: slider(visitor, "elbow") == 1.5)

        # a curve
        visitor.set("angle", True)
        visitor.wait(lambda: drawn(visitor, "angle"))

        # time passes, the control acts
        visitor.set("motor", 3.0)
        visitor.set("speed", "2")
        visitor.wait(lambda: world.speed == 2 and np.allclose(world.ctrl, 3))
        visitor.press("Play")
        visitor.wait(lambda: float(world.d.time) > 0.3)
        np.testing.assert_allclose(world.d.ctrl, 3.0)
        visitor.wait(lambda: "x real time" in visitor.text())

        visitor.set("motor", 0.0)
        visitor.wait(lambda: abs(float(world.d.qvel[0])) < 0.05)
        pull_and_turn(visitor, world, at)

        # it stands still, and begins again
        visitor.press("Pause")
        visitor.wait(lambda: world.paused)
        visitor.set("keyframe", "start")
        visitor.wait(lambda: float(world.d.time) == 0)
        visitor.wait(lambda: "paused" in visitor.text())
    assert not world.fault


def test_a_mouse_that_hurries_pulls_and_lets_go(m, monkeypatch):
    """A request during a grab that is still compiling is processed after it."""
    from jaxsim.view.browser import holding

    def slow(*args, take=holding._take_hold):
        time.sleep(0.5)
        return take(*args)

    monkeypatch.setattr(holding, "_take_hold", slow)
    tip, there = (0.5, 0.0, 1.0), (5.0, 0.0, 1.0)
    with Live(m, port=0) as live, Visitor(live.viewer.server) as visitor:
        world, seen = live.simulation, []
        visitor.wait(lambda: world.ready or world.fault)
        visitor.wait(lambda: "/bodies/arm/arm" in visitor.nodes)
        drag = {**DRAG, "name": "/bodies/arm/arm", "start_position": tip, "end_position": there}
        for phase in ("start", "update"):
            visitor.send({**drag, "phase": phase})
        visitor.wait(lambda: int(world.held.active) == 1)
        visitor.wait(lambda: np.allclose(world.held.refselpos, there))
        for phase in ("end", "start", "end"):
            visitor.send({**drag, "phase": phase})
        visitor.wait(lambda: int(world.held.active) == 0)
        # the second hold is taken and let go
        time.sleep(1.5)
        world.ask(lambda d: (seen.append(d), d)[1])
        visitor.wait(lambda: seen)
        assert int(world.held.active) == 0
    assert not world.fault


def pull_and_turn(visitor, world, at):
    """Somebody drags the tip with both buttons of a mouse."""
    # somebody pulls the tip to the side of x
    drag = {**DRAG, "name": f"{at}/arm"}
    tip = tuple(float(x) for x in world.d.site_xpos[0])
    visitor.send({**drag, "phase": "start", "start_position": tip, "end_position": tip})
    visitor.wait(lambda: int(world.held.active) == 1)
    there = (5.0, 0.0, 1.0)
    visitor.send({**drag, "phase": "update", "start_position": tip, "end_position": there})
    visitor.wait(lambda: np.allclose(world.held.refselpos, there))
    visitor.wait(lambda: float(world.d.site_xpos[0, 0]) > 0.45)
    assert float(world.d.xfrc_applied[1, 0]) > 0
    visitor.send({**drag, "phase": "end", "start_position": tip, "end_position": there})
    visitor.wait(lambda: int(world.held.active) == 0)

    # a user rotates it: about the side of the picture, and about the view from above
    turn = {**drag, "button": "right", "start_position": tip, "end_position": tip}
    visitor.send({**turn, "phase": "start", "end_screen_pos": (0.5, 0.5)})
    visitor.wait(lambda: int(world.held.active) == 2)
    before = np.asarray(world.held.refquat)
    visitor.send({**turn, "phase": "update", "end_screen_pos": (0.5, 0.6)})
    visitor.wait(lambda: not np.allclose(world.held.refquat, before))
    visitor.wait(lambda: np.any(world.d.xfrc_applied[1, 3:]))
    assert not np.any(world.d.xfrc_applied[1, :3])
    visitor.send({**turn, "phase": "end", "end_screen_pos": (0.5, 0.6)})
    visitor.wait(lambda: int(world.held.active) == 0)


def test_simulation_error_is_shown_on_the_page(m, monkeypatch):
    """A page that stops reports the reason."""
    from jaxsim.view.browser import simulation

    def broken(*_):
        raise RuntimeError("no more memory")

    monkeypatch.setattr(simulation, "_steps", broken)
    with Live(m, port=0) as live, Visitor(live.viewer.server) as visitor:
        visitor.wait(lambda: "no more memory" in visitor.text())


def test_every_sensor_can_be_drawn():
    """Also those for which there is no box at first."""
    sensors = "".join(f'<jointpos name="s{k}" joint="elbow"/>' for k in range(20))
    m = jaxsim.load_model(MODEL.replace("<sensor>", f"<sensor>{sensors}"))
    with Viewer(m, port=0) as viewer, Visitor(viewer.server) as visitor:
        SensorPlots(viewer.server.gui, m)
        for name in ("12: s12", "19: s19", "21: sensor 21"):
            visitor.set("sensor", name)
            visitor.wait(lambda name=name: drawn(visitor, name.split(": ")[1]))
        visitor.set("s19", False)
        visitor.wait(lambda: not drawn(visitor, "s19"))
        assert drawn(visitor, "s12")
        # one that has a box is not in the list any more
        choices = next(c for c in visitor.controls.values() if c["label"] == "sensor")["options"]
        assert len(choices) == 1 + 22 - 12 - 3


def drawn(visitor, name) -> bool:
    return any(c.get("title") == name for c in visitor.controls.values())


def test_sliders_have_the_ranges_of_the_model(m):
    assert control_bounds(m) == [("motor", -2.0, 3.0)]
    ((name, adr, low, high),) = joint_bounds(m)
    assert (name, adr) == ("elbow", 0)
    np.testing.assert_allclose([low, high], [-np.pi, np.pi])


def test_controls_of_one_actuator_have_their_own_ranges():
    """A limit belongs to a control, not to the actuator of the same number."""
    several = '<pid name="servo" joint="elbow" kp="1" ki="1" kv="1" input="pos vel ff"/>'
    m = jaxsim.load_model(MODEL.replace("<motor", f"{several}<motor").replace(' ctrl="0.5"', ""))
    assert (m.nactuator, m.nu) == (2, 4)
    found = control_bounds(m)
    assert [name for name, *_ in found] == ["servo 0", "servo 1", "servo 2", "motor"]
    assert found[3][1:] == (-2.0, 3.0)


def test_tables_say_what_the_model_has(m):
    found = {title: (head, rows) for title, head, rows in model_tables(m)}
    assert ("0", "elbow", "hinge", "arm", "") in found["joints"][1]
    assert found["bodies"][1][1][:3] == ("1", "arm", "world")
    assert ("nq", "1") in found["sizes"][1]
    text = markdown_table(*found["joints"])
    assert text.splitlines()[0] == "| id | joint | type | body | range |"
    assert text.count("\n") == 2


def test_steps_do_not_depend_on_how_many_are_taken_at_once(m):
    """The states that a page shows are those of `step`."""
    from jaxsim.view.browser.simulation import Simulation, _steps

    world = Simulation(m, lambda d: None)
    d = world.start.replace(ctrl=jnp.array([1.0]))
    many = _steps(m, d, world.nobody, jnp.int32(7))
    step = jax.jit(jaxsim.step)
    for _ in range(7):
        d = step(m, d)
    np.testing.assert_allclose(many.qpos, d.qpos, rtol=1e-9)


@pytest.mark.slow
def test_a_world_that_is_looked_at_stays_as_it_is():
    """Its forces and sensors are found without a change of its state."""
    from jaxsim.view.browser.simulation import Simulation

    late = MODEL.replace(
        "</worldbody>",
        """</worldbody>
      <sensor><jointpos joint="elbow" nsample="4" interval="0.01"/></sensor>""",
    )
    m = jaxsim.load_model(late)
    world = Simulation(m, lambda d: None)
    seen = world._evaluate(world.start)
    assert seen.history.size
    before, after = (jaxsim.get_state(m, d, State.INTEGRATION) for d in (world.start, seen))
    np.testing.assert_array_equal(after, before)


def slider(visitor, label):
    return next(c.get("value") for c in visitor.controls.values() if c["label"] == label)
