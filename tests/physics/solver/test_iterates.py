"""CG and PGS iteration by iteration against MuJoCo's, and what all solvers have in common."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.constraint.scene import compile_xml
from physics.oracle import contact_forces
from physics.solver.test_noslip import (
    COMPILER,
    SCENE,
    assert_close,
    moved,
    small,
    step,
    together_and_alone,
)
from states import inputs, single, stack, world
from tolerance import FLOAT32, STIFF

import jaxsim
from jaxsim.enums import ConstraintType as Type
from jaxsim.enums import DisableBit, IntegratorType
from jaxsim.enums import SolverType as Solver

pytestmark = pytest.mark.long

COUNTS = (1, 2, 5)
SEEDS = range(3)


def asking(solver: Solver, cone: str, disable: int = 0, **options) -> mujoco.MjModel:
    """The scene of the no-slip iterations, with every kind of row, for another solver."""
    mj = compile_xml(SCENE.format(cone=cone, iterations=options.pop("noslip_iterations", 0)))
    mj.opt.disableflags |= disable
    mj.opt.solver = solver
    for name, value in options.items():
        setattr(mj.opt, name, value)
    return mj


def state(mj: mujoco.MjModel, seed: int) -> mujoco.MjData:
    """A state in contact, with a warm start that is not its solution."""
    d = moved(mj, seed)
    d.qacc_warmstart[:] = d.qacc + np.random.default_rng(seed).normal(size=mj.nv)
    return d


def limited(m: jaxsim.Model, iterations: int) -> jaxsim.Model:
    return m.replace(opt=m.opt.replace(iterations=iterations))


@partial(jax.jit, compiler_options=COMPILER)
def after_each(m, d):
    """Return the result after each of the iteration counts, of one state."""
    first = jaxsim.forward(m, d)
    found = []
    for n in COUNTS:
        new = jaxsim.stages.solve(limited(m, n), first)
        found.append((new.qacc, new.qfrc_constraint, new.efc_force, new.solver_niter))
    return found


def world_of(m, mjd, keep=("efc_force",)):
    d = inputs(m, mjd, keep)
    return d.replace(qacc_warmstart=jnp.array(mjd.qacc_warmstart))


def kept(m: jaxsim.Model) -> list[str]:
    """All that is carried by default, and the forces of the rows."""
    d = jaxsim.make_data(m)
    return [n for n, f in d.fields.items() if getattr(d, n) is not None] + ["efc_force"]


def assert_iterates(mj: mujoco.MjModel, tolerance: float) -> set:
    """After each count qacc, forces on dofs and of rows, and iterations are MuJoCo's."""
    m, kinds = jaxsim.put_model(mj), set()
    for seed in SEEDS:
        mjd = state(mj, seed)
        ours = after_each(m, world_of(m, mjd, kept(m)))
        for n, (qacc, push, force, niter) in zip(COUNTS, ours, strict=True):
            mj.opt.iterations, start = n, mjd.qacc_warmstart.copy()
            mujoco.mj_forward(mj, mjd)
            mjd.qacc_warmstart[:] = start
            for a, b in (
                (qacc, mjd.qacc),
                (push, mjd.qfrc_constraint),
                (force[: mjd.nefc], mjd.efc_force),
            ):
                assert_close(a, b, tolerance)
            assert niter == mjd.solver_niter.max() == n
        kinds |= set(mjd.efc_type)
    return kinds


