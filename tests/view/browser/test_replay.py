"""A recorded motion: on a page with a time line, and as a page that plays by itself."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from view.visitor import Visitor

import jaxsim
from jaxsim.batch.trajectory import Trajectory
from jaxsim.view import record
from jaxsim.view.browser.motion import motion_of
from jaxsim.view.browser.replay import Replay
from jaxsim.view.browser.viewer import Viewer

MODEL = """
<mujoco>
  <worldbody>
    <body name="arm" pos="0 0 1">
      <joint name="elbow" axis="0 1 0"/>
      <geom name="arm" type="capsule" fromto="0 0 0 0.5 0 0" size="0.03"/>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(MODEL)


@pytest.fixture
def motion():
    """Return three worlds that rotate at 1, 2 and 3 rad/s for two seconds, recorded at 50 Hz."""
    time = 0.02 * np.arange(101)
    qpos = time[:, None, None] * np.array([1.0, 2.0, 3.0])[:, None]
    header = {"model": "arm.xml", "timestep": 0.002, "every": 10, "worlds": 3, "records": 101}
    return Trajectory(header, {"qpos": qpos})


def turned(angle: float) -> np.ndarray:
    return np.array([np.cos(angle / 2), 0, np.sin(angle / 2), 0])


def test_replay_error_is_shown_on_the_page(m, motion, monkeypatch):
    """A page that stops reports the reason."""

    def broken(*_):
        raise RuntimeError("no more memory")

    with Replay(m, motion, port=0) as replay, Visitor(replay.viewer.server) as visitor:
        visitor.wait(lambda: "record" in visitor.text())
        monkeypatch.setattr(type(replay.motion), "at", broken)
        replay.play(True)
        visitor.wait(lambda: "**stopped**: no more memory" in visitor.text())
        assert str(replay.fault) == "no more memory"


def test_a_motion_plays_to_its_end_and_is_sought_in(m, motion):
    with Replay(m, motion, port=0) as replay, Visitor(replay.viewer.server) as visitor:
        visitor.wait(lambda: not replay.playing)
        assert replay.now == 2
        at = "/bodies/arm"
        visitor.wait(lambda: np.allclose(visitor.nodes[at].get("wxyz", 0), turned(2), atol=1e-6))
        visitor.wait(lambda: "record 101 of 101 · 3 of 3 worlds" in visitor.text())

        visitor.set("time [s]", 0.5)
        visitor.wait(lambda: np.allclose(visitor.nodes[at]["wxyz"], turned(0.5), atol=1e-6))
        others = visitor.nodes["/worlds/arm"]["batched_wxyzs"].reshape(-1, 4)
        assert len(others) == 2

        # another world alone
        visitor.set("first world", 2)
        visitor.set("worlds", 1)
        visitor.wait(lambda: "1 of 3 worlds" in visitor.text())
        visitor.wait(lambda: np.allclose(visitor.nodes[at].get("wxyz", 0), turned(1.5), atol=1e-6))
        assert "/worlds/arm" not in visitor.nodes

        # from the beginning, slowly
        visitor.set("speed", "0.1")
        visitor.set("time [s]", 2.0)
        # consecutive requests are processed by several threads
        visitor.wait(lambda: replay.speed == 0.1 and replay.now == 2)
        visitor.press("Play")
        visitor.wait(lambda: replay.playing and 0 < replay.now < 1)
        visitor.press("Pause")
        visitor.wait(lambda: not replay.playing)


def test_a_slider_moved_during_play_is_followed(m, motion):
    """The next frame does not overwrite the time that a user asks for."""
    with Replay(m, motion, port=0) as replay, Visitor(replay.viewer.server) as visitor:
        visitor.wait(lambda: "record" in visitor.text())
        replay.speed = 1e-3
        for k in range(50):
            replay.play(True)
            now = 0.02 * (k + 1)
            visitor.set("time [s]", now)
            visitor.wait(lambda now=now: now <= replay.now < now + 0.01)


