"""The schema table agrees with MuJoCo's manual and with MuJoCo's behavior."""

import re

import mujoco
import numpy as np
import pytest
from mjcf import manual

from jaxsim.mjcf.schema import ROOT, Attr, Row, walk


def _format_rows() -> dict[str, Row]:
    """The rows of the format proper, by the paths that the manual uses."""
    found = {}
    for path, row in walk():
        if row.meta or {"frame", "replicate"} & set(path.split("/")) or path == "mujoco/worldbody":
            continue
        path = path.replace("mujoco/worldbody/body", "mujoco/(world)body")
        if not path.startswith("mujoco/worldbody/"):  # the same rows as in a body
            found[path] = row
    return found


ROWS = _format_rows()
SLOTS = [
    (path, name, label)
    for path, (_, attrs) in manual.elements().items()
    for name, label in attrs.items()
]


def test_every_element_and_attribute_is_there():
    assert len(manual.elements()) == len(ROWS) == 171
    assert len(SLOTS) == sum(len(row.attrs) for row in ROWS.values()) == 1894
    for path, (occurs, attrs) in manual.elements().items():
        assert list(ROWS[path].attrs) == list(attrs), path
        assert ROWS[path].occurs == occurs, path


def test_every_row_is_described():
    for path, row in walk():
        assert row.doc, path
        for attr in row.attrs.values():
            assert attr.doc, (path, attr.name)
            assert not (attr.type in ("ref", "refs", "name") and not attr.kind), (path, attr.name)


def _default_of(declaration: str) -> list[float] | str | None:
    quoted = re.search(r'"([^"]*)"', declaration)
    if quoted is None or "..." in quoted[1].replace("............", ""):
        return None
    try:
        return [float(x) for x in quoted[1].split()]
    except ValueError:
        return quoted[1]


def test_defaults_are_those_of_the_manual():
    compared = 0
    for path, name, label in SLOTS:
        attr, declared = ROWS[path].attrs[name], manual.declarations().get(label)
        if declared is None:
            continue
        default = _default_of(declared)
        if default is None:
            continue
        ours = attr.default
        if attr.is_number:
            ours = np.atleast_1d(ours)
            default = np.resize(default, ours.shape) if name == "yield" else default
            np.testing.assert_array_equal(ours, default, err_msg=f"{path} {name}")
        elif attr.name == "memory":
            assert default == [float(ours)]
        else:
            assert ours == default, (path, name)
        compared += 1
    assert compared > 400


def _specimens(spec: mujoco.MjSpec) -> dict[str, object]:
    """New objects of the oracle, by the path of the element that makes them."""
    body, flex = spec.worldbody.add_body(), spec.add_flex()
    return {
        "mujoco/option": spec.option,
        "mujoco/compiler": spec.compiler,
        "mujoco/compiler/lengthrange": spec.compiler.LRopt,
        "mujoco/(world)body": body,
        "mujoco/(world)body/joint": body.add_joint(),
        "mujoco/(world)body/geom": body.add_geom(),
        "mujoco/(world)body/site": body.add_site(),
        "mujoco/(world)body/camera": body.add_camera(),
        "mujoco/(world)body/light": body.add_light(),
        "mujoco/asset/mesh": spec.add_mesh(),
        "mujoco/asset/texture": spec.add_texture(),
        "mujoco/asset/material": spec.add_material(),
        "mujoco/deformable/flex": flex,
        "mujoco/deformable/flex/contact": flex,
        "mujoco/deformable/flex/edge": flex,
        "mujoco/deformable/flex/elasticity": flex,
        "mujoco/contact/pair": spec.add_pair(),
        "mujoco/equality/weld": spec.add_equality(),
        "mujoco/tendon/spatial": spec.add_tendon(),
        "mujoco/actuator/general": spec.add_actuator(),
        "mujoco/sensor/touch": spec.add_sensor(),
        "mujoco/visual/rgba": spec.visual.rgba,
        "mujoco/visual/scale": spec.visual.scale,
        "mujoco/visual/map": spec.visual.map,
    }


def test_defaults_equal_those_of_mujoco():
    compared = 0
    for path, specimen in _specimens(mujoco.MjSpec()).items():
        for name, attr in ROWS[path].attrs.items():
            if (
                attr.is_number
                and attr.default is not None
                and not attr.variable_length
                and hasattr(specimen, name)
            ):
                theirs = np.atleast_1d(np.array(getattr(specimen, name), np.float64))
                ours = np.atleast_1d(attr.default).astype(np.float64)
                # Colors and decorations are float32 there.
                np.testing.assert_allclose(theirs, ours, rtol=1e-7, err_msg=f"{path} {name}")
                compared += 1
    assert compared > 200


