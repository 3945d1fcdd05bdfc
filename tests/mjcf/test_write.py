"""What is written reads back equal: by hand, on real models, and on anything the schema allows."""

from importlib.util import find_spec
from pathlib import Path

import mujoco
import numpy as np
import pytest

from jaxsim.mjcf import Element, read_file, read_string, to_xml


def equal(a: Element, b: Element) -> bool:
    """Whether two trees agree in everything but their places."""
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
