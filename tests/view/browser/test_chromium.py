"""Pages in a real browser, without a screen: they load, draw, play, and are touched."""

import numpy as np
import pytest
from view.browser.chromium import Browser, red, wait

import jaxsim
from jaxsim.batch.trajectory import Trajectory
from jaxsim.view import Viewer, record
from jaxsim.view.browser.live import Live
from jaxsim.view.browser.replay import Replay

pytest.importorskip("viser", reason="the extra view is not installed")
pytestmark = pytest.mark.slow

# a red ball on an invisible arm, and a camera from the side that the ball moves to
MODEL = """
<mujoco>
  <option gravity="0 0 0" timestep="0.01"/>
  <worldbody>
    <camera name="side" pos="0.6 -5 0.3" xyaxes="1 0 0 0 0 1"/>
    <body name="arm">
      <joint name="elbow" axis="0 -1 0" damping="0.1"/>
      <geom name="ball" size="0.3" pos="1 0 0" rgba="1 0 0 1"/>
    </body>
  </worldbody>
  <actuator><motor name="motor" joint="elbow" ctrllimited="true" ctrlrange="-1 1"/></actuator>
  <sensor><jointpos name="angle" joint="elbow"/></sensor>
  <keyframe><key name="up" qpos="1.5"/></keyframe>
</mujoco>
"""

# where the camera sees the ball on a page of 900 x 600, with the arm to the right and upwards
RIGHT, UP = np.array([508.0, 343.0]), np.array([363.0, 199.0])


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(MODEL)


@pytest.fixture
def motion():
    """The ball goes half round in two seconds, from the right over the top to the left."""
    qpos = np.linspace(0, np.pi, 101)[:, None, None]
    header = {"model": "arm.xml", "timestep": 0.002, "every": 10, "worlds": 1, "records": 101}
    return Trajectory(header, {"qpos": qpos})


def seen(browser) -> np.ndarray:
    """Return the position of the ball on the page."""
    return wait(lambda: (found := red(browser.picture())) is not None and (found,), "for red")[0]


def near(found, wanted) -> bool:
    return bool(np.abs(found - wanted).max() < 15)


def moved(browser, away) -> np.ndarray:
    """Return the position of the ball on the page after it has moved."""

    def there():
        found = red(browser.picture())
        return found is not None and np.abs(found - away).max() > 40 and (found,)

    return wait(there, "for motion")[0]


def test_a_browser_draws_what_is_shown(m, tmp_path):
    d = jaxsim.make_data(m)
    with Viewer(m, port=0) as viewer:
        with Browser(tmp_path / "first", viewer.address) as browser:
            before = seen(browser)
            assert not browser.errors
        # without a visitor; a later one sees the present frame
        viewer.show(d.replace(qpos=d.qpos + 0.3))
        with Browser(tmp_path / "second", viewer.address) as browser:
            moved(browser, before)
            assert not browser.errors


def test_no_lamp_shines_on_the_sky(tmp_path):
    """A sky of one color is seen in one color, whatever the lights are."""
    m = jaxsim.load_model("""
      <mujoco>
        <asset>
          <texture type="skybox" builtin="flat" rgb1=".2 .3 .5" width="8" height="48"/>
        </asset>
        <worldbody>
          <light dir="0 1 0" type="directional" diffuse="1 1 1"/>
          <geom size=".1" rgba="1 0 0 1"/>
        </worldbody>
      </mujoco>""")
    with Viewer(m, port=0) as viewer, Browser(tmp_path, viewer.address) as browser:
        seen(browser)
        corners = wait(lambda: lower_corners(browser))
        np.testing.assert_allclose(corners, np.tile(corners[0], (4, 1)), atol=2)
        assert not browser.errors


def lower_corners(browser) -> list | None:
    """The colors of the lower corners of a page; None: they are still white."""
    picture = browser.picture()[-100:]
    found = np.array([picture[-1, 5], picture[-1, -5], picture[0, 5], picture[0, -5]], int)
    return None if (found == 255).all() else found.tolist()


