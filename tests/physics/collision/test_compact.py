"""Selection of the first true items, in both of its forms."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.physics.collision.compact import (
    compact_ranked,
    compact_true,
    select_deepest,
    sort_by_rank,
)

pytestmark = pytest.mark.kernels


@pytest.mark.parametrize("worlds", [(), (40,)])
@pytest.mark.parametrize("size", [1, 5, 12, 20, 50])
def test_first_true_items_in_order(worlds, size):
    rng = np.random.default_rng(size)
    n = 12
    order = rng.permutation(n)
    for density in (0, 0.2, 0.7, 1):
        mask = rng.random((n, *worlds)) < density
        found, count = jax.jit(lambda m: compact_true(m, order, size))(jnp.asarray(mask))
        assert found.shape == (size, *worlds)
        assert count.shape == (1, *worlds)
        for w in np.ndindex(worlds):
            expected = [i for i in order if mask[(i, *w)]]
            assert count[(0, *w)] == len(expected)
            filled = min(size, len(expected))
            assert found[(slice(None), *w)][:filled].tolist() == expected[:size]
            assert (found >= 0).all()
            assert (found < n).all()


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_the_first_by_rank(platform):
    """Items of one rank keep their order; each platform has a way of its own."""
    rng = np.random.default_rng(1)
    n, worlds = 12, 9
    order = rng.permutation(n)
    rank = rng.integers(0, 5, (n, worlds), dtype=np.int32)
    mask = rng.random((n, worlds)) < 0.5
    with jaxsim.for_platform(platform):
        found, count = jax.jit(lambda a, b: compact_ranked(a, order, lambda: b, n))(mask, rank)
    for w in range(worlds):
        wanted = sorted((i for i in order if mask[i, w]), key=lambda i, w=w: rank[i, w])
        assert count[0, w] == len(wanted)
        assert found[:, w][: len(wanted)].tolist() == wanted


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_the_deepest(platform):
    rng = np.random.default_rng(2)
    dist = rng.standard_normal((12, 9))
    dist[0, 0] = np.nan
    mask = rng.random((12, 9)) < 0.7
    with jaxsim.for_platform(platform):
        kept = jax.jit(lambda a, b: select_deepest(a, b, 4))(mask, dist)
    for w in range(9):
        there = [i for i in range(12) if mask[i, w] and not np.isnan(dist[i, w])]
        wanted = sorted(sorted(there, key=lambda i, w=w: dist[i, w])[:4])
        assert np.flatnonzero(kept[:, w]).tolist() == wanted


@pytest.mark.parametrize("worlds", [(), (7,)])
@pytest.mark.parametrize("size", [5, 100, 300])
def test_chosen_items_in_the_order_of_their_ranks(worlds, size):
    """In each world as many as count there; what follows them may be anything that there is."""
    rng = np.random.default_rng(size)
    n = 2 * size
    ranks = rng.permuted(np.broadcast_to(np.arange(n)[:, None], (n, 7)), axis=0).astype(np.int32)
    items = rng.permuted(ranks, axis=0)[:size].astype(np.int32)
    number = rng.integers(0, size + 1, (1, 7), dtype=np.int32)
    ranks, items, number = (a if worlds else a[:, 0] for a in (ranks, items, number))
    found = np.asarray(jax.jit(sort_by_rank)(*(jnp.asarray(a) for a in (items, ranks, number))))
    assert found.shape == (size, *worlds)
    for w in np.ndindex(worlds):
        count = int(number[(0, *w)])
        mine, rank = found[(slice(None), *w)], ranks[(slice(None), *w)]
        wanted = sorted(items[(slice(None), *w)][:count], key=lambda i, rank=rank: rank[i])
        assert mine[:count].tolist() == [int(i) for i in wanted]
        assert set(mine.tolist()) <= set(range(n))
