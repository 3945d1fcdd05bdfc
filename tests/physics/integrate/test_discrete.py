"""The discrete integrator against MuJoCo's: its inertia, rows, step, and the inverse of it."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import single, stack, world
from tolerance import DYNAMICS, FLOAT32, STIFF

import jaxsim
from jaxsim.io.bridge import put_model

# Springs that push away, dampers, servos at their limit and such as gain; a drive across two
# trees; rows of all kinds, some stiffer than a step resolves; a body that spins, one that is held.
SCENE = """
<mujoco><option timestep=".004" integrator="discrete" cone="{cone}" impratio="2" tolerance="1e-15"
  iterations="100" ls_iterations="100" density="20" viscosity=".1"/>
<default><geom priority="1" solref="{solref}" solimp=".8 .95 .02" friction=".7 .02 .03"
  condim="{condim}"/></default>
<worldbody><geom type="plane" size="3 3 1" priority="0"/><site name="post" pos="0 0 1"/>
  <body pos="4 0 3"><freejoint/><geom size=".1 .2 .3" type="box" pos=".1 0 0"/></body>
  <body pos="4 2 3"><joint type="free" stiffness="8 2" damping=".3"/>
    <geom size=".1 .3" type="capsule" fluidshape="ellipsoid"/></body>
  <body name="x"><joint name="a" axis="0 1 0" armature=".01" damping=".1 .2 .3" range="-1 .1"
      solreflimit="{solref}" solimplimit=".8 .95 .2"/>
    <geom size=".1" pos=".2 0 0" contype="0" conaffinity="0"/>
    <body pos=".4 0 0" name="y"><joint name="b" type="slide" axis="1 0 0" stiffness="30 -90 3"
        frictionloss=".2"/><geom size=".1" contype="0" conaffinity="0"/></body></body>
  <body pos="1 1 1" name="z"><joint name="c" type="ball" pos=".2 .3 .1" damping=".1"
      stiffness="3 1 2" range="0 10" solreflimit="{solref}"/>
    <geom size=".1 .2" type="capsule" pos=".1 .2 .3" contype="0" conaffinity="0"/></body>
  <body pos="2 1 .08" name="w"><joint name="f" type="free" stiffness="10" damping=".2"/>
    <geom size=".1 .2 .1" type="box"/><geom size=".05 .3 .1" type="box" pos=".2 0 .03"/>
    <site name="s" pos=".1 .1 .1"/></body>
</worldbody>
<equality><weld body1="y" body2="z" solref=".003 1.2"/>
  <connect body1="x" body2="z" anchor=".1 .2 .3"/></equality>
<tendon>
  <fixed name="t" stiffness="20 3" damping="1 .1" frictionloss=".3" range="-.1 .01"
    springlength="0 .02"><joint joint="a" coef="1"/><joint joint="b" coef="2"/></fixed>
  <spatial name="u" stiffness="5"><site site="post"/><site site="s"/></spatial>
</tendon>
<actuator>
  <position joint="b" kp="50" kv="2"/> <velocity joint="a" kv="3" forcerange="-2 2"/>
  <position tendon="t" kp="3" timeconst=".05"/> <motor joint="c" gear="1 2 3"/>
  <muscle joint="a" lengthrange="-1 1"/>
  <general joint="b" biastype="affine" biasprm="0 5 3" damping="2" gear="2"/>
  <general joint="b" gaintype="affine" gainprm="1 -5 3"/>
  <position site="s" refsite="post" kp="4" gear="1 .5 0 0 0 0"/>
