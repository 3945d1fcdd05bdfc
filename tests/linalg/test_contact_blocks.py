"""Contact blocks of a Hessian, selected by the state, against dense matrices."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import ROUNDING

from jaxsim.linalg.block_diagonal import BlockDiagonal
from jaxsim.linalg.blocked_lower import BLOCK_WIDTH, BlockedLower
from jaxsim.linalg.contact_blocks import ContactBlocks, scatter_add_contacts
from jaxsim.linalg.dense import Dense
from jaxsim.physics.constraint.contact.group_jacobian import GroupJacobian

pytestmark = pytest.mark.kernels

NCON, USED, SIZE, WORLDS = 20, 11, 3, 5
EVEN = tuple(tuple(range(k, k + BLOCK_WIDTH)) for k in range(0, 4 * BLOCK_WIDTH, BLOCK_WIDTH))
UNEVEN = ((0, 1, 2, 3), (4, 5, 4, 4), (6, 7, 8, 6))  # a smaller group has its first dof again
PARTS = ((0, 1, 2, 3), (4, 5), (6, 7, 8))


def contacts(dofs, slots, worlds):
    """Rows of contacts in either form: of groups, and whole."""
    rng = np.random.default_rng(5)
    number, k = np.shape(dofs)
    table, n = np.array(dofs), 1 + np.max(dofs)
    both = np.sort(rng.integers(-1, number, (2, NCON, *worlds)), axis=0)[::-1].astype(np.int32)
    both[1] = np.where((both[0] == both[1]) | (slots == 1), -1, both[1])
    both[:, 0] = -1
    real = np.array([[d not in row[:j] for j, d in enumerate(row)] for row in table])
    own = np.zeros((SIZE, NCON, slots, k, *worlds))
    J = np.zeros((SIZE, NCON, n, *worlds))
    for c, s, *w in np.ndindex(NCON, slots, *worlds):
        group = both[(s, c, *w)]
        if group >= 0:
            entries = rng.standard_normal((SIZE, k)) * real[group]
            own[(slice(None), c, s, slice(None), *w)] = entries
            J[(slice(None), c, table[group][real[group]], *w)] = entries[:, real[group]]
    own = own.reshape(SIZE, NCON, slots * k, *worlds)
    W = rng.uniform(size=(SIZE, SIZE, NCON, *worlds))
    counts = (np.arange(NCON) < USED).reshape(NCON, *(1,) * len(worlds))
    W = (W + W.swapaxes(0, 1)) * counts
    x, f = rng.standard_normal((n, *worlds)), rng.standard_normal((SIZE, NCON, *worlds)) * counts
    return GroupJacobian(dofs, own, tuple(both[:slots]), np.int32(USED)), J, W, x, f


CASES = [
    pytest.param(dofs, slots, worlds, id=f"{name}-{slots}-{'many' if worlds else 'one'}")
    for worlds in ((), (WORLDS,))
    for name, dofs, slots in (("even", EVEN, 2), ("uneven", UNEVEN, 1), ("uneven", UNEVEN, 2))
]


@pytest.mark.parametrize(("dofs", "slots", "worlds"), CASES)
def test_products(dofs, slots, worlds):
    """J x, J' f, the whole rows, and the Hessian in each form that supports such rows."""
    jac, J, W, x, f = contacts(dofs, slots, worlds)
    n = len(x)
    counts = slice(USED)

    @jax.jit
    def products(jac, x, f):
        return jac.times(x), jac.transpose_times(list(f), n), jac.basis

    times, push, basis = products(jac, x, f)
    np.testing.assert_array_equal(basis, J)
    np.testing.assert_allclose(
        np.array(times)[:, counts], np.einsum("kci...,i...->kc...", J, x)[:, counts], **ROUNDING
    )
    np.testing.assert_allclose(push, np.einsum("kci...,kc...->i...", J, f), **ROUNDING)

    A = np.zeros((n, n, *worlds)) + (100 * np.eye(n)).reshape(n, n, *(1,) * len(worlds))
    whole = A + np.einsum("kci...,klc...,lcj...->ij...", J, W, J)
    weight = [list(row) for row in W]
    A = jnp.asarray(A)
    forms = [Dense(A)]
    forms += [BlockedLower.of(A)] if worlds and dofs is EVEN else []
    forms += [BlockDiagonal.of(A, PARTS)] if slots == 1 else []
    taken = [H.supports(ContactBlocks(dofs, jac.own, jac.group, weight, jac.used)) for H in forms]
    assert taken == [not worlds, *[True] * (len(forms) - 1)]
    matrix, b = np.moveaxis(whole, (0, 1), (-2, -1)), np.moveaxis(x, 0, -1)
    expected = np.moveaxis(np.linalg.solve(matrix, b[..., None])[..., 0], -1, 0)
    for H in forms:
        found = jax.jit(lambda H, jac, weight: jac.add_gram(H, weight).solve(x))(H, jac, weight)
        np.testing.assert_allclose(found, expected, **ROUNDING)


def test_parts_take_other_rows_too():
    """Rows of equalities and limits, and single entries, in addition to the contacts."""
    rng = np.random.default_rng(1)
    n = 9
    owner = np.repeat(np.arange(3), [len(p) for p in PARTS])
    J = rng.standard_normal((4, n, WORLDS)) * (owner == np.array([0, 1, 2, 2])[:, None])[..., None]
    G = J * rng.uniform(size=(4, 1, WORLDS))
    A = np.zeros((n, n, WORLDS)) + (10 * np.eye(n))[..., None]
    diagonal, value = rng.uniform(size=(n, WORLDS)), rng.uniform(size=(2, WORLDS))
    row, column = np.array([1, 3]), np.array([3, 1])
    value[1] = value[0]
    whole = A + np.einsum("riw,rjw->ijw", J, G) + np.eye(n)[..., None] * diagonal[:, None]
    whole[row, column] += value
    x = rng.standard_normal((n, WORLDS))

    @jax.jit
    def solve(A, J, G):
        H = BlockDiagonal.of(A, PARTS).add_outer(J, G).add_diagonal(diagonal)
        return H.add_entries(row, column, value).solve(x)

    np.testing.assert_allclose(np.einsum("ijw,jw->iw", whole, solve(A, J, G)), x, **ROUNDING)


@pytest.mark.parametrize("worlds", [(), (WORLDS,)], ids=str)
@pytest.mark.parametrize("count", [3, NCON])
@pytest.mark.parametrize("axis", [0, 2])
def test_contacts_add_to_the_items_that_they_name(worlds, count, axis):
    rng = np.random.default_rng(count)
    out, values = rng.normal(size=(2, 4, 6, *worlds)), rng.normal(size=(count, 2, 4, *worlds))
    index = rng.integers(-1, 6, (count, *worlds)).astype(np.int32)
    index[0], index[1] = 5, -1
    expected = out.copy()
    for c, *w in np.ndindex(count, *worlds):
        if index[(c, *w)] >= 0:
            expected[(..., index[(c, *w)], *w)] += values[(c, ..., *w)]
    out = np.moveaxis(out, 2, axis)
    found = jax.jit(scatter_add_contacts, static_argnums=3)(out, values, index, axis)
    np.testing.assert_allclose(np.moveaxis(found, axis, 2), expected, **ROUNDING)
