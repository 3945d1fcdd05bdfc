"""Numbers are read as strictly as MuJoCo reads them."""

import mujoco
import numpy as np
import pytest

from jaxsim.mjcf.schema import ROOT
from jaxsim.mjcf.values import BadValue, read_value

GRAVITY = ROOT.child("option").attribute("gravity")
ITERATIONS = ROOT.child("option").attribute("iterations")
MEMORY = ROOT.child("size").attribute("memory")
DATA = ROOT.child("sensor").child("contact").attribute("data")
INPUT = ROOT.child("actuator").child("pid").attribute("input")
USER = ROOT.child("worldbody").child("geom").attribute("user")

REALS = [
    *("1 2 3", " 1\t2\n3 ", "1e3 2 3", "nan 0 0", "NaN 0 0", "inf 0 0", "-inf 0 0", "infinity 0 0"),
    *("0x10 0 0", "0x1p3 0 0", "1. .5 -.5", "+1 2 3", "1e-400 0 0", "1e+5 0 0", "1E5 0 0", ""),
    *("nan(1) 0 0", "1,2,3", "1;2;3", "1e 2 3", "1.0f 2 3", "1d3 0 0", "1e400 0 0", "-1e400 0 0"),
    *("1__0 1 2", "1_0 1 2", "1 2 3 x", "1 2 3x", "1 2", "1 2 3 4", "--1 0 0", "1\u00a02 3"),
    *("1e5.5 0 0", ". 0 0", "- 0 0", "e5 0 0", "1-2 3", "x", "\u0661 0 0", "0x 0 0"),
]
INTS = ["5", "+5", "-5", " 5 ", "007", "", "5.0", "5.5", "0x10", "1e2", "99999999999", "5x", "1 2"]
INTS += ["2147483647", "2147483648", "-2147483648", "1_0", "9" * 5000]
MEMORIES = ["1", "1K", "1k", " 1M", "1M ", "-1", "-2", "1.5M", "1MB", "1E"]


@pytest.fixture(autouse=True)
def _quiet(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def _oracle(element: str, attr: str, text: str):
    """The option's value, or None if the oracle refuses the text."""
    quoted = text.replace("\n", "&#10;").replace("\t", "&#9;")
    try:
        spec = mujoco.MjSpec.from_string(f'<mujoco><{element} {attr}="{quoted}"/></mujoco>')
    except ValueError:
        return None
    return np.array(getattr(spec.option if element == "option" else spec, attr))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("text", REALS)
def test_real_numbers(text):
    _agree(GRAVITY, text, _oracle("option", "gravity", text))


@pytest.mark.parametrize("text", INTS, ids=lambda text: text[:12])
def test_whole_numbers(text):
    _agree(ITERATIONS, text, _oracle("option", "iterations", text))


def _agree(attr, text, wanted):
    if wanted is None:
        with pytest.raises(BadValue):
            read_value(attr, text)
        return
    value = read_value(attr, text)
    if value is None:
        assert not text.strip()
        value = attr.default
    np.testing.assert_array_equal(value, wanted)


@pytest.mark.parametrize("text", MEMORIES)
def test_memory(text):
    if _oracle("size", "memory", text) is None:
        with pytest.raises(BadValue):
            read_value(MEMORY, text)
    else:
        assert read_value(MEMORY, text) == text


def test_types_and_shapes():
    assert read_value(ITERATIONS, "7") == 7
    assert isinstance(read_value(ITERATIONS, "7"), int)
    assert read_value(USER, "").__class__ is type(None)
    value = read_value(USER, "1 2 3 4 5")
    assert value.dtype == np.float64
    assert value.shape == (5,)


@pytest.mark.parametrize(
    ("attr", "text", "value"),
    [
        (DATA, "found force", "found force"),
        (DATA, " found  force ", "found force"),
        (DATA, "", None),
        (INPUT, "none", "none"),
        (INPUT, "pos vel", "pos vel"),
    ],
)
def test_several_keywords(attr, text, value):
    assert read_value(attr, text) == value


@pytest.mark.parametrize(
    ("attr", "text", "message"),
    [
        (GRAVITY, "1,2,3", "gravity needs numbers, got '1,2,3'; separate numbers by spaces"),
        (GRAVITY, "1 2 z", "gravity needs numbers, got 'z'"),
        (GRAVITY, "1 2", "gravity needs 3 numbers, got 2 ('1 2')"),
        (GRAVITY, "1e999 0 0", "gravity: '1e999' is too large for a number"),
        (GRAVITY, "0x1p5000 0 0", "gravity: '0x1p5000' is too large for a number"),
        (ITERATIONS, "1.5", "iterations needs a whole number, got '1.5'"),
        (ITERATIONS, "1 2", "iterations needs 1 number, got 2 ('1 2')"),
        (ITERATIONS, "9999999999", "iterations: '9999999999' is too large for a whole number"),
        (DATA, "force found", "data must be in order: write 'found force', not 'force found'"),
        (DATA, "found found", "data names 'found' twice ('found found')"),
        (DATA, "fund", "data cannot be 'fund'; did you mean 'found'?"),
        (INPUT, "none pos", "input: 'none' stands alone, got 'none pos'"),
        (
            MEMORY,
            "much",
            "memory needs -1, or digits and an optional letter of KMGTPE, got 'much'",
        ),
    ],
)
def test_messages(attr, text, message):
    with pytest.raises(BadValue) as caught:
        read_value(attr, text)
    assert str(caught.value) == message
