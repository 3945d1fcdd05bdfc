"""The line search, alone: roots of increasing piecewise linear slopes, in both precisions."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import inputs, random_state, single

import jaxsim
from jaxsim.physics.constraint.cone import Elliptic, Pyramid
from jaxsim.physics.constraint.cost import Huber, OneSided
from jaxsim.physics.solver.linesearch import line_search

pytestmark = pytest.mark.long

WORLDS = 40


class Springs:
    """Half-sided springs, each k (step - x) where step > x, after a slope of g at no step."""

    def __init__(self, g, k, x):
        self.g, self.k, self.x = g, k, x

    def derivatives(self, step):
        apart = step[None] - self.x
        first = jnp.where(apart > 0, self.k * apart, 0).sum(axis=0) + self.g
        return first, jnp.where(apart > 0, self.k, 0).sum(axis=0)


def springs(seed: int, dtype) -> tuple[Springs, np.ndarray]:
    """Springs `[1, worlds]`, of which one has always been stretched, and their rest in each."""
    rng = np.random.default_rng(seed)
    k = rng.uniform(1, 1000, (6, 1, WORLDS))
    x = rng.uniform(0, 2, (6, 1, WORLDS))
    x[0] = -1e-3
    g = -rng.uniform(500, 5000, (1, WORLDS))
    rest = np.zeros((1, WORLDS))
    for _ in range(60):  # Newton's method on an increasing slope, from outside: never leaves it
        first, second = Springs(g, k, x).derivatives(rest + 0.0)
        rest = rest - np.asarray(first) / np.asarray(second)
    return Springs(*(jnp.asarray(a, dtype) for a in (g, k, x))), rest


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.float64])
@pytest.mark.parametrize("limit", [8, 12, 50])
def test_the_slope_is_zero_at_the_end(limit, dtype):
    """Also where no evaluation is exactly zero, and whatever is left of the limit then."""
    for seed in range(3):
        piece, rest = springs(seed, dtype)
        found = line_search([piece], limit, jnp.zeros((1, WORLDS), dtype))
        np.testing.assert_allclose(found, rest, rtol=100 * float(jnp.finfo(dtype).eps))


def rows(kind: str) -> tuple:
    """A row, or a contact, of each of many worlds, a quarter of them not active; where it is on a
    line, `[1, worlds]` or three of these, and how far the line goes."""
    rng, size = np.random.default_rng(3), (1, 4000)
    D = jnp.asarray(rng.uniform(0.5, 2, size) * (rng.uniform(size=size) > 0.25))
    r, v = ([jnp.asarray(x) for x in rng.normal(size=(3, *size))] for _ in range(2))
    step = jnp.asarray(rng.uniform(0, 1.5, size))
    mu, rub = rng.uniform(0.3, 1, size), rng.uniform(0.3, 1, (2, *size))
    flat = jnp.asarray(rng.uniform(size=size) < 0.2)
    if kind == "one-sided":
        return OneSided(D), r[0], v[0], step
    if kind == "friction":
        return Huber(D, jnp.where(D > 0, 0.8, 0)), r[0], v[0], step
    rub = [jnp.asarray(np.where(flat, 0, x)) for x in rub]
    if kind == "pyramid":
        return Pyramid(D, [0 * D, *rub], flat, None), r, v, step
    own = [D, *(D * x * x / mu**2 for x in rub)]
    return Elliptic(own, [jnp.asarray(mu), *rub], flat, None), r, v, step


@pytest.mark.parametrize("kind", ["one-sided", "friction", "pyramid", "elliptic"])
def test_a_row_that_has_crossed_nothing_is_one_quadratic(kind):
    """Newton's method ends at a full step if no row changes its state."""
    cost, r, v, step = rows(kind)
    line = cost.restrict_to_line(r, v)

    end = jax.tree.map(lambda a, b: a + step * b, r, v)
    change = cost.at(end).cost - cost.at(r).cost
    slope, bend = line.derivatives(0 * step)
    num_crossed = np.asarray(line.num_crossed(step))
    none = num_crossed == 0
    lacks = np.abs(change - (slope + 0.5 * step * bend) * step)
    np.testing.assert_allclose(np.asarray(lacks)[none], 0, atol=1e-13)
    assert (np.asarray(lacks)[~none] > 1e-9).mean() > 0.5  # it is not said of every row
    active = np.asarray(cost.D[0] if kind == "elliptic" else cost.D) > 0
    assert none[~active].all()
    assert 0.2 < none[active].mean() < 0.9


def test_a_slope_within_the_tolerance_ends_it():
    piece, rest = springs(1, jnp.float64)
    slope = np.abs(piece.derivatives(jnp.ones((1, WORLDS)))[0])
    found = line_search([piece], 50, jnp.asarray(slope) * 1.01)
    np.testing.assert_array_equal(found, 1)
    assert (np.abs(rest - 1) > 1e-3).all()


def test_of_the_steps_tried_the_best_is_taken():
    """A limit may end the search anywhere: more evaluations are never worse."""
    piece, _ = springs(5, jnp.float32)
    slopes = [
        np.abs(
            piece.derivatives(line_search([piece], limit, jnp.zeros((1, WORLDS), jnp.float32)))[0]
        )
        for limit in range(1, 10)
    ]
    assert (np.diff(slopes, axis=0) <= 0).all()
    assert (slopes[0] > slopes[-1]).any()


XML = """
<mujoco><option iterations="1" ls_iterations="{limit}"/><worldbody>
  <body><joint name="x" type="slide" axis="1 0 0"/><joint name="y" type="slide" axis="0 1 0"/>
    <geom size=".1"/><site name="ball"/></body><site name="post" pos=".3 .2 0"/></worldbody>
  <tendon><spatial name="string" range="0 .1" limited="true"><site site="ball"/><site site="post"/>
  </spatial></tendon></mujoco>
"""


@cache
def forward():
    return jax.jit(jaxsim.forward)


@pytest.mark.short("2", "8")
@pytest.mark.parametrize("limit", [2, 3, 4, 5, 8])
def test_one_iteration_in_single_precision_is_mujocos(limit):
    """One row gives the cost along the line one corner: two evaluations reach the minimum."""
    mj = mujoco.MjModel.from_xml_string(XML.format(limit=limit))
    m = jaxsim.put_model(mj)
    for seed in range(12):
        mjd = random_state(mj, seed, spread=0.1, speed=2.0)
        assert mjd.nefc == 1
        d = inputs(m, mjd)
        found = forward()(single(m), single(d))
        np.testing.assert_allclose(found.qacc, mjd.qacc, rtol=2e-4, atol=2e-4)
