"""Fields of the rows that a Data may keep, against MuJoCo's, of objects in an unusual order."""

import jax
import mujoco
import numpy as np
import pytest
from physics.oracle import consistent_state
from tolerance import DYNAMICS

import jaxsim
from jaxsim.io.bridge import get_data, put_data, put_model

# objects of each kind are in another order than the objects they act on
XML = """<mujoco><option cone="{cone}" solver="{solver}" iterations="200" tolerance="1e-15"
  impratio="3"/>
<default><geom solimp=".7 .95 .05 .3 3" solref=".03 .8"/>
  <joint solimplimit=".6 .9 .4 .6 2" solimpfriction=".5 .9 .01"/></default>
<worldbody>
  <geom name="floor" type="plane" size="3 3 1" friction=".7 .01 .001"/>
  <body name="late" pos="1 0 .09"><freejoint/><geom name="late" size=".1" condim="6"/></body>
  <body name="arm" pos="0 0 1"><joint name="a" axis="0 1 0" range="-.1 .1" limited="true"/>
    <geom size=".05" pos=".3 0 0"/>
    <body pos=".3 0 0"><joint name="b" type="slide" axis="1 0 0" frictionloss=".2"/>
      <geom size=".05"/><site name="s"/>
      <body pos=".2 0 0"><joint name="c" axis="0 0 1" frictionloss=".1"/>
        <geom size=".04" pos=".1 0 0"/></body></body></body>
  <body name="ball" pos="0 1 .08"><joint name="q" type="ball" range="0 .2" limited="true"/>
    <geom size=".1" condim="3" pos="0 0 0"/></body>
  <body name="box" pos="-1 0 .02"><freejoint/><geom type="box" size=".1 .1 .1" condim="6"/></body>
  <body name="flat" pos="-1 1 .09"><freejoint/><geom size=".1" condim="1" priority="2"/></body>
</worldbody>
<tendon><fixed name="t" range="-.05 .05" limited="true" frictionloss=".3">
    <joint joint="c" coef="1"/><joint joint="a" coef="-.5"/></fixed></tendon>
<contact><pair geom1="floor" geom2="late" condim="4" friction=".9 .4 .02 .001 .001" margin=".02"
  solref="-900 -40" solreffriction=".05 1.2" solimp=".5 .9 .2 .4 2"/></contact>
<equality><joint joint1="c" joint2="b" polycoef=".1 .5 0 0 0"/>
  <weld body1="box" body2="late" solref=".05 .7" solimp=".1 .95 3 .5 2"/>
  <connect body1="arm" body2="ball" anchor=".1 .2 0" solimp=".8 .9 .01"/></equality>
</mujoco>"""
NAMES = [n for n in jaxsim.Data.fields if n.startswith("efc_")]
NEW = ["efc_KBIP", "efc_vel", "efc_diagA", "efc_R", "efc_b", "efc_state"]


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
    ("cone", "solver"),
    [
        ("elliptic", "Newton"),
        pytest.param("pyramidal", "Newton", marks=pytest.mark.slow),
        pytest.param("elliptic", "PGS", marks=pytest.mark.slow),
    ],
)
def test_every_field_of_the_rows(cone, solver):
    mj = model(cone, solver)
    theirs, m = moving(mj), put_model(mj)
    d = put_data(mj, theirs, keep=[*NAMES, "contact.mu", "contact.H"])
    for name in ("mu", "H"):
        ours = getattr(d.contact, name)[: theirs.ncon]
        np.testing.assert_array_equal(ours, getattr(theirs.contact, name))
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
    assert np.ptp(theirs.efc_KBIP, axis=0).all()
    assert set(theirs.contact.dim.tolist()) == {1, 3, 4, 6}
    mu = np.asarray(d.contact.mu)
    np.testing.assert_allclose(mu[: theirs.ncon], theirs.contact.mu, **DYNAMICS)
    assert (mu[theirs.ncon :] == 0).all()
    back = get_data(mj, d)
    np.testing.assert_allclose(back.efc_b, theirs.efc_b, **DYNAMICS)
    np.testing.assert_allclose(back.contact.mu, theirs.contact.mu, **DYNAMICS)


