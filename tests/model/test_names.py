"""Names to ids and back."""

import re

import mujoco
import numpy as np
import pytest

from jaxsim.enums import ObjType
from jaxsim.io.bridge import put_model
from jaxsim.io.load import load_model
from jaxsim.model.names import actuator_input_name, id2name, name2id

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


@pytest.mark.parametrize(
    ("kind", "name", "message"),
    [
        ("joint", "sholder", "no joint is named 'sholder'; did you mean 'shoulder'?"),
        ("joint", "", "no joint is named ''; there are: shoulder"),
        (ObjType.KEY, "home", "no key is named 'home'; there are: none"),
        ("joints", "slide", "no kind of object is called 'joints'; did you mean 'joint'?"),
        (ObjType.DOF, "slide", "no kind of object is called 'dof'; there are: "),
    ],
)
def test_unknown_names_are_reported(m, kind, name, message):
    """A -1 would silently read the last entry of a table."""
    with pytest.raises(ValueError, match=re.escape(message)):
        name2id(m, kind, name)


def test_a_name_of_a_kind_that_is_not_there(m):
    with pytest.raises(ValueError, match="no kind of object is called 'joints'"):
        id2name(m, "joints", 0)


def test_both_ways_to_a_model_have_the_same_kinds(m):
    assert m.structure.names == load_model(XML).structure.names


ACTUATORS = """<mujoco><worldbody><body><joint name="b" type="ball"/><geom size=".1"/>
  <body pos="1 0 0"><joint name="h"/><geom size=".1"/></body></body></worldbody>
<actuator><motor name="plain" joint="h"/><intvelocity joint="h" actrange="-1 1"/>
  <position joint="h"/><velocity joint="h"/><cylinder joint="h" area=".1"/>
  <general joint="h" input="pressure"/><pid joint="h" kp="1" ki="1" kv="1" input="pos vel ff"/>
  <pid joint="h" kp="1" input="vel"/><dcmotor joint="h" motorconst=".1" resistance="1"/>
  <dcmotor joint="h" motorconst=".1" resistance="1" input="pos vel ff voltage"/>
  <dcmotor joint="h" motorconst=".1" resistance="1" input="none"/>
  <orientation joint="b" kp="1" input="quat"/><orientation name="turn" joint="b" kp="1"/>
  <muscle joint="h" lengthrange="0 1"/></actuator></mujoco>"""


def test_inputs_of_actuators_have_the_names_of_mujoco():
    mj = mujoco.MjModel.from_xml_string(ACTUATORS)
    for m in (put_model(mj), load_model(ACTUATORS)):
        for i in range(mj.nactuator):
            for place in range(-1, 6):
                expected = mujoco.mj_actuatorInputName(mj, i, place)
                assert actuator_input_name(m, i, place) == expected
    assert actuator_input_name(m, "turn", 2) == "rz"
    with pytest.raises(ValueError, match="actuator: the model has 14, there is no number 14"):
        actuator_input_name(m, 14, 0)
    for actuator, place in ((1.5, 0), (None, 0), (True, 0), (0, 0.0)):
        with pytest.raises(ValueError, match=r"(actuator|slot): expected a .*whole number, got"):
            actuator_input_name(m, actuator, place)
    assert actuator_input_name(m, np.int32(0), np.int64(9)) is None
