"""Division of a compiled model into leaves, tables and flags; rejected models."""

import mujoco
import numpy as np
import pytest

from jaxsim.io.assemble import assemble
from jaxsim.io.bridge import put_model


def model(xml: str):
    return put_model(mujoco.MjModel.from_xml_string(xml))


def test_numbers_that_shape_the_program():
    m = model("""
        <mujoco>
          <option density="1.2"/>
          <worldbody>
            <geom name="round" type="cylinder" size="0.1 0.1"/>
            <site name="aside" pos="0 1 0"/>
            <site name="a" pos="1 0 0"/>
            <body pos="0 0 1"><joint/>
              <geom size="0.1" pos="0 0.1 0"/>
              <geom size="0.1" fluidshape="ellipsoid"/>
              <site name="b"/>
            </body>
          </worldbody>
          <tendon>
            <spatial>
              <site site="a"/>
              <geom geom="round" sidesite="aside"/>
              <site site="b"/>
              <geom geom="round"/>
              <site site="a"/>
            </spatial>
          </tendon>
        </mujoco>""")
    assert m.flg_fluid
    np.testing.assert_array_equal(m.geom_hasfluid, [True, True, True])
    np.testing.assert_array_equal(m.wrap_sideid, [-1, 0, -1, -1, -1])


def test_a_model_in_a_vacuum_has_no_fluid_forces():
    assert not model("<mujoco/>").flg_fluid


def test_everything_that_cannot_be_simulated_is_named_at_once(refused):
    xml = """
        <mujoco>
          <option integrator="discrete"><flag sleep="enable" island="disable"/></option>
          <worldbody><body><joint name="a"/><geom size="1"/></body></worldbody>
          <tendon><fixed name="t"><joint joint="a" coef="1"/></fixed></tendon>
          <equality><tendon name="e" tendon1="t"/></equality>
        </mujoco>"""
    first, second = refused(lambda: model(xml))
    assert "'discrete' cannot be used with sleeping without islands" in first
    assert "constraints of tendons cannot be used with sleeping, as in MuJoCo; remove it" in second


def test_a_table_of_the_wrong_size_is_caught():
    m = model("<mujoco/>")
    fields = {**{n: getattr(m, n) for n in m.structure}, "body_mass": np.zeros(7)}
    fields |= {"wrap_prm": np.zeros(0), "geom_fluid": np.zeros((0, 12))}
    opt = {name: getattr(m.opt, name) for name in m.opt.fields}
    with pytest.raises(ValueError, match=r"body_mass: has shape \(7,\), expected \(1,\)"):
        assemble(fields, opt, {}, {})
