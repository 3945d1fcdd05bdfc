"""DC motors, pids and orientations against MuJoCo: several controls, outputs and activations."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from jax.test_util import check_grads
from physics import oracle
from physics.oracle import unpack
from states import random_state, single
from tolerance import DYNAMICS, FLOAT32, ROUGH_DIFFERENCE, ROUNDING, SAME, STAGE

import jaxsim
from jaxsim.io.bridge import put_data, put_model
from jaxsim.physics.actuator.actuation import actuation, next_activation
from jaxsim.physics.actuator.transmission import actuator_velocity, transmission

WORLD = """
<mujoco><option integrator="{integrator}" timestep=".002" gravity="0 0 0" {option}/><worldbody>
  <site name="ground" euler="10 20 30"/>
  <body><joint name="a" axis="0 1 0" {joint}/><geom size=".1" pos=".2 0 0"/>
    <site name="near" euler="20 30 40"/></body>
  <body pos="1 0 0"><joint name="ball" type="ball" damping=".1"/><geom size=".1" pos=".2 0 0"/>
    <body pos=".4 0 0"><joint name="b" axis="1 1 0"/><geom size=".1" pos="0 .2 0"/>
      <site name="tip" pos="0 .1 0" euler="50 20 10"/>
      <body pos=".4 0 0"><joint name="c" type="slide"/><geom size=".1" pos="0 .2 0"/></body></body>
  </body>
</worldbody>
<tendon><fixed name="t" {tendon}><joint joint="a" coef="2"/><joint joint="b" coef="1"/></fixed>
</tendon>
<actuator>{actuators}</actuator><sensor>{sensors}</sensor></mujoco>
"""
SO3 = 'gaintype="so3" biastype="so3" dyntype="integrator" gainprm="2"'
ORIENTATIONS = f"""
  <motor joint="a"/><orientation name="turn" joint="ball" kp="3" kv=".5" forcerange="0 9"/>
  <orientation name="aim" site="tip" refsite="ground" kp="3" kv=".5" input="quat"/>
  <position joint="c" kp="2" timeconst=".1"/>
  <orientation site="tip" refsite="near" kp="2" dampratio="1" ctrlrange="-1 1" group="2"/>
  <general joint="ball" {SO3} biasprm=".3 -2 -.2" actearly="true" actrange="-2 1.5"/>
  <general joint="ball" {SO3} biasprm="0 -2 -.2"/>
"""
PIDS = """
  <pid name="servo" joint="b" kp="3" kv=".2" ki=".5" imax=".6" slewmax="2" input="pos vel ff"
    velrange="-1 1" ffrange="-.5 .5" forcerange="-3 1"/>
  <intvelocity joint="ball" gear="0 0 1" kp="2"/>
  <pid joint="ball" gear="1 2 0" kp="3" kv=".2" ki=".5" slewmax="3"/>
  <pid joint="c" kp="3" input="vel" kv="2"/><pid tendon="t" kp="2" dampratio=".5" group="2"/>
  <pid site="tip" refsite="ground" gear="0 0 0 0 .5 0" kp="3" ki=".5" input="pos ff"/>
  <pid joint="a" kp="3" ki="-.5" slewmax="2" posrange="-1 1" ffrange="0 1" input="pos ff"/>
  <pid joint="c" ki="2" imax=".1"/>
"""
WARM = 'thermal="2 3 0 .004 25 30"'
RUBS = 'lugre="20 .3 .2 .4 .1"'
MOTOR = 'motorconst=".5" resistance="2"'
MOTORS = f"""
  <dcmotor name="plain" joint="a" {MOTOR}/>
  <dcmotor name="full" joint="b" {MOTOR} {WARM} {RUBS} inductance=".01" saturation="0 1 20"
    cogging=".2 5 .3" input="pos vel ff voltage" controller="3 1 .2 4 .7 3"/>
  <dcmotor joint="c" {MOTOR} {WARM} {RUBS} input="vel" controller="0 0 .2 4" saturation=".3"/>
  <dcmotor tendon="t" {MOTOR} {RUBS} input="none" cogging="1 2 3" gear="2"/>
  <dcmotor tendon="t" {MOTOR} inductance=".01" input="pos" controller="3 1 0 0 .2" group="2"/>
  <dcmotor joint="ball" gear="1 2 0" {MOTOR} input="pos ff" controller="3 0 0 1"/>
  <dcmotor joint="a" motorconst="0" resistance="1" input="none" {RUBS} damping=".1" armature=".2"/>
  <general joint="c" dyntype="dcmotor" dynprm=".1" actearly="true"/>
  <general joint="a" gaintype="dcmotor" gainprm="1 1" biastype="affine" biasprm="1 -2 -3"
    dynprm="0"/>
  <damper joint="c" kv="2" ctrlrange="0 .5"/>
