"""The no-slip iterations against MuJoCo's: friction that holds, whatever carries it."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.constraint.scene import compile_xml
from physics.oracle import contact_forces
from states import inputs, random_state, single, stack, world
from tolerance import DIFFERENCE, FLOAT32, STIFF

import jaxsim
from jaxsim.enums import ConstraintType as Type
from jaxsim.enums import DisableBit

pytestmark = pytest.mark.long

# Two islands: a ball on a box, and an arm that is held by another ball. Contacts of all dimensions,
# dry friction of dofs and of a tendon; with gravity askew, so that something slips and something
# holds.
SCENE = """
<mujoco><option cone="{cone}" gravity="1.5 .3 -9.81" impratio="2" noslip_iterations="{iterations}"/>
<default><geom friction=".4 .02 .003"/></default>
<worldbody><geom name="floor" type="plane" size="3 3 .1" condim="1"/>
  <body name="box" pos="0 0 .1"><freejoint/><geom type="box" size=".2 .15 .1" condim="3"/>
    <site name="under" type="box" size=".3 .3 .2"/></body>
  <body name="ball" pos="0 0 .298"><freejoint/><geom size=".1" condim="6"/></body>
  <body name="flat" pos="-1 0 .099"><joint type="slide" axis="0 0 1"/><geom size=".1" condim="1"/>
  </body>
  <body name="arm" pos="1 0 .05"><joint name="x" type="slide" axis="1 0 0" frictionloss=".7"/>
    <joint name="z" type="slide" axis="0 0 1"/><joint name="r" axis="0 0 1" frictionloss=".02"/>
    <geom type="capsule" size=".05" fromto="0 0 0 .4 0 0" condim="4"/>
    <body pos=".4 0 0"><joint name="h" axis="0 0 1" range="-.3 .0"/>
      <geom type="capsule" size=".05" fromto=".1 0 0 .3 0 0" condim="3"/>
      <site name="tip" pos=".2 0 0"/></body></body>
  <body name="held" pos="1 .3 .05"><freejoint/><geom size=".05" condim="4"/></body>
</worldbody>
<tendon><fixed name="t" frictionloss=".05"><joint joint="h" coef="1"/><joint joint="r" coef=".5"/>
</fixed></tendon>
<equality><connect body1="arm" body2="held" anchor=".2 .1 0"/></equality>
<sensor><touch site="under"/><accelerometer site="tip"/><force site="tip"/><torque site="tip"/>
  <jointlimitfrc joint="h"/><framelinacc objtype="body" objname="ball"/>
  <contact geom1="floor" body2="box" num="2" reduce="maxforce" data="found force torque pos"/>
</sensor></mujoco>
"""
SMALL = """
<mujoco><option cone="{cone}" integrator="{integrator}" gravity="{gravity}" noslip_iterations="3"/>
<worldbody><geom type="plane" size="3 3 .1" friction=".5 .02 .003"/>
  <body name="box" pos="0 0 .0999"><freejoint/><geom type="box" size=".2 .15 .1"/></body>
  <body pos="1 0 .0999"><joint name="x" type="slide" axis="1 0 0" frictionloss=".4"/>
    <joint type="slide" axis="0 0 1"/><joint name="r" axis="0 1 1"/>
    <geom size=".1" condim="6" friction=".5 .02 .003"/></body>
