"""Written models read back equal: by hand, on real models, and on anything the schema allows."""

from importlib.util import find_spec
from pathlib import Path

import mujoco
import numpy as np
import pytest

from jaxsim.errors import ModelError
from jaxsim.mjcf import Element, read_file, read_string, to_xml


def equal(a: Element, b: Element) -> bool:
    """Return whether two trees agree in everything but their source locations."""
    if (a.tag, a.row, len(a.children)) != (b.tag, b.row, len(b.children)):
        return False
    if a.attrs.keys() != b.attrs.keys():
        return False
    for name, value in a.attrs.items():
        other = b.attrs[name]
        if type(value) is not type(other):
            return False
        numbers = not isinstance(value, str)
        if not np.array_equal(value, other, equal_nan=numbers):
            return False
    return all(equal(x, y) for x, y in zip(a.children, b.children, strict=True))


def test_canonical_text():
    root = read_string(
        """<mujoco model="a &amp; &lt;b&gt;">
        <option gravity="0 0 -9.810" timestep="1e-3" iterations="7"/>
        <custom><text name="t"><![CDATA[one "two"
\tthree]]></text></custom></mujoco>"""
    )
    assert to_xml(root) == (
        '<mujoco model="a &amp; &lt;b&gt;">\n'
        '  <option timestep="0.001" gravity="0 0 -9.81" iterations="7"/>\n'
        "  <custom>\n"
        '    <text name="t" data="one &quot;two&quot;&#10;&#9;three"/>\n'
        "  </custom>\n"
        "</mujoco>\n"
    )
    assert equal(root, read_string(to_xml(root)))


def test_every_letter_comes_back():
    name = "\t \n\r\x85\xa0\u2028é'\"<>&amp;&#38;]]>机"
    root = read_string("<mujoco><custom><text name='t' data='a'/></custom></mujoco>")
    root.children[0].children[0].attrs["data"] = name
    assert equal(root, read_string(to_xml(root)))
    spec = mujoco.MjSpec.from_string(to_xml(root))
    assert spec.texts[0].data == name


@pytest.mark.parametrize("letter", ["\0", "\1", "\ufffe", "\ud800"])
def test_what_xml_cannot_hold(letter):
    root = read_string(
        "<mujoco>\n<custom><text name='t' data='a'/></custom></mujoco>", name="a.xml"
    )
    root.children[0].children[0].attrs["data"] = f"a{letter}b"
    with pytest.raises(ModelError, match=r"^a.xml:2: <text name='t'>: XML cannot hold data='a"):
        to_xml(root)


def test_a_deep_tree():
    """Trees as deep as reading allows, and far deeper."""
    text = "<mujoco><worldbody>" + "<body>" * 497 + "</body>" * 497 + "</worldbody></mujoco>"
    written = to_xml(read_string(text))
    assert to_xml(read_string(written)) == written
    assert [e.tag for e in read_string(written).walk()] == ["mujoco", "worldbody"] + ["body"] * 497
    root = Element("a")
    below = root
    for _ in range(5000):
        below.children.append(Element("a"))
        below = below.children[0]
    lines = to_xml(root).splitlines()
    assert len(lines) == 2 * 5000 + 1
    assert lines[5000] == "  " * 5000 + "<a/>"


@pytest.mark.parametrize("x", [0.1, 1 / 3, 1e300, 5e-324, -0.0, 1e16, np.inf, -np.inf, np.nan, 123])
def test_numbers_come_back_bit_for_bit(x):
    root = read_string("<mujoco><option/></mujoco>")
    root.children[0].attrs["density"] = float(x)
    back = read_string(to_xml(root)).children[0].attrs["density"]
    assert np.array_equal(np.float64(x).view(np.int64), np.float64(back).view(np.int64))


_TESTDATA = Path(mujoco.__file__).parent / "testdata"
MODELS = sorted(_TESTDATA.glob("*.xml")) + sorted(
    Path(__file__).parents[2].glob("configs/*.xml"),
)


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name)
def test_real_models(path):
    root = read_file(path)
    assert equal(root, read_string(to_xml(root)))


def test_models_of_others():
    package = find_spec("dm_control")
    if package is None:
        pytest.skip("the package of the models is not installed")
    paths = sorted(Path(package.submodule_search_locations[0]).glob("suite/*.xml"))
    assert paths
    for path in paths:
        root = read_file(path)
        text = to_xml(root)
        assert equal(root, read_string(text)), path.name
