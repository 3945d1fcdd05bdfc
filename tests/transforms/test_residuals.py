"""Ends of iterations are handed to derivatives, which do not iterate again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax
from jax.extend.core import jaxpr_as_fun
from programs import program_text
from tolerance import ROUGH_DIFFERENCE, ROUNDING

import jaxsim
from jaxsim.transforms.primitive import PhysicsCall
from jaxsim.transforms.residuals import restore_solutions, save_solutions, solution

pytestmark = pytest.mark.kernels

X = np.random.default_rng(0).uniform(1, 2, (5, 3))
BALL = """
<mujoco>
  <option integrator="{integrator}" cone="elliptic"/>
  <worldbody>
    <geom type="plane" size="1 1 1" friction="0.05"/>
    <body pos="0 0 0.09"><freejoint/><geom size="0.1" friction="0.05"/></body>
  </worldbody>
</mujoco>
"""


def root(x):
    """A square root by iteration, whose derivative is that of the root."""
    turn = lambda y: (y + lax.stop_gradient(x) / y) / 2  # noqa: E731
    found = lax.while_loop(lambda y: jnp.any(abs(y * y - x) > 1e-14), turn, jnp.ones_like(x))
    return solution(x, found, lambda x, dx, root: dx / (2 * root))


def twice(x):
    """A root and the root of it, in a scan."""

    def turn(x, _):
        y = root(x)
        return y, jnp.sin(y)

    last, each = lax.scan(turn, x, None, length=2)
    return last + jnp.sum(each, axis=0)


def chosen(x):
    """A root in either branch of a choice that all worlds make together."""
    small = lambda x: root(x / 4) * 2  # noqa: E731
    return lax.cond(jnp.sum(x) > 4.5, small, lambda x: root(4 * x) / 2, x)


def call(function):
    """One operation of it, `(x) -> y`."""

    def run(worlds, staged, x):
        del worlds, staged
        return [function(x)]

    return lambda x: PhysicsCall(run, (False,), 0, lambda size, linear: size)(x)[0]


@pytest.mark.parametrize(("function", "ends"), [(root, 1), (twice, 1), (chosen, 2)])
def test_saved_solution_is_restored_in_the_derivative(function, ends):
    program = jax.make_jaxpr(function)(X[0])
    longer, number = save_solutions(program)
    assert number == ends
    value, *found = jaxpr_as_fun(longer)(X[0])
    recalled = restore_solutions(program)
    assert "while" in str(program)
    assert "while" not in str(recalled)
    again = jaxpr_as_fun(recalled)(X[0], *found)[0]
    assert np.all(again == value)


@pytest.mark.short("2-root", "2-twice")
@pytest.mark.parametrize("function", [root, twice, chosen])
@pytest.mark.parametrize("times", [1, 2])
def test_derivatives(function, times):
    """Equal to those of the closed form, also the second, in every order."""
    exact = {
        root: jnp.sqrt,
        chosen: jnp.sqrt,
        twice: lambda x: x**0.25 + jnp.sin(x**0.5) + jnp.sin(x**0.25),
    }
    derive = [jax.jacrev, jax.jacfwd][:times]
    found, right = call(function), exact[function]
    for d in derive:
        found, right = d(found), d(right)
    want = jax.vmap(right)(X)
    for got in (jax.vmap(found)(X), jax.jit(jax.vmap(found))(X), jnp.stack([found(x) for x in X])):
        np.testing.assert_allclose(got, want, **ROUNDING)


@pytest.mark.short("Euler")
@pytest.mark.parametrize("integrator", ["Euler", "RK4"])
def test_a_step_solves_once(integrator):
    """The gradient's program has the loop of the solver only where the step itself is computed."""
    m = jaxsim.load_model(BALL.format(integrator=integrator))
    d = jaxsim.make_data(m)

    def loops(function):
        return program_text(jax.vmap(function), jnp.stack([d.qvel] * 8)).count("while[")

    def height(qvel):
        return jaxsim.step(m, d.replace(qvel=qvel)).qpos[2]

    assert loops(jax.grad(height)) == loops(height)


@pytest.mark.slow
def test_second_derivative_of_a_step():
    """RK4, a scan, of a ball whose friction rotates with its motion, against differences."""
    m = jaxsim.load_model(BALL.format(integrator="RK4"))
    d = jaxsim.make_data(m)

    def along(across):
        qvel = d.qvel.at[:3].set(jnp.stack([0.5, across, -0.1]))
        return jaxsim.step(m, d.replace(qvel=qvel)).qvel[0]

    both = jax.jit(lambda across: jax.jvp(jax.grad(along), (across,), (1.0,)))  # first and second
    h, across = 1e-6, 0.2
    (below, _), (_, found), (above, _) = (both(across + k * h) for k in (-1, 0, 1))
    difference = (above - below) / (2 * h)
    assert abs(found) > 1e-3
    np.testing.assert_allclose(found, difference, **ROUGH_DIFFERENCE)
