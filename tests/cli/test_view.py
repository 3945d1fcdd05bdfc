"""`jaxsim view` and `jaxsim plot`: output, mistakes, exit codes."""

import re
import socket
import urllib.request

import pytest

from jaxsim.cli import main
from jaxsim.cli.display import view
from jaxsim.view.browser.server import open_server

ARM = """
<mujoco model="arm">
  <worldbody>
    <body name="arm"><joint name="elbow" axis="0 1 0"/><geom name="arm" size="0.1" pos="0 0 1"/>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="elbow"/></actuator>
  <sensor><jointpos name="angle" joint="elbow"/></sensor>
</mujoco>
"""
CLOTH = """
<mujoco>
  <worldbody>
    <flexcomp type="grid" count="3 3 1" spacing="0.1 0.1 0.1" name="cloth" dim="2"/>
    <body name="ball"><freejoint/><geom name="ball" size="0.1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def arm(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(ARM)
    return path


@pytest.fixture(scope="module")
def motion(tmp_path_factory):
    """A motion and its model, in a folder."""
    folder = tmp_path_factory.mktemp("motion")
    (folder / "arm.xml").write_text(ARM)
    path = folder / "motion.npz"
    command = ["rollout", str(folder / "arm.xml"), "--worlds", "3", "--steps", "20"]
    assert main([*command, "--record", "sensordata", "--out", str(path)]) == 0
    return path


@pytest.fixture
def page(monkeypatch):
    """Return what a browser receives from the page before Ctrl-C is pressed."""
    pytest.importorskip("viser", reason="the extra view is not installed")
    got = []

    def visit() -> None:
        with urllib.request.urlopen(got[0], timeout=30) as answer:
            got.append(answer.read())
        raise KeyboardInterrupt

    monkeypatch.setattr(view, "_wait", visit)
    real = view.print if hasattr(view, "print") else print

    def listening(*words, **how) -> None:
        found = re.search(r"http://127\.0\.0\.1:\d+/\S+/", " ".join(map(str, words)))
        got.extend([found[0]] if found else [])
        real(*words, **how)

    monkeypatch.setattr(view, "print", listening, raising=False)
    return got


def answer(capsys, *args) -> tuple[int, str, str]:
    code = main([str(a) for a in args])
    out, err = capsys.readouterr()
    return code, out, err


@pytest.mark.slow
def test_a_model_is_shown(capsys, arm, page):
    code, out, _ = answer(capsys, "view", arm, "--port", "0")
    assert code == 0
    assert f"{arm} is at {page[0]}" in out
    assert b"<html" in page[1]


def test_a_motion_is_shown_and_written_as_a_page(capsys, motion, page, tmp_path):
    code, out, _ = answer(capsys, "view", motion, "--port", "0", "--worlds", "2", "--ghosts")
    assert code == 0
    assert page[0] in out
    out_file = tmp_path / "page.html"
    code, out, _ = answer(capsys, "view", motion, "--out", out_file)
    assert code == 0
    assert f"{out_file}: 3 pictures" in out
    assert out_file.stat().st_size > 100_000


@pytest.mark.slow
def test_a_model_that_cannot_be_simulated_is_looked_at(capsys, tmp_path, page):
    path = tmp_path / "cloth.xml"
    path.write_text(CLOTH)
    code, out, _ = answer(capsys, "view", path, "--port", "0")
    assert code == 0
    assert page[0] in out


def test_the_model_of_a_motion_is_where_it_was(capsys, motion, page, tmp_path, monkeypatch):
    elsewhere = tmp_path / "motion.npz"
    elsewhere.write_bytes(motion.read_bytes())
    monkeypatch.chdir(tmp_path)
    assert answer(capsys, "view", elsewhere, "--port", "0")[0] == 0
    monkeypatch.setattr("jaxsim.cli.input.recorded_motion.model_file_of", lambda *_: None)
    code, _, err = answer(capsys, "view", elsewhere)
    assert code == 2
    assert "'arm.xml' is neither next to it nor in the working directory; give it by --model" in err


def test_errors_are_reported_in_one_sentence(capsys, arm, motion, tmp_path):
    pytest.importorskip("viser", reason="the extra view is not installed")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        code, _, err = answer(capsys, "view", arm, "--port", port)
    assert code == 2
    assert f"--port: port {port} is in use or may not be used; take another one" in err
    code, _, err = answer(capsys, "view", arm, "--out", tmp_path / "a.html")
    assert (code, "record one with `jaxsim rollout --out`" in err) == (2, True)
    code, _, err = answer(capsys, "view", arm, "--model", arm)
    assert (code, "--model: goes with a motion" in err) == (2, True)
    for more in (["--worlds", "3"], ["--ghosts"]):
        code, _, err = answer(capsys, "view", arm, *more)
        assert (code, f"{more[0]}: goes with a motion" in err) == (2, True)
    code, _, err = answer(capsys, "plot", tmp_path)
    assert (code, "this is a folder; give the .npz file inside it" in err) == (2, True)
    other = tmp_path / "other.xml"
    other.write_text(CLOTH)
    code, _, err = answer(capsys, "view", motion, "--model", other, "--port", "0")
    assert code == 2
    assert "is it the motion of this model?" in err
    code, _, err = answer(capsys, "view", tmp_path / "none.npz")
    assert (code, "none.npz: there is no such file" in err) == (2, True)
    for where in (("--out", tmp_path / "a.html"), ("--port", "0")):
        code, _, err = answer(capsys, "view", motion, "--worlds", "4", *where)
        told = "--worlds: asked for 4, the motion has 3; ask for at most 3" in err
        assert (code, told) == (2, True)


@pytest.mark.parametrize("port", ["99999", "-3", "http"])
def test_invalid_port_is_rejected(capsys, arm, port):
    with pytest.raises(SystemExit):
        main(["view", str(arm), f"--port={port}"])
    assert f"--port: expected a port from 0 to 65535, got '{port}'" in capsys.readouterr().err


def test_viewer_rejects_invalid_port():
    pytest.importorskip("viser", reason="the extra view is not installed")
    with pytest.raises(ValueError, match="port: expected 0 to 65535, got 99999"):
        open_server(99999)


def test_without_the_extra_it_is_named(capsys, arm, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "viser", None)
    code, _, err = answer(capsys, "view", arm)
    assert code == 2
    assert "install the extra 'view': pip install '" in err


def test_curves_are_drawn(capsys, motion, tmp_path):
    pytest.importorskip("matplotlib", reason="the extra view is not installed")
    out_file = tmp_path / "curves.png"
    code, out, _ = answer(
        capsys, "plot", motion, "--fields", "qpos,sensordata:angle", "--out", out_file
    )
    assert code == 0
    assert f"{out_file}: qpos, sensordata:angle" in out
    assert out_file.read_bytes().startswith(b"\x89PNG")
    code, _, err = answer(capsys, "plot", motion, "--fields", "energy", "--out", out_file)
    assert code == 2
    assert "'energy' was not recorded" in err


def test_a_field_that_cannot_be_recorded_is_refused(capsys, arm, tmp_path):
    code, _, err = answer(
        capsys, "rollout", arm, "--record", "sensordat", "--out", tmp_path / "m.npz"
    )
    assert code == 2
    assert "--record: this Data does not carry 'sensordat'" in err


def test_energy_that_is_not_computed_is_not_recorded(capsys, arm, tmp_path):
    """Without the flag there would be zeros, as if a world had none."""
    command = ["rollout", arm, "--worlds", "1", "--record", "energy", "--out", tmp_path / "m.npz"]
    code, _, err = answer(capsys, *command)
    assert code == 2
    assert "--record: 'energy' is not computed" in err
    assert '<flag energy="enable"/>' in err