def test_times_are_those_of_the_file(m, motion):
    moving = motion_of(m, motion)
    np.testing.assert_allclose(moving.time[[0, 1, -1]], [0, 0.02, 2])
    timed = Trajectory(motion.header, {**motion.fields, "time": np.geomspace(1, 3, 101)[:, None]})
    np.testing.assert_allclose(motion_of(m, timed).time[[0, -1]], [0, 2])
    again = Trajectory(motion.header, {**motion.fields, "time": np.zeros((101, 3))})
    np.testing.assert_allclose(motion_of(m, again).time[-1], 2)  # reset on the way


def test_what_is_no_motion_of_the_model_is_refused(m, motion):
    with pytest.raises(ValueError, match=r"qpos was not recorded \(ctrl was\)"):
        motion_of(m, {"ctrl": np.zeros((3, 1))})
    with pytest.raises(ValueError, match="is it the motion of this model"):
        motion_of(m, {"qpos": np.zeros((3, 2))})
    with pytest.raises(ValueError, match=r"arrays by name, .* got ndarray"):
        motion_of(m, np.zeros((3, m.nq)))
    with pytest.raises(ValueError, match="pictures a second"):
        record(m, motion, "page.html", rate=0)
    with pytest.raises(ValueError, match=r"mocap_pos: expected shape \(3, 0, 3\), got \(3, 1, 3\)"):
        motion_of(m, {"qpos": np.zeros((3, m.nq)), "mocap_pos": np.zeros((3, 1, 3))})


def test_what_cannot_be_shown_leaves_no_server_behind(m, motion, monkeypatch):
    ended, close = [], Viewer.close
    monkeypatch.setattr(Viewer, "close", lambda viewer: ended.append(close(viewer)))
    monkeypatch.setattr(Viewer, "start_with", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        Replay(m, motion, port=0)
    assert len(ended) == 1


def test_the_camera_bears_that_other_worlds_are_chosen_meanwhile(m, motion):
    replay = Replay(m, motion, port=0)
    with replay.viewer:
        poses = replay.viewer.posing.of(motion_of(m, motion).at(0, slice(3)))
        replay.viewer.scene.lay_out(3)
        replay._first = 2
        assert len(replay._balls(poses).center) % 3 == 0


def test_a_page_plays_by_itself(m, motion, tmp_path):
    """It has the scene, then a pose for every picture, and asks no network for anything."""
    path = tmp_path / "arm.html"
    assert record(m, motion, path, rate=10) == 21
    html = path.read_text()
    assert list(tmp_path.iterdir()) == [path]
    assert not re.search(r"<(script|link)[^>]*(src|href)=\"?http", html)
    film = decoded(re.search(r'__VISER_EMBED_DATA__="([^"]*)"', html)[1])
    assert film["durationSeconds"] == pytest.approx(2.1)
    turns = [
        (at, message["wxyz"])
        for at, message in film["messages"]
        if message["type"] == "SetOrientationMessage" and message["name"] == "/bodies/arm"
    ]
    last = {round(at, 6): wxyz for at, wxyz in turns}
    for second in (0.5, 1.0, 2.0):
        np.testing.assert_allclose(last[second], turned(second), atol=1e-6)
    assert any(m["type"] == "BatchedGlbMessage" for _, m in film["messages"])


def test_a_rollout_is_recorded_as_it_is(m, tmp_path):
    d = jaxsim.make_data(m).replace(qvel=jnp.ones(1))
    _, rows = jax.jit(lambda d: jaxsim.rollout(m, d, 30, record=["qpos"]))(d)
    assert record(m, rows, tmp_path / "arm.html") == 4


def decoded(text: str) -> dict:
    """The messages of a page."""
    import base64

    import msgspec
    import zstandard

    data = base64.b64decode(text)
    size = int.from_bytes(data[:8], "little")
    inner = zstandard.ZstdDecompressor().decompress(data[8:], max_output_size=size)
    length = int.from_bytes(inner[:8], "little")
    return msgspec.msgpack.decode(inner[8 : 8 + length])
