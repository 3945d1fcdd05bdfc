"""The integrators against MuJoCo, and their laws."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.oracle import unpack
from states import stack
from tolerance import DIFFERENCE, DYNAMICS, ROUNDING, SAME, STAGE, STAGES

import jaxsim
from jaxsim.io.bridge import put_data, put_model
from jaxsim.physics.body.configuration import differentiate_pos, displacement_rate, integrate_pos
from jaxsim.physics.public.api import step
from jaxsim.physics.public.make_data import make_data

INTEGRATORS = ("Euler", "RK4", "implicitfast", "implicit", "discrete")
WORLD = """
<mujoco><option timestep=".004" integrator="{integrator}" {option}>
  <flag contact="disable" energy="enable" {flag}/></option><worldbody>
  <body><joint name="a" axis="0 1 0" armature=".01" damping=".1 .2 .3" {joint}/>
    <geom size=".1" pos=".2 0 0"/>
    <body pos=".4 0 0"><joint name="b" type="slide" axis="1 0 0" stiffness="30"/>
      <geom size=".1"/></body></body>
  <body pos="1 1 1"><joint name="c" type="ball" damping=".1"/>
    <geom size=".1 .2" type="capsule" pos=".1 .2 .3"/></body>
  <body pos="2 1 1"><joint name="f" type="free"/>
    <geom size=".1 .2 .3" type="box" pos=".1 .2 .3" {geom}/><site name="s" pos=".1 .1 .1"/></body>
</worldbody>
<tendon><fixed name="t" stiffness="20" damping="1 .1" {tendon}>
  <joint joint="a" coef="1"/><joint joint="b" coef="2"/></fixed></tendon>
<actuator>{actuators}</actuator>
<sensor><clock/><jointpos joint="a"/><gyro site="s"/><accelerometer site="s"/></sensor></mujoco>
"""
# of the state at the end, or where the integrator was last: after RK4 its last stage
RESULTS = (
    "xpos xquat xipos subtree_com ten_length cvel ten_velocity qfrc_bias qfrc_passive act_dot "
    "actuator_force qfrc_smooth qacc_smooth qacc qacc_warmstart energy sensordata"
)
MANY = """
  <velocity joint="a" kv="3" forcerange="-2 2"/>
  <position tendon="t" kp="3" timeconst=".05"/>
  <general joint="b" dyntype="filterexact" dynprm=".03" actlimited="true" actrange="-.2 .3"/>
  <motor joint="c" gear="1 2 3"/>
  <muscle joint="a" lengthrange="-1 1"/>
"""
TOP = """
<mujoco><option timestep=".01" gravity="0 0 0" integrator="{integrator}">
  <flag energy="enable"/></option>
