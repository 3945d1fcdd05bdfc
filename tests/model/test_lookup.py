"""Addresses of named objects against those of MuJoCo's own model."""

import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.model.lookup import ctrl_index, dof_index, qpos_index, sensor_data, sensor_index

XML = """
<mujoco>
  <worldbody>
    <body><joint name="slide" type="slide"/><geom size=".1"/>
      <body pos="1 0 0"><joint name="ball" type="ball"/><geom size=".1"/></body></body>
    <body pos="0 3 0"><freejoint name="free"/><geom size=".1"/><site name="s"/></body>
    <body pos="0 6 0"><joint name="hinge"/><geom size=".1"/></body>
  </worldbody>
  <actuator><motor name="push" joint="slide"/><motor name="turn" joint="hinge"/></actuator>
  <sensor><clock name="clock"/><framequat name="quat" objtype="site" objname="s"/>
    <jointpos name="angle" joint="hinge"/></sensor>
</mujoco>"""


@pytest.fixture(scope="module")
def models():
    return jaxsim.load_model(XML), mujoco.MjModel.from_xml_string(XML)


@pytest.mark.parametrize("names", [["hinge"], ["free", "slide"], ["ball", "hinge", "free"]])
def test_joints(models, names):
    m, mj = models
    data = mujoco.MjData(mj)
    data.qpos[:], data.qvel[:] = np.arange(mj.nq), np.arange(mj.nv)
    expected = [
        np.concatenate([getattr(data.joint(n), f) for n in names]) for f in ("qpos", "qvel")
    ]
    np.testing.assert_array_equal(data.qpos[qpos_index(m, names)], expected[0])
    np.testing.assert_array_equal(data.qvel[dof_index(m, names)], expected[1])


def test_sensors_and_actuators(models):
    m, _ = models
    np.testing.assert_array_equal(sensor_index(m, ["angle", "quat"]), [5, 1, 2, 3, 4])
    np.testing.assert_array_equal(ctrl_index(m, ["turn", "push"]), [1, 0])
    d = jaxsim.make_data(m)
    many = d.replace(sensordata=np.arange(12.0).reshape(2, 6))
    np.testing.assert_array_equal(sensor_data(m, many, "quat"), [[1, 2, 3, 4], [7, 8, 9, 10]])
    assert len(qpos_index(m, [])) == 0


@pytest.mark.parametrize("find", [qpos_index, dof_index, ctrl_index, sensor_index])
def test_unknown_names_are_reported(models, find):
    with pytest.raises(ValueError, match="is named 'hing'"):
        find(models[0], "hing")
