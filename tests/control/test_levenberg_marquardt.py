"""Levenberg-Marquardt against scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import optimize
from tolerance import FLOAT32, ROUNDING

from jaxsim.control.solve.levenberg_marquardt import (
    Chart,
    _triangle,
    begin_searches,
    continue_searches,
    levenberg_marquardt,
    may_continue,
    solutions_of,
)

rng = np.random.default_rng(0)
T = np.linspace(0, 4, 60)
DATA = 3 * np.exp(-0.7 * T) * np.cos(4 * T + 0.3) + 0.05 * rng.normal(size=T.size)


def wave(x):
    """A decaying wave, less noisy data of one."""
    t = jnp.asarray(T, x.dtype)
    return x[0] * jnp.exp(-x[1] * t) * jnp.cos(x[2] * t + x[3]) - jnp.asarray(DATA, x.dtype)


def rosenbrock(x):
    return jnp.stack([10 * (x[1] - x[0] * x[0]), 1 - x[0]])


def valley(x):
    """Powell's singular function: the Jacobian at the minimum has rank 2."""
    a, b, c, d = x
    return jnp.stack([a + 10 * b, 5**0.5 * (c - d), (b - 2 * c) ** 2, 10**0.5 * (a - d) ** 2])


@pytest.mark.parametrize(
    ("residual", "start"),
    [(wave, [2.0, 1.0, 3.7, 0.0]), (rosenbrock, [-1.2, 1.0]), (valley, [3.0, -1.0, 0.0, 1.0])],
)
def test_the_minimum_is_that_of_scipy(residual, start):
    x = jnp.asarray(start)
    ours = jax.jit(lambda x: levenberg_marquardt(residual, x, iterations=200))(x)
    theirs = optimize.least_squares(
        jax.jit(residual), x, jax.jit(jax.jacfwd(residual)), method="lm", ftol=1e-14, xtol=1e-14
    )
    assert ours.converged or residual is valley  # there it gains a digit at a time, without end
    np.testing.assert_allclose(ours.cost, theirs.cost, rtol=1e-9, atol=1e-12)
    J = jax.jacfwd(residual)(ours.x)
    R = ours.triangle[:, :-1]
    np.testing.assert_allclose(R.T @ R, J.T @ J, rtol=1e-9, atol=1e-9)
    # a cost that is flat to 1e-12 leaves half of the digits of x, a quarter where it is quartic
    loose = 1e-2 if residual is valley else 1e-6
    np.testing.assert_allclose(ours.x, theirs.x, rtol=loose, atol=loose)
    history = np.asarray(ours.history)[: int(ours.iterations)]
    assert (np.diff(history) <= 0).all()
    assert np.isnan(np.asarray(ours.history)[int(ours.iterations) :]).all()


def test_many_starts_are_as_one_by_one():
    starts = jnp.asarray(np.array([2.0, 1.0, 4.0, 0.0]) + 0.5 * rng.normal(size=(8, 4)))
    one = jax.jit(lambda x: levenberg_marquardt(wave, x))
    many = jax.jit(jax.vmap(lambda x: levenberg_marquardt(wave, x)))(starts)
    for k in range(8):
        alone = one(starts[k])
        np.testing.assert_allclose(many.x[k], alone.x, **ROUNDING | {"rtol": 1e-9, "atol": 1e-9})
        assert many.iterations[k] == alone.iterations


def test_steps_are_chosen_where_the_residual_is_a_line():
    """A line in y = exp(x): far fewer steps, and a bound is not passed."""
    A = rng.normal(size=(20, 3))
    y = np.array([1e-3, 1.0, 1e3])
    b = A @ y

    def derive(x):
        y = jnp.exp(x)
        return y @ A.T - b[None], A[None] * y[:, None]

    def moved(x, change):
        change = jnp.maximum(change, -0.9 * jnp.exp(x))
        return jnp.log(jnp.exp(x) + change), change

    def search(*chart):
        advance = jax.jit(lambda s: continue_searches(derive, s, *chart))
        s = begin_searches(derive, jnp.zeros((1, 3)), 30)
        while may_continue(s):
            s = advance(s)
        return solutions_of(s)

    end, plain = search(Chart(jnp.exp, moved)), search()
    assert end.converged[0]
    np.testing.assert_allclose(np.exp(end.x[0]), y, rtol=1e-6)
    assert end.iterations[0] < plain.iterations[0]


def test_rows_in_blocks_have_the_triangle_of_all():
    r, J = rng.normal(size=517), rng.normal(size=(517, 3))
    R, norms = jax.jit(_triangle)(jnp.asarray(r), jnp.asarray(J))
    whole = np.concatenate([J, r[:, None]], 1)
    np.testing.assert_allclose(R.T @ R, whole.T @ whole, rtol=1e-12, atol=1e-10)
    np.testing.assert_allclose(norms, np.linalg.norm(J, axis=0), **ROUNDING)
    assert R.shape == (4, 4)


def test_single_precision():
    ours = jax.jit(lambda x: levenberg_marquardt(wave, x))(jnp.asarray([2, 1, 3.7, 0], jnp.float32))
    exact = levenberg_marquardt(wave, jnp.asarray([2, 1, 3.7, 0.0]))
    assert ours.x.dtype == jnp.float32
    assert ours.converged
    np.testing.assert_allclose(ours.x, exact.x, rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(ours.cost, exact.cost, **FLOAT32)


def test_a_start_that_is_no_number_ends():
    end = levenberg_marquardt(lambda x: jnp.log(x), jnp.full(2, -1.0))
    assert not end.converged
    assert np.isinf(end.cost)
    # a step to where there is none is not taken
    end = levenberg_marquardt(lambda x: jnp.log(x) + 3, jnp.full(1, 0.9))
    np.testing.assert_allclose(end.x, np.exp(-3) * np.ones(1), rtol=1e-6)


def test_an_arm_takes_fewer_iterations_with_one_scale_for_all_joints():
    """A planar arm, nearly stretched: by columns the last joints take the largest steps."""
    goals = jnp.asarray(np.random.default_rng(1).uniform(-1, 1, (64, 5)))
    starts = jnp.asarray(0.1 * np.random.default_rng(2).normal(size=(64, 5)))

    def tip(q):
        angle = jnp.cumsum(q)
        return jnp.stack([jnp.sum(jnp.cos(angle)), jnp.sum(jnp.sin(angle))])

    def searches(**options):
        def search(goal, start):
            return levenberg_marquardt(lambda q: tip(q) - tip(goal), start, **options)

        return jax.jit(jax.vmap(search))(goals, starts)

    by_columns, uniform = searches(), searches(damping=1e-2, uniform=True)
    np.testing.assert_allclose(uniform.cost, 0, atol=1e-16)
    assert uniform.iterations.mean() < 0.75 * by_columns.iterations.mean()