<worldbody><body><joint type="free" name="f"/><geom type="box" size=".1 .2 .4"/></body></worldbody>
{more}</mujoco>
"""
DRAG = '<actuator><velocity joint="f" gear="1 1 1 1 2 1" kv="20"/></actuator>'


def world(**given) -> mujoco.MjModel:
    blank = dict.fromkeys("option flag joint geom tendon actuators".split(), "")
    return mujoco.MjModel.from_xml_string(WORLD.format(**{"integrator": "Euler", **blank, **given}))


def moving(mj: mujoco.MjModel, seed: int = 0) -> mujoco.MjData:
    rng = np.random.default_rng(seed)
    mjd = mujoco.MjData(mj)
    mujoco.mj_integratePos(mj, mjd.qpos, 0.5 * rng.normal(size=mj.nv), 1.0)
    mjd.qvel[:] = 2 * rng.normal(size=mj.nv)
    mjd.ctrl[:] = rng.normal(size=mj.nu)
    mjd.act[:] = 0.2
    return mjd


@cache
def stepper():
    return jax.jit(step)


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_steps_beside_mujoco(integrator):
    mj = world(integrator=integrator, option='density="20" viscosity=".1"', actuators=MANY)
    mjd = moving(mj)
    m, d = put_model(mj), put_data(mj, mjd)
    for n in range(1, 101):
        d = stepper()(m, d)
        mujoco.mj_step(mj, mjd)
        if n in (1, 10, 100):
            np.testing.assert_allclose(d.qpos, mjd.qpos, **STAGES)
            np.testing.assert_allclose(d.qvel, mjd.qvel, **STAGES)
            np.testing.assert_allclose(d.act, mjd.act, **STAGES)
            np.testing.assert_allclose(d.time, mjd.time, rtol=SAME["rtol"])
            for name in RESULTS.split():
                np.testing.assert_allclose(
                    getattr(d, name), getattr(mjd, name), **DYNAMICS, err_msg=name
                )


@pytest.mark.slow
@pytest.mark.parametrize("integrator", ["RK4", "implicitfast", "implicit"])
def test_many_worlds_are_worlds(integrator):
    mj = mujoco.MjModel.from_xml_string(TOP.format(integrator=integrator, more=DRAG))
    m = put_model(mj)
    worlds = [put_data(mj, moving(mj, seed), keep=["energy"]) for seed in range(3)]
    together = stack(worlds)
    found = jax.jit(jax.vmap(step, (None, 0)))(m, together)
    for k, d in enumerate(worlds):
        new = stepper()(m, d)
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(new), strict=True):
            np.testing.assert_allclose(a[k], b, rtol=STAGE["rtol"], atol=ROUNDING["atol"])


SLOW = [pytest.param(i, marks=pytest.mark.slow) for i in ("RK4", "discrete")]


@pytest.mark.parametrize("integrator", ["implicitfast", *SLOW])
def test_gradient_of_a_step(integrator):
    """Reverse mode against finite differences, along one direction."""
    mj = mujoco.MjModel.from_xml_string(TOP.format(integrator=integrator, more=DRAG))
    m, d = put_model(mj), put_data(mj, moving(mj), keep=[])
    rng = np.random.default_rng(0)
    u, w = jnp.asarray(rng.normal(size=(2, 6)))

    def after(t):
        """A number that depends on the next state, the state being moved by t along u."""
        qpos = jaxsim.support.integrate_pos(m, d.qpos, u, t)
        new = step(m, d.replace(qpos=qpos, qvel=d.qvel + t * u))
        return new.qvel @ w + new.qpos[1:] @ u

    eps = 1e-5
    both = jax.jit(jax.value_and_grad(after))  # one program
    (below, _), (_, slope), (above, _) = (both(t) for t in (-eps, 0.0, eps))
    np.testing.assert_allclose(slope, (above - below) / (2 * eps), rtol=DIFFERENCE["rtol"])


def test_rate_of_a_displacement():
    """The displacement from a fixed configuration to one that moves, by finite differences."""
    mj = world()
    m = unpack(put_model(mj), 0)
    rng = np.random.default_rng(0)
    q0, v = jnp.asarray(moving(mj).qpos), jnp.asarray(rng.normal(size=mj.nv))
    eps = 1e-6
    for size in (0.0, 0.01, 0.5, 1.0):  # rotations of less than 180 degrees
        u = jnp.asarray(size * rng.normal(size=mj.nv))
        there = integrate_pos(m, q0, u, 1.0)
        ends = [differentiate_pos(m, 1.0, q0, integrate_pos(m, there, v, t)) for t in (-eps, eps)]
        rate = (ends[1] - ends[0]) / (2 * eps)
        np.testing.assert_allclose(displacement_rate(m, u, v), rate, **DIFFERENCE)


@cache
def flight(integrator: str):
    """The model of a freely spinning box, and `(m, n) -> (qpos, kinetic energies)` of n steps."""
    m = put_model(mujoco.MjModel.from_xml_string(TOP.format(integrator=integrator, more="")))

    @jax.jit
    def fly(m, n):
        def one(i, carry):
            d, energy = carry
            d = step(m, d)
            return d, energy.at[i].set(d.energy[1])

        d = make_data(m, ["energy"]).replace(qvel=jnp.asarray([0.0, 0, 0, 1, 9, 1]))
        d, energy = jax.lax.fori_loop(0, n, one, (d, jnp.zeros(800)))
        return d.qpos, energy

    return m, fly


def test_order_of_runge_kutta():
    """Halving the step divides the error of a tumbling body's orientation by sixteen."""
    m, fly = flight("RK4")

    def at_half_a_second(n):
        return fly(m.replace(opt=m.opt.replace(timestep=jnp.asarray(0.5 / n))), n)[0]

    exact = at_half_a_second(800)
    error = [float(jnp.abs(at_half_a_second(n) - exact).max()) for n in (25, 50, 100)]
    assert 14 < error[0] / error[1] < 18
    assert 15 < error[1] / error[2] < 17


@pytest.mark.slow
def test_energy_of_a_spinning_body():
    """Kinetic energy falls slowly under implicitfast, hardly moves under RK4, rises under Euler."""
    fast, exact, plain = (
        np.asarray(fly(m, 400)[1][:400]) for m, fly in map(flight, ("implicitfast", "RK4", "Euler"))
    )
    assert (np.diff(fast) <= 1e-12 * fast[0]).all()
    assert fast[-1] > 0.5 * fast[0]
    np.testing.assert_allclose(exact, exact[0], rtol=1e-4)
    assert plain[-1] > 1.1 * plain[0]


@pytest.mark.parametrize(
    ("option", "flags", "message"),
    [
        (
            'integrator="discrete"',
            'sleep="enable" island="disable"',
            "'discrete' cannot be used with sleeping without islands",
        ),
        ('integrator="discrete" solver="PGS"', 'ipc="enable"', "ipc cannot be used with solver"),
        ('integrator="discrete"', 'ipc="enable" fwdinv="enable"', "ipc cannot be used with fwdinv"),
        ('integrator="discrete"', 'ipc="enable" sleep="enable"', "ipc cannot be used with sleep"),
    ],
)
def test_options_that_clash_are_refused(refused, option, flags, message):
    text = f"<mujoco><option {option}><flag {flags}/></option><worldbody><body>"
    text += '<freejoint/><geom size=".1"/></body></worldbody></mujoco>'
    (found,) = refused(lambda: jaxsim.load_model(text))  # MuJoCo itself takes some of them not
    assert message in found


@pytest.mark.slow
def test_ipc_changes_nothing_where_there_is_no_flex():
    """But for the start of the solver, which stays as it is."""
    mj = world(integrator="discrete", actuators=MANY, flag='ipc="enable"')
    mjd = moving(mj)
    mjd.qacc_warmstart[:] = 1
    m, d = put_model(mj), put_data(mj, mjd)
    d = stepper()(m, d)
    mujoco.mj_step(mj, mjd)
    for name in ("qpos", "qvel", "qacc", "qacc_warmstart"):
        np.testing.assert_allclose(getattr(d, name), getattr(mjd, name), **DYNAMICS)