# The manual calls them required; MuJoCo's reader takes any of the four.
_NOT_ALL_REQUIRED = {"id", "range", "grid", "gridrange"}


def test_required_attributes_are_those_of_the_manual():
    for path, name, label in SLOTS:
        declared = manual.declarations().get(label, "")
        if declared.endswith("required") and not path.startswith("mujoco/default/"):
            assert ROWS[path].attrs[name].required or name in _NOT_ALL_REQUIRED, (path, name)


_SYMBOLS = {"m": "L", "kg": "M", "s": "T", "rad": "A", "deg": "A", "angle": "A", "Q": "Q", "F": "F"}


def _unit(text: str) -> list[dict[str, int]]:
    """`kg m/s^2, 1` -> [{"M": 1, "L": 1, "T": -2}, {}]"""
    found = []
    for number in text.split(","):
        powers: dict[str, int] = {}
        over, _, under = number.partition("/")
        for part, sign in ((over, 1), (under, -1)):
            for token in part.split():
                if token == "1":
                    continue
                unit, _, power = token.partition("^")
                symbol = _SYMBOLS[unit]
                powers[symbol] = powers.get(symbol, 0) + sign * int(power or 1)
        found.append({symbol: power for symbol, power in powers.items() if power})
    return found


def test_units_have_the_dimensions_of_the_manual():
    compared = 0
    for path, name, label in SLOTS:
        unit = ROWS[path].attrs[name].unit
        if label not in manual.units() or "?" in unit:
            continue
        wanted = manual.units()[label]
        if wanted is None or name == "forcerange":  # which actuator drives what
            continue
        ours = _unit(unit)
        if len(ours) != len(wanted):  # one unit for all numbers
            ours, wanted = ours * max(len(wanted), 1), wanted * max(len(ours), 1)
        assert ours == wanted, (path, name, unit)
        compared += 1
    assert compared > 500


# Attributes that elements of the oracle's reader need before it looks at others.
_NEEDED = {
    "body": "b",
    "bindpos": "0 0 0",
    "bindquat": "1 0 0 0",
    "vertid": "0",
    "vertweight": "1",
    "role": "rgb",
    "file": "f",
    "mass": "1",
    "pos": "0 0 0",
    "size": "1 1 1 1",
    "element": "0 1 2",
    "coef": "1",
    "divisor": "2",
    "objtype": "site",
    "dim": "1",
    "data": "1",
    "plugin": "mujoco.pid",
    "count": "2",
}
_ALSO = {
    "mujoco/(world)body/flexcomp": {"count": "3 3 3", "dim": "3"},
    "mujoco/equality/connect": {"body1": "a", "anchor": "0 0 0"},
    "mujoco/equality/weld": {"body1": "a"},
    "mujoco/sensor/rangefinder": {"site": "a"},
    "mujoco/sensor/distance": {"geom1": "a", "geom2": "b"},
    "mujoco/sensor/normal": {"geom1": "a", "geom2": "b"},
    "mujoco/sensor/fromto": {"geom1": "a", "geom2": "b"},
    "mujoco/actuator/dcmotor": {"motorconst": "1 1", "resistance": "1"},
    "mujoco/default/dcmotor": {"motorconst": "1 1", "resistance": "1"},
    "mujoco/actuator/plugin": {"plugin": "mujoco.pid"},
    "mujoco/custom/text": {"data": "x"},
    "mujoco/custom/numeric": {"data": "1"},
}


def _attributes(path: str) -> dict[str, str]:
    row = ROWS[path]
    needed = {name: _NEEDED.get(name, "x") for name in row.required}
    return needed | _ALSO.get(path, {})


def _document(path: str, attrs: dict[str, str]) -> str:
    """The smallest document with an element at `path` that has these attributes."""
    text, closing = "", ""
    for i, tag in enumerate(path.split("/")):
        here = "/".join(path.split("/")[: i + 1])
        given = attrs if here == path else _attributes(here)
        if tag == "(world)body":
            text, closing, tag = text + "<worldbody>", "</worldbody>" + closing, "body"
        elif here == "mujoco/default" == path:
            text, closing = text + "<default>", "</default>" + closing
            given = {"class": "k"} | given
        text += f"<{tag}" + "".join(f' {k}="{v}"' for k, v in given.items()) + ">"
        closing = f"</{tag}>" + closing
    return text + closing


