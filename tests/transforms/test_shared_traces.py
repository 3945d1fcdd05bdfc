"""Programs of one process share the traces of a physics function, where they may."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxsim
from jaxsim import Callbacks, Data, Model, step
from jaxsim.transforms import layout, tuning
from jaxsim.transforms.batching import _move_axis
from jaxsim.transforms.layout import batched

WORLDS = 16
PENDULUM = """
<mujoco>
  <worldbody>
    <body><joint name="swing" axis="0 1 0"/><geom size=".1" pos=".2 0 0" contype="0"/></body>
  </worldbody>
  <actuator><motor joint="swing"/></actuator>
</mujoco>
"""


@pytest.fixture(scope="module")
def m() -> Model:
    return jaxsim.load_model(PENDULUM)


@pytest.fixture(scope="module")
def d(m) -> Data:
    return jaxsim.make_data(m).replace(qpos=jnp.full(1, 0.3))


@pytest.fixture
def double():
    """A physics function, and the shapes of qpos with which it was traced."""
    traced = []

    def double(m: Model, d: Data) -> Data:
        traced.append(d.qpos.shape)
        return d.replace(qpos=2 * d.qpos)

    return batched(double), traced


def worlds(d: Data) -> Data:
    return jax.tree.map(lambda a: jnp.stack([a] * WORLDS), d)


def test_programs_share_a_trace(m, d, double):
    function, traced = double
    programs = (
        function,
        lambda m, d: function(m, function(m, d)),
        lambda m, d: lax.fori_loop(0, 2, lambda _, d: function(m, d), d),
    )
    found = [float(jax.jit(f)(m, d).qpos[0]) for f in programs]
    np.testing.assert_allclose(found, [0.6, 1.2, 1.2])
    assert traced == [(1,)]
    for f in programs:
        many = jax.jit(jax.vmap(f, (None, 0)))(m, worlds(d))
        assert many.qpos.shape == (WORLDS, 1)
    assert traced == [(1,), (1, WORLDS)]


def test_programs_share_the_traces_of_derivatives(m, d, double):
    function, traced = double
    for k in range(3):

        def last(qpos, k=k):
            return (k + 1) * function(m, d.replace(qpos=qpos)).qpos[0]

        assert jax.jit(jax.grad(last))(d.qpos) == 2 * (k + 1)
        if not k:
            first = list(traced)
    assert traced == first


def test_a_loop_under_vmap_traces_no_single_world(m, d, double):
    function, traced = double

    def thrice(m, d):
        return lax.fori_loop(0, 3, lambda _, d: function(m, d), d)

    many = jax.jit(jax.vmap(thrice, (None, 0)))(m, worlds(d))
    np.testing.assert_allclose(many.qpos, 2.4)
    assert traced == [(1, WORLDS)]


def test_results_have_the_shapes_of_the_state_without_a_trace(m, d, double):
    function, traced = double
    shapes = jax.eval_shape(function, m, d)
    assert not traced
    results = jax.tree.leaves(jax.jit(function)(m, d))
    assert list(map(jax.typeof, results)) == list(map(jax.typeof, jax.tree.leaves(shapes)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"qpos": lambda a: a.astype(jnp.int32)}, r"\.qpos: expected float64\[1\], got int32\[1\]"),
        (
            {"qvel": lambda a: jnp.concatenate([a, a])},
            r"\.qvel: expected float64\[1\], got float64",
        ),
    ],
)
def test_a_function_that_returns_another_state_raises(m, d, change, message):
    def broken(m: Model, d: Data) -> Data:
        return d.replace_unchecked({n: f(getattr(d, n)) for n, f in change.items()}, True)

    with pytest.raises(TypeError, match=message):
        jax.jit(batched(broken))(m, d)


def test_a_state_of_other_dtypes_is_traced(m, d, double):
    """Its results may have the declared ones."""
    function, traced = double
    other = d.replace_unchecked({"ncon": d.ncon.astype(jnp.int64)}, False)
    assert jax.eval_shape(function, m, other).ncon.dtype == jnp.int64
    assert traced == [(1,)]


@pytest.mark.parametrize(
    "context",
    [
        partial(tuning.override, max_unrolled_dofs=7),
        partial(jax.default_matmul_precision, "float32"),
        partial(jaxsim.for_platform, "cuda"),
    ],
    ids=["threshold", "option of JAX", "platform"],
)
def test_another_context_has_a_trace_of_its_own(m, d, double, context):
    function, traced = double
    for _ in range(2):
        jax.jit(lambda m, d: function(m, d)).trace(m, d).lower()
        with context():
            jax.jit(lambda m, d: function(m, d)).trace(m, d).lower(lowering_platforms=("cpu",))
    assert len(traced) == 2


def test_values_that_a_callback_reads_are_those_of_each_program(m, d):
    """A callback may read what changes between two programs."""
    gain = [0.0]

    def push(m: Model, d: Data) -> Data:
        return d.replace(ctrl=d.ctrl + gain[0])

    moved = m.replace(callbacks=Callbacks(control=push))

    def speed(d: Data, value: float) -> jax.Array:
        gain[0] = value
        return step(moved, d).qvel[0]

    rest = jax.jit(lambda d: speed(d, 0.0))(d)
    pushed = jax.jit(lambda d: speed(d, 1.0))(d)
    assert abs(pushed - rest) > 1e-3


def test_traces_are_dropped_with_the_models_used_longest_ago(m, d, double, monkeypatch):
    monkeypatch.setattr(layout, "MAX_CALLS", 2)
    function, traced = double
    kept = batched(function.__wrapped__)
    models = [jaxsim.load_model(PENDULUM.replace("swing", name)) for name in "abc"]
    for other in (*models, models[2], models[0]):
        jax.jit(lambda m, d: kept(m, d))(other, jaxsim.make_data(other))
    assert len(traced) == 4  # the first model was dropped


def test_no_tracer_outlives_its_program(m, d, double):
    function, _ = double
    with jax.checking_leaks():
        for k in range(2):
            jax.jit(lambda m, d, k=k: function(m, d.replace(qpos=k * d.qpos)))(m, d)


@pytest.mark.parametrize("source", [-3, -1, 0, 1, 2])
@pytest.mark.parametrize("destination", [-2, -1, 0, 1, 2])
def test_an_axis_is_moved_as_by_numpy(source, destination):
    a = np.arange(24).reshape(2, 3, 4)
    moved = _move_axis(jnp.asarray(a), source, destination)
    np.testing.assert_array_equal(moved, np.moveaxis(a, source, destination))
