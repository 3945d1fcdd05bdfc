"""Fields of the rows that a Data may keep, beside MuJoCo's, of objects in an unusual order."""

import jax
import mujoco
import numpy as np
import pytest
from physics.oracle import consistent_state
from tolerance import DYNAMICS

import jaxsim
from jaxsim.io.bridge import get_data, put_data, put_model

# objects of each kind stand in another order than what they act on
XML = """<mujoco><option cone="{cone}" solver="{solver}" iterations="200" tolerance="1e-15"
  impratio="3"/>
<worldbody>
  <geom type="plane" size="3 3 1" friction=".7 .01 .001"/>
  <body name="late" pos="1 0 .09"><freejoint/><geom size=".1" condim="6"/></body>
  <body name="arm" pos="0 0 1"><joint name="a" axis="0 1 0" range="-.1 .1" limited="true"/>
    <geom size=".05" pos=".3 0 0"/>
    <body pos=".3 0 0"><joint name="b" type="slide" axis="1 0 0" frictionloss=".2"/>
      <geom size=".05"/><site name="s"/>
      <body pos=".2 0 0"><joint name="c" axis="0 0 1" frictionloss=".1"/>
        <geom size=".04" pos=".1 0 0"/></body></body></body>
  <body name="ball" pos="0 1 .08"><joint name="q" type="ball" range="0 .2" limited="true"/>
    <geom size=".1" condim="4" pos="0 0 0"/></body>
  <body name="box" pos="-1 0 .095"><freejoint/><geom type="box" size=".1 .1 .1" condim="3"/></body>
  <body name="flat" pos="-1 1 .09"><freejoint/><geom size=".1" condim="1" priority="2"/></body>
</worldbody>
<tendon><fixed name="t" range="-.05 .05" limited="true" frictionloss=".3">
    <joint joint="c" coef="1"/><joint joint="a" coef="-.5"/></fixed></tendon>
<equality><joint joint1="c" joint2="b" polycoef=".1 .5 0 0 0"/>
  <weld body1="box" body2="late" solref=".05 .7"/>
  <connect body1="arm" body2="ball" anchor=".1 .2 0" solimp=".8 .9 .01"/></equality>
</mujoco>"""
NAMES = [n for n in jaxsim.Data.fields if n.startswith("efc_")]
NEW = ["efc_vel", "efc_diagA", "efc_R", "efc_b", "efc_state"]


def model(cone: str, solver: str) -> mujoco.MjModel:
    mj = mujoco.MjModel.from_xml_string(XML.format(cone=cone, solver=solver))
    mj.opt.jacobian = mujoco.mjtJacobian.mjJAC_DENSE
    return mj


def moving(mj: mujoco.MjModel) -> mujoco.MjData:
    d = mujoco.MjData(mj)
    rng = np.random.default_rng(4)
    d.qvel[:] = rng.normal(size=mj.nv)
    d.qfrc_applied[:] = rng.normal(size=mj.nv)
    mujoco.mj_integratePos(mj, d.qpos, 0.05 * rng.normal(size=mj.nv), 1.0)
    d.qpos[7:10] = 0.12, 0.02, 0.3
    mujoco.mj_forward(mj, d)
    return d


@pytest.mark.parametrize(
    ("cone", "solver"), [("elliptic", "Newton"), ("pyramidal", "Newton"), ("elliptic", "PGS")]
)
def test_every_field_of_the_rows(cone, solver):
    mj = model(cone, solver)
    theirs, m = moving(mj), put_model(mj)
    d = put_data(mj, theirs, keep=NAMES)
    for name in NEW:  # what comes from MuJoCo
        np.testing.assert_array_equal(getattr(d, name)[: theirs.nefc], getattr(theirs, name))
    d = jax.jit(jaxsim.forward)(m, d)
    n = theirs.nefc
    assert len(set(theirs.efc_type.tolist())) == 7
    consistent_state(mj, theirs)
    for name in NEW:
        ours = np.asarray(getattr(d, name))
        np.testing.assert_allclose(ours[:n], getattr(theirs, name), **DYNAMICS, err_msg=name)
        assert (ours[n:] == (-1 if name == "efc_state" else 0)).all()
    assert len(set(theirs.efc_state.tolist())) > 2
    back = get_data(mj, d)
    np.testing.assert_allclose(back.efc_b, theirs.efc_b, **DYNAMICS)


def test_what_is_kept_alone():
    """Each without the others; a step carries it, and `make_constraint` all but the forces."""
    mj = model("elliptic", "Newton")
    theirs, m = moving(mj), put_model(mj)
    consistent_state(mj, theirs)
    for name in ("efc_R", "efc_state"):
        d = put_data(mj, theirs, keep=[name])
        d = jax.jit(jaxsim.step)(m, d.replace(**{name: 0 * getattr(d, name)}))
        found = getattr(d, name)[: theirs.nefc]
        np.testing.assert_allclose(found, getattr(theirs, name), **DYNAMICS)


def test_what_a_data_has_not_says_what_takes_its_place():
    m = jaxsim.load_model("<mujoco/>")
    for name in ("efc_KBIP", "efc_JT", "efc_J_colind", "efc_diagApprox", "moment_rownnz", "qM"):
        with pytest.raises(AttributeError, match=rf"Data has no field '{name}': .*(d\.|jaxsim\.)"):
            getattr(jaxsim.make_data(m), name)
        with pytest.raises(
            ValueError, match=rf"keep: Data has no field '{name}': .*(d\.|jaxsim\.)"
        ):
            jaxsim.make_data(m, keep=[name])
    for name in ("mu", "H"):
        with pytest.raises(ValueError, match=rf"keep: Contact has no field '{name}': "):
            jaxsim.make_data(m, keep=[f"contact.{name}"])
    with pytest.raises(ValueError, match="no field 'efc_stat'; did you mean 'efc_state'"):
        jaxsim.make_data(m, keep=["efc_stat"])