"""
ALL = ORIENTATIONS + PIDS + MOTORS
OFF = ALL.replace(RUBS, f'group="2" {RUBS}')
SENSORS = "".join(
    f'<actuator{kind} actuator="{name}"/>'
    for kind in ("pos", "vel", "frc")
    for name in ("aim", "plain", "turn", "servo", "full")
)
LIMITS = {"joint": 'actuatorfrcrange="-1 .5"', "tendon": 'actuatorfrcrange="-.4 2"'}
CASES = {
    "all": {"actuators": ALL},
    "limits": {"actuators": ALL, **LIMITS},
    "group off": {"actuators": OFF, "option": 'actuatorgroupdisable="2"'},
}
INTEGRATORS = ("implicitfast", "implicit", "RK4", "discrete")
DEFAULTS = {"integrator": "Euler", "option": "", "joint": "", "tendon": "", "sensors": ""}


@cache
def build(**given: str) -> mujoco.MjModel:
    return oracle.compile_xml(WORLD.format(**{**DEFAULTS, **given}))


def moving(mj: mujoco.MjModel, seed: int) -> mujoco.MjData:
    """A random state with setpoints far away, so that they are slowed, wound and cut."""
    d = random_state(mj, seed)
    d.ctrl[:] *= 3
    mujoco.mj_forward(mj, d)
    return d


def stage(m, d):
    d = actuation(m, actuator_velocity(m, transmission(m, d)))
    results = d.actuator_length, d.actuator_moment, d.actuator_velocity, d.act_dot
    return *results, d.actuator_force, d.qfrc_actuator, next_activation(m, d)


run = jax.jit(stage)


@pytest.mark.short("all")
@pytest.mark.parametrize("case", CASES)
def test_forces_equal_those_of_mujoco(case):
    mj = build(**CASES[case])
    assert (mj.nu, mj.nout, mj.nactuator) == (45, 35, 25)
    for seed in range(6):
        mjd = moving(mj, seed)
        *found, act = run(*oracle.pair(mj, mjd))
        expected = (
            mjd.actuator_length,
            oracle.dense_moment(mj, mjd),
            mjd.actuator_velocity,
            mjd.act_dot,
            mjd.actuator_force,
            mjd.qfrc_actuator,
        )
        for a, b in zip(found, expected, strict=True):
            np.testing.assert_allclose(a, b, **ROUNDING)
        before = mjd.act.copy()
        mujoco.mj_step(mj, mjd)
        held = np.repeat(mj.actuator_dyntype == mujoco.mjtDyn.mjDYN_INTEGRATOR, mj.actuator_actnum)
        np.testing.assert_allclose(act[~held], mjd.act[~held], **ROUNDING)
        assert np.abs(mjd.act - before).max() > 1e-3


@pytest.mark.parametrize(
    "integrator",
    ["Euler", *(pytest.param(i, marks=pytest.mark.slow) for i in INTEGRATORS)],
)
def test_steps_equal_those_of_mujoco(integrator):
    mj = build(actuators=ALL, sensors=SENSORS, integrator=integrator)
    m, step = put_model(mj), jax.jit(jaxsim.step)
    for seed in range(3):
        mjd = moving(mj, seed)
        d = put_data(mj, mjd)
        for _ in range(4):
            d = step(m, d)
            mujoco.mj_step(mj, mjd)
            for name in (
                *("act", "act_dot", "qpos", "qvel", "qacc", "qfrc_actuator", "sensordata"),
                *("actuator_length", "actuator_velocity", "actuator_force"),
            ):
                scale = 1 + np.abs(getattr(mjd, name)).max()
                ours, theirs = getattr(d, name) / scale, getattr(mjd, name) / scale
                np.testing.assert_allclose(ours, theirs, **DYNAMICS, err_msg=name)


def test_gradients():
    """Gradients by controls, activations, motion and all nonzero parameters."""
    m, d = oracle.pair(mj := build(actuators=ALL), moving(mj, 3))

    def outputs(ctrl, act, length, velocity, gain, bias, dyn):
        m1 = m.replace(
            actuator_gainprm=m.actuator_gainprm * gain,
            actuator_biasprm=m.actuator_biasprm * bias,
            actuator_dynprm=m.actuator_dynprm * dyn,
        )
        d1 = d.replace(ctrl=ctrl, act=act, actuator_length=length, actuator_velocity=velocity)
        d1 = actuation(m1, d1)
        return d1.act_dot, d1.actuator_force, d1.qfrc_actuator, next_activation(m1, d1)

    scales = [jnp.ones_like(m.actuator_gainprm)] * 3
    at = d.ctrl, d.act, d.actuator_length, d.actuator_velocity, *scales
    check_grads(jax.jit(outputs), at, order=1, modes=("rev",), eps=1e-6, **ROUGH_DIFFERENCE)


@pytest.mark.slow
def test_gradients_at_rest_are_finite():
    """At the target orientation nothing moves and all controls are zero."""
    mj = build(actuators=ALL)
    mujoco.mj_forward(mj, mjd := mujoco.MjData(mj))
    m, d = oracle.pair(mj, mjd)

    def loss(ctrl, act, qpos):
        return sum(jnp.sum(x) for x in stage(m, d.replace(ctrl=ctrl, act=act, qpos=qpos)))

    grads = jax.jit(jax.grad(loss, argnums=(0, 1, 2)))(d.ctrl, d.act, d.qpos)
    assert all(np.isfinite(g).all() for g in grads)


@pytest.mark.slow
def test_many_worlds_are_many_loops():
    mj = build(actuators=ALL)
    states = [moving(mj, seed) for seed in range(3)]
    oracle.assert_worlds_are_a_loop(stage, mj, states, STAGE)


@pytest.mark.slow
def test_float32_stays_float32():
    mj = build(actuators=ALL)
    pair = oracle.pair(mj, moving(mj, 0))
    found, exact = ([np.asarray(a) for a in run(*x)] for x in (single(pair), pair))
    assert {a.dtype for a in found} == {np.dtype("float32")}
    for a, b in zip(found, exact, strict=True):
        scale = 1 + np.abs(b).max()
        np.testing.assert_allclose(a / scale, b / scale, rtol=0, atol=FLOAT32["rtol"])


@pytest.mark.slow
def test_the_start_asks_for_no_rotation():
    """A quaternion of controls begins as the identity, also after a state that was put back."""
    mj = build(actuators=ALL)
    m, mjd = put_model(mj), mujoco.MjData(mj)
    d = jaxsim.make_data(m)
    np.testing.assert_array_equal(d.ctrl, mjd.ctrl)
    assert mjd.ctrl.sum() == 1
    bad = d.replace(qvel=d.qvel.at[0].set(np.nan), ctrl=d.ctrl.at[:].set(7))
    assert jnp.array_equal(jax.jit(jaxsim.step)(m, bad).ctrl, d.ctrl)


def test_constants_are_the_compilers():
    """Lengths and accelerations of all outputs, as `set_const` finds them again."""
    mj = build(actuators=ALL)
    m = put_model(mj)
    found = jax.jit(jaxsim.set_const)(m.replace(actuator_acc0=m.actuator_acc0 * 0 + 7))
    np.testing.assert_allclose(found.actuator_acc0, mj.actuator_acc0, **STAGE)
    np.testing.assert_allclose(found.actuator_length0, mj.actuator_length0, **STAGE)


def force_of(m, d, **inputs):
    return jaxsim.stages.fwd_actuation(m, d.replace(**inputs)).actuator_force


def test_an_orientation_does_not_depend_on_how_it_is_said():
    """A quaternion of any length and sign, and a rotation vector longer by multiples of 2 pi."""
    joint = '<orientation joint="ball" kp="3" kv=".5" input="{}"/>'
    mj = build(actuators=joint.format("quat") + joint.format("expmap"))
    mjd = moving(mj, 1)
    m, d = put_model(mj), put_data(mj, mjd, keep="all")
    turn = np.array([0.3, -0.7, 1.1])
    quat = np.zeros(4)
    mujoco.mju_axisAngle2Quat(quat, turn / np.linalg.norm(turn), np.linalg.norm(turn))
    wound = turn * (1 + 2 * np.pi / np.linalg.norm(turn))
    force = jax.jit(lambda ctrl: force_of(m, d, ctrl=ctrl))
    first = force(jnp.concatenate([quat, turn]))
    other = force(jnp.concatenate([-5 * quat, wound]))
    np.testing.assert_allclose(first[:3], first[3:], **ROUNDING)
    np.testing.assert_allclose(first, other, **ROUNDING)
    # it asks for nothing where the joint is
    here = jnp.concatenate([mjd.qpos[1:5], mjd.actuator_length[:3]])
    damping = -0.5 * np.tile(mjd.actuator_velocity[:3], 2)
    np.testing.assert_allclose(force(here), damping, **ROUNDING)


def test_a_motor_turns_power_into_work_and_heat():
    """Power of the source = R i^2 + power at the shaft; stalled and idle as in the data sheet."""
    mj = build(actuators=f'<dcmotor joint="a" {MOTOR} {WARM}/>')
    m, d = put_model(mj), put_data(mj, moving(mj, 0), keep="all")
    K, R, V, v, T = 0.5, 2.0, 12.0, 3.0, 40.0
    at = {"ctrl": jnp.array([V]), "act": jnp.array([T]), "actuator_velocity": jnp.array([v])}
    new = jax.jit(jaxsim.stages.fwd_actuation)(m, d.replace(**at))
    hot = R * (1 + 0.004 * (T + 30 - 25))
    current = new.actuator_force[0] / K
    np.testing.assert_allclose(V * current, hot * current**2 + new.actuator_force[0] * v, **SAME)
    np.testing.assert_allclose(new.act_dot[0], (hot * current**2 - T / 2) / 3, **ROUNDING)
    stalled = force_of(m, d, **at | {"actuator_velocity": jnp.zeros(1)})
    np.testing.assert_allclose(stalled, K * V / hot, **ROUNDING)
    assert abs(force_of(m, d, **at | {"actuator_velocity": jnp.array([V / K])})[0]) < 1e-12


def test_friction_of_a_motor_is_dry_when_it_turns():
    """The bristles settle where their force is that of the Stribeck curve, whatever the step."""
    mj = build(actuators=f'<dcmotor joint="a" motorconst="0" resistance="1" input="none" {RUBS}/>')
    m, d = put_model(mj), put_data(mj, moving(mj, 0), keep="all")
    m = m.replace(opt=m.opt.replace(timestep=jnp.asarray(5.0)))
    d = d.replace(actuator_velocity=jnp.array([-0.2]), act=jnp.zeros(1))
    fwd_actuation = jax.jit(jaxsim.stages.fwd_actuation)
    new = fwd_actuation(m, d)
    bristle = next_activation(*(unpack(x, 0) for x in (m, new)))
    settled = fwd_actuation(m, new.replace(act=bristle))
    np.testing.assert_allclose(settled.act_dot, 0, atol=1e-12)
    np.testing.assert_allclose(settled.actuator_force, 0.2 + 0.2 * np.exp(-4), **ROUNDING)


def test_what_decides_the_activations_cannot_be_changed_later():
    m = put_model(build(actuators=MOTORS))
    for k, value, what in ((7, 0.0, "stay positive"), (5, 0.0, "stay positive")):
        with pytest.raises(ValueError, match=f"number {k} of actuator 1 must {what}"):
            m.replace(actuator_dynprm=m.actuator_dynprm.at[1, k].set(value))
    with pytest.raises(ValueError, match=r"actuator 0 must not become positive.*'current'"):
        m.replace(actuator_dynprm=m.actuator_dynprm.at[0, 0].set(0.1))
    m.replace(actuator_dynprm=m.actuator_dynprm * 2)


BIAS = 'biastype="dcmotor" biasprm=".3 4 .2 .6 .5 .7"'
HALVES = f"""
  <motor joint="c"/>
  <general joint="a" gainprm="2 .5 .01 20 3 .4 1 12" {BIAS} forcerange="-1 1"/>
  <general joint="b" gaintype="affine" gainprm="1 2 .3" {BIAS} dyntype="filter" dynprm=".1"/>
  <general joint="c" gainprm="2" {BIAS} dyntype="dcmotor" actearly="true"
    dynprm=".1 .2 .3 .4 .5 .6 .7 .8 .9 1"/>
  <general joint="a" gaintype="dcmotor" gainprm="2 .5" biastype="affine" biasprm=".3 -2 -.4"
    dynprm="0"/>
  <general joint="b" gaintype="dcmotor" gainprm="2 .5" dyntype="dcmotor" actearly="true"
    dynprm=".1 0 0 0 0 0 0 0 0 0"/>
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "integrator",
    ["implicitfast", *(pytest.param(i, marks=pytest.mark.slow) for i in ("discrete",))],
)
def test_halves_of_motors(integrator):
    """The bias of a motor without its gain is cogging and friction; the gain alone its current."""
    mj = build(actuators=HALVES, integrator=integrator)
    m, step = put_model(mj), jax.jit(jaxsim.step)
    for seed in range(3):
        mjd = moving(mj, seed)
        d = put_data(mj, mjd)
        for _ in range(3):
            d = step(m, d)
            mujoco.mj_step(mj, mjd)
            for name in ("act", "act_dot", "qvel", "qacc", "qfrc_actuator", "actuator_force"):
                scale = 1 + np.abs(getattr(mjd, name)).max()
                ours, theirs = getattr(d, name) / scale, getattr(mjd, name) / scale
                np.testing.assert_allclose(ours, theirs, **DYNAMICS, err_msg=name)
