"""The quadratic program with a box, against MuJoCo, and its derivative."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from tolerance import DIFFERENCE, SOLVER

from jaxsim.functions import box_qp

RNG = np.random.default_rng(1)
N, MANY = 6, 30


def problems():
    roots = RNG.normal(size=(MANY, N, N))
    H = roots @ roots.transpose(0, 2, 1) + 0.1 * np.eye(N)
    g, x0 = 3 * RNG.normal(size=(MANY, N)), RNG.normal(size=(MANY, N))
    lower, upper = (sign * RNG.uniform(size=(MANY, N)) for sign in (-1, 1))
    lower[0], upper[1] = -np.inf, np.inf
    return H, g, lower, upper, x0


def theirs(H, g, lower, upper, x0):
    n = len(g)
    x, R, index = x0.copy(), np.zeros((n, n + 7)), np.zeros(n, np.int32)
    low, high = (None if a is None else np.clip(a, -1e10, 1e10) for a in (lower, upper))
    rank = mujoco.mju_boxQP(x, R, index, H, g, low, high)
    count = max(rank, 0)
    return x, rank, R.ravel()[: count**2].reshape(count, count), index[:count]


def test_solution_equals_mujoco():
    given = problems()
    found = jax.jit(jax.vmap(box_qp))(*given)
    ranks = set()
    for k in range(MANY):
        x, rank, R, index = theirs(*(a[k] for a in given))
        np.testing.assert_allclose(found.x[k], x, **SOLVER)
        assert found.rank[k] == rank == found.free[k].sum()
        assert np.array_equal(found.order[k, :rank], index)
        assert set(found.order[k].tolist()) == set(range(N))
        np.testing.assert_allclose(found.factor[k, :rank, :rank], np.tril(R), **SOLVER)
        ranks.add(rank)
    assert len(ranks) > 3


def test_the_conditions_of_the_optimum():
    H, g, lower, upper, x0 = problems()
    found = jax.jit(jax.vmap(box_qp))(H, g, lower, upper, x0)
    gradient = np.einsum("bij,bj->bi", H, found.x) + g
    x, free = np.asarray(found.x), np.asarray(found.free)
    assert np.all((lower <= x) & (x <= upper))
    assert np.abs(gradient[free]).max() < 1e-12
    assert np.all(gradient[~free & (x == lower)] > 0)
    assert np.all(gradient[~free & (x == upper)] < 0)


def test_without_limits_and_with_a_start():
    H, g, _, _, x0 = (a[0] for a in problems())
    found = box_qp(H, g)
    np.testing.assert_allclose(found.x, np.linalg.solve(H, -g), **SOLVER)
    assert found.rank == N
    assert theirs(H, g, None, None, x0)[1] == N
    warm = box_qp(H, g, x0=found.x)
    np.testing.assert_allclose(warm.x, found.x, **SOLVER)


def test_infeasible_problem_is_reported():
    bad = jax.jit(box_qp)(-jnp.eye(2), jnp.ones(2), -jnp.ones(2), jnp.ones(2))
    assert bad.rank == -1
    assert not np.isfinite(bad.x).all()
    arguments = (-np.eye(2), np.ones(2), -np.ones(2), np.ones(2), np.zeros(2))
    assert theirs(*arguments)[1] == -1


def test_the_derivative_is_that_of_the_solution():
    given = tuple(a[2] for a in problems())[:4]
    along = tuple(RNG.normal(size=a.shape) for a in given)
    along = (along[0] + along[0].T, *along[1:])

    def solution(t):
        return box_qp(*(a + t * b for a, b in zip(given, along, strict=True))).x

    run, h = jax.jit(solution), 1e-6
    expected = (run(h) - run(-h)) / (2 * h)
    np.testing.assert_allclose(jax.jit(jax.jacfwd(solution))(0.0), expected, **DIFFERENCE)
    np.testing.assert_allclose(jax.jit(jax.jacrev(solution))(0.0), expected, **DIFFERENCE)
    assert 0 < box_qp(*given).rank < N