def _complaint(path: str, attrs: dict[str, str]) -> str:
    """Return the error of the oracle's reader, or nothing."""
    try:
        mujoco.MjSpec.from_string(_document(path, attrs))
    except ValueError as error:
        return str(error)
    return ""


# Not read without another attribute or a file.
_UNPROBED = {"mujoco/asset/model", "mujoco/(world)body/attach"}
_NUMBERS = [
    (path, attr)
    for path, row in ROWS.items()
    if path not in _UNPROBED
    for attr in row.attrs.values()
    if attr.is_number
]


@pytest.fixture(autouse=True)
def _quiet(tmp_path, monkeypatch):
    """The oracle writes a log file into the current folder."""
    monkeypatch.chdir(tmp_path)


def test_counts_equal_those_of_mujoco():
    for path, attr in _NUMBERS:
        least, most = attr.count
        for n in {max(least - 1, 1), max(least, 1), most or 40, (most or 40) + 1}:
            said = _complaint(path, {**_attributes(path), attr.name: " ".join(["1"] * n)})
            few, many = "not have enough data" in said, "too much data" in said
            assert few == (n < least), (path, attr.name, n, said)
            assert many == (most is not None and n > most), (path, attr.name, n, said)


def test_whole_numbers_equal_those_of_mujoco():
    for path, attr in _NUMBERS:
        value = " ".join(["1.5"] * max(attr.count[0], 1))
        said = _complaint(path, {**_attributes(path), attr.name: value})
        refused = "bad format" in said or "problem reading" in said
        assert refused == (attr.type == "int"), (path, attr.name, said)


def _all_keywords() -> list[str]:
    words = {
        word
        for row in ROWS.values()
        for attr in row.attrs.values()
        for word in (*attr.keywords, *attr.alone)
    }
    return sorted(words)


def _distinct_keywords() -> list[tuple[str, Attr]]:
    """Keyword attributes, each list of words once for each name."""
    found: dict[tuple, tuple[str, Attr]] = {}
    for path, row in ROWS.items():
        for attr in row.attrs.values():
            if attr.type in ("keyword", "keywords") and path not in _UNPROBED:
                found.setdefault((attr.name, attr.keywords, attr.alone), (path, attr))
    return list(found.values())


_REFUSALS = (
    "invalid keyword",
    "unknown layer role",
    "unknown object type",
    "is specified but",
    "problem reading",
)


@pytest.mark.parametrize(
    ("path", "attr"), _distinct_keywords(), ids=lambda x: x if isinstance(x, str) else x.name
)
def test_keywords_equal_those_of_mujoco(path, attr):
    beside = {"objtype": {"objname": "x"}, "reftype": {"refname": "x"}}.get(attr.name, {})
    if path == "mujoco/sensor/user" and attr.name == "objtype":
        pytest.skip("the oracle takes any word here")
    for word in _all_keywords():
        said = _complaint(path, {**_attributes(path), **beside, attr.name: word})
        refused = any(refusal in said for refusal in _REFUSALS)
        assert refused == (word not in (*attr.keywords, *attr.alone)), (word, said)


# Required by the manual, and by the oracle when it compiles, not when it reads.
_REFUSED_LATER = {
    "mujoco/asset/material": {"name"},
    "mujoco/contact/pair": {"geom1", "geom2"},
    "mujoco/actuator/adhesion": {"body"},
}


def test_rules_and_required_attributes_equal_those_of_mujoco():
    for path, row in ROWS.items():
        if path in _UNPROBED:
            continue
        said = _complaint(path, _attributes(path))
        assert "required attribute" not in said, (path, said)
        assert "Schema violation" not in said, (path, said)
        for name in set(row.required) - _REFUSED_LATER.get(path, set()):
            rest = {k: v for k, v in _attributes(path).items() if k != name}
            assert _complaint(path, rest), (path, name)


def test_a_rule_names_attributes_of_its_row():
    for path, row in walk():
        for rule in row.rules:
            assert rule.names <= set(row.attrs), path


def test_look_up():
    body = ROOT.child("worldbody").child("body")
    assert body.child("body") is body
    assert body.child("geom").attribute("size").count == (1, 3)
    assert body.child("geom").attribute("siz") is None
    assert body.child("spatial") is None


def test_defaults_cannot_be_changed():
    size = ROOT.child("worldbody").child("geom").attribute("size")
    with pytest.raises(ValueError, match="read-only"):
        size.default[0] = 1.0
