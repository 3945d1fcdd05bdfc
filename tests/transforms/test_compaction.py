"""Searches over compacted lanes give what a search over all lanes gives, at the cost of these."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.transforms import tuning
from jaxsim.transforms.compaction import evaluate_active_lanes, evaluate_part, evaluate_used_slots
from jaxsim.transforms.cpu_fusion import fuse_calls

pytestmark = pytest.mark.kernels

LANES = 37


def work(lanes):
    """Leaves of several dtypes and ranks, and a loop whose length depends on the lanes."""
    x, k = lanes["x"], lanes["k"]
    y = jax.lax.while_loop(
        lambda s: jnp.any(s[0] < k),
        lambda s: (s[0] + 1, s[1] + (s[0] < k).astype(x.dtype)),
        (0 * k, x),
    )[1]
    return {"pair": jnp.stack([x, y]), "count": 2 * k, "odd": k % 2 == 1}


@pytest.fixture(scope="module")
def lanes():
    rng = np.random.default_rng(0)
    return {"x": rng.normal(size=LANES), "k": rng.integers(0, 5, LANES).astype(np.int32)}


@pytest.mark.parametrize("active", ["none", "some", "all"])
@pytest.mark.parametrize("size", [1, 5, 64])
@pytest.mark.parametrize(
    ("name", "loop"), [("cpu", 10_000), ("cpu", 1), ("cuda", 10_000)], ids=["cpu", "opened", "cuda"]
)
def test_active_lanes_are_evaluated_and_others_kept(name, loop, size, active, lanes):
    rng = np.random.default_rng(1)
    needed = {"none": np.zeros(LANES, bool), "all": np.ones(LANES, bool)}
    needed = needed.get(active, rng.random(LANES) < 0.3)
    every = jax.tree.map(np.asarray, work(jax.tree.map(jnp.asarray, lanes)))
    other = jax.tree.map(lambda a: rng.permutation(a.T).T, every)

    def run(needed, lanes, other):
        zeros = evaluate_active_lanes(work, needed, lanes, size)
        return zeros, evaluate_active_lanes(work, needed, lanes, size, other)

    with jaxsim.for_platform(name, kernels=False):
        program, shape = jax.make_jaxpr(run, return_shape=True)(needed, lanes, other)
    leaves = list(map(jnp.asarray, jax.tree.leaves((needed, lanes, other))))
    with tuning.override(max_loop_operations=loop):
        results = jax.jit(lambda *a: fuse_calls(program, a))(*leaves)
    found = jax.tree.unflatten(jax.tree.structure(shape), results)
    for result, kept in zip(found, (jax.tree.map(np.zeros_like, every), other), strict=True):
        expected = jax.tree.map(lambda a, b: np.where(needed, a, b), every, kept)
        jax.tree.map(np.testing.assert_array_equal, result, expected)


def test_a_kernel_holds_a_whole_search(lanes):
    """Also the order of the lanes and the writes of the results."""
    program = jax.make_jaxpr(lambda m, a: evaluate_active_lanes(work, m, a, 4))(
        np.ones(LANES, bool), lanes
    )
    leaves = [jnp.ones(LANES, bool), *map(jnp.asarray, jax.tree.leaves(lanes))]
    text = jax.jit(lambda *a: fuse_calls(program, a)).lower(*leaves).as_text()
    main = text[text.index("func.func public @main") :].split("func.func private")[0]
    assert main.count("xla_cpu_small_call") == 1
    assert "while" not in main
    assert "scatter" not in text


def test_the_number_of_evaluations_follows_the_number_of_active_lanes():
    calls = []

    def counted(x):
        jax.debug.callback(lambda: calls.append(1))
        return x + 1

    run = jax.jit(lambda needed, x: evaluate_active_lanes(counted, needed, x, 4))
    for number, chunks in ((0, 0), (1, 1), (4, 1), (5, 2), (LANES, 10)):
        calls.clear()
        jax.block_until_ready(run(jnp.arange(LANES) < number, jnp.zeros(LANES)))
        jax.effects_barrier()
        assert len(calls) == chunks


@pytest.mark.parametrize("size", [1, 4, 64])
@pytest.mark.parametrize("axis", [0, 1])
def test_chunks_up_to_the_last_used_slot_are_evaluated(size, axis):
    """Later slots are zero."""
    rng = np.random.default_rng(2)
    slots = {"x": rng.normal(size=(11, 3)), "shared": rng.normal(size=(11, 1))}

    def double(some):
        y = jnp.stack([2 * some["x"] + some["shared"], some["x"]])
        return {"y": y if axis else y[0], "one": (y + 1)[:, :, :1] if axis else y[0, :, :1] + 1}

    every = jax.tree.map(np.asarray, double(jax.tree.map(jnp.asarray, slots)))
    every = jax.tree.map(lambda a: np.broadcast_to(a, (*a.shape[:-1], 3)), every)
    run = jax.jit(lambda s, n: evaluate_used_slots(double, s, n, size, axis))
    for used in (0, 1, 4, 5, 11):
        chunk = min(size, 11)
        done = np.arange(11)[:, None] < min(-(-used // chunk) * chunk, 11)
        expected = jax.tree.map(lambda a, done=done: np.where(done, a, 0), every)
        jax.tree.map(np.testing.assert_array_equal, run(slots, jnp.int32(used)), expected)


@pytest.mark.parametrize("name", ["cpu", "cuda"])
def test_a_part_of_a_search_compacts_its_lanes_in_kernels_only(name, lanes):
    """It evaluates all lanes where they are compacted before; active ones have equal results."""
    needed = np.arange(LANES) % 3 == 0
    with jaxsim.for_platform(name, kernels=False):
        run = jax.jit(lambda needed, lanes: evaluate_part(work, needed, lanes, 5))
        found, program = run(needed, lanes), run.trace(needed, lanes).jaxpr
    every = work(jax.tree.map(jnp.asarray, lanes))
    jax.tree.map(
        lambda a, b: np.testing.assert_array_equal(a[..., needed], b[..., needed]), found, every
    )
    # On a GPU the only loop is that of the function.
    assert (str(program).count("while[") > 1) == (name == "cpu")
