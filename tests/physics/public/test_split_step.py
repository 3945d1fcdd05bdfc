"""A step and the dynamics in parts, as MuJoCo divides them."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import STIFF

import jaxsim
from jaxsim.enums import Stage

MODEL = """<mujoco><option integrator="{}" tolerance="1e-15"><flag energy="enable" {}/></option>
<worldbody><geom type="plane" size="5 5 1"/>
  <body pos="1 0 1"><joint name="j" axis="0 1 0" stiffness="3" damping=".2" range="-50 1"/>
    <geom size=".1" pos=".1 0 0"/><site name="s" pos=".1 0 0"/></body>
  <body pos="0 0 .09"><freejoint/><geom size=".1"/></body></worldbody>
<actuator><general joint="j" dyntype="filter" dynprm=".1" biastype="affine" biasprm="0 0 -1"/>
</actuator>
<sensor><jointpos joint="j"/><e_potential/><jointvel joint="j"/>
  <jointactuatorfrc joint="j"/><accelerometer site="s"/></sensor></mujoco>"""
RESULTS = (
    *("time", "qpos", "qvel", "act", "xpos", "cvel", "actuator_force", "qfrc_passive", "qfrc_bias"),
    *("qfrc_smooth", "qfrc_constraint", "qacc", "qacc_warmstart", "sensordata", "energy"),
    *("solver_fwdinv", "qfrc_inverse", "ctrl", "qfrc_applied"),
)
QPOS = np.array([0.05, 0, 0, 0.09, 1, 0, 0, 0])
QVEL = 0.1 + 0.1 * np.arange(7)
jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@cache
def model(integrator, flag):
    mj = mujoco.MjModel.from_xml_string(MODEL.format(integrator, flag))
    return mj, jaxsim.put_model(mj)


def start(integrator="Euler", flag=""):
    """MuJoCo's model and state, and ours."""
    mj, m = model(integrator, flag)
    mjd = mujoco.MjData(mj)
    mjd.qpos[:], mjd.qvel[:], mjd.act[:], mjd.ctrl[:] = QPOS, QVEL, 0.2, 0.5
    d = jaxsim.make_data(m)
    d = d.replace(**{n: jnp.array(getattr(mjd, n)) for n in ("qpos", "qvel", "act", "ctrl")})
    return mj, mjd, m, d


def same(d, mjd, names=RESULTS):
    for name in names:
        theirs = np.asarray(getattr(mjd, name))
        scale = 1 + np.abs(theirs).max(initial=0)
        np.testing.assert_allclose(
            getattr(d, name), theirs, atol=STIFF["atol"] * scale, err_msg=name
        )


@pytest.mark.short('RK4-fwdinv="enable"')
@pytest.mark.parametrize(
    ("integrator", "flag"),
    [
        ("RK4", 'fwdinv="enable"'),
        ("implicit", ""),
        pytest.param("Euler", "", marks=pytest.mark.slow),
    ],
)
def test_a_step_in_two_parts(integrator, flag):
    """Forces are set between them, of what the first has found; RK4 becomes Euler."""
    mj, mjd, m, d = start(integrator, flag)

    @jit
    def first(m, d):
        return jaxsim.step1(m, d)

    @jit
    def second(m, d):
        push = 3 * d.xpos[2, 2] * jnp.ones(m.nv)
        return jaxsim.step2(m, d.replace(ctrl=-d.qvel[:1], qfrc_applied=push))

    for _ in range(2):
        d = first(m, d)
        mujoco.mj_step1(mj, mjd)
        same(d, mjd)
        mjd.ctrl[:], mjd.qfrc_applied[:] = -mjd.qvel[0], 3 * mjd.xpos[2, 2]
        d = second(m, d)
        mujoco.mj_step2(mj, mjd)
        same(d, mjd)


@pytest.mark.slow
def test_a_bad_state_is_put_back_in_either_part():
    _, _, m, d = start()
    first, second = jit(jaxsim.step1), jit(jaxsim.step2)
    bad = first(m, d.replace(qvel=d.qvel.at[2].set(jnp.nan)))
    assert bad.warning.tolist() == [0, 0, 0, 0, 1, 0, 0]
    np.testing.assert_array_equal(bad.qpos, m.qpos0)
    bad = second(m, first(m, d).replace(qfrc_applied=jnp.full(m.nv, jnp.nan)))
    assert bad.warning.tolist() == [0, 0, 0, 0, 0, 1, 0]
    np.testing.assert_array_equal(bad.qvel, np.zeros(m.nv))


@pytest.mark.short("1")
@pytest.mark.parametrize("skip", [Stage.POS, Stage.VEL])
def test_stages_are_skipped(skip):
    """The result is that of all stages if only inputs changed that the skipped ones do not depend
    on; the inputs of skipped stages are not read."""
    mj, mjd, m, d = start()
    mujoco.mj_forward(mj, mjd)
    d = jit(jaxsim.forward)(m, d)
    d = d.replace(ctrl=jnp.ones(1), qfrc_applied=jnp.arange(7.0))
    mjd.ctrl[:], mjd.qfrc_applied[:] = 1, np.arange(7)
    if skip == Stage.POS:
        d, mjd.qvel[:] = d.replace(qvel=2 * d.qvel), 2 * mjd.qvel
    after = jit(lambda m, d: jaxsim.stages.forward_skip(m, d, skip))(m, d)
    mujoco.mj_forwardSkip(mj, mjd, int(skip), 0)
    same(after, mjd)
    given = np.linspace(-1, 1, 7)
    d, mjd.qacc[:] = after.replace(qacc=jnp.asarray(given)), given
    back = jit(lambda m, d: jaxsim.stages.inverse_skip(m, d, skip))(m, d)
    mujoco.mj_inverseSkip(mj, mjd, int(skip), 0)
    same(back, mjd, ("qfrc_inverse", "qfrc_constraint", "sensordata", "energy"))


@pytest.mark.slow
def test_sensors_are_skipped():
    mj, mjd, m, d = start()
    after = jit(lambda m, d: jaxsim.stages.forward_skip(m, d, skipsensor=True))(m, d)
    mujoco.mj_forwardSkip(mj, mjd, 0, 1)
    same(after, mjd, ("qacc", "sensordata", "energy"))
    assert not np.any(after.sensordata)
    with pytest.raises(ValueError, match="expected NONE, POS or VEL, got ACC"):
        jaxsim.stages.forward_skip(m, d, Stage.ACC)


def test_forward_and_inverse_are_compared_without_a_flag():
    mj, mjd, m, d = start()
    d = d.replace(qfrc_applied=jnp.arange(7.0))
    mjd.qfrc_applied[:] = np.arange(7)
    d = jit(jaxsim.forward)(m, d)
    mujoco.mj_forward(mj, mjd)
    mjd.qfrc_constraint[0] += 1
    d = d.replace(qfrc_constraint=d.qfrc_constraint.at[0].add(1))
    mujoco.mj_compareFwdInv(mj, mjd)
    d = jit(jaxsim.stages.compare_fwd_inv)(m, d)
    same(d, mjd, ("solver_fwdinv",))
    assert d.solver_fwdinv[0] > 0.9
