"""Ray intersections with meshes: two-sided faces, by a bounding volume hierarchy (tree.py).

The number of boxes that a ray visits depends on its path. Therefore the rays that hit the root box
are compacted into lanes, and a block of lanes traverses the tree until the last one has finished.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.enums import MINVAL
from jaxsim.math import Vec
from jaxsim.physics.ray import triangle
from jaxsim.physics.ray.local_rays import NO_HIT, Hit, LocalRays, gather_by_world
from jaxsim.physics.ray.tree import END_OF_TREE, Trees
from jaxsim.transforms.compaction import evaluate_active_lanes
from jaxsim.transforms.materialize import materialize_result
from jaxsim.transforms.tuning import tuning

_BOX_ROUNDING_ULPS = 8  # tolerance of box tests, in units of eps


class _Lane(NamedTuple):
    """Rays traversing trees, `[n]`.

    Attributes:
      node: root node.
      pos, way: ray in the frame of the mesh.
      world: column of the tables.
      limit: largest distance of interest [m].
      blur: rounding error of its points [m].
    """

    node: jax.Array
    pos: Vec
    way: Vec
    world: jax.Array
    limit: jax.Array
    blur: jax.Array


def nearest_mesh_hit(
    mesh: Array, trees: Trees, ray: LocalRays, limit: Array
) -> tuple[Array, Array]:
    """Compute distances to meshes and the faces hit, both of the shape of `limit`.

    Args:
      mesh: mesh of each geom.
      trees: trees of all meshes.
      ray: the rays.
      limit: largest distance of interest [m]; below 0: none.
    """
    node = trees.root[mesh[ray.geom]]
    # Roundoff of the coordinates at the ray's origin.
    x, y, z = ray.pos.map(jnp.abs).parts
    blur = _rounding_slack(limit) * jnp.maximum(jnp.maximum(x, y), z)
    lane = _Lane(node, ray.pos, ray.way, ray.world, limit, blur)
    lane = jax.tree.map(lambda x: jnp.broadcast_to(x, limit.shape).reshape(-1), lane)
    # Test the root boxes.
    start = _box_entry(trees.low, trees.high, lane, lane.node, lane.limit)
    needed = (lane.node != END_OF_TREE) & (start < NO_HIT)
    # Start at the mesh, to avoid cancellation over the distance to it.
    start = jnp.where(needed, start, 0)
    lane = lane._replace(
        pos=lane.pos + lane.way.scale(start), limit=jnp.where(needed, lane.limit - start, 0)
    )
    none = jnp.full_like(lane.limit, NO_HIT), jnp.zeros_like(lane.node)
    dist, face = evaluate_active_lanes(
        lambda some: _walk(trees, *some),
        needed,
        (lane, start),
        tuning().search_lanes,
        none,
    )
    return dist.reshape(limit.shape), face.reshape(limit.shape)


def intersect_mesh_face(
    trees: Trees, ray: LocalRays, face: Array, corners: tuple[Array, ...]
) -> Hit:
    """Compute the intersections with the planes of known faces.

    Args:
      trees: trees of all meshes.
      ray: the rays.
      face: id of the face.
      corners: vertices of all faces.
    """
    abc = (
        gather_by_world(trees.vertex, c, ray.world) - ray.pos
        for c in gather_by_world(corners, face, ray.world)
    )
    return triangle.intersect_triangle(ray.way, *abc)


def _walk(trees: Trees, lane: _Lane, start: Array) -> tuple[Array, Array]:
    """Traverse the tree; return distance and nearest face. `start` is the offset of the rays."""

    def step(state: tuple) -> tuple:
        node, best, face = state
        # Test the box of the node; at a leaf test its face.
        here = jnp.maximum(node, 0)
        met = (node != END_OF_TREE) & (
            materialize_result(_box_entry, trees.low, trees.high, lane, here, best) < NO_HIT
        )
        # At a leaf, test the triangle.
        leaf = met & (here < len(trees.face))
        of_leaf = jnp.where(leaf, here, 0)
        abc = (
            gather_by_world(trees.vertex, c[of_leaf], lane.world) - lane.pos for c in trees.corner
        )
        t = materialize_result(triangle.ray_triangle, lane.way, *abc)
        nearer = leaf & (t + start >= 0) & (t < best)
        best, face = jnp.where(nearer, t, best), jnp.where(nearer, trees.face[of_leaf], face)
        # Descend into the node if its box is hit, else skip its subtree.
        after = jnp.where(met, trees.into[here], trees.past[here])
        return jnp.where(node == END_OF_TREE, END_OF_TREE, after), best, face

    def has_active_rays(state: tuple) -> Array:
        return jnp.any(state[0] != END_OF_TREE)

    state = lane.node, lane.limit, jnp.full_like(lane.node, END_OF_TREE)
    _, best, face = lax.while_loop(has_active_rays, step, state)
    # Distances are relative to the start point on the root box.
    found = face != END_OF_TREE
    return jnp.where(found, jnp.maximum(best + start, 0), NO_HIT), jnp.maximum(face, 0)


def _box_entry(low: Vec, high: Vec, lane: _Lane, node: Array, limit: Array) -> Array:
    """Return the entry of rays into boxes, 0 inside; NEVER if they miss them or are too far.

    Boxes are enlarged by the rounding error of the ray, since faces may lie in their sides.
    """
    # Slab test with boxes enlarged by the roundoff.
    low, high = gather_by_world((low, high), node, lane.world)
    enter, leave = jnp.zeros_like(limit), limit
    for x, u, a, b in zip(lane.pos.parts, lane.way.parts, low.parts, high.parts, strict=True):
        # A zero direction component is replaced by a small one.
        per = 1 / jnp.where(jnp.abs(u) > MINVAL, u, MINVAL)
        one, other = (a - lane.blur - x) * per, (b + lane.blur - x) * per
        enter = jnp.maximum(enter, jnp.minimum(one, other))
        leave = jnp.minimum(leave, jnp.maximum(one, other))
    return jnp.where(enter <= leave + _rounding_slack(leave) * jnp.abs(leave), enter, NO_HIT)


def _rounding_slack(like: Array) -> float:
    return _BOX_ROUNDING_ULPS * float(jnp.finfo(like.dtype).eps)
