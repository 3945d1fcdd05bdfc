"""The batching rule: worlds taken in parts give what worlds taken together give."""

import jax
import numpy as np
from tolerance import STAGES

import jaxsim
from jaxsim.physics.arrays import native

FALL = """
<mujoco>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <body pos="0 0 .15"><freejoint/><geom size=".1"/></body>
  </worldbody>
</mujoco>
"""


def test_tiles(monkeypatch):
    m = jaxsim.load_model(FALL)
    d = jaxsim.make_data(m)
    speeds = np.random.default_rng(0).standard_normal((12, m.nv))
    worlds = jax.vmap(lambda v: d.replace(qvel=v))(speeds)
    monkeypatch.setattr(native, "TILES", (12, 12))
    together = jax.jit(lambda m, d: jax.vmap(jaxsim.step, (None, 0))(m, d))(m, worlds)
    monkeypatch.setattr(native, "TILES", (5, 5))
    in_parts = jax.jit(lambda m, d: jax.vmap(jaxsim.step, (None, 0))(m, d))(m, worlds)

    def same(a, b):  # loops of another length round differently
        np.testing.assert_allclose(a, b, **STAGES)

    jax.tree.map(same, together, in_parts)


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


def test_tile_sizes(monkeypatch):
    monkeypatch.setattr(native, "TILES", (32, 256))
    small = jaxsim.load_model(FALL)
    assert native.tile_size(small, 4096) == 256
    assert native.tile_size(small, 100) == 100
    assert native.tile_size(small, 257) == 257  # a prime has no parts of useful size
    assert native.tile_size(small, 1000) == 250
    body = '<body><freejoint/><geom size=".1" contype="0"/></body>'
    large = jaxsim.load_model(f"<mujoco><worldbody>{16 * body}</worldbody></mujoco>")
    matrix = 96 * 96 * 8  # bytes
    monkeypatch.setattr(native, "CACHE", 50 * matrix)
    assert native.tile_size(large, 4096) == 32  # the largest divisor up to 50
    monkeypatch.setattr(native, "CACHE", matrix)
    assert native.tile_size(large, 4096) == 32  # never less
    larger, floor = 17 * body, '<geom type="plane" size="9 9 1" contype="1"/>'
    for more, tile in (("", 32), (floor, 1)):  # where there are rows one after another
        m = jaxsim.load_model(f"<mujoco><worldbody>{more}{larger}</worldbody></mujoco>")
        assert native.tile_size(m, 4096) == tile