</worldbody>
<tendon><fixed frictionloss=".01"><joint joint="r" coef="1"/></fixed></tendon></mujoco>
"""
COMPILER = {"xla_backend_optimization_level": 0}  # the programs run a few times
SEEDS = range(4)


@partial(jax.jit, compiler_options=COMPILER)
def found(m, d):
    new = jaxsim.forward(m, d)
    return new, jaxsim.support.constraint_rows(m, d), jaxsim.support.contact_forces(m, new)


@partial(jax.jit, compiler_options=COMPILER)
def step(m, d):
    return jaxsim.step(m, d)


def small(cone="elliptic", integrator="Euler", gravity="1.5 .3 -9.81") -> mujoco.MjModel:
    return compile_xml(SMALL.format(cone=cone, integrator=integrator, gravity=gravity))


def moved(mj: mujoco.MjModel, seed: int) -> mujoco.MjData:
    """A state that has come to touch the floor, pushed a little."""
    d = random_state(mj, seed, spread=0.001, speed=0.1, settle=20)
    d.qvel[:] *= 0.5
    d.xfrc_applied[:] *= 0.1
    d.qfrc_applied[:] *= 0.1
    mujoco.mj_forward(mj, d)
    return d


def assert_close(ours, theirs, tolerance: float = STIFF["atol"]) -> None:
    """Relative to the largest number."""
    scale = 1 + np.abs(theirs).max()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance * scale)


def together_and_alone(m, some):
    """Compare a step of many worlds at once with that of each alone.

    Each world twice, so that the form for many worlds is used.
    """
    d = jax.tree.map(lambda a: jnp.concatenate([a, a]), some)
    together = jax.jit(jax.vmap(jaxsim.step, (None, 0)), compiler_options=COMPILER)(m, d)
    for k in range(len(some.time)):
        alone, one = step(m, world(d, k)), world(together, k)
        for name in ("qpos", "qvel", "qacc", "qfrc_constraint"):
            assert_close(getattr(one, name), getattr(alone, name))
        yield one, alone


def assert_found(mj: mujoco.MjModel, mjd: mujoco.MjData, ours: tuple) -> None:
    """Check that all public results of the forces are MuJoCo's."""
    d, rows, on_contacts = jax.tree.map(np.asarray, ours)
    here = rows.active
    np.testing.assert_array_equal(rows.efc_type[here], mjd.efc_type)
    for a, b in (
        (rows.efc_force[here], mjd.efc_force),
        (on_contacts[: mjd.ncon], contact_forces(mj, mjd)),
        (d.qfrc_constraint, mjd.qfrc_constraint),
        (d.qacc, mjd.qacc),
        (d.sensordata, mjd.sensordata),
    ):
        assert_close(a, b)
    assert not on_contacts[mjd.ncon :].any()


def without(mj: mujoco.MjModel, mjd: mujoco.MjData) -> mujoco.MjData:
    """Return the same state without the iterations."""
    iterations, mj.opt.noslip_iterations = mj.opt.noslip_iterations, 0
    d = mujoco.MjData(mj)
    mujoco.mj_copyData(d, mj, mjd)
    mujoco.mj_forward(mj, d)
    mj.opt.noslip_iterations = iterations
    return d


# the cones differ in the step of a contact alone, which the tests of forces have for both
each_cone = pytest.mark.parametrize(
    "cone", [pytest.param("pyramidal", marks=pytest.mark.slow), "elliptic"]
)


@pytest.mark.parametrize(
    ("cone", "iterations", "disable"),
    [
        pytest.param("pyramidal", 1, 0, marks=pytest.mark.slow),
        pytest.param("pyramidal", 100, 0, marks=pytest.mark.slow),
        ("elliptic", 3, 0),
        pytest.param("elliptic", 100, 0, marks=pytest.mark.slow),
        pytest.param("elliptic", 100, DisableBit.ISLAND, marks=pytest.mark.slow),
    ],
)
def test_forces_and_accelerations_equal_those_of_mujoco(cone, iterations, disable):
    mj = compile_xml(SCENE.format(cone=cone, iterations=iterations), disable)
    slipped, kinds = 0.0, set()
    for tolerance in (1e-6, 1e-2, 0.0):  # an early end, and none
        mj.opt.noslip_tolerance = tolerance
        m = jaxsim.put_model(mj)
        for seed in SEEDS:
            mjd = moved(mj, seed)
            assert_found(mj, mjd, found(m, inputs(m, mjd)))
            slipped = max(slipped, np.abs(without(mj, mjd).qacc - mjd.qacc).max())
            kinds |= set(mjd.efc_type)
    assert slipped > 0.1  # the iterations do something
    assert kinds >= {
        *(Type.EQUALITY, Type.FRICTION_DOF, Type.FRICTION_TENDON, Type.LIMIT_JOINT),
        *(Type.CONTACT_FRICTIONLESS, Type[f"CONTACT_{cone.upper()}"]),
    }


