"""The batching rule: worlds taken in parts give what worlds taken together give."""

import jax
import numpy as np
import pytest
from tolerance import STAGES

import jaxsim
from jaxsim.transforms import layout

pytestmark = pytest.mark.kernels

FALL = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body pos="0 0 .15"><freejoint/><geom size=".1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.mark.short("12")
@pytest.mark.parametrize("worlds", [3, 12, pytest.param(24, marks=pytest.mark.slow), 35])
def test_tiles_that_are_filled_up(worlds):
    """Four, eight and sixteen at a time, the last of them copies: each world is as if alone."""
    m = jaxsim.load_model(FALL)
    d = jaxsim.make_data(m)
    speeds = np.random.default_rng(0).standard_normal((worlds, m.nv))
    many = jax.vmap(lambda v: d.replace(qvel=v))(speeds)
    found = jax.jit(lambda m, d: jax.vmap(jaxsim.step, (None, 0))(m, d))(m, many)
    assert found.qpos.shape == (worlds, m.nq)
    step = jax.jit(jaxsim.step)
    for w in (0, worlds // 2, worlds - 1):
        jax.tree.map(same, found[w], step(m, many[w]))


@pytest.mark.slow
@pytest.mark.parametrize("worlds", [3, 35])
def test_tiles_of_derivatives(worlds):
    """Backwards too the last tile is filled up, and a world's gradient is as if alone."""
    m = jaxsim.load_model(FALL)
    d = jaxsim.make_data(m)
    speeds = np.random.default_rng(0).standard_normal((worlds, m.nv))

    def height(v):
        return jaxsim.step(m, d.replace(qvel=v)).qpos[2]

    found = jax.jit(lambda v: jax.vmap(jax.grad(height))(v))(speeds)
    alone = jax.jit(jax.grad(height))
    for w in (0, worlds - 1):
        same(found[w], alone(speeds[w]))
    same(jax.jit(jax.grad(lambda v: jax.vmap(height)(v).sum()))(speeds), found)


def same(a, b):  # loops of another length round differently
    np.testing.assert_allclose(a, b, **STAGES)


@pytest.mark.slow
def test_the_same_program_gives_the_same_bits():
    """Made twice and run twice: what is promised of runs with the same worlds on one device."""
    m = jaxsim.load_model(FALL)
    d = jaxsim.make_data(m)
    speeds = np.random.default_rng(0).standard_normal((12, m.nv))
    worlds = jax.vmap(lambda v: d.replace(qvel=v))(speeds)

    def advance():
        many = jax.jit(lambda m, d: jax.vmap(jaxsim.step, (None, 0))(m, d))
        return many(m, many(m, worlds))

    first = advance()
    jax.clear_caches()
    for other in (advance(), advance()):
        jax.tree.map(np.testing.assert_array_equal, other, first)


@pytest.mark.parametrize(
    ("worlds", "tile"),
    {1: 1, 2: 4, 4: 4, 5: 8, 9: 16, 24: 8, 35: 8, 104: 16, 1000: 16, 4096: 16}.items(),
)
def test_tile_sizes(worlds, tile):
    assert layout.tile_size(jaxsim.load_model(FALL), worlds) == tile


BODY = '<body><freejoint/><geom size=".1" contype="0"/></body>'


def test_tile_sizes_of_large_models():
    floor = '<geom type="plane" size="9 9 1" contype="1"/>'
    other = '<option solver="CG"/>'  # takes all worlds at once: a large model's one after another
    for option, more, tile in (("", floor, 16), (other, "", 16), (other, floor, 1)):
        text = f"<mujoco>{option}<worldbody>{more}{17 * BODY}</worldbody></mujoco>"
        m = jaxsim.load_model(text)
        assert layout.tile_size(m, 4096) == tile
        assert layout.tile_size(m, 4096, linear=True) == 16
