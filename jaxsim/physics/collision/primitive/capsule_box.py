"""Contacts of a capsule with a box: at most two spheres on its segment that touch the box.

In the frame of the box the segment is p + t d, |t| <= 1. The first sphere is at the point of the
segment nearest to the box. A second one supports a capsule that lies along a face or an edge: it is
where the segment ends, or leaves that face or edge. Corresponds to `mjc_CapsuleBox` in MuJoCo.

The nearest point is an end of the segment over a face (or inside the box), or a point facing one of
the twelve edges. Which of these it is (`BoxFeature`), and along what the segment continues
(`SegmentContinuation`), is decided first, without derivatives, and encoded in one integer; both
parameters t are then computed for the decision, so that a gradient passes through one formula.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.math import Vec, select_where
from jaxsim.physics.collision.primitive.sphere import sphere_at_box, touch_in_world
from jaxsim.physics.collision.shape import (
    ContactPoints,
    PlacedGeoms,
    add_slot_axis,
    choose_static,
    permute_parts,
    touch_if,
)
from jaxsim.transforms.materialize import (
    materialize_decision,
    materialize_result,
    pack_digits,
    unpack_digits,
)

_UNREACHED = 1e6  # parameter t of a side that the segment does not reach


class BoxFeature(NamedTuple):
    """The feature of the box nearest to the segment.

    Coordinates start with `axis` in what follows: the normal of the face or the direction of the
    edge.
    """

    end: jax.Array  # end of the segment (-1 or 1) over a face or inside, or 0: an edge
    axis: jax.Array  # axis of the face or edge: 0, 1, 2
    sides: tuple[jax.Array, jax.Array]  # sides of the edge on the other axes: -1 or 1

    @classmethod
    def decode(cls, digits: list[jax.Array], dtype: np.dtype) -> "BoxFeature":
        """Decode the digits of the decision."""
        end, axis, side1, side2 = digits
        return cls(
            (end - 1).astype(dtype), axis, (_digit_sign(side1, dtype), _digit_sign(side2, dtype))
        )


class SegmentContinuation(NamedTuple):
    """Continuation of the segment from its nearest point to the second contact.

    Along a coordinate in `limits` it runs until it leaves the box; from a `corner` that is one
    width of the box, whatever its position.
    """

    second: jax.Array  # there is a second contact
    way: jax.Array  # at greater (1) or smaller (-1) t
    limits: tuple[jax.Array, jax.Array, jax.Array]
    corner: jax.Array  # the nearest point faces the end of an edge

    def encode(self) -> tuple[jax.Array, ...]:
        """Return the digits of the decision."""
        return self.second, self.way > 0, *self.limits, self.corner

    @classmethod
    def decode(cls, digits: list[jax.Array], dtype: np.dtype) -> "SegmentContinuation":
        """Decode the digits of the decision, the inverse of `pack_digits`."""
        second, way, x, y, z, corner = digits
        return cls(second == 1, _digit_sign(way, dtype), (x == 1, y == 1, z == 1), corner == 1)


def _digit_sign(digit: Array, dtype: np.dtype) -> Array:
    """Return 1 where the digit is 1, else -1."""
    return (2 * digit - 1).astype(dtype)


def capsule_box(capsule: PlacedGeoms, box: PlacedGeoms) -> ContactPoints:
    """Compute a contact at the nearest point, and another if the capsule lies along the box."""
    p, d = materialize_result(_to_box_frame, capsule, box)
    # Decide the features once; then both spheres, each in contact with the box.
    code = materialize_decision(_nearest_feature_code, p, d, box.size)
    t = jnp.stack(materialize_result(_points, code, p, d, box.size))
    second = unpack_digits(code, 10)[4] == 1
    p, d, box, radius = add_slot_axis((p, d, box, capsule.size.x))
    touch = sphere_at_box(p + d.scale(t), radius, box.size)
    return touch_if(jnp.stack([second | True, second]), touch_in_world(touch, box))


def _to_box_frame(capsule: PlacedGeoms, box: PlacedGeoms) -> tuple[Vec, Vec]:
    """Return center and half axis of the capsule in the frame of the box."""
    half = capsule.axis.scale(capsule.size.y)
    return box.rot.T @ (capsule.pos - box.pos), box.rot.T @ half


def _points(code: Array, p: Vec, d: Vec, size: Vec) -> tuple[Array, Array]:
    """Return the parameters t of both spheres."""
    digits = unpack_digits(code, 10)
    feature, run = (
        BoxFeature.decode(digits[:4], d.x.dtype),
        SegmentContinuation.decode(digits[4:], d.x.dtype),
    )
    p, d, size = (Vec(*permute_parts(v.parts, feature.axis)) for v in (p, d, size))
    at_end = feature.end != 0
    t = jnp.where(at_end, feature.end, _nearest_on_edge(p, d, size, *feature.sides).t)

    # Second sphere: the nearest of the segment's end and the limiting sides.
    reach = 1 - run.way * t  # distance in t to the end of the segment
    whole = (run.corner, ~at_end, ~at_end)
    for x, speed, half, limits, width in zip(
        (p + d.scale(t)).parts, d.parts, size.parts, run.limits, whole, strict=True
    ):
        ahead = half - x * jnp.where(speed * run.way > 0, 1.0, -1.0)
        distance = jnp.where(width, 2 * half, ahead)
        reach = jnp.minimum(reach, jnp.where(limits, _ratio(distance, jnp.abs(speed)), _UNREACHED))
    return t, t + run.way * reach


def _nearest_feature_code(p: Vec, d: Vec, size: Vec) -> Array:
    """Return the encoded nearest feature of the box, and where the segment continues from there."""
    found = _nearest_feature(p, d, size)
    feature = BoxFeature.decode(unpack_digits(found, 4), d.x.dtype)
    turn_p, turn_d, turn_size = (Vec(*permute_parts(v.parts, feature.axis)) for v in (p, d, size))
    # Continuation from an end over a face, from a corner, or from an edge.
    end, corner = feature.end, _nearest_on_edge(turn_p, turn_d, turn_size, *feature.sides).corner
    away = SegmentContinuation(
        _is_over_face(p + d.scale(end), size), -end, (end == 0, end != 0, end != 0), end != end
    )
    at_corner = _continue_from_corner(turn_d, corner, feature.sides)
    run = select_where(corner != 0, at_corner, _continue_from_edge(turn_d, feature.sides))
    return pack_digits((*unpack_digits(found, 4), *select_where(end != 0, away, run).encode()))


def _is_over_face(point: Vec, size: Vec) -> Array:
    """Return whether a point that is beyond at most one pair of faces is outside."""
    x, y, z = (jnp.abs(c) > s for c, s in zip(point.parts, size.parts, strict=True))
    return x | y | z


def _continue_from_corner(d: Vec, corner: Array, sides: tuple[Array, Array]) -> SegmentContinuation:
    """Return where the segment continues from a corner.

    If its direction points out of the box (or into it) in all three coordinates, it ends there.
    Otherwise one coordinate differs from the other two: the direction of an edge, if it dominates,
    or the normal of the face along which the segment runs inwards.
    """
    out = tuple((c > 0) == (s > 0) for c, s in zip(d.parts, (corner, *sides), strict=True))
    odd = jnp.where(out[1] == out[2], 0, jnp.where(out[0] == out[2], 1, 2))
    second = (out[0] != out[1]) | (out[1] != out[2])
    by_edge = 2 * choose_static(odd, d.parts) ** 2 > d.dot(d)
    way = jnp.where(choose_static(odd, out) ^ by_edge, 1.0, -1.0).astype(d.x.dtype)
    return SegmentContinuation(
        second, way, tuple((odd == k) == by_edge for k in range(3)), odd >= 0
    )


def _continue_from_edge(d: Vec, sides: tuple[Array, Array]) -> SegmentContinuation:
    """Return where the segment continues from an edge: over the face that it enters faster."""
    out1, out2 = ((c > 0) == (s > 0) for c, s in zip(d.parts[1:], sides, strict=True))
    first = jnp.abs(d.y) > jnp.abs(d.z)
    way = jnp.where(jnp.where(first, out1, out2), -1.0, 1.0).astype(d.x.dtype)
    return SegmentContinuation(out1 != out2, way, (first | True, first, ~first), first & False)


def _nearest_feature(p: Vec, d: Vec, size: Vec) -> Array:
    """Return the encoded nearest of two ends and twelve edges, the first among equal ones."""
    one = jnp.ones_like(d.x + size.x)
    zero = jnp.zeros(one.shape, jnp.int32)
    found, best = zero, one * jnp.inf

    # Ends of the segment over a face.
    for end in (-1, 1):
        point = p + d.scale(end * one)
        gap = [jnp.abs(c) - s for c, s in zip(point.parts, size.parts, strict=True)]
        outer = Vec(*(jnp.maximum(g, 0.0) for g in gap))
        beyond = [(g > 0).astype(jnp.int32) for g in gap]
        face = beyond[1] + 2 * beyond[2]  # its axis, if it is beyond at most one
        square = jnp.where(sum(beyond) <= 1, outer.dot(outer), jnp.inf)
        found = jnp.where(square < best, pack_digits((zero + end + 1, face, zero, zero)), found)
        best = jnp.minimum(square, best)

    def four_edges(k, state):
        """Compare one edge of each axis, on the sides given by the bits of k."""
        found, best = state
        bits = k >> 1, k & 1
        for axis in range(3):
            at, along, half = (Vec(*permute_parts(v.parts, axis)) for v in (p, d, size))
            side1, side2 = (_digit_sign(b, one.dtype) * one for b in bits)
            square = _nearest_on_edge(at, along, half, side1, side2).square
            code = pack_digits((zero + 1, zero + axis, zero + bits[0], zero + bits[1]))
            found = jnp.where(square < best, code, found)
            best = jnp.minimum(square, best)
        return found, best

    return lax.fori_loop(0, 4, four_edges, (found, best))[0]


class SegmentEdgePoints(NamedTuple):
    """The nearest points of the segment and one edge of the box."""

    t: jax.Array  # parameter on the segment
    corner: jax.Array  # 1 or -1: the nearest point of the edge's line is beyond that end; else 0
    square: jax.Array  # squared distance


def _nearest_on_edge(p: Vec, d: Vec, size: Vec, side1: Array, side2: Array) -> SegmentEdgePoints:
    """Return nearest points of the segment and the edge along x at (side1 size.y, side2 size.z)."""
    # Offset of the edge from the segment's center, and squared lengths.
    y, z = side1 * size.y - p.y, side2 * size.z - p.z
    across = d.y * d.y + d.z * d.z
    length = across + d.x * d.x
    parallel = across <= (16 * jnp.finfo(length.dtype).eps) ** 2 * length

    # Nearest points of the lines, clipped to the edge, then to the segment, then to the edge again.
    far = jnp.where(p.x * d.x > 0, _UNREACHED, -_UNREACHED)
    t = jnp.where(parallel, far, (y * d.y + z * d.z) / jnp.where(parallel, 1.0, across))
    line = p.x + t * d.x
    x = jnp.clip(line, -size.x, size.x)
    to_end = ((x - p.x) * d.x + y * d.y + z * d.z) / jnp.where(length == 0, 1.0, length)
    t = jnp.clip(jnp.where(x == line, t, to_end), -1.0, 1.0)
    here = p.x + t * d.x
    x = jnp.clip(here, -size.x, size.x)
    gap = Vec(here - x, y - t * d.y, z - t * d.z)
    corner = jnp.where(x == here, jnp.sign(line - jnp.clip(line, -size.x, size.x)), jnp.sign(x))
    return SegmentEdgePoints(t, corner, gap.dot(gap))


def _ratio(a: Array, b: Array) -> Array:
    """Return a / b; NEVER for b = 0."""
    small = b < 1e-12
    return jnp.where(small, _UNREACHED, a / jnp.where(small, 1.0, b))
