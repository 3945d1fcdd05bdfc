"""A function of the physics as one operation: worlds last in every order of transformations."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import ROUNDING

from jaxsim.transforms.derivative_context import is_differentiated
from jaxsim.transforms.materialize import materialize
from jaxsim.transforms.primitive import PHYSICS_P, PhysicsCall

pytestmark = pytest.mark.kernels

X = np.random.default_rng(0).normal(size=(6, 3))
TABLE = np.random.default_rng(1).normal(size=3)


def formula(table, x):
    """Compute the primitive for one world: `[3]` each; and an integer."""
    return jnp.sin(x * table) * jnp.sum(x * x), (x > 0).astype(jnp.int32)


class Function:
    """The formula as a call, which notes for how many worlds it was traced."""

    def __init__(self, tile: int = 100):
        self.worlds: list[int | None] = []
        self.tile = tile

    def __call__(self, table, x):
        return PhysicsCall(self.run, (True, False), 0, self.part)(table, x)

    def part(self, size: int, linear: bool = False) -> int:
        return size if size % self.tile else self.tile

    def run(self, worlds, staged, table, x):
        del staged
        self.worlds.append(worlds)
        if worlds is not None:
            assert x.shape == (3, worlds)
            assert table.shape in ((3, worlds), (3, 1))
        value, sign = formula(table, x)
        square = jnp.sum(x * x, axis=0, keepdims=True)
        value = jnp.sin(x * table) * square
        return [value, sign]


def total(f, table, x):
    """A number of one world."""
    return jnp.sum(jnp.cos(f(table, x)[0]))


def by_scan(f, table, x):
    """One that depends on several calls, one after another."""

    def turn(x, _):
        return f(table, x)[0], None

    return jnp.sum(jax.lax.scan(turn, x, None, length=3)[0])


# of a function of a table and of worlds: derivatives in many orders
ORDERS = {
    "one": lambda run: jax.grad(run, argnums=(0, 1))(TABLE, X[0]),
    "vmap grad": lambda run: jax.vmap(jax.grad(run, argnums=1), (None, 0))(TABLE, X),
    "vmap grad of the table": lambda run: jax.vmap(jax.grad(run), (None, 0))(TABLE, X),
    "grad vmap": lambda run: jax.grad(
        lambda t, x: jax.vmap(run, (None, 0))(t, x).sum(), argnums=(0, 1)
    )(TABLE, X),
    "jvp vmap": lambda run: jax.jvp(
        lambda t, x: jax.vmap(run, (None, 0))(t, x), (TABLE, X), (TABLE, X)
    ),
    "vmap jvp": lambda run: jax.vmap(lambda x: jax.jvp(run, (TABLE, x), (TABLE, x)))(X),
    "vmap of both": lambda run: jax.vmap(jax.grad(run))(jnp.tile(TABLE, (6, 1)), X),
    "vmap vmap grad": lambda run: jax.vmap(jax.vmap(jax.grad(run, 1), (None, 0)), (None, 0))(
        TABLE, X.reshape(2, 3, 3)
    ),
    "vmap of the table vmap": lambda run: jax.vmap(jax.vmap(run, (None, 0)), (0, None))(
        TABLE + X[:2], X
    ),
    "grad vmap vmap": lambda run: jax.grad(
        lambda t: jax.vmap(jax.vmap(run, (None, 0)), (None, 0))(t, X.reshape(2, 3, 3)).sum()
    )(TABLE),
    "jacobians": lambda run: jax.vmap(jax.jacfwd(run, 1), (None, 0))(TABLE, X),
    "hessian": lambda run: jax.hessian(run, 1)(TABLE, X[0]),
    "vmap hessian": lambda run: jax.vmap(jax.hessian(run, 1), (None, 0))(TABLE, X),
    "reverse over reverse": lambda run: jax.jacrev(jax.jacrev(run, 1), 0)(TABLE, X[0]),
    "reverse over forward vmap": lambda run: jax.grad(
        lambda t: jax.jvp(lambda x: jax.vmap(run, (None, 0))(t, x), (X,), (X,))[1].sum()
    )(TABLE),
    "remat": lambda run: jax.vmap(jax.grad(jax.checkpoint(run), 1), (None, 0))(TABLE, X),
    "transposed twice": lambda run: jax.linear_transpose(
        jax.vjp(partial(run, TABLE), X[0])[1], 1.0
    )((X[1],)),
}


@pytest.mark.short(
    "one-total",
    "vmap grad-total",
    "grad vmap-total",
    "jvp vmap-total",
    "vmap jvp-total",
    "hessian-total",
    "remat-total",
    "transposed twice-total",
    "vmap grad-by_scan",
    "jvp vmap-by_scan",
)
@pytest.mark.parametrize(
    ("order", "run"),
    # what a scan is transposed to has no transpose of its own in JAX
    [(o, r) for r in (total, by_scan) for o in ORDERS if (o, r) != ("transposed twice", by_scan)],
)
def test_every_order_gives_the_same(order, run):
    expected = ORDERS[order](partial(run, formula))
    for tile in (100, 2):
        for stage in (lambda f: f, lambda f: jax.jit(f)):
            found = stage(lambda t=tile: ORDERS[order](partial(run, Function(t))))()
            for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(a, b, **ROUNDING)


@pytest.mark.parametrize(
    ("order", "worlds"),
    [("vmap grad", 6), ("grad vmap", 6), ("vmap jvp", 6), ("vmap vmap grad", 6)],
)
def test_many_worlds_are_last_in_derivatives_too(order, worlds):
    f = Function()
    program = jax.jit(lambda: ORDERS[order](partial(total, f))).trace().lower().as_text()
    assert set(f.worlds) - {None, 3} == {worlds}
    # what is computed for them has their number last
    assert "tensor<3x6xf64>" in program


def test_one_traced_function_serves_arguments_of_other_shapes():
    """Equal numbers of worlds with a shared table and one for each; other numbers of columns."""
    function = Function()
    run, plain = jax.jit(partial(total, function)), partial(total, formula)
    tables = TABLE + X
    for f_axes, table in (((None, 0), TABLE), ((0, 0), tables), ((None, 0), TABLE)):
        found = jax.vmap(run, f_axes)(table, X)
        np.testing.assert_allclose(found, jax.vmap(plain, f_axes)(table, X), **ROUNDING)
    along = jax.jit(lambda x, v: jax.jvp(partial(total, function, TABLE), (x,), (v,))[1])
    for number in (2, 5, 6):
        ways = X[:number] + 1
        gradient = jax.grad(plain, 1)(TABLE, X[0])
        found = jax.vmap(along, (None, 0))(X[0], ways)
        np.testing.assert_allclose(found, ways @ gradient, **ROUNDING)


def test_what_is_not_used_is_not_computed():
    f = Function()

    def sign(table, x):
        return f(table, x)[1]

    (left,) = (
        e for e in jax.make_jaxpr(jax.jit(sign))(TABLE, X[0]).eqns[0].params["jaxpr"].eqns
        if e.primitive is PHYSICS_P
    )  # fmt: skip
    assert len(left.outvars) == 2
    lowered = jax.jit(sign).lower(TABLE, X[0]).as_text()
    assert "sine" not in lowered
    np.testing.assert_array_equal(jax.jit(sign)(TABLE, X[0]), X[0] > 0)
    many = jax.jit(
        jax.vmap(jax.grad(lambda x: total(f, TABLE, x) + sign(TABLE, x).sum().astype(float)))
    )
    np.testing.assert_allclose(
        many(X), jax.vmap(jax.grad(lambda x: total(formula, TABLE, x)))(X), **ROUNDING
    )


@pytest.mark.parametrize("again", [lambda f: f, jax.checkpoint])
def test_many_worlds_may_depend_by_name_on_more_than_one(again):
    """`materialize` of many worlds has branches that change the positions of its values."""

    def run(worlds, staged, a, b):
        x, y = materialize([jnp.sin(a), jnp.cos(b)], a)
        return [x * a, y * b]

    def loss(function, a, b):
        def turn(a, _):
            return function(a, b)[0], None

        return jnp.sum(jax.lax.scan(turn, a, None, length=3)[0])

    call = PhysicsCall(run, (False, False), 0, lambda size, linear: size)
    found = jax.vmap(jax.grad(again(partial(loss, call))))(X, X + 1)
    plain = partial(run, None, False)
    np.testing.assert_allclose(
        found, jax.vmap(jax.grad(partial(loss, plain)))(X, X + 1), **ROUNDING
    )


def test_derivatives_are_known_where_they_are_made():
    seen = []

    def run(worlds, staged, x):
        seen.append(is_differentiated())
        return [x * x]

    def square(x):
        return PhysicsCall(run, (False,), 0, lambda size, linear: size)(x)[0].sum()

    jax.jit(square)(X)
    assert seen == [False]
    jax.jit(jax.grad(square))(X)
    assert seen[-1]
    assert not is_differentiated()


def test_a_rollout_keeps_states_alone_for_the_way_back():
    """Not what a step computes on its way: memory grows by a state a step."""

    def run(worlds, staged, x):
        y = jnp.tile(x, 1000)
        return [x + jnp.sum(jnp.sin(y).reshape(1000, -1), axis=0)]

    def rollout(x, steps):
        def turn(x, _):
            return PhysicsCall(run, (False,), 0, lambda size, linear: size)(x)[0], None

        return jax.lax.scan(turn, x, None, length=steps)[0].sum()

    def memory(steps: int) -> int:
        compiled = jax.jit(jax.grad(partial(rollout, steps=steps))).lower(X[0]).compile()
        return compiled.memory_analysis().temp_size_in_bytes

    assert memory(400) - memory(200) < 200 * 10 * X[0].nbytes