</actuator>
<sensor><accelerometer site="s"/><force site="s"/></sensor></mujoco>
"""
COMPILER = {"xla_backend_optimization_level": 0}  # the programs run a few times
CASES = {
    "pyramids": {"cone": "pyramidal", "condim": 3, "solref": ".003 .8"},
    "cones": {"cone": "elliptic", "condim": 6, "solref": ".02 1"},
}
WORLDS = 3
STATE = ("qpos", "qvel", "act", "ctrl", "qfrc_applied")
OF_DOFS = (
    *("qpos", "qvel", "act", "act_dot", "actuator_force", "qfrc_passive", "qfrc_smooth"),
    *("qacc_smooth", "qacc", "qacc_warmstart", "qfrc_constraint", "sensordata", "cacc"),
)
OF_ROWS = ("efc_type", "efc_id", "efc_pos", "efc_margin", "efc_D", "efc_aref", "efc_force")


@cache
def model(case: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(SCENE.format(**CASES[case]))


def start(mj: mujoco.MjModel, seed: int) -> mujoco.MjData:
    rng = np.random.default_rng(seed)
    mjd = mujoco.MjData(mj)
    mujoco.mj_integratePos(mj, mjd.qpos, 0.05 * rng.normal(size=mj.nv), 1.0)
    mjd.qvel[:] = rng.normal(size=mj.nv)
    mjd.qvel[3:12] *= 10
    mjd.ctrl[:], mjd.act[:] = rng.normal(size=mj.nu), 0.2
    mjd.qfrc_applied[:] = rng.normal(size=mj.nv)
    return mjd


def put(m: jaxsim.Model, mjd: mujoco.MjData) -> jaxsim.Data:
    given = {name: jnp.array(getattr(mjd, name)) for name in STATE}
    return jaxsim.make_data(m, "all").replace(**given)


@cache
def stepper():
    return jax.jit(jax.vmap(jaxsim.step, (None, 0)), compiler_options=COMPILER)


def check(names, d: jaxsim.Data, mjd: mujoco.MjData, count=None) -> None:
    """Relative to the largest number of each, which forces of stiff rows make large."""
    for name in names:
        theirs = np.asarray(getattr(mjd, name))
        ours = np.asarray(getattr(d, name))[:count].reshape(theirs.shape)
        scale = 1 + np.abs(theirs).max(initial=0)
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=STIFF["atol"] * scale, err_msg=name)


@pytest.mark.slow
@pytest.mark.parametrize("case", ["pyramids", pytest.param("cones", marks=pytest.mark.slow)])
def test_steps_beside_mujoco(case):
    """Every row and every force, in worlds that differ, after one step and after ten."""
    mj = model(case)
    m = put_model(mj)
    starts = [start(mj, seed) for seed in range(WORLDS)]
    d = stack([put(m, mjd) for mjd in starts])
    for n in range(1, 11):
        d = stepper()(m, d)
        for mjd in starts:
            mujoco.mj_step(mj, mjd)
        if n not in (1, 10):
            continue
        for k, mjd in enumerate(starts):
            one = world(d, k)
            assert int(one.nefc) == mjd.nefc > 10
            check(OF_DOFS, one, mjd)
            check(OF_ROWS, one, mjd, mjd.nefc)


@cache
def explained():
    return jax.jit(
        lambda m, d: (jaxsim.forward(m, d), jaxsim.inverse(m, d)), compiler_options=COMPILER
    )


@pytest.mark.slow
def test_inverse_beside_mujoco():
    """Inverse dynamics of any acceleration; that of forward dynamics returns the applied forces."""
    mj = model("pyramids")
    m, mjd = put_model(mj), start(mj, 0)
    mujoco.mj_forward(mj, mjd)
    d = put(m, mjd)
    new, back = explained()(m, d.replace(qacc=jnp.array(mjd.qacc)))
    applied = np.asarray(new.qfrc_applied + new.qfrc_actuator)
    scale = 1 + np.abs(mjd.qfrc_constraint).max()
    np.testing.assert_allclose(back.qfrc_inverse, applied, rtol=0, atol=STIFF["atol"] * scale)
    mjd.qacc += np.random.default_rng(1).normal(size=mj.nv)
    _, back = explained()(m, d.replace(qacc=jnp.array(mjd.qacc)))
    mujoco.mj_inverse(mj, mjd)
    np.testing.assert_allclose(
        back.qfrc_inverse, mjd.qfrc_inverse, rtol=0, atol=DYNAMICS["atol"] * scale
    )


STIFF_SPRING = """
<mujoco><option timestep=".02" integrator="discrete" gravity="0 0 0"><flag energy="enable"/>
</option>
<worldbody><body><joint name="a" type="slide" axis="1 0 0" stiffness="1e6"/>
  <geom size=".1" mass="1"/></body></worldbody></mujoco>
"""


def test_a_spring_stiffer_than_the_step_resolves_only_loses_energy():
    """Backward Euler: v' = v / (1 + h^2 k / m) from rest position, and no step gains energy."""
    m = put_model(mujoco.MjModel.from_xml_string(STIFF_SPRING))
    d = jaxsim.make_data(m, ["energy"]).replace(qvel=jnp.ones(1))
    step, energy = jax.jit(jaxsim.step), []
    for n in range(20):
        d = step(m, d)
        energy.append(float(d.energy.sum()))
        if n == 0:
            np.testing.assert_allclose(d.qvel, 1 / (1 + 0.02**2 * 1e6), rtol=1e-12)
    assert (np.diff(energy) < 0).all()


@pytest.mark.slow
@pytest.mark.parametrize("flags", ["", '<flag diagexact="enable"/>'])
def test_gradient_of_a_step_with_rows(flags):
    """Reverse mode against differences: by the state, stiffness, masses, time step, solref."""
    text = SCENE.format(**CASES["cones"]).replace(
        "/>\n<default>", f">{flags}</option>\n<default>", 1
    )
    mj = mujoco.MjModel.from_xml_string(text)
    m, mjd = put_model(mj), start(mj, 1)
    d = put(m, mjd)
    rng = np.random.default_rng(2)
    u, w, c = (jnp.asarray(rng.normal(size=n)) for n in (m.nv, m.nv, m.nu))

    def after(t):
        model = m.replace(
            tendon_stiffness=m.tendon_stiffness * (1 + t),
            jnt_stiffness=m.jnt_stiffness * (1 - t),
            body_mass=m.body_mass * (1 + 0.3 * t),
            eq_solref=m.eq_solref * (1 + 0.5 * t),
            opt=m.opt.replace(timestep=m.opt.timestep * (1 + t)),
        )
        new = jaxsim.step(model, d.replace(qvel=d.qvel + t * u, ctrl=d.ctrl + t * c))
        return new.qvel @ w + 0.01 * new.qacc @ u

    value = jax.jit(after, compiler_options=COMPILER)
    eps = 1e-6
    differences = (value(eps) - value(-eps)) / (2 * eps)
    slope = jax.jit(jax.grad(after), compiler_options=COMPILER)(0.0)
    np.testing.assert_allclose(slope, differences, rtol=1e-5)


@pytest.mark.slow
def test_single_precision():
    mj = model("cones")
    m, mjd = put_model(mj), start(mj, 2)
    new = stepper()(single(m), stack([single(put(m, mjd))]))
    mujoco.mj_step(mj, mjd)
    assert all(a.dtype != jnp.float64 for a in jax.tree.leaves(new))
    np.testing.assert_allclose(new.qvel[0], mjd.qvel, **FLOAT32)
