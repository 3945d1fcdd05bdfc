"""Every order of jit, vmap, grad, jvp, jacobians, scan and remat around a step and a rollout."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import DIFFERENCE, DYNAMICS, ROUNDING, SAME

import jaxsim

pytestmark = pytest.mark.kernels

# A world, a dof, a counter or a pose that no batched input reaches stays the same in all worlds.
XML = """
<mujoco>
  <worldbody>
    <body><joint name="j" damping=".1"/><geom size=".1" pos=".3 0 0" contype="0"/></body>
    <body pos="0 0 3"><joint axis="0 1 0"/><geom size=".1" pos=".2 0 0" contype="0"/></body>
  </worldbody>
  <actuator><motor joint="j"/></actuator>
  <sensor><jointpos joint="j"/></sensor>
</mujoco>"""
COMPILER = {"xla_backend_optimization_level": 0}  # the programs run once
jit = partial(jax.jit, compiler_options=COMPILER)
EQUAL = {"rtol": DYNAMICS["rtol"], "atol": SAME["atol"]}  # some derivatives are nearly zero
CTRL = np.linspace(-1, 2, 12).reshape(3, 4, 1)  # worlds, steps, controls


@cache
def model():
    m = jaxsim.load_model(XML)
    return m, jaxsim.make_data(m)


@pytest.fixture(autouse=True, scope="module")
def made_outside_of_any_trace():
    model()


def by_steps(p, ctrl):
    m, d = model()
    for c in ctrl[:2]:
        d = jaxsim.step(m, d.replace(ctrl=p * c))
    return d.qpos[0] + d.qvel[0] ** 2


def by_rollout(p, ctrl):
    m, d = model()
    end, _ = jaxsim.rollout(m, d, ctrl=p * ctrl)
    return end.qpos[0] + end.qvel[0] ** 2


def many(run, **options):
    return jax.vmap(run, (None, 0), **options)


def summed(run):
    return lambda p: many(run)(p, CTRL).sum()


# each gives the sum over the worlds of the derivative by p, at p = 1
ORDERS = {
    "vmap grad": lambda run: jax.vmap(jax.grad(run), (None, 0))(1.0, CTRL).sum(),
    "jit vmap grad": lambda run: jit(jax.vmap(jax.grad(run), (None, 0)))(1.0, CTRL).sum(),
    "grad vmap": lambda run: jax.grad(summed(run))(1.0),
    "jit grad vmap": lambda run: jit(jax.grad(summed(run)))(1.0),
    "grad jit vmap": lambda run: jax.grad(jax.jit(summed(run)))(1.0),
    "jit jacfwd vmap": lambda run: jit(jax.jacfwd(many(run)))(1.0, CTRL).sum(),
    "jit jacrev vmap": lambda run: jit(jax.jacrev(many(run)))(1.0, CTRL).sum(),
    "jit jvp vmap": lambda run: jit(lambda p: jax.jvp(summed(run), (p,), (1.0,)))(1.0)[1],
    "jit vmap jvp": lambda run: jit(
        many(lambda p, c: jax.jvp(lambda p: run(p, c), (p,), (1.0,))[1])
    )(1.0, CTRL).sum(),
    "jit grad vmap vmap": lambda run: jit(
        jax.grad(lambda p: jax.vmap(many(run), (None, 1))(p, CTRL[:, None]).sum())
    )(1.0),
    "jit grad vmap of both": lambda run: jit(
        jax.grad(lambda p: jax.vmap(run)(p * jnp.ones(3), CTRL).sum())
    )(1.0),
    "jit grad remat vmap": lambda run: jit(jax.grad(jax.checkpoint(summed(run))))(1.0),
    "jit grad vmap remat": lambda run: jit(jax.grad(summed(jax.checkpoint(run))))(1.0),
    "jit linearize vmap": lambda run: jit(lambda p: jax.linearize(summed(run), p)[1](1.0))(1.0),
    "jit grad of a scan over worlds": lambda run: jit(
        jax.grad(lambda p: jax.lax.map(lambda c: run(p, c), CTRL).sum())
    )(1.0),
}
SECOND = {
    "hessian": lambda f: jax.hessian(f),
    "forward over forward": lambda f: jax.jacfwd(jax.jacfwd(f)),
    "reverse over reverse": lambda f: jax.jacrev(jax.jacrev(f)),
    "reverse over forward": lambda f: jax.jacrev(jax.jacfwd(f)),
}


@cache
def expected(run):
    one = jit(run)
    eps = 1e-5
    differences = sum((one(1 + eps, c) - one(1 - eps, c)) / (2 * eps) for c in CTRL)
    exact = sum(jit(jax.grad(run))(1.0, c) for c in CTRL)
    np.testing.assert_allclose(exact, differences, rtol=DIFFERENCE["rtol"])
    return exact


FAST = ("grad jit vmap", "jit grad vmap", "jit jvp vmap")


def each_order():
    """All orders; those that compile long and differ little from others are slow."""
    return [
        pytest.param(order, marks=() if order in FAST else pytest.mark.slow) for order in ORDERS
    ]


@pytest.mark.short("grad jit vmap")
@pytest.mark.parametrize("order", each_order())
def test_derivatives_of_rollouts_in_every_order(order):
    np.testing.assert_allclose(ORDERS[order](by_rollout), expected(by_rollout), **EQUAL)


@pytest.mark.slow
@pytest.mark.parametrize("order", ["jit vmap grad", "jit grad vmap", "jit jacfwd vmap"])
def test_derivatives_of_steps(order):
    run = by_steps
    np.testing.assert_allclose(ORDERS[order](run), expected(run), **EQUAL)


@pytest.mark.slow
@pytest.mark.parametrize("order", SECOND)
def test_second_derivatives_of_many_worlds(order):
    first = jit(jax.grad(summed(by_rollout)))
    eps = 1e-4
    differences = (first(1 + eps) - first(1 - eps)) / (2 * eps)
    found = jit(SECOND[order](summed(by_rollout)))(1.0)
    np.testing.assert_allclose(found, differences, rtol=1e-5)


@pytest.mark.slow
def test_states_of_many_worlds_keep_their_axis_under_a_derivative():
    """Counters and poses too: all results have all worlds, whatever the batched input reaches."""
    m, d = model()

    def ends(p):
        return jax.vmap(lambda c: jaxsim.rollout(m, d, ctrl=p * c)[0])(CTRL)

    plain = jit(ends)(1.0)
    primal, tangent = jit(lambda p: jax.jvp(ends, (p,), (1.0,)))(1.0)
    for a, b, t in zip(*map(jax.tree.leaves, (plain, primal, tangent)), strict=True):
        np.testing.assert_allclose(a, b, rtol=DYNAMICS["rtol"], atol=ROUNDING["atol"])
        assert t.shape == a.shape
        assert a.shape[0] == 3
