"""Programs in a few large kernels of a CPU give what the same programs give piece by piece."""

import re
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxsim
from jaxsim.arrays import linear
from jaxsim.arrays.bilinear import apply, apply_transpose
from jaxsim.arrays.gather import sum_items
from jaxsim.arrays.products import gram
from jaxsim.transforms import cpu_fusion, tuning
from jaxsim.transforms.cpu_fusion import fuse_calls, split_shared

pytestmark = pytest.mark.kernels

CONFIGS = Path(__file__).resolve().parents[2] / "configs"
MARKED = re.compile(r"call @\w+\(.*xla_cpu_small_call")


def main_of(text: str) -> str:
    """A program's text outside of the functions that it calls."""
    return text[text.index("func.func public @main") :].split("func.func private")[0]


def awkward(x, n, empty, unused, flag):
    """Loops, branches, libraries' parts, constants, and arguments in all kinds of use."""
    del unused
    table = jnp.asarray(np.arange(9.0).reshape(3, 3))
    y = lax.fori_loop(0, n, lambda k, a: jnp.sin(a) + k.astype(a.dtype), x)
    z = lax.cond(flag, lambda a: a @ table, lambda a: a * 2, y)
    L = jnp.linalg.cholesky(jnp.eye(3) + jnp.outer(z, z))  # of a library
    ordered = lax.sort(z)
    never = jnp.where(np.zeros(3, bool), n.astype(x.dtype), ordered)
    return x, 1.0, (L @ never).sum(), never, never, empty.sum(), empty, jnp.cumsum(z)


@pytest.fixture
def short_kernels() -> Iterator[None]:
    """Make kernels of single operations too."""
    with tuning.override(min_kernel_operations=1):
        yield


ARGUMENTS = (np.array([0.3, -2.0, 1.0]), np.int32(4), np.zeros((0, 3)), np.arange(2.0), True)


def partly_shared(m, x):
    """Values of the model alone: used by the state, by each other, and as results."""
    zero = jnp.zeros((3, 1))
    squares = jnp.maximum(m * m, zero)
    wide = jnp.broadcast_to(jnp.sin(squares), x.shape)
    sums = lax.cumsum(squares) + zero
    return wide * x + jnp.maximum(x, zero), sums, jnp.cos(m[:1] * sums), m + x


@pytest.mark.usefixtures("short_kernels")
def test_what_all_worlds_share_comes_first():
    m, x = jnp.array([[0.5], [2.0], [-1.0]]), jnp.linspace(-1, 1, 12).reshape(3, 4)
    program = jax.make_jaxpr(partly_shared)(m, x)
    first, rest = split_shared(program.jaxpr, (True, False))
    # What is split off has one world; slices and broadcasts stay with their users.
    assert {v.aval.shape[-1] for eqn in first for v in eqn.outvars} == {1}
    names = [eqn.primitive.name for eqn in first]
    assert {"mul", "sin", "cumsum", "cos"} <= set(names)
    assert "mul" in [eqn.primitive.name for eqn in rest]
    cut = jax.jit(lambda *a: fuse_calls(program, a, shared=(True, False)))
    for found, expected in zip(cut(m, x), partly_shared(m, x), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-15)


def test_kernels_of_the_model_are_moved_out_of_the_loop_over_tiles():
    """Contact parameters are mixed once for all tiles of worlds."""
    m = jaxsim.load_model(CONFIGS / "humanoid.xml")
    d = jaxsim.make_data(m, keep=[jaxsim.stages.collision])
    worlds = jax.tree.map(lambda x: jnp.broadcast_to(x, (64, *x.shape)), d)
    program = jax.jit(lambda d: jax.vmap(jaxsim.stages.collision, (None, 0))(m, d)).lower(worlds)
    text = program.compile().as_text()
    entry = text[text.index("\nENTRY") :]
    assert re.search(r"call\(.*xla_cpu_small_call", entry)


