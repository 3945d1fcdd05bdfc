"""Parameters recovered from what MuJoCo C recorded, within the errors that the fit states."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import optax
import optimistix
import pytest
from recordings import record, waves
from scipy import optimize

import jaxsim
from jaxsim.identify import (
    Problem,
    Sequence,
    TimeSeries,
    fit,
    levenberg_marquardt,
    linear,
    log,
    parameters,
    scale,
)

PENDULUM = """<mujoco><option timestep="0.01"/><worldbody>
  <body name="arm"><joint name="hinge" axis="0 1 0" damping="0.1"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -0.5" mass="1"/></body></worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator>
  <sensor><jointpos name="q" joint="hinge"/></sensor></mujoco>"""
TRUE = {"joint:hinge/damping": 0.27, "joint:hinge/frictionloss": 0.15, "actuator:motor/gain": 1.3}
NOISE = 2e-3


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(PENDULUM, free=("dof_frictionloss",))


@pytest.fixture(scope="module")
def recordings():
    """Three noisy motions of the true pendulum."""
    mj = mujoco.MjModel.from_xml_string(PENDULUM)
    mj.dof_damping[0], mj.dof_frictionloss[0] = 0.27, 0.15
    mj.actuator_gainprm[0, 0] = 1.3
    rng = np.random.default_rng(0)
    found = []
    for _ in range(3):
        ctrl, start = waves(rng, 200, 1, 2.0, 0.01), rng.normal(size=1)
        clean = record(mj, ctrl, start)["sensordata"][:, 0]
        found.append((ctrl, start, clean + NOISE * rng.normal(size=200)))
    return found


def sequences(recordings, sigma=NOISE, **options):
    return [
        Sequence({"q": y}, ctrl=u, initial={"qpos": q}, sigma=sigma, **options)
        for u, q, y in recordings
    ]


FORMS = {
    "joint:hinge/damping": log(0.01, 10),
    "joint:hinge/frictionloss": log(0.01, 10),
    "actuator:motor/gain": scale(0.2, 5),
}


@pytest.fixture(scope="module")
def found(m, recordings):
    return fit(m, FORMS, sequences(recordings), starts=4)


@pytest.mark.slow
def test_the_truth_is_within_its_errors(found):
    z = (found.values - np.array([TRUE[n] for n in found.names])) / found.sd
    assert (np.abs(z) < 3).all()
    assert (found.sd < 0.02 * found.values).all()
    ends = found.intervals(0.999)
    truth = np.array([TRUE[n] for n in found.names])
    assert ((ends[:, 0] < truth) & (truth < ends[:, 1])).all()
    assert 0.8 < found.uncertainty.noise**2 < 1.2
    assert not found.warnings
    # every start ends there
    np.testing.assert_allclose(found.costs, found.cost, rtol=1e-6)
    assert found.uncertainty.rank == 3
    np.testing.assert_allclose(found.model.dof_damping[0], found.values[0], rtol=1e-12)
    assert "joint:hinge/damping" in repr(found)
    assert int(found.model.opt.disableflags) == 0


def test_the_minimum_is_that_of_scipy(found):
    problem = found.problem
    residual, jacobian = jax.jit(problem.residual), jax.jit(problem.jacobian)
    start = problem.start(problem.parameters.nominal())
    theirs = optimize.least_squares(residual, start, lambda x: jacobian(x)[1], xtol=1e-12)
    np.testing.assert_allclose(found.cost, theirs.cost, rtol=1e-10)
    np.testing.assert_allclose(found.x, theirs.x, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_unknown_noise_is_found(m, recordings, found):
    """Without sigma: the same optimum, the noise from what is left, and the same errors."""
    free = fit(m, FORMS, sequences(recordings, sigma=None))
    np.testing.assert_allclose(free.values, found.values, rtol=1e-4)
    np.testing.assert_allclose(free.uncertainty.noise, NOISE, rtol=0.1)
    np.testing.assert_allclose(free.sd, found.sd, rtol=0.1)


@pytest.mark.slow
def test_the_errors_are_those_of_many_recordings(m, recordings):
    """The spread of fits to 100 draws of noise equals the standard deviation of a single fit."""
    mj = mujoco.MjModel.from_xml_string(PENDULUM)
    mj.dof_damping[0], mj.dof_frictionloss[0], mj.actuator_gainprm[0, 0] = TRUE.values()
    ctrl, start, _ = recordings[0]
    clean = record(mj, ctrl, start)["sensordata"][:, 0]
    P = parameters(m, FORMS)
    rng = np.random.default_rng(5)
    problem = Problem(m, P, Sequence({"q": clean}, ctrl=ctrl, initial={"qpos": start}, sigma=NOISE))
    first = fit(m, P, problem.sequences)

    def solve(noise):
        def both(x):
            r, J = problem.jacobian(x)
            return r - noise, J

        return levenberg_marquardt(lambda x: problem.residual(x) - noise, first.x, jacobian=both).x

    noises = jnp.asarray(rng.normal(size=(100, 200)))
    ends = jax.jit(jax.vmap(solve))(noises)
    z = (np.asarray(ends) - np.asarray(first.x)) / first.uncertainty.sd
    assert (np.abs(z.mean(0)) < 0.35).all()
    assert (np.abs(z.std(0) - 1) < 0.25).all()


@pytest.mark.slow
def test_a_start_that_is_not_known(m, recordings):
    """Position and speed at the start as unknowns, with and without priors."""
    wrong = [(u, q + 0.1, y) for u, q, y in recordings]
    given = sequences(wrong, estimate={"qpos": 0.3, "qvel": None})
    free = fit(m, FORMS, given)
    z = (free.values - np.array([TRUE[n] for n in free.names])) / free.sd
    assert (np.abs(z) < 3).all()
    shift = np.asarray(free.x[3:]).reshape(3, 2)
    sd = free.uncertainty.sd[3:].reshape(3, 2)
    assert (np.abs(shift - [-0.1, 0]) < 3 * sd).all()


@pytest.mark.slow
def test_what_has_no_effect_is_named(m, recordings):
    """A color has no effect, and does not change the result for the mass."""
    lost = fit(
        m, {"body:arm/mass": scale(), "geom_rgba[0]": linear(share=True)}, sequences(recordings)
    )
    assert any("geom_rgba[0] has no effect" in w for w in lost.warnings)
    assert np.isinf(lost.sd[1])
    assert np.isfinite(lost.sd[0])


@pytest.mark.slow
def test_the_gradient_of_optax_finds_the_same(m, recordings, found):
    with jax.numpy_dtype_promotion("standard"):  # optax mixes them
        other = fit(
            m, FORMS, sequences(recordings), optimizer=optax.adam(0.05), iterations=600, starts=2
        )
    assert other.cost < 1.05 * found.cost
    assert other.solutions.history.shape == (2, 600)


@pytest.mark.slow
def test_a_solver_of_optimistix_finds_the_same(m, recordings, found):
    solver = optimistix.LevenbergMarquardt(rtol=1e-8, atol=1e-8)
    other = fit(m, FORMS, sequences(recordings), optimizer=solver, starts=2)
    assert np.asarray(other.solutions.converged).all()
    np.testing.assert_allclose(other.costs, found.cost, rtol=1e-6)
    np.testing.assert_allclose(other.values, found.values, rtol=1e-4)
    np.testing.assert_allclose(other.sd, found.sd, rtol=1e-3)


@pytest.mark.slow
def test_starts_in_batches_are_the_same(m, recordings, found):
    again = fit(m, FORMS, sequences(recordings), starts=4, batch=3)
    np.testing.assert_allclose(again.costs, found.costs, rtol=1e-9)


@pytest.mark.slow
def test_prior_moves_the_estimate(m, recordings):
    few = TimeSeries([0.0, 0.05], [recordings[0][1][0], recordings[0][2][5]], ["q"])
    s = Sequence(few, ctrl=recordings[0][0], initial={"qpos": recordings[0][1]}, sigma=1.0)
    held = fit(m, {"joint:hinge/damping": log(mean=0.2, sd=0.1, nominal=0.5)}, s)
    np.testing.assert_allclose(held.values, [0.2], rtol=1e-2)
    np.testing.assert_allclose(held.sd, [0.02], rtol=2e-2)


@pytest.mark.slow
def test_active_bound_is_reported(m, recordings):
    tight = fit(m, {**FORMS, "joint:hinge/damping": log(0.01, 0.2)}, sequences(recordings))
    assert any("damping is at its bound" in w for w in tight.warnings)
    assert tight.values[0] < 0.2


def test_invalid_arguments_are_rejected(m, recordings):
    given = sequences(recordings)
    with pytest.raises(ValueError, match="optimizer: expected 'lm', a transformation of optax"):
        fit(m, FORMS, given, optimizer="newton")
    with pytest.raises(ValueError, match="at least 1"):
        fit(m, FORMS, given, starts=0)
    with pytest.raises(ValueError, match="expected names and forms"):
        fit(m, 3, given)
