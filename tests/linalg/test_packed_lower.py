"""Symmetric matrices kept as half: sums, solutions and inverses are those of whole matrices."""

import jax
import numpy as np
import pytest
from tolerance import ROUNDING

from jaxsim.arrays.products import apply_basis, apply_basis_transpose, gram_basis
from jaxsim.linalg.blocked_lower import BlockedLower
from jaxsim.linalg.dense import Dense
from jaxsim.linalg.packed_lower import PackedLower

pytestmark = pytest.mark.kernels

WORLDS = 9
KINDS = {"lower": PackedLower.of, "steps": BlockedLower.of, "whole": Dense}


def parts(n: int):
    """A positive definite matrix, rows with weighted rows, a diagonal and a right-hand side."""
    rng = np.random.default_rng(n)
    root = rng.standard_normal((n, n, WORLDS))
    A = np.einsum("ikw,jkw->ijw", root, root) + n * np.eye(n)[..., None]
    J = rng.standard_normal((5, n, WORLDS))
    G = rng.uniform(size=(5, 1, WORLDS)) * J
    return A, J, G, rng.uniform(size=(n, WORLDS)), rng.standard_normal((n, WORLDS))


@pytest.mark.parametrize("n", [1, 3, 4, 13])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_sums_and_solutions(n, kind):
    A, J, G, diagonal, b = parts(n)
    whole = A + np.einsum("riw,rjw->ijw", J, G) + np.eye(n)[..., None] * diagonal[:, None]

    @jax.jit
    def solve(A, J, G, diagonal, b):
        H = kind(A).add_outer(J, G).add_diagonal(diagonal)
        assert H.size == n
        return H.solve(b)

    x = solve(A, J, G, diagonal, b)
    np.testing.assert_allclose(np.einsum("ijw,jw->iw", whole, x), b, **ROUNDING)


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_single_entries(kind):
    A, _, _, _, b = parts(9)
    row, column = np.array([[0, 0], [0, 7], [4, 4], [5, 8], [7, 0], [8, 5]]).T
    values = np.random.default_rng(2).uniform(size=(6, WORLDS))
    values[[4, 5]] = values[[1, 3]]
    whole = A.copy()
    whole[row, column] += values
    x = jax.jit(lambda A, v: kind(A).add_entries(row, column, v).solve(b))(A, values)
    np.testing.assert_allclose(np.einsum("ijw,jw->iw", whole, x), b, **ROUNDING)


def test_the_upper_triangle_is_not_read():
    A, _, _, _, b = parts(6)
    upper = np.triu(np.ones((6, 6)), 4)[..., None]  # beyond the blocks on the diagonal
    solve = jax.jit(lambda A: PackedLower.of(A).solve(b))
    np.testing.assert_array_equal(solve(np.where(upper, np.nan, A)), solve(A))


@pytest.mark.parametrize("size", [4, 8])
def test_contacts_by_chunks_are_those_of_all_at_once(size):
    """Only the contacts that are used count: beyond them there are numbers that would show."""
    rng = np.random.default_rng(3)
    n, places, used = 7, 20, 11
    J = rng.standard_normal((3, places, n, WORLDS))
    root = rng.standard_normal((3, 3, places, WORLDS))
    W = np.einsum("ikcw,jkcw->ijcw", root, root)
    W[:, :, used:16] = 0  # the rest of a chunk that is not full
    W[:, :, 16:] = np.nan
    weight = [[W[i, j] for j in range(3)] for i in range(3)]
    b = rng.standard_normal((n, WORLDS))
    eye = np.broadcast_to(np.eye(n)[..., None], (n, n, WORLDS))
    expected = eye + np.einsum("kciw,klcw,lcjw->ijw", J[:, :used], W[:, :, :used], J[:, :used])
    for A in (PackedLower.of(eye), Dense(eye)):
        x = jax.jit(lambda A: gram_basis(A, J, weight, used, size).solve(b))(A)
        np.testing.assert_allclose(np.einsum("ijw,jw->iw", expected, x), b, **ROUNDING)


@pytest.mark.parametrize("size", [4, 8])
def test_products_by_chunks_are_those_of_all_at_once(size):
    rng = np.random.default_rng(4)
    J, x, f = (rng.standard_normal(shape) for shape in ((2, 19, 5), (5,), (2, 19)))
    J[:, 16:] = np.nan  # beyond the chunks that are used
    J[:, 11:16], f[:, 11:16] = 0, 0
    first = jax.jit(lambda J, x: apply_basis(J, x, 11, size))(J, x)
    second = jax.jit(lambda J, f: apply_basis_transpose(J, list(f), 11, size))(J, f)
    np.testing.assert_allclose(first[:, :11], J[:, :11] @ x, **ROUNDING)
    np.testing.assert_array_equal(first[:, 11:], 0)
    expected = np.einsum("bcv,bc->v", J[:, :11], f[:, :11])
    np.testing.assert_allclose(second, expected, **ROUNDING)


def test_steps_of_many_columns():
    """Several blocks in a step, of a size that is no multiple of theirs."""
    A, J, G, diagonal, b = parts(52)
    whole = A + np.einsum("riw,rjw->ijw", J, G) + np.eye(52)[..., None] * diagonal[:, None]
    H = jax.jit(lambda A, J, G, v: BlockedLower.of(A).add_outer(J, G).add_diagonal(v).solve(b))
    x = H(A, J, G, diagonal)
    np.testing.assert_allclose(np.einsum("ijw,jw->iw", whole, x), b, **ROUNDING)
