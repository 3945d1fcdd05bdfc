"""Solutions of symmetric positive definite systems, for every number of worlds."""

import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import DIFFERENCE, ROUNDING

from jaxsim.linalg.cholesky import inverse_spd, solve_spd
from jaxsim.linalg.elimination import solve_by_rows
from jaxsim.transforms.derivative_context import trace_for_derivative

pytestmark = pytest.mark.kernels

AT_ONCE = """
import jax, jax.numpy as jnp
from jaxsim.linalg.cholesky import solve_spd
matrices = [jnp.eye(60)[:, :, None] * (k + 1.0) + jnp.ones((60, 60, 64)) for k in range(8)]
def turn(_, xs):
    return [solve_spd(A, 1 + 0.01 * x) for A, x in zip(matrices, xs)]
start = [jnp.ones((60, 64)) for _ in matrices]
print(jax.jit(lambda xs: jax.lax.fori_loop(0, 40, turn, xs))(start)[0].shape)
"""


def system(n: int, worlds: tuple[int, ...]):
    rng = np.random.default_rng(n)
    root = rng.standard_normal((*worlds, n, n))
    A = root @ np.swapaxes(root, -1, -2) + n * np.eye(n)
    return np.moveaxis(A, (-2, -1), (0, 1)), rng.standard_normal((n, *worlds))


@pytest.mark.parametrize(
    ("n", "worlds"),
    [(1, ()), (7, ()), (7, (1,)), (7, (3,)), (30, (9,)), (60, (6,)), (300, ()), (193, (2,))],
)
def test_solution_and_inverse(n, worlds):
    A, b = system(n, worlds)
    x = jax.jit(solve_spd)(A, b)
    np.testing.assert_allclose(np.einsum("ij...,j...->i...", A, x), b, **ROUNDING)
    unit = np.broadcast_to(np.eye(n).reshape(n, n, *(1 for _ in worlds)), A.shape)
    product = np.einsum("ij...,jk...->ik...", A, jax.jit(inverse_spd)(A))
    np.testing.assert_allclose(product, unit, **ROUNDING)


@pytest.mark.parametrize("n", [7, 12])
def test_derivatives_of_many_worlds(n):
    """Both modes, and several tangents at once, against those of each world by numpy."""
    A, b = system(n, (5,))
    change, weights = np.random.default_rng(2).standard_normal((2, 3, n, 5))

    @jax.jit
    def slopes(A, b):
        with trace_for_derivative():
            along = jax.vmap(lambda t: jax.jvp(lambda b: solve_spd(A, b), (b,), (t,))[1])(change)
            backwards = jax.vmap(jax.vjp(lambda b: solve_spd(A, b), b)[1])(weights)[0]
            return along, backwards, jax.grad(lambda A: jnp.sum(solve_spd(A, b) ** 2))(A)

    along, backwards, by_matrix = slopes(A, b)
    for k in range(5):
        inverse = np.linalg.inv(A[..., k])
        x = inverse @ b[:, k]
        np.testing.assert_allclose(along[..., k], change[..., k] @ inverse, **ROUNDING)
        np.testing.assert_allclose(backwards[..., k], weights[..., k] @ inverse, **ROUNDING)
        np.testing.assert_allclose(by_matrix[..., k], -2 * np.outer(inverse @ x, x), **ROUNDING)


@pytest.mark.parametrize("n", [7, 12, 60])
@pytest.mark.parametrize("worlds", [1, 5])
def test_right_hand_sides_that_share_a_matrix(n, worlds):
    """Directions of a derivative, which JAX batches: their matrix is factorized once."""
    A, b = system(n, (worlds,))
    change, slope = np.random.default_rng(2).standard_normal((2, 3, n, worlds))

    @jax.jit
    def solve(A, b, change, slope):
        many = jax.vmap(lambda t: solve_spd(A, t))(change)
        tangents = jax.vmap(lambda t: jax.jvp(lambda b: solve_spd(A, b), (b,), (t,))[1])(change)
        of_matrix = jax.vmap(
            lambda t: jax.jvp(lambda s: solve_spd(A + s * jnp.eye(n)[..., None], b), (0.0,), (t,))
        )(slope[:, 0, 0])
        return many, tangents, of_matrix

    many, tangents, (x, by_matrix) = solve(A, b, change, slope)
    for k in range(worlds):
        inverse = np.linalg.inv(A[..., k])
        np.testing.assert_allclose(many[..., k], change[..., k] @ inverse, **ROUNDING)
        np.testing.assert_allclose(tangents[..., k], change[..., k] @ inverse, **ROUNDING)
        expected = -slope[:, :1, 0] * (inverse @ inverse @ b[:, k])
        np.testing.assert_allclose(by_matrix[..., k], expected, **ROUNDING)
        np.testing.assert_allclose(x[0, ..., k], inverse @ b[:, k], **ROUNDING)


def test_a_shared_matrix_is_not_batched():
    """One elimination for all directions, without the scatters of a batched one."""
    A, b = system(12, (5,))
    text = jax.jit(jax.vmap(lambda t: solve_spd(A, t))).lower(np.stack([b, b, b])).as_text()
    assert "tensor<12x15x5x" in text
    assert "tensor<3x12x13x5x" not in text
    assert "scatter" not in text


def test_derivatives_under_vmap():
    """Both modes against central differences, for worlds that are batched by JAX itself."""
    A, b = (np.moveaxis(x, -1, 0) for x in system(6, (4,)))
    step = np.random.default_rng(1).standard_normal(A.shape)
    step = step + np.swapaxes(step, 1, 2)
    value = jax.vmap(lambda A, b: jnp.sum(solve_spd(A, b) ** 2))
    reverse = jax.jit(jax.grad(lambda A: value(A, b).sum()))(A)
    _, forward = jax.jit(lambda A, t: jax.jvp(lambda A: value(A, b), (A,), (t,)))(A, step)
    h = 1e-6
    central = (value(A + h * step, b) - value(A - h * step, b)) / (2 * h)
    np.testing.assert_allclose(forward, central, rtol=DIFFERENCE["rtol"])
    np.testing.assert_allclose(np.sum(reverse * step, axis=(1, 2)), forward, rtol=ROUNDING["rtol"])


def test_a_world_whose_matrix_is_not_positive_definite_has_no_solution():
    A, b = system(12, (3,))
    A[4, 4, 1] = -1
    x = jax.jit(solve_by_rows)(A, b)
    np.testing.assert_array_equal(np.isnan(x).any(axis=0), [False, True, False])


@pytest.mark.slow
def test_batched_solves_terminate():
    """More batches at a time than XLA has threads, which its own factorization waits for."""
    done = subprocess.run(
        [sys.executable, "-c", AT_ONCE], capture_output=True, text=True, timeout=600
    )
    assert done.stdout.strip() == "(60, 64)", done.stderr
