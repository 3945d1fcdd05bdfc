"""Systems of one world whose numbers stand where the state has them, against the dense solution."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.linalg.block_diagonal import BlockDiagonal
from jaxsim.linalg.contact_blocks import ContactBlocks
from jaxsim.linalg.skyline import Skyline
from jaxsim.transforms.cpu_fusion import fuse_calls

pytestmark = pytest.mark.kernels

SIZES = (6, 2, 6, 3, 6, 6, 1)  # of groups, one after another
TIES = {"apart": (), "row": ((1, 0), (2, 1), (6, 5)), "far": ((6, 0), (4, 2), (5, 2), (6, 5))}


def groups():
    first = np.cumsum([0, *SIZES])[:-1]
    most = max(SIZES)
    return tuple((*range(a, a + n), *[a] * (most - n)) for a, n in zip(first, SIZES, strict=True))


def contacts(ties, rng):
    """Rows of contacts of pairs of groups, and of one with none; past the last one noise."""
    pairs = [*ties, (3, -1), (0, -1), (4, -1)]
    most, count = max(SIZES), len(pairs) + 3
    own = rng.normal(size=(3, count, 2 * most))
    group = rng.integers(0, len(SIZES), (2, count)).astype(np.int32)
    for c, pair in enumerate(pairs):
        group[:, c] = pair
        for slot, g in enumerate(pair):
            size = SIZES[g] if g >= 0 else 0
            own[:, c, slot * most + size : (slot + 1) * most] = 0
    weight = rng.normal(size=(count, 3, 3))
    weight = weight @ weight.transpose(0, 2, 1)
    weight[len(pairs) :] = 0  # those that do not count
    return len(pairs), own, group, weight


def dense(used, own, group, weight):
    most, table = max(SIZES), np.array(groups())
    H = np.zeros((sum(SIZES), sum(SIZES)))
    for c in range(used):
        J = np.zeros((3, len(H)))
        for slot in (0, 1):
            if group[slot, c] >= 0:
                dofs = table[group[slot, c]]
                np.add.at(J.T, dofs, own[:, c, slot * most : (slot + 1) * most].T)
        H += J.T @ weight[c] @ J
    return H


@pytest.mark.parametrize("ties", TIES.values(), ids=TIES)
@pytest.mark.parametrize("kernel", [True, False])
def test_the_solution_is_that_of_the_dense_matrix(ties, kernel):
    rng = np.random.default_rng(0)
    n = sum(SIZES)
    A = np.zeros((n, n))
    for group, size in zip(groups(), SIZES, strict=True):
        own = rng.normal(size=(size, size))
        A[np.ix_(group[:size], group[:size])] = own @ own.T + np.eye(size)
    used, own, group, weight = contacts(ties, rng)
    b, diagonal = rng.normal(size=n), rng.uniform(size=n)
    parts = [g[:size] for g, size in zip(groups(), SIZES, strict=True)]
    row = np.zeros((1, n))
    row[0, list(parts[2])] = rng.normal(size=SIZES[2])  # within a part

    def solve(A, own, group, weight, b, diagonal, used):
        w = [[weight[:, i, j] for j in range(3)] for i in range(3)]
        between = ContactBlocks(groups(), own, tuple(group), w, used)
        start = Skyline.of(A, parts)
        assert start.supports(between)
        assert start.size == n
        H = start.add_contact_blocks(between).add_diagonal(diagonal).add_outer(row, row)
        return H.solve(b), start.solve(b)

    given = A, own, group, weight, b, diagonal, np.int32(used)
    program = jax.make_jaxpr(solve)(*given)
    leaves = tuple(map(jnp.asarray, given))
    found, bare = jax.jit(lambda *a: fuse_calls(program, a))(*leaves) if kernel else solve(*leaves)
    H = A + dense(used, own, group, weight) + np.diag(diagonal) + row.T @ row
    np.testing.assert_allclose(found, np.linalg.solve(H, b), rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(bare, np.linalg.solve(A, b), rtol=1e-9, atol=1e-11)


def test_not_positive_definite_is_not_a_number():
    A = np.diag([1.0, -1.0, 1.0])
    assert np.isnan(Skyline.of(jnp.asarray(A), [(0,), (1, 2)]).solve(jnp.ones(3))).all()


def test_many_numbers_are_taken_piece_by_piece():
    rng = np.random.default_rng(1)
    n = 150
    A = rng.normal(size=(n, n))
    A, b = A @ A.T + n * np.eye(n), rng.normal(size=n)
    found = jax.jit(lambda A, b: Skyline.of(A, [tuple(range(n))]).solve(b))(A, b)
    np.testing.assert_allclose(found, np.linalg.solve(A, b), rtol=1e-9, atol=1e-11)


def test_a_matrix_kept_by_its_parts_is_taken_as_the_whole():
    A, parts = np.zeros((sum(SIZES), sum(SIZES))), []
    for group, size in zip(groups(), SIZES, strict=True):
        parts.append(group[:size])
        A[np.ix_(group[:size], group[:size])] = np.random.default_rng(size).normal() + np.eye(size)
    tied = [(*parts[0], *parts[1]), *parts[2:]]
    apart = Skyline.of_parts(BlockDiagonal.of(jnp.asarray(A), tuple(parts)), tied)
    jax.tree.map(np.testing.assert_array_equal, apart, Skyline.of(jnp.asarray(A), tied))
