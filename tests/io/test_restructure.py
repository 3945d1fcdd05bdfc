"""Limits, masks and groups that change in a model that is made, against MuJoCo's."""

import re

import jax
import mujoco
import numpy as np
import pytest
from tolerance import DYNAMICS

import jaxsim
from jaxsim.io.bridge import put_data, put_model
from jaxsim.model.structure import CHANGEABLE

XML = """<mujoco><option timestep=".005"/><worldbody>
  <geom name="floor" type="plane" size="1 1 1"/>
  <body name="b" pos="0 0 .04"><joint name="j" axis="0 1 0" range="-.1 .1"/>
    <geom name="g" size=".05" pos=".2 0 0" contype="0" conaffinity="0"/></body>
  <body name="f" pos="0 1 .04"><freejoint name="f"/><geom name="h" size=".05"/></body>
</worldbody>
<tendon><fixed name="t" range="-.1 .1"><joint joint="j" coef="1"/></fixed></tendon>
<actuator><motor joint="j" ctrlrange="-1 1" forcerange="-.5 .5" ctrllimited="false"
  forcelimited="false"/><general joint="j" dyntype="integrator" actlimited="false"
  actrange="-.01 .01"/></actuator></mujoco>"""
CHANGES = {
    "jnt_limited": [0, 0],
    "tendon_limited": [0],
    "actuator_ctrllimited": [1, 0],
    "actuator_forcelimited": [1, 0],
    "actuator_actlimited": [0, 1],
    "geom_contype": [1, 1, 1],
    "geom_condim": [4, 4, 4],
    "geom_priority": [0, 1, 2],
}
QUICK = ("jnt_limited", "actuator_forcelimited", "geom_contype")


@pytest.mark.short("jnt_limited")
@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in CHANGES]
)
def test_the_changed_model_is_mujocos(name):
    mj = mujoco.MjModel.from_xml_string(XML)
    m = put_model(mj)
    getattr(mj, name)[:] = CHANGES[name]
    if name == "geom_contype":  # MuJoCo asks those of the bodies first
        mj.body_contype[:] = 1
    other = jaxsim.replace_structure(m, **{name: CHANGES[name]})
    np.testing.assert_array_equal(getattr(other, name), CHANGES[name])
    theirs = mujoco.MjData(mj)
    theirs.qpos[0], theirs.ctrl[:] = 0.3, 5
    d = put_data(mj, theirs, contacts=other.ncontact)
    step = jax.jit(jaxsim.step)
    for _ in range(4):
        mujoco.mj_step(mj, theirs)
        d = step(other, d)
    np.testing.assert_allclose(d.qpos, theirs.qpos, **DYNAMICS)
    np.testing.assert_allclose(d.act, theirs.act, **DYNAMICS)
    if name == "geom_contype":
        assert other.ncontact >= m.ncontact
        assert theirs.ncon > 1
    if name in ("jnt_limited", "tendon_limited"):
        assert other.structure.sizes["nrow"] < m.structure.sizes["nrow"]


def test_every_table_that_can_be_changed_exists():
    m = jaxsim.load_model(XML)
    for name in CHANGEABLE:
        same = jaxsim.replace_structure(m, **{name: getattr(m, name)})
        np.testing.assert_array_equal(getattr(same, name), getattr(m, name))
        with pytest.raises(TypeError, match=rf"jaxsim\.replace_structure\(m, {name}=\.\.\.\)"):
            m.replace(**{name: 0})
    assert int(jaxsim.replace_structure(m, contacts=7, geom_contype=1).ncontact) == 7


REFUSED = {
    "jnt_limited: expected whole numbers of shape (2,), got int64[3]": {"jnt_limited": [1, 1, 1]},
    "jnt_limited: expected whole numbers of shape (2,), got float64[2]": {"jnt_limited": [0.5, 1]},
    "joint 'f': a free joint has no limits": {"jnt_limited": [1, 1]},
    "geom_condim[0] is 5": {"geom_condim": 5},
    "jnt_type cannot be changed in a model: change the Spec": {"jnt_type": [2, 0]},
    "body_mass is an array, not a table: m.replace(body_mass=...)": {"body_mass": 1},
    "geom_contyp is no table of a model; did you mean 'geom_contype'?": {"geom_contyp": 1},
}


@pytest.mark.parametrize("message", REFUSED)
def test_what_is_refused(message):
    m = jaxsim.load_model(XML)
    with pytest.raises(ValueError, match=re.escape(message)):
        jaxsim.replace_structure(m, **REFUSED[message])


def test_a_limit_needs_a_range_and_a_program_no_other_structure():
    m = jaxsim.load_model(XML.replace(' range="-.1 .1"', "", 1))
    with pytest.raises(ValueError, match=r"joint 'j'.*jnt_limited needs a range.*m\.replace"):
        jaxsim.replace_structure(m, jnt_limited=[1, 0])
    with pytest.raises(ValueError, match="outside of jit"):
        jax.jit(lambda m: jaxsim.replace_structure(m, geom_group=0))(m)


def test_a_name_that_no_field_has():
    m = jaxsim.load_model(XML)
    d = jaxsim.make_data(m)
    for call, message in (
        (lambda: m.replace(body_mas=1), "no field 'body_mas'; did you mean 'body_mass'?"),
        (lambda: m.replace(timestep=1), "it is one of opt; tree_replace({'opt.timestep': ...})"),
        (lambda: m.replace(jnt_type=1), "change the Spec, and load it again"),
        (lambda: m.replace(jnt_limitd=1), "did you mean 'jnt_limited'?"),
        (lambda: m.opt.replace(timstep=1), "did you mean 'timestep'?"),
        (lambda: d.replace(qps=1), "did you mean 'qpos'?"),
        (lambda: d.replace(qM=1), "full_m(m, d); or d.M of a Data that keeps it"),
    ):
        with pytest.raises(TypeError, match=re.escape(message)):
            call()