@pytest.mark.slow
def test_the_iterations_end_at_the_tolerance():
    """Island by island: as many as MuJoCo does in the island that takes the most."""
    mj = compile_xml(SCENE.format(cone="pyramidal", iterations=100))
    counts = set()
    for tolerance in (1e-12, 1e-6, 1e-2):
        mj.opt.noslip_tolerance = tolerance
        m = jaxsim.put_model(mj)
        for seed in SEEDS:
            mjd = moved(mj, seed)
            off = without(mj, mjd)
            most = int((mjd.solver_niter - off.solver_niter).max())
            d = inputs(m, mjd)
            before = found(m.replace(opt=m.opt.replace(noslip_iterations=0)), d)[0].solver_niter
            assert found(m, d)[0].solver_niter - before == most
            counts.add(most)
    assert len(counts) > 2, counts


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cone", "integrator"),
    [
        pytest.param("pyramidal", "RK4", marks=pytest.mark.slow),
        ("elliptic", "implicitfast"),
        pytest.param("elliptic", "discrete", marks=pytest.mark.slow),
        pytest.param("pyramidal", "Euler", marks=pytest.mark.slow),
        pytest.param("pyramidal", "implicitfast", marks=pytest.mark.slow),
        pytest.param("elliptic", "Euler", marks=pytest.mark.slow),
        pytest.param("elliptic", "RK4", marks=pytest.mark.slow),
    ],
)
def test_a_run_equals_that_of_mujoco(cone, integrator):
    mj = small(cone, integrator)
    m, mjd = jaxsim.put_model(mj), moved(mj, 1)
    mjd.qvel[0], start = 0.2, mjd.qpos[0]  # the box slides, then holds
    d = inputs(m, mjd).replace(qacc_warmstart=jnp.asarray(mjd.qacc_warmstart))
    d = jax.tree.map(partial(jnp.array, copy=True), d)  # of what the oracle will write over
    for _ in range(50):
        mujoco.mj_step(mj, mjd)
        d = step(m, d)
    np.testing.assert_allclose(d.qpos, mjd.qpos, **STIFF)
    np.testing.assert_allclose(d.qvel, mjd.qvel, **STIFF)
    np.testing.assert_allclose(d.qacc_warmstart, mjd.qacc_warmstart, rtol=0, atol=1e-5)
    assert mjd.qpos[0] - start > 0.002
    assert np.abs(mjd.qvel[:2]).max() < 0.001


@pytest.mark.slow
@each_cone
def test_a_box_on_a_slope_creeps_without_and_rests_with_them(cone):
    mj = small(cone, gravity="3 0 -9.3")
    m = jaxsim.put_model(mj)
    travels = []
    for model in (m, m.replace(opt=m.opt.replace(noslip_iterations=0))):
        d = jaxsim.make_data(model)
        for _ in range(100):  # to rest
            d = step(model, d)
        start = d.qpos[0]
        for _ in range(100):
            d = step(model, d)
        travels.append(float(d.qpos[0] - start))
    rests, creeps = travels
    assert creeps > 1e-4
    assert abs(rests) < 1e-3 * creeps


@cache
def worlds(cone: str):
    mj = small(cone)
    m = jaxsim.put_model(mj)
    return m, stack([inputs(m, moved(mj, seed)) for seed in SEEDS])


@pytest.mark.slow
@each_cone
def test_many_worlds_are_a_loop(cone):
    """Each world ends by itself."""
    for one, alone in together_and_alone(*worlds(cone)):
        assert one.solver_niter == alone.solver_niter


@pytest.mark.slow
def test_single_precision():
    m, d = worlds("elliptic")
    for k in SEEDS:
        double, rough = step(m, world(d, k)), step(single(m), single(world(d, k)))
        assert rough.qacc.dtype == jnp.float32
        np.testing.assert_allclose(rough.qvel, double.qvel, rtol=0, atol=10 * FLOAT32["atol"])