@pytest.mark.parametrize(
    ("solver", "cone", "disable"),
    [
        pytest.param(Solver.PGS, "pyramidal", 0, marks=pytest.mark.slow),
        (Solver.CG, "elliptic", 0),
        pytest.param(Solver.PGS, "elliptic", 0, marks=pytest.mark.slow),
        pytest.param(Solver.CG, "pyramidal", 0, marks=pytest.mark.slow),
        pytest.param(Solver.PGS, "elliptic", DisableBit.ISLAND, marks=pytest.mark.slow),
        pytest.param(Solver.CG, "elliptic", DisableBit.ISLAND, marks=pytest.mark.slow),
        pytest.param(Solver.PGS, "pyramidal", DisableBit.WARMSTART, marks=pytest.mark.slow),
    ],
)
def test_a_few_iterations_equal_those_of_mujoco(solver, cone, disable):
    mj = asking(solver, cone, disable, tolerance=1e-15, ls_tolerance=1e-2)
    kinds = assert_iterates(mj, STIFF["atol"])
    assert kinds >= {
        *(Type.EQUALITY, Type.FRICTION_DOF, Type.FRICTION_TENDON, Type.LIMIT_JOINT),
        *(Type.CONTACT_FRICTIONLESS, Type[f"CONTACT_{cone.upper()}"]),
    }


@pytest.mark.slow
@pytest.mark.parametrize("solver", [Solver.CG, Solver.PGS])
@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_islands_end_at_the_tolerance(solver, cone):
    """The number of iterations is that of MuJoCo's island with the most."""
    mj, counts = asking(solver, cone, iterations=100), set()
    for tolerance in (1e-2, 1e-3, 1e-5):
        mj.opt.tolerance = tolerance
        m = jaxsim.put_model(mj)
        for seed in SEEDS:
            mjd = state(mj, seed)
            new = forward(m, world_of(m, mjd, "default"))
            mujoco.mj_forward(mj, mjd)
            assert_close(new.qacc, mjd.qacc, 1e-6)
            np.testing.assert_allclose(
                jaxsim.support.contact_forces(m, new)[: mjd.ncon], contact_forces(mj, mjd), **LOOSE
            )
            np.testing.assert_allclose(new.sensordata, mjd.sensordata, **LOOSE)
            assert new.solver_niter == mjd.solver_niter.max()
            counts.add(int(new.solver_niter))
    assert len(counts) > 3, counts


@pytest.mark.slow
@pytest.mark.parametrize("solver", [Solver.PGS, Solver.CG])
@pytest.mark.parametrize("option", ["slip", "discrete", "line"])
def test_with_other_options(solver, option):
    """No-slip iterations after the solver, the inertia of a discrete step, a short line search."""
    given = {
        "slip": {"noslip_iterations": 2},
        "discrete": {"integrator": IntegratorType.DISCRETE},
        "line": {"ls_iterations": 4},
    }[option]
    for cone in ("elliptic", "pyramidal"):
        mj = asking(solver, cone, iterations=4, **given)
        m = jaxsim.put_model(mj)
        for seed in SEEDS:
            mjd = state(mj, seed)
            new = forward(m, world_of(m, mjd, kept(m)))
            mujoco.mj_forward(mj, mjd)
            for a, b in (
                (new.qacc, mjd.qacc),
                (new.qfrc_constraint, mjd.qfrc_constraint),
                (new.efc_force[: mjd.nefc], mjd.efc_force),
            ):
                assert_close(a, b)
            assert new.solver_niter == mjd.solver_niter.max()


# the sweeps of the oracle find friction in a cone to 1e-10 of its square
LOOSE = {"rtol": 1e-5, "atol": 1e-5}


@partial(jax.jit, compiler_options=COMPILER)
def forward(m, d):
    return jaxsim.forward(m, d)


@cache
def worlds(solver: Solver, iterations: int = 30):
    mj = small()
    mj.opt.noslip_iterations, mj.opt.solver, mj.opt.iterations = 0, solver, iterations
    mj.opt.tolerance = 1e-13
    m = jaxsim.put_model(mj)
    return m, stack([world_of(m, state(mj, seed), "default") for seed in SEEDS])


each_solver = pytest.mark.parametrize(
    "solver", [Solver.PGS, pytest.param(Solver.CG, marks=pytest.mark.slow)]
)


@pytest.mark.slow
@each_solver
def test_many_worlds_are_a_loop(solver):
    """Each world and island ends by itself."""
    for one, alone in together_and_alone(*worlds(solver)):
        assert abs(one.solver_niter - alone.solver_niter) <= 1  # a gain of rounding


