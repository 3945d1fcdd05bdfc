"""`jaxsim render`: a mosaic, a film, mistakes."""

from pathlib import Path

import numpy as np
import pytest

from jaxsim.batch.trajectory import TrajectoryWriter
from jaxsim.cli import main
from jaxsim.cli.display.render import _frame_rate, _write_image
from jaxsim.view.browser.motion import RecordedMotion

ARM = """
<mujoco model="arm">
  <worldbody>
    <camera name="side" pos="0 -4 1" xyaxes="1 0 0 0 0 1"/>
    <body name="arm"><joint name="elbow" axis="0 1 0"/><geom name="arm" size="0.3" pos="0 0 1"/>
    </body>
  </worldbody>
</mujoco>
"""
TIED = """
<mujoco>
  <option><flag sleep="enable"/></option>
  <worldbody>
    <body><joint name="a" axis="0 1 0"/><geom size=".2" rgba="1 0 0 1"/></body>
    <body pos="1 0 1"><joint name="b" axis="0 1 0"/><geom size=".2"/></body>
  </worldbody>
  <tendon>
    <fixed name="t"><joint joint="a" coef="1"/></fixed>
    <fixed name="u"><joint joint="b" coef="1"/></fixed>
  </tendon>
  <equality><tendon tendon1="t" tendon2="u"/></equality>
</mujoco>
"""


@pytest.fixture
def arm(tmp_path):
    pytest.importorskip("PIL", reason="the extra render is not installed")
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    return path


def motion_of(arm):
    """Two worlds in which the ball goes to the left and to the right."""
    angle = np.linspace(0, 0.5, 5)
    qpos = np.stack([-angle, angle], axis=1)[..., None]
    path = arm.parent / "motion.npz"
    header = {"model": "arm.xml", "timestep": 0.04, "every": 1, "worlds": 2}
    with TrajectoryWriter(path, header) as writer:
        writer.append({"qpos": qpos})
    return path


def test_a_mosaic_and_a_film_of_a_motion(arm, capsys):
    from PIL import Image

    motion = motion_of(arm)
    command = ["render", str(motion), "--camera", "side", "--size", "24x16", "--worlds", "2"]
    film = arm.parent / "film.gif"
    assert main([*command, "--out", str(film)]) == 0
    assert "48 x 16, 5 pictures" in capsys.readouterr().out
    with Image.open(film) as image:
        assert image.n_frames == 5
        assert image.size == (48, 16)
    assert main(command) == 0  # the last frame, next to the motion
    with Image.open(arm.parent / "motion.png") as image:
        bright = np.asarray(image).astype(int).sum(axis=(0, 2))
    place = np.arange(24)
    left, right = (bright[k : k + 24] @ place / bright[k : k + 24].sum() for k in (0, 24))
    assert left < 11 < 12 < right


# imageio-ffmpeg leaves its pipes to the garbage collector
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_film_for_a_player(tmp_path):
    """Films have an even width and height; what is odd gets one more column or row."""
    ffmpeg = pytest.importorskip("imageio_ffmpeg", reason="the extra render is not installed")
    film = tmp_path / "film.mp4"
    _write_image(film, (np.full((17, 25, 3), 40 * k, np.uint8) for k in range(5)), 10)
    frames = ffmpeg.read_frames(str(film))
    assert next(frames)["size"] == (26, 18)
    bright = [np.frombuffer(frame, np.uint8).mean() for frame in frames]
    np.testing.assert_allclose(bright, 40 * np.arange(5), atol=4)


def test_the_default_camera_frames_the_bodies(tmp_path, capsys):
    """A large floor does not make them small."""
    image = pytest.importorskip("PIL.Image", reason="the extra render is not installed")
    path = tmp_path / "ball.xml"
    floor = '<geom type="plane" size="200 200 1" rgba="0 0 1 1"/>'
    ball = '<body pos="90 5 1"><freejoint/><geom size=".3" rgba="1 0 0 1"/></body>'
    path.write_text(f"<mujoco><worldbody>{floor}{ball}</worldbody></mujoco>")
    command = ["render", str(path), "--size", "24x16", "--samples", "1"]
    assert main(command) == 0
    with image.open(tmp_path / "ball.png") as picture:
        r, _, b = np.moveaxis(np.asarray(picture).astype(int), -1, 0)
    assert 40 < (r > b).sum() < 90

    bad = '<visual><global cameraid="1"/></visual>'
    path.write_text(path.read_text().replace("<worldbody>", f"{bad}<worldbody>"))
    capsys.readouterr()
    assert main(command) == 2
    told = capsys.readouterr().err
    assert "ball.xml: <visual><global cameraid>: Camera: there is no camera 1" in told