@pytest.mark.slow
@each_cone
def test_derivatives_are_differences(cone):
    """Derivatives of the result of the iterations, though not converged, in both modes."""
    m, d = worlds(cone)
    rng = np.random.default_rng(3)
    u, v, w = jnp.asarray(rng.normal(size=(3, m.nv)))

    def pull(h, d):
        new = d.replace(qfrc_applied=d.qfrc_applied + h * u, qvel=d.qvel + h * v)
        return jaxsim.step(m, new).qvel @ w

    @partial(jax.jit, compiler_options=COMPILER)
    def slopes(h, d):
        forwards = jax.jvp(lambda h: pull(h, d), (h,), (jnp.ones(()),))
        return *forwards, jax.grad(pull)(h, d)

    h = 1e-6
    for k in SEEDS:
        (high, *_), (low, *_), (_, forwards, backwards) = (
            slopes(jnp.asarray(x), world(d, k)) for x in (h, -h, 0.0)
        )
        np.testing.assert_allclose(forwards, (high - low) / (2 * h), **DIFFERENCE)
        np.testing.assert_allclose(backwards, forwards, **STIFF)


@pytest.mark.slow
def test_inverse_dynamics_does_not_know_of_them():
    """The forces belong to the acceleration without the iterations, as in MuJoCo."""
    mj = small("pyramidal")
    mj.opt.enableflags |= mujoco.mjtEnableBit.mjENBL_FWDINV
    mjd = moved(mj, 2)
    m = jaxsim.put_model(mj)
    d = inputs(m, mjd).replace(qacc=jnp.asarray(mjd.qacc))
    d = jax.tree.map(partial(jnp.array, copy=True), d)
    back = jax.jit(jaxsim.inverse, compiler_options=COMPILER)(m, d)
    after = step(m, d)
    mujoco.mj_inverse(mj, mjd)
    np.testing.assert_allclose(back.qfrc_inverse, mjd.qfrc_inverse, rtol=0, atol=1e-4)
    np.testing.assert_allclose(
        jaxsim.support.contact_forces(m, back)[: mjd.ncon],
        contact_forces(mj, mjd),
        rtol=0,
        atol=1e-4,
    )
    mujoco.mj_step(mj, mjd)
    np.testing.assert_allclose(after.solver_fwdinv, mjd.solver_fwdinv, **STIFF)
    assert mjd.solver_fwdinv[1] > 0.1


@pytest.mark.slow
def test_forces_cross_the_bridge():
    """MuJoCo's forces of contacts in a Data, and ours in mjData, as it has them itself."""
    mj = small("elliptic")
    mjd = moved(mj, 2)
    d = jaxsim.put_data(mj, mjd)
    np.testing.assert_array_equal(d.contact.force[: mjd.ncon], contact_forces(mj, mjd))
    d = found(jaxsim.put_model(mj), d)[0]
    back = jaxsim.get_data(mj, d)
    np.testing.assert_allclose(back.efc_force, mjd.efc_force, **STIFF)
    np.testing.assert_allclose(back.qacc, mjd.qacc, **STIFF)


def test_data_of_another_model_has_no_place_for_the_forces():
    m, _ = worlds("elliptic")
    off = m.replace(opt=m.opt.replace(noslip_iterations=0))
    with pytest.raises(ValueError, match="made for a model with other options"):
        jaxsim.support.contact_forces(m, jaxsim.make_data(off))


@each_cone
def test_contacts_of_many_trees(cone):
    """Contacts store the entries of the trees that they touch; worlds have different numbers."""
    ball = '<body pos="{} 0 {}"><freejoint/><geom size=".1" condim="{}"/></body>'
    bodies = "".join(ball.format(k % 2 * 0.15, 0.2 * k + 0.15, 3 + k % 2) for k in range(9))
    mj = compile_xml(
        f"""<mujoco><option cone="{cone}" noslip_iterations="3"/><worldbody>
        <geom type="plane" size="3 3 .1"/>{bodies}</worldbody></mujoco>"""
    )
    m, states, after, numbers = jaxsim.put_model(mj), [], [], []
    d = mujoco.MjData(mj)
    for steps in (0, 60, 140, 60):
        mujoco.mj_step(mj, d, steps)
        states.append(inputs(m, d))
        d2 = mujoco.MjData(mj)
        mujoco.mj_copyData(d2, mj, d)
        mujoco.mj_step(mj, d2)
        after.append(d2.qvel.copy())
        numbers.append(d2.ncon)
    assert len(set(numbers)) == 4
    new = jax.jit(jax.vmap(jaxsim.step, (None, 0)), compiler_options=COMPILER)(m, stack(states))
    np.testing.assert_array_equal(new.ncon, numbers)
    assert_close(new.qvel, np.array(after))