@pytest.mark.slow
@each_solver
def test_single_precision(solver):
    m, d = worlds(solver)
    for k in SEEDS:
        double, rough = step(m, world(d, k)), step(single(m), single(world(d, k)))
        assert rough.qacc.dtype == jnp.float32
        np.testing.assert_allclose(rough.qvel, double.qvel, rtol=0, atol=20 * FLOAT32["atol"])


@pytest.mark.slow
@each_solver
def test_the_minimum_and_its_derivatives_are_newtons(solver):
    """At convergence, derivatives equal differences, and the derivative by Newton."""
    (m, d), (newton, _) = worlds(solver, 1000), worlds(Solver.NEWTON)
    rng = np.random.default_rng(3)
    u, w = jnp.asarray(rng.normal(size=(2, m.nv)))

    def pull(m, h, d):
        return jaxsim.step(m, d.replace(qfrc_applied=d.qfrc_applied + h * u)).qvel @ w

    @partial(jax.jit, compiler_options=COMPILER)
    def slopes(m, h, d):
        value, forwards = jax.jvp(lambda h: pull(m, h, d), (h,), (jnp.ones(()),))
        return value, forwards, jax.grad(pull, 1)(m, h, d)

    h = 1e-4  # the value is only as good as the tolerance
    plain = jaxsim.make_data(newton)
    for k in SEEDS[:2]:
        one = world(d, k)
        value, forwards, backwards = slopes(m, jnp.zeros(()), one)
        (high, *_), (low, *_) = (slopes(m, jnp.asarray(x), one) for x in (h, -h))
        np.testing.assert_allclose(forwards, (high - low) / (2 * h), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(backwards, forwards, **STIFF)
        like = plain.replace(
            **{n: getattr(one, n) for n in ("qpos", "qvel", "qfrc_applied", "xfrc_applied")}
        )
        best, slope, _ = slopes(newton, jnp.zeros(()), like)
        np.testing.assert_allclose(value, best, rtol=0, atol=1e-6)
        np.testing.assert_allclose(forwards, slope, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solver", "cone", "names"),
    [
        pytest.param(
            Solver.PGS, "pyramidal", "improvement nactive nchange", marks=pytest.mark.slow
        ),
        (Solver.CG, "elliptic", "improvement gradient lineslope nactive nchange neval"),
        pytest.param(
            Solver.NEWTON,
            "pyramidal",
            "improvement gradient nactive nchange",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_statistics_of_iterations(solver, cone, names):
    """Island by island and iteration by iteration; Newton's of one island."""
    mj = small(cone)
    mj.opt.noslip_iterations, mj.opt.solver, mj.opt.iterations = 0, solver, 4
    mj.opt.tolerance, mj.opt.ls_tolerance = 1e-8, 1e-2
    if solver == Solver.NEWTON:
        mj.opt.disableflags |= DisableBit.ISLAND
    m = jaxsim.put_model(mj)
    most = 0
    for seed in SEEDS:
        mjd = state(mj, seed)
        new = forward(m, world_of(m, mjd, ["solver"]))
        mujoco.mj_forward(mj, mjd)
        count = max(1, mjd.nisland) if solver != Solver.NEWTON else 1
        for island in range(count):
            n = mjd.solver_niter[island]
            theirs = mjd.solver[200 * island : 200 * island + n]
            for name in names.split():
                ours, other = (
                    getattr(new.solver, name),
                    np.array([getattr(s, name) for s in theirs]),
                )
                scale = 1e-6 * (1 + np.abs(other).max(initial=0))
                np.testing.assert_allclose(ours[island, :n], other, rtol=1e-5, atol=scale)
            if solver != Solver.NEWTON:  # which makes a last step where MuJoCo's has ended
                assert not new.solver.nactive[island, n:].any()
            most = max(most, n)
        assert not new.solver.improvement[count:].any()
    assert most >= 2
