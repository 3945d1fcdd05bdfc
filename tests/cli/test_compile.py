"""`jaxsim compile`: a model in a file, which the other commands read."""

import pytest

import jaxsim
from jaxsim.cli import main

BALL = "<mujoco><worldbody><body name='b'><freejoint/><geom size='.1'/></body></worldbody></mujoco>"


@pytest.fixture
def ball(tmp_path):
    path = tmp_path / "ball.xml"
    path.write_text(BALL)
    return path


def answer(capsys, *args) -> tuple[int, str, str]:
    code = main([str(a) for a in args])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_model_is_compiled_and_read(capsys, ball):
    saved = ball.with_suffix(".jxm")
    code, out, _ = answer(capsys, "compile", ball, "--contacts", 3)
    assert code == 0
    assert out.startswith(f"{saved}: ")
    assert "float32, compiled in" in out
    assert jaxsim.load_model(saved).ncontact == 3
    code, out, _ = answer(capsys, "info", saved)
    assert code == 0
    assert "1 free" in out


def test_double_precision_and_another_name(capsys, ball, tmp_path):
    code, out, _ = answer(capsys, "compile", ball, "--float64", "--out", tmp_path / "x")
    assert code == 0
    assert "float64" in out
    assert jaxsim.load_model(tmp_path / "x").qpos0.dtype == "float64"


def test_what_cannot_be_written_is_said(capsys, ball, tmp_path):
    code, _, err = answer(capsys, "compile", ball, "--out", ball)
    assert code == 2
    assert err == f"--out: '{ball}' is the model itself; name another file\n"
    code, _, err = answer(capsys, "compile", ball, "--out", tmp_path / "no" / "x.jxm")
    assert code == 2
    assert err.endswith("x.jxm' cannot be written: No such file or directory\n")
    code, _, err = answer(capsys, "compile", "data:text/xml;base64,")
    assert code == 2
    assert err.startswith("--out: name the file to write")
    assert ball.read_text() == BALL


def test_a_damaged_file_is_said(capsys, ball):
    saved = ball.with_suffix(".jxm")
    answer(capsys, "compile", ball)
    saved.write_bytes(saved.read_bytes()[:-1])
    code, _, err = answer(capsys, "info", saved)
    assert code == 2
    assert err.startswith(f"{saved}: truncated: it has ")


def test_compare_needs_the_text(capsys, ball):
    answer(capsys, "compile", ball, "--float64")
    code, _, err = answer(capsys, "compare", ball.with_suffix(".jxm"))
    assert code == 2
    assert err.endswith("ball.jxm: a compiled model, which MuJoCo cannot read; give the XML\n")