def test_a_gif_keeps_time_at_any_rate(tmp_path):
    """Its delays are multiples of 0.01 s."""
    image = pytest.importorskip("PIL.Image", reason="the extra render is not installed")
    path = tmp_path / "film.gif"
    pictures = (np.full((4, 6, 3), 7 * k, np.uint8) for k in range(31))
    _write_image(path, pictures, 30)
    with image.open(path) as film:
        total = 0
        for k in range(film.n_frames):
            film.seek(k)
            total += film.info["duration"]
    assert (film.n_frames, total) == (31, 1030)


def test_a_film_has_sixty_frames_a_second_unless_its_motion_has_fewer():
    qpos = np.zeros((11, 1, 1))
    slow, fast = (RecordedMotion(dt * np.arange(11), {"qpos": qpos}) for dt in (0.04, 0.002))
    for name, motion, rate in (
        ("a.mp4", None, 60), ("a.gif", None, 50), ("a.mp4", fast, 60), ("a.gif", slow, 25),
    ):  # fmt: skip
        np.testing.assert_allclose(_frame_rate(Path(name), motion), rate)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["--camera", "sid"], "sid"),
        (["--out", "x.bmp"], "ends in none of"),
        (["--key", "home"], "home"),
        (["--out", "/nowhere/x.png"], "create it first"),
        (["--model", "x.xml"], "--model: goes with a motion"),
    ],
)
def test_mistakes_are_one_line(arm, capsys, given, says):
    assert main(["render", str(arm), *given]) == 2
    told = capsys.readouterr().err
    assert says in told
    assert told.count("\n") == 1


def test_a_folder_is_not_drawn(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in (".", str(tmp_path)):
        assert main(["render", folder]) == 2
        assert f"{folder}: this is a folder" in capsys.readouterr().err


def test_a_model_that_cannot_be_simulated_is_drawn_as_it_stands(tmp_path, capsys):
    pytest.importorskip("PIL", reason="the extra render is not installed")
    path = tmp_path / "tied.xml"
    path.write_text(TIED)
    command = ["render", str(path), "--size", "8x6", "--samples", "1"]
    assert main(command) == 0
    told = capsys.readouterr().out
    assert "cannot be simulated, only looked at:" in told
    assert "8 x 6, 1 picture" in told
    assert main([*command, "--out", str(tmp_path / "tied.gif")]) == 2
    assert "only its initial state or a motion can be drawn" in capsys.readouterr().err


def test_more_worlds_than_the_motion_has(arm, capsys):
    assert main(["render", str(motion_of(arm)), "--worlds", "3"]) == 2
    assert "the motion has 2" in capsys.readouterr().err


@pytest.mark.parametrize("size", ["0x4", "4", "axb", "99999x2"])
def test_a_size_that_is_none(arm, capsys, size):
    with pytest.raises(SystemExit):
        main(["render", str(arm), "--size", size])
    assert "expected pixels such as 320x240" in capsys.readouterr().err


def test_a_picture_is_written_where_a_link_leads(tmp_path):
    """Keep the link, and leave no unfinished file next to its target."""
    (tmp_path / "far").mkdir()
    for ending in ("png", "gif"):
        link, target = tmp_path / f"a.{ending}", tmp_path / "far" / f"b.{ending}"
        link.symlink_to(target)
        _write_image(link, iter([np.zeros((4, 6, 3), np.uint8)] * 3), 25)
        assert link.is_symlink()
        assert target.read_bytes()[:3] in (b"\x89PN", b"GIF")
    assert sorted(p.name for p in (tmp_path / "far").iterdir()) == ["b.gif", "b.png"]