@pytest.mark.parametrize("size", [1, 5, 10**6])
@pytest.mark.usefixtures("short_kernels")
def test_parts_together_are_the_program(size):
    program = jax.make_jaxpr(awkward)(*ARGUMENTS)
    leaves = tuple(map(jnp.asarray, ARGUMENTS))
    with tuning.override(max_kernel_operations=size):
        cut = jax.jit(lambda *a: fuse_calls(program, a)).lower(*leaves)
    assert MARKED.search(cut.as_text())
    expected = jax.tree.leaves(awkward(*leaves))
    for ours, theirs in zip(cut.compile()(*leaves), expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def dot_of_worlds(a):
    """A row of more items than are unrolled, times a vector, and the other way around."""
    x = jnp.concatenate([a, a])
    return apply(x[None], x) + apply_transpose(x[:, None], x)


@pytest.mark.usefixtures("short_kernels")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_library_calls_are_not_fused(dtype):
    """Sums, products and their like of sizes at which XLA may leave them to a library."""
    n = 70
    square, cube = np.ones((n, n), dtype), np.ones((9, 24, 24), dtype)
    functions = {
        "sum": (lambda a: jnp.sum(a * 2, axis=0), square),
        "sum of some": (lambda a: jnp.sum(a * a[:, :1], axis=2), cube),
        "least": (lambda a: jnp.min(a + 1, axis=1), square),
        "product": (lambda a: a @ a, square),
        "by columns": (lambda a: a.T @ a, square),
        "of a vector": (lambda a: a @ a[0], square),
        "of two long vectors": (lambda a: a.ravel() @ a.ravel(), square),
        "of a column of ones": (lambda a: sum_items(a.ravel()), square),
        "of three axes": (lambda a: jnp.tensordot(a[0, :3, :9], a, 1), cube),
        "of vectors of many worlds": (dot_of_worlds, square),
        "so far": (lambda a: jnp.cumsum(a, axis=0), square),
    }
    for name, (function, a) in functions.items():
        program = jax.make_jaxpr(lambda a, f=function: f(jnp.sin(a)) * 2 + 1)(a)
        (found,) = jax.jit(lambda a, p=program: fuse_calls(p, [a]))(a)
        np.testing.assert_allclose(found, function(np.sin(a)) * 2 + 1, rtol=1e-4, err_msg=name)


@pytest.mark.usefixtures("short_kernels")
def test_a_kernel_holds_small_products_of_matrices():
    """Others are faster as a library's, if they would not open a loop."""

    def square(a):
        return lax.dot_general(a, a, (((0,), (0,)), ((), ())))

    def in_loop(a):
        return lax.fori_loop(0, 3, lambda _, b: square(b) / len(b), a)

    a = np.random.default_rng(1).standard_normal((30, 30))
    program = jax.make_jaxpr(in_loop)(a)
    lowered = jax.jit(lambda a: fuse_calls(program, [a])).lower(a)
    assert "stablehlo.while" not in main_of(lowered.as_text())
    np.testing.assert_allclose(lowered.compile()(a)[0], in_loop(a), rtol=1e-9, atol=1e-12)
    for n, held in ((10, True), (30, False)):
        a = np.random.default_rng(0).standard_normal((n, n))
        program = jax.make_jaxpr(lambda a: lax.dot_general(a, a, (((0,), (0,)), ((), ()))))(a)
        lowered = jax.jit(lambda a, p=program: fuse_calls(p, [a])).lower(a)
        assert bool(MARKED.search(lowered.as_text())) == held
        np.testing.assert_allclose(lowered.compile()(a)[0], a.T @ a, rtol=0, atol=1e-12)


@pytest.mark.usefixtures("short_kernels")
@pytest.mark.parametrize("n", [1, 6, 9])
def test_a_kernel_holds_products_of_matrices_turned_around(n):
    """XLA would transpose the product too, and leave it to a library."""
    rng = np.random.default_rng(n)
    J, G = rng.standard_normal((n, 9)), rng.standard_normal((9, 9))
    program = jax.make_jaxpr(lambda J, G: gram(jnp.swapaxes(jnp.sin(J), 0, 1), G) * 2)(J, G)
    lowered = jax.jit(lambda *a: fuse_calls(program, a)).lower(J, G)
    assert "dot_general" not in main_of(lowered.as_text())
    np.testing.assert_allclose(lowered.compile()(J, G)[0], 2 * np.sin(J) @ G, rtol=0, atol=1e-13)


@pytest.mark.usefixtures("short_kernels")
@pytest.mark.parametrize("axes", [1, 2, 3])
def test_a_kernel_holds_products_with_small_tables(axes):
    """Tables of several axes too, which XLA would multiply by a library call."""
    rng = np.random.default_rng(axes)
    table, x = rng.standard_normal((3, 4)), rng.standard_normal((4, 6, 5)[:axes])
    assert table.size <= tuning.tuning().max_loop_free_size
    program = jax.make_jaxpr(lambda x: linear.bind_matmul(table, jnp.sin(x)) * 2)(x)
    lowered = jax.jit(lambda x: fuse_calls(program, [x])).lower(x)
    assert len(MARKED.findall(lowered.as_text())) == 1
    found = lowered.compile()(x)[0]
    np.testing.assert_allclose(found, 2 * np.tensordot(table, np.sin(x), 1), rtol=0, atol=1e-13)


@pytest.mark.usefixtures("short_kernels")
def test_the_body_of_a_loop_that_no_kernel_holds_gets_kernels():
    """A sort is a library's; what surrounds it in the loop is not."""

    def loop(n, x):
        def body(state):
            k, x = state
            return k + 1, jnp.sin(lax.sort(jnp.cos(x) * 3)) + k

        return lax.while_loop(lambda state: state[0] < n, body, (0, x))[1]

    n, x = jnp.asarray(5), jnp.asarray([0.3, -2.0, 1.0])
    program = jax.make_jaxpr(loop)(n, x)
    lowered = jax.jit(lambda *a: fuse_calls(program, a)).lower(n, x)
    assert len(MARKED.findall(main_of(lowered.as_text()))) == 2
    np.testing.assert_allclose(lowered.compile()(n, x)[0], loop(n, x), rtol=1e-12)


def test_large_loops_are_opened_and_their_state_is_updated_in_place():
    def loop(n, x):
        def body(state):
            k, x = state
            value = k.astype(x.dtype)
            for _ in range(30):
                value = jnp.sin(value) + 1
            return k + 1, lax.dynamic_update_slice(x, value[None], (k,))

        return lax.while_loop(lambda state: state[0] < n, body, (0, x))[1]

    n, x = jnp.asarray(5), jnp.arange(999.0)
    program = jax.make_jaxpr(loop)(n, x)
    for size, kernels in ((1000, 1), (20, 2)):
        with tuning.override(max_loop_operations=size, max_kernel_operations=40):
            lowered = jax.jit(lambda *a: fuse_calls(program, a)).lower(n, x)
        main = main_of(lowered.as_text())
        assert len(MARKED.findall(main)) == kernels
        # A kernel that returned the state would copy it in each iteration.
        assert main.count("stablehlo.dynamic_update_slice") == kernels - 1
        np.testing.assert_allclose(lowered.compile()(n, x)[0], loop(n, x), rtol=1e-12)


@pytest.mark.usefixtures("short_kernels")
def test_a_kernel_reads_a_part_of_a_large_argument_without_a_copy():
    """No kernel returns a column of a table of which a later kernel uses a few rows."""

    def few(table, x):
        column = table[:, 1]
        x = lax.sort(jnp.sin(x))  # the column is used in the second kernel
        return column[np.array([3, 5, 9])] + x

    table, x = jnp.arange(3000.0).reshape(1000, 3), jnp.asarray([0.3, -2.0, 1.0])
    program = jax.make_jaxpr(few)(table, x)
    lowered = jax.jit(lambda *a: fuse_calls(program, a)).lower(table, x)
    assert "tensor<1000xf64>" not in main_of(lowered.as_text())
    np.testing.assert_allclose(lowered.compile()(table, x)[0], few(table, x), rtol=1e-12)


@pytest.mark.usefixtures("short_kernels")
def test_a_kernel_reads_an_array_shared_by_worlds_without_a_copy():
    """Arrays that worlds share get a last axis of 1; in a loop over tiles it costs no copy."""

    def look_up(table, x):
        return table[np.array([3, 5, 9]), 1] + jnp.sin(x)

    def run(table, x):
        program = jax.make_jaxpr(look_up)(table[..., None], x[0])
        return lax.map(lambda tile: fuse_calls(program, [table[..., None], tile])[0], x)

    table, x = jnp.arange(3000.0).reshape(1000, 3), jnp.ones((2, 3, 4))
    compiled = jax.jit(run).lower(table, x).compile()
    copies = [line for line in compiled.as_text().splitlines() if " copy(" in line]
    assert not [line for line in copies if "[1000,3" in line], copies
    np.testing.assert_allclose(compiled(table, x), run(table, x), rtol=1e-12)


def test_large_functions_are_opened():
    def inner(x):
        for _ in range(30):
            x = jnp.sin(x) + 1
        return x

    program = jax.make_jaxpr(lambda x: jax.jit(inner)(x) * 2)(1.0)
    with tuning.override(max_kernel_operations=10):
        lowered = jax.jit(lambda x: fuse_calls(program, [x])).lower(jnp.float64(1.0))
    assert len(MARKED.findall(lowered.as_text())) > 5
    np.testing.assert_allclose(lowered.compile()(1.0)[0], 2 * inner(1.0), rtol=1e-14)


def test_large_branches_are_opened():
    def long(x):
        for _ in range(30):
            x = jnp.sin(x) + 1
        return x, jnp.ones(2)

    def short(x):
        return jnp.cos(x), jnp.zeros(2)

    program = jax.make_jaxpr(lambda x: lax.cond(x > 0, long, short, x))(1.0)
    with tuning.override(max_kernel_operations=10):
        lowered = jax.jit(lambda x: fuse_calls(program, [x])).lower(jnp.float64(1.0))
    assert len(MARKED.findall(lowered.as_text())) > 5
    run = lowered.compile()
    for x, branch in ((1.0, long), (-1.0, short)):
        for ours, theirs in zip(run(x), branch(x), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-14)


@pytest.mark.short("6")
@pytest.mark.parametrize("worlds", [None, 1, 6])
def test_a_step_is_made_of_few_kernels(worlds):
    m = jaxsim.load_model(
        "<mujoco><worldbody><body><freejoint/><geom size='.1'/></body>"
        "<geom type='plane' size='1 1 1'/></worldbody></mujoco>"
    )
    d = jaxsim.make_data(m)
    step = jaxsim.step
    if worlds:
        d, step = jaxsim.replicate(d, worlds), jax.vmap(jaxsim.step, (None, 0))
    kernels = MARKED.findall(jax.jit(step).lower(m, d).as_text())
    assert 0 < len(kernels) < 20
    with jaxsim.for_platform("tpu"):
        assert not MARKED.search(jax.jit(step).lower(m, d).as_text())


@pytest.mark.slow
def test_one_humanoid_iterates_inside_of_kernels():
    """A loop that a kernel cannot hold costs a call of each of its operations in each iteration."""
    m = jaxsim.load_model(CONFIGS / "humanoid.xml")
    text = jax.jit(jaxsim.step).lower(m, jaxsim.make_data(m)).as_text()
    assert MARKED.search(text)
    assert "stablehlo.while" not in main_of(text)


def test_the_smallest_are_found_without_sorting():
    from jaxsim.physics.collision.compact import select_deepest

    rng = np.random.default_rng(0)
    for dtype in (np.float32, np.float64):
        dist = rng.normal(size=(40, 7)).astype(dtype)
        dist[::5] = np.round(dist[::5])  # zeros of both signs, and equals
        dist[3, 2], mask = np.inf, rng.random((40, 7)) < 0.8
        kept = np.asarray(select_deepest(jnp.asarray(mask), jnp.asarray(dist), 9))
        for w in range(7):
            limit = np.sort(np.where(mask[:, w], dist[:, w], np.inf))[8]
            np.testing.assert_array_equal(kept[:, w], mask[:, w] & (dist[:, w] <= limit))
            one = select_deepest(jnp.asarray(mask[:, w]), jnp.asarray(dist[:, w]), 9)
            np.testing.assert_array_equal(one, kept[:, w])


@pytest.mark.usefixtures("short_kernels")
def test_arguments_may_be_constants():
    """XLA moves these into a function that is called once; a kernel keeps its arguments."""
    leaves = tuple(map(jnp.asarray, ARGUMENTS))
    program = jax.make_jaxpr(awkward)(*leaves)
    found = jax.jit(lambda: fuse_calls(program, leaves))()
    for ours, theirs in zip(found, jax.tree.leaves(awkward(*leaves)), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


NUMBERS = """abs acos acosh asin asinh atan atanh cbrt ceil cos cosh erf exp exp2 expm1 floor log
  log1p logistic neg round rsqrt sign sin sinh sqrt square tan tanh is_finite""".split()
PAIRS = "add atan2 div eq ge gt le lt max min mul ne nextafter pow rem sub".split()


@pytest.mark.usefixtures("short_kernels")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_kernels_hold_every_function_of_numbers(dtype):
    x, y = np.random.default_rng(0).uniform(0.1, 0.9, (2, 40)).astype(dtype)

    def function(x, y):
        found = [getattr(lax, n)(x + 1 if n == "acosh" else x) for n in NUMBERS]
        return [*found, *(getattr(lax, n)(x, y) for n in PAIRS), lax.argmax(x, 0, np.int32)]

    assert {*NUMBERS, *PAIRS} <= cpu_fusion.KERNEL_PRIMITIVES
    program = jax.make_jaxpr(function)(x, y)
    found = jax.jit(lambda x, y: fuse_calls(program, [x, y]))(x, y)
    for name, a, b in zip([*NUMBERS, *PAIRS, "argmax"], found, function(x, y), strict=True):
        np.testing.assert_allclose(a, b, rtol=50 * np.finfo(dtype).eps, err_msg=name)
