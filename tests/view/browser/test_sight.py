"""Objects in the view of a page's camera, and contacts on request while the world is paused."""

import jax.numpy as jnp
import numpy as np
import pytest
from view.visitor import Visitor

import jaxsim
from jaxsim.batch.trajectory import Trajectory
from jaxsim.view import Viewer
from jaxsim.view.browser.live import Live
from jaxsim.view.browser.replay import Replay

# a ball that stands a little in the floor and can rise, with a camera on it
MODEL = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <geom name="floor" type="plane" size="0 0 1"/>
    <body name="ball" pos="0 0 0.099">
      <joint name="lift" type="slide" axis="0 0 1"/>
      <geom name="ball" size="0.1"/>
      <camera name="on it" pos="0 -1 0" xyaxes="1 0 0 0 0 1"/>
    </body>
  </worldbody>
</mujoco>
"""
HEADER = {"model": "ball.xml", "timestep": 0.01, "every": 1}


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(MODEL)


def rising(*heights: float) -> Trajectory:
    return Trajectory(HEADER, {"qpos": np.array(heights)[:, None, None]})


def highest_part(camera, point) -> float:
    """Return the largest vertical distance of a point from the center, in half heights."""
    ahead = np.asarray(camera.look_at) - np.asarray(camera.position)
    ahead /= np.linalg.norm(ahead)
    up = np.array([0.0, 0.0, 1.0]) - ahead[2] * ahead
    up /= np.linalg.norm(up)
    there = point - np.asarray(camera.position)
    return abs(there @ up) / (there @ ahead) / np.tan(camera.fov / 2)


@pytest.mark.parametrize("worlds", [1, 2])
def test_a_page_shows_all_of_a_motion(m, worlds):
    heights = np.linspace(0, 1.2, 30)
    motion = Trajectory(HEADER, {"qpos": np.repeat(heights[:, None, None], worlds, axis=1)})
    with Replay(m, motion, port=0) as replay:
        camera = replay.viewer.server.initial_camera
        for world in replay.viewer.scene.offset:
            for height in (0.0, 0.6, 1.2):
                for end in (-0.1, 0.1):
                    point = world + np.array([0, 0, 0.099 + height + end])
                    assert highest_part(camera, point) < 1


def test_what_is_lost_far_away_is_not_waited_for(m):
    with Replay(m, rising(0.0, 0.3, -1e6), port=0) as replay:
        camera = replay.viewer.server.initial_camera
        assert highest_part(camera, np.array([0, 0, 0.5])) < 1
        assert np.linalg.norm(camera.position) < 10


def test_a_page_goes_along_with_a_camera_on_a_body(m):
    d = jaxsim.make_data(m)
    with Viewer(m, port=0) as viewer, Visitor(viewer.server) as visitor:
        viewer.show(d)
        visitor.set("camera", "on it")
        visitor.wait(lambda: at(visitor, [0, -1, 0.099]))
        viewer.show(d.replace(qpos=jnp.array([2.0])))
        visitor.wait(lambda: at(visitor, [0, -1, 2.099]))
        visitor.set("camera", "free")
        visitor.wait(lambda: viewer.scene.eye.camera is None)
        viewer.show(d)
        visitor.wait(lambda: np.allclose(visitor.nodes["/bodies/ball"]["position"][2], 0.099))
        assert at(visitor, [0, -1, 2.099])


def at(visitor, place) -> bool:
    told = visitor.camera.get("SetCameraPositionMessage", {})
    return np.allclose(told.get("position", np.inf), place, atol=1e-4)


@pytest.mark.slow
def test_contacts_of_a_motion_that_stands_still(m):
    with Replay(m, rising(0.0, 1.0), port=0) as replay, Visitor(replay.viewer.server) as visitor:
        visitor.wait(lambda: not replay.playing)
        visitor.set("time [s]", 0.0)
        visitor.wait(lambda: replay.now == 0)
        visitor.set("contact points", True)
        visitor.set("contact forces", True)
        visitor.wait(lambda: "/contacts/points" in visitor.nodes and arrow(visitor) is not None)
        np.testing.assert_allclose(visitor.nodes["/contacts/points"]["points"][:2], 0, atol=1e-6)
        begin, end = arrow(visitor)
        assert end[2] > begin[2]
        visitor.set("time [s]", 0.01)  # in the air
        visitor.wait(lambda: "/contacts/points" not in visitor.nodes)


def arrow(visitor):
    found = visitor.nodes.get("/forces/arrows", {}).get("points")
    return None if found is None else found.reshape(2, 3)


@pytest.mark.slow
def test_contacts_of_a_world_that_has_not_moved_yet(m):
    with Live(m, port=0) as live, Visitor(live.viewer.server) as visitor:
        visitor.wait(lambda: "1 contacts" in visitor.text())
        assert float(live.simulation.d.time) == 0
        visitor.set("contact points", True)
        visitor.wait(lambda: "/contacts/points" in visitor.nodes)
        assert live.simulation.paused
