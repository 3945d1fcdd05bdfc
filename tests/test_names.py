"""Names to ids and back."""

import mujoco
import pytest

from jaxsim.bridge import put_model
from jaxsim.enums import ObjType
from jaxsim.names import find_id, id2name, name2id

XML = """
<mujoco>
  <worldbody>
    <body name="upper">
      <joint name="shoulder"/>
      <geom size="1"/>
      <body name="lower"><joint/><geom name="ball" size="1"/></body>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def m():
    return put_model(mujoco.MjModel.from_xml_string(XML))


def test_name_to_id_and_back(m):
    assert name2id(m, ObjType.BODY, "lower") == 2
    assert name2id(m, "body", "lower") == 2
    assert id2name(m, ObjType.XBODY, 0) == "world"
    assert id2name(m, "geom", 1) == "ball"


def test_what_has_no_name(m):
    assert id2name(m, "joint", 1) is None
    assert id2name(m, "joint", 99) is None
    assert name2id(m, "joint", "elbow") == -1
    assert name2id(m, "joint", "") == -1


def test_unknown_name_says_the_nearest(m):
    with pytest.raises(ValueError, match="no joint is named 'sholder'; did you mean 'shoulder'"):
        find_id(m, "joint", "sholder")
    with pytest.raises(ValueError, match="no key is named 'home'; there are: none"):
        find_id(m, "key", "home")
