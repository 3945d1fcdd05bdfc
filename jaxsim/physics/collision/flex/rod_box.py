"""Contacts of rod edges with a box section, as boxes in the material frame (flex/frames.py).

Edges are boxes for planes, spheres, capsules, boxes and edges of other rods, and capsules of half
the short side for all other geoms and flexes. MuJoCo's documentation, XML reference:
flex/elasticity.
"""

import itertools

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.math import Rot, Vec, safe_divide, safe_sqrt
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure
from jaxsim.physics.collision.contact_ids import IdArray
from jaxsim.physics.collision.flex.item import FlexItems, RoundedHull, any_edge, as_capsule
from jaxsim.physics.collision.primitive.box_box import box_box
from jaxsim.physics.collision.primitive.capsule_box import capsule_box
from jaxsim.physics.collision.primitive.sphere import sphere_box
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms, add_slot_axis
from jaxsim.physics.flex.frames import edge_tangents, first_record, rod_chains
from jaxsim.physics.flex.twist import material_axis

MAX_PLANE_CORNERS = 2  # corners of a section that may touch a plane, a slot each


def rod_edges(m: Model, d: Data) -> PlacedGeoms | None:
    """Return the edges of all rods with twist as boxes; without a box section their width is 0.

    None: no rod of the model has a box section.
    """
    if not np.any(m.flex_boxed):
        return None
    table = rod_chains(m)
    f, t = material_axis(m, d), edge_tangents(d.flexvert_xpos, table)
    ends = [gather_static(d.flexvert_xpos, table.vert[:, k]) for k in range(2)]
    # Sides of the section from the bending stiffness about its two axes.
    weak, more, side = (gather_static(m.flex_bending, first_record(m) + k) for k in (4, 5, 9))
    short = jnp.abs(side)
    long = short * safe_sqrt(safe_divide(weak + more, weak))
    half = 0.5 * (ends[1] - ends[0]).norm()
    size = Vec(*(jnp.broadcast_to(x, half.shape) for x in (long, short, half)))
    rot = Rot.from_rows(f, t.cross(f), t).T
    return PlacedGeoms((ends[0] + ends[1]).scale(0.5), rot, size, jnp.zeros(half.shape, jnp.int32))


def bars_of(s: Structure, flexes: FlexItems, item: IdArray, size: int) -> PlacedGeoms:
    """Return the boxes of elements (`size` 2), or the cross sections of their edges at vertices."""
    assert flexes.bars is not None
    found: PlacedGeoms = item.look_up(np.maximum(any_edge(s), 0)).take(flexes.bars)
    if size > 1:
        return found
    vertex = item.look_up(np.maximum(np.arange(len(any_edge(s))) - s.nflexelem, 0) % s.nflexvert)
    return found._replace(pos=vertex.take(flexes.xpos))


def plane_bar(plane: PlacedGeoms, bar: PlacedGeoms, assets: None, reach: Array) -> ContactPoints:
    """Return the two lowest corners of the section at a vertex, the deeper one first."""
    # Rank the four corners by height; ties go by index.
    normal, (f, g, _) = plane.axis, bar.rot.cols
    corners = [
        bar.pos + f.scale(i * bar.size.x) + g.scale(j * bar.size.y)
        for i, j in itertools.product((-1, 1), repeat=2)
    ]
    height = [(corner - plane.pos).dot(normal) for corner in corners]
    place = [_corner_rank(height, k) for k in range(len(height))]
    # Gather the two lowest by one-hot sums.
    low = []
    for slot in range(MAX_PLANE_CORNERS):
        here = [(p == slot).astype(normal.x.dtype) for p in place]
        parts = [c.scale(on) for c, on in zip(corners, here, strict=True)]
        low.append(parts[0] + parts[1] + parts[2] + parts[3])
    corner = Vec(*(jnp.stack(x) for x in zip(*(c.parts for c in low), strict=True)))
    pos, normal = add_slot_axis((plane.pos, normal))
    # The contact is halfway between the corner and the plane.
    dist = (corner - pos).dot(normal)
    return ContactPoints(dist, corner - normal.scale(0.5 * dist), normal)


def _corner_rank(height: list[Array], k: int) -> Array:
    """Return the rank of corner `k`: the number of corners that are lower, or equal and before."""
    before = [
        (h <= height[k] if j < k else h < height[k]).astype(jnp.int32)
        for j, h in enumerate(height)
        if j != k
    ]
    return before[0] + before[1] + before[2]


def sphere_bar(sphere: PlacedGeoms, bar: PlacedGeoms, assets: None, reach: Array) -> ContactPoints:
    """Return the contact of a sphere with an edge."""
    return sphere_box(sphere, bar)


def capsule_bar(
    capsule: PlacedGeoms, bar: PlacedGeoms, assets: None, reach: Array
) -> ContactPoints:
    """Return up to two contacts of a capsule with an edge."""
    return capsule_box(capsule, bar)


def box_bar(box: PlacedGeoms, bar: PlacedGeoms, assets: None, reach: Array) -> ContactPoints:
    """Return up to eight contacts of a box, or of another edge with a box section, with an edge."""
    return box_box(box, bar)


def segment_bar(
    segment: RoundedHull, bar: PlacedGeoms, assets: None, reach: Array
) -> ContactPoints:
    """Return up to two contacts of an edge with a round section with one with a box section."""
    return capsule_box(as_capsule(segment), bar)


def bar_segment(
    bar: PlacedGeoms, segment: RoundedHull, assets: None, reach: Array
) -> ContactPoints:
    """Return `segment_bar` with the sides swapped and the normals reversed."""
    touch = capsule_box(as_capsule(segment), bar)
    return touch._replace(normal=-touch.normal)
