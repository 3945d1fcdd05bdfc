"""Clipping corner by corner equals clipping of all lanes at once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.math import Vec
from jaxsim.physics.collision.convex.polygon import clip_polygon, make_polygon, remove_corners
from jaxsim.physics.collision.convex.polygon_loop import Plane, clip_in_loop

LANES, MOST = 400, 9


def convex(rng: np.random.Generator, number: int, scale: float) -> np.ndarray:
    """Return corners of convex polygons, clockwise, `(number, LANES, 2)`."""
    angle = -np.sort(rng.uniform(0, 2 * np.pi, (number, LANES)), axis=0)
    return scale * np.stack([np.cos(angle), np.sin(angle)], -1)


@jax.jit
def by_lanes(subject, number, cutter, sides):
    height = jnp.zeros_like(subject[..., 0])
    polygon = make_polygon(Vec(subject[..., 0], subject[..., 1], height), number, 2 * MOST)

    def clip(k, polygon):
        plane = plane_of(cutter, sides, k)
        return clip_polygon(polygon, plane.origin, plane.normal, number + k, k < sides)

    polygon = jax.lax.fori_loop(0, MOST, clip, polygon)
    return remove_corners(polygon, polygon.point.x > 0.8)


def plane_of(cutter, sides, k):
    """The plane through side k of a clockwise polygon: its normal points to the left."""
    one, other = cutter[k], jnp.take_along_axis(cutter, ((k + 1) % sides)[None, :, None], 0)[0]
    zero = jnp.zeros_like(one[..., 0])
    along = other - one
    return Plane(Vec(one[..., 0], one[..., 1], zero), Vec(-along[..., 1], along[..., 0], zero))


@jax.jit
@jax.vmap
def one_by_one(subject, number, cutter, sides):
    def corner(k):
        return Vec(subject[k, 0], subject[k, 1], jnp.zeros(()))

    def side(k):
        plane = plane_of(cutter[:, None], sides[None], k)
        return jax.tree.map(lambda x: x[0], plane)

    return clip_in_loop(corner, number, side, sides, lambda point: point.x <= 0.8, 2 * MOST)


def assert_equal(subject: np.ndarray, cutter: np.ndarray) -> None:
    """Compare the corners, lines and order of both forms, `(corners or sides, LANES, 2)`."""
    number, sides = (np.full(LANES, len(x), np.int32) for x in (subject, cutter))
    subject, cutter = (np.resize(x, (MOST, LANES, 2)) for x in (subject, cutter))
    expected = by_lanes(subject, number, cutter, sides)
    lanes = subject.transpose(1, 0, 2), number, cutter.transpose(1, 0, 2), sides
    found = jax.tree.map(lambda x: x[..., 0], one_by_one(*lanes))
    count = np.asarray(expected.number)
    # results differ in number or order
    assert len({*count, *np.asarray(expected.out[0])}) > 1
    np.testing.assert_array_equal(found.number, count)
    there = np.arange(2 * MOST)[:, None] < count
    for one, other in zip(jax.tree.leaves(expected)[:5], jax.tree.leaves(found)[:5], strict=True):
        np.testing.assert_allclose(np.asarray(other).T[there], np.asarray(one)[there], atol=1e-13)


@pytest.mark.parametrize("corners", [2, 3, 4, 9])
@pytest.mark.parametrize("sides", [3, 4, 8])
def test_a_loop_over_corners_equals_all_at_once(corners, sides):
    rng = np.random.default_rng(corners + 10 * sides)
    moved = 0.5 * rng.normal(size=(LANES, 2))
    assert_equal(convex(rng, corners, 1.0) + moved, convex(rng, sides, 0.9))


@pytest.mark.parametrize("corners", [2, 4])
def test_corners_on_a_plane_are_behind_it(corners):
    """Squares, or sides of squares, that share lines and corners with the cutting square."""
    rng = np.random.default_rng(0)
    square = np.array([[-1, -1], [-1, 1], [1, 1], [1, -1]])[:, None] / 2
    moved = rng.choice([-1, -0.5, 0, 0.5, 1], (LANES, 2))
    assert_equal(square[:corners] + moved, np.repeat(square, LANES, axis=1))