@pytest.mark.slow
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
    for name in ("efc_AR", "efc_JT", "efc_J_colind", "efc_diagApprox", "moment_rownnz", "qM"):
        with pytest.raises(AttributeError, match=rf"Data has no field '{name}': .*(d\.|jaxsim\.)"):
            getattr(jaxsim.make_data(m), name)
        with pytest.raises(
            ValueError, match=rf"keep: Data has no field '{name}': .*(d\.|jaxsim\.)"
        ):
            jaxsim.make_data(m, keep=[name])
    with pytest.raises(ValueError, match=r"Contact has no field 'h'; did you mean 'contact\.H'"):
        jaxsim.make_data(m, keep=["contact.h"])
    with pytest.raises(
        ValueError, match=r"contact\.dist: the fields of contacts are kept together"
    ):
        jaxsim.make_data(m, keep=["contact.dist"])
    with pytest.raises(ValueError, match="no field 'efc_stat'; did you mean 'efc_state'"):
        jaxsim.make_data(m, keep=["efc_stat"])


SLIDING = """<mujoco><option cone="elliptic" impratio="2" iterations="200" tolerance="1e-15"/>
  <default>
  <geom size=".1" friction=".8 .02 .01" solimp=".5 .9 .1"/></default><worldbody>
  <geom type="plane" size="3 3 1"/>
  <body pos="0 0 .09"><freejoint/><geom condim="3"/></body>
  <body pos="1 0 .08"><freejoint/><geom condim="6"/></body>
  <body pos="2 0 .07"><freejoint/><geom condim="4"/></body>
  <body pos="3 0 .3"><freejoint/><geom condim="4"/></body></worldbody></mujoco>"""


@pytest.mark.slow
def test_hessians_of_cones_have_mujocos_places():
    """Contacts that slide, of each dimension; those of a batch, and what a reset leaves."""
    mj = mujoco.MjModel.from_xml_string(SLIDING)
    theirs, m = mujoco.MjData(mj), put_model(mj)
    theirs.qvel[:] = np.tile([0.5, 0.2, 0, 0.3, -4, 1], 4)
    mujoco.mj_forward(mj, theirs)
    assert [np.count_nonzero(H) for H in theirs.contact.H] == [9, 36, 16]
    d = jaxsim.make_data(m, keep=["contact.H", "qacc"]).replace(qvel=theirs.qvel)
    d = jax.jit(jax.vmap(jaxsim.forward, (None, 0)))(m, jaxsim.replicate(d, 2))
    for ours in np.asarray(d.contact.H):
        np.testing.assert_allclose(ours[:3], theirs.contact.H, **DYNAMICS)
        assert not ours[3:].any()
    assert d.contact.mu is None
    start = jaxsim.reset_data(m, d, where=np.array([True, False]))
    assert not start.contact.H[0].any()
    np.testing.assert_array_equal(start.contact.H[1], d.contact.H[1])


@pytest.mark.short("discrete")
@pytest.mark.parametrize("integrator", ["Euler", "discrete"])
def test_laws_of_rows_that_a_step_cannot_resolve(integrator):
    """Time constants below two steps, and rows exactly at their margin."""
    mj = mujoco.MjModel.from_xml_string(f"""<mujoco>
      <option integrator="{integrator}" timestep=".01"/>
      <default><geom size=".1" solref=".002 1"/></default><worldbody>
      <geom type="plane" size="3 3 1"/>
      <body pos="0 0 .1"><freejoint/><geom margin=".01" solimp=".5 .9 .1"/></body>
      <body pos="1 0 1"><joint axis="0 1 0" range="0 1" limited="true" solreflimit=".001 .5"
        solimplimit=".3 .9 .2"/><geom contype="0"/></body>
      <body pos="2 0 1"><joint name="j" axis="0 1 0" frictionloss="1" solreffriction=".001 1"/>
        <geom contype="0"/></body></worldbody>
      <equality><joint joint1="j" polycoef=".1 0 0 0 0" solref=".003 1"/></equality></mujoco>""")
    theirs, m = mujoco.MjData(mj), put_model(mj)
    theirs.qpos[7] = -0.1
    mujoco.mj_forward(mj, theirs)
    d = jaxsim.make_data(m, keep=["efc_KBIP"]).replace(qpos=theirs.qpos)
    ours = jax.jit(jaxsim.forward)(m, d).efc_KBIP[: theirs.nefc]
    assert theirs.nefc == 7
    np.testing.assert_allclose(ours, theirs.efc_KBIP, **DYNAMICS)