def test_a_world_is_played_and_touched(m, tmp_path):
    with Live(m, port=0) as live, Browser(tmp_path, live.viewer.address) as browser:
        world = live.simulation
        wait(lambda: world.ready or world.fault)
        wait(lambda: "paused" in browser.text())
        browser.choose("camera", "side")
        wait(lambda: near(seen(browser), RIGHT), "for the camera")

        # a slider moves the joint, and what is seen
        browser.press("Joints")
        browser.fill("elbow", "1.57")
        wait(lambda: abs(float(world.d.qpos[0]) - 1.57) < 0.01)
        wait(lambda: near(seen(browser), UP), "for the ball")

        # what it is
        browser.click(*UP)
        wait(lambda: "ball (geom 0, sphere, group 0)" in browser.text())

        # one step, then the start
        before = float(world.d.time)
        browser.press("Step")
        wait(lambda: abs(float(world.d.time) - before - 0.01) < 1e-6)
        browser.press("Reset")
        wait(lambda: float(world.d.time) == 0)

        # time passes where somebody presses Play; a curve is drawn meanwhile
        browser.press("Sensors")
        browser.tick("angle")
        browser.press("Actuators")
        browser.fill("motor", "1")
        wait(lambda: world.ctrl[0] == 1)
        browser.press("Play")
        wait(lambda: float(world.d.qpos[0]) > 0.5)
        wait(lambda: browser.ask("document.querySelectorAll('.uplot canvas').length") == 1)
        browser.press("Pause")
        wait(lambda: world.paused)
        assert not browser.errors


def test_a_body_is_pulled_to_where_the_mouse_goes(m, tmp_path):
    with Live(m, port=0) as live, Browser(tmp_path, live.viewer.address) as browser:
        world = live.simulation
        wait(lambda: world.ready or world.fault)
        browser.choose("camera", "side")
        wait(lambda: near(seen(browser), RIGHT), "for the camera")
        # what answers to a click can be dragged; elsewhere the camera would be moved
        wait(lambda: browser.click(*RIGHT) or "ball (geom 0" in browser.text(), "for the click")
        browser.drag(RIGHT, UP)
        wait(lambda: int(world.held.active) == 1, "for the hold")
        world.run(True)
        wait(lambda: float(world.d.qpos[0]) > 1.2, "for the arm")
        wait(lambda: near(seen(browser), UP), "for the ball")
        browser.drop(UP)
        wait(lambda: int(world.held.active) == 0)
        assert not browser.errors


def test_a_motion_plays_and_is_sought_in(m, motion, tmp_path):
    with Replay(m, motion, port=0) as replay, Browser(tmp_path, replay.viewer.address) as browser:
        wait(lambda: not replay.playing)
        left = seen(browser)
        browser.fill("time [s]", "1.0")
        wait(lambda: abs(replay.now - 1) < 0.02)
        assert moved(browser, left)[1] < left[1] - 40  # at the top, within the page
        wait(lambda: "1.000 s" in browser.text())
        browser.press("Play")
        wait(lambda: replay.now > 1.2)
        wait(lambda: not replay.playing)
        assert np.abs(wait(lambda: (seen(browser),))[0] - left).max() < 40
        assert not browser.errors


def test_keys_play_a_motion_list_themselves_and_take_a_screenshot(m, motion, tmp_path):
    with Replay(m, motion, port=0) as replay, Browser(tmp_path, replay.viewer.address) as browser:
        wait(lambda: not replay.playing)
        left = seen(browser)
        browser.call("Page.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
        browser.key("p", "KeyP", 80)
        image = pytest.importorskip("PIL.Image", reason="the extra view is not installed")
        file = tmp_path / "screenshot.png"
        wait(lambda: file.exists() and file.stat().st_size, "for the screenshot")
        with image.open(file) as picture:
            assert np.abs(red(np.asarray(picture.convert("RGB"))) - left).max() < 5
        browser.key("Backspace", "Backspace", 8)
        moved(browser, left)
        assert replay.now == 0
        browser.key("ArrowRight", "ArrowRight", 39)
        wait(lambda: abs(replay.now - 0.02) < 1e-6)
        browser.key("h", "KeyH", 72)
        wait(lambda: "go to the next record, and pause" in browser.text())
        browser.key("h", "KeyH", 72)
        wait(lambda: "go to the next record, and pause" not in browser.text())
        browser.key(" ", "Space", 32)
        wait(lambda: replay.playing or replay.now > 1)
        assert not browser.errors


def test_a_page_by_itself_plays_and_asks_no_network(m, motion, tmp_path):
    page = tmp_path / "arm.html"
    record(m, motion, page, rate=10)
    with Browser(tmp_path / "browser", page.as_uri()) as browser:
        places = [seen(browser)]
        while len(places) < 3:
            places.append(moved(browser, places[-1]))
        assert not browser.errors
        assert {a.split(":")[0] for a in browser.asked} <= {"file", "data", "blob"}
