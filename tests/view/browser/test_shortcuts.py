"""Keyboard shortcuts of a page: what they do, and the sheet that lists them."""

import numpy as np
import pytest
from view.visitor import Visitor

import jaxsim
from jaxsim.batch.trajectory import Trajectory
from jaxsim.view import Viewer
from jaxsim.view.browser.live import Live
from jaxsim.view.browser.replay import Replay

MODEL = """
<mujoco>
  <worldbody>
    <camera name="side" pos="0 -3 1" xyaxes="1 0 0 0 0 1"/>
    <body name="arm">
      <joint name="elbow" axis="0 1 0"/>
      <geom name="ball" size="0.1" pos="1 0 0"/>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(MODEL)


def press(visitor, server, key):
    """Press a key: the page sends the id of its command."""
    commands = server.gui._command_handle_from_uuid
    uuid = next(u for u, command in commands.items() if command.hotkey == key)
    visitor.send({"type": "CommandTriggerMessage", "uuid": uuid})


def test_keys_show_marks_geometry_and_help(m):
    with Viewer(m, port=0) as viewer, Visitor(viewer.server) as visitor:
        scene, server = viewer.scene, viewer.server
        visitor.wait(lambda: "/bodies/arm/ball" in visitor.nodes)
        for key, kind in (("I", "inertia"), ("J", "joints"), ("C", "contacts")):
            press(visitor, server, key)
            visitor.wait(lambda kind=kind: kind in scene.marks.visible)
        press(visitor, server, "J")
        visitor.wait(lambda: "joints" not in scene.marks.visible)
        press(visitor, server, "G")
        visitor.wait(lambda: scene.geometry == "convex hulls")
        press(visitor, server, "N")
        visitor.wait(lambda: scene.eye.camera == 0)
        press(visitor, server, "H")
        visitor.wait(lambda: "show or hide joint axes" in visitor.text())
        press(visitor, server, "H")
        visitor.wait(lambda: "show or hide joint axes" not in visitor.text())


def test_a_key_has_one_meaning(m):
    with Viewer(m, port=0) as viewer:
        keys = [shortcut.key for shortcut in viewer.shortcuts.keys]
        assert len(set(keys)) == len(keys)
        with pytest.raises(ValueError, match="H is in use"):
            viewer.shortcuts.add("H", "anything", print)
        table = viewer.shortcuts.table()
        assert "| **H** | show or hide this list |" in table


def test_keys_run_step_and_reset_a_world(m):
    with Live(m, port=0) as live, Visitor(live.viewer.server) as visitor:
        world, server = live.simulation, live.viewer.server
        visitor.wait(lambda: world.ready or world.fault)
        press(visitor, server, "arrowright")
        visitor.wait(lambda: float(world.d.time) == float(m.opt.timestep))
        press(visitor, server, "arrowup")
        visitor.wait(lambda: world.speed == 2)
        press(visitor, server, "space")
        visitor.wait(lambda: float(world.d.time) > 0.1)
        press(visitor, server, "arrowright")  # pauses as well
        visitor.wait(lambda: world.paused)
        press(visitor, server, "backspace")
        visitor.wait(lambda: float(world.d.time) == 0)
        assert not world.fault


def test_keys_go_through_the_records_of_a_motion(m):
    qpos = np.linspace(0, 1, 6)[:, None, None]
    motion = Trajectory({"model": "arm.xml", "timestep": 0.1, "every": 1}, {"qpos": qpos})
    with Replay(m, motion, port=0) as replay, Visitor(replay.viewer.server) as visitor:
        server = replay.viewer.server
        visitor.wait(lambda: not replay.playing)
        for key, now in (("backspace", 0.0), ("arrowright", 0.1), ("arrowright", 0.2),
                         ("arrowleft", 0.1)):  # fmt: skip
            press(visitor, server, key)
            visitor.wait(lambda now=now: abs(replay.now - now) < 1e-9)
        press(visitor, server, "space")
        visitor.wait(lambda: replay.now > 0.3)
