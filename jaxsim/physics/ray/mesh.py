"""Rays and meshes: their faces, from both sides, found by a tree of boxes.

How many boxes a ray visits depends on where it goes. So the rays that meet the box around a mesh
are gathered, some at a time, and walk together until the last of them is through.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.enums import MINVAL
from jaxsim.math import Vec
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.lanes import for_some
from jaxsim.physics.arrays.once import once
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.ray import triangle
from jaxsim.physics.ray.local import NEVER, Hit, Local, look
from jaxsim.physics.ray.tree import END, Trees

ROUNDINGS = 8  # by which a ray may miss a box that it meets, in the precision of the numbers


class _Lane(NamedTuple):
    """Rays on their way through trees, `[n]`.

    Attributes:
      node: the first.
      pos, way: the ray in the frame of the mesh.
      world: column of the tables.
      limit: how far a ray is of interest [m].
      blur: how well its points are known [m].
    """

    node: jax.Array
    pos: Vec
    way: Vec
    world: jax.Array
    limit: jax.Array
    blur: jax.Array


def nearest(mesh: Array, trees: Trees, ray: Local, limit: Array) -> tuple[Array, Array]:
    """How far rays go to meshes, and which face they meet, both of the shape of `limit`.

    Args:
      mesh: of each geom.
      trees: of all meshes.
      ray: the rays.
      limit: how far they are of interest [m]; below 0: not at all.
    """
    node = trees.root[mesh[ray.geom]]
    x, y, z = ray.pos.map(jnp.abs).parts
    blur = _slack(limit) * jnp.maximum(jnp.maximum(x, y), z)
    lane = _Lane(node, ray.pos, ray.way, ray.world, limit, blur)
    lane = jax.tree.map(lambda x: jnp.broadcast_to(x, limit.shape).reshape(-1), lane)
    start = _entry(trees.low, trees.high, lane, lane.node, lane.limit)
    needed = (lane.node != END) & (start < NEVER)
    # from there, lest digits be spent on the way to the mesh
    start = jnp.where(needed, start, 0)
    lane = lane._replace(
        pos=lane.pos + lane.way.scale(start), limit=jnp.where(needed, lane.limit - start, 0)
    )
    none = jnp.full_like(lane.limit, NEVER), jnp.zeros_like(lane.node)
    dist, face = for_some(
        lambda some: _walk(trees, *some),
        needed,
        (lane, start),
        platform().lanes,
        none,
    )
    return dist.reshape(limit.shape), face.reshape(limit.shape)


def hit(trees: Trees, ray: Local, face: Array, corners: tuple[Array, ...]) -> Hit:
    """Where rays meet the planes of faces.

    Args:
      trees: of all meshes.
      ray: the rays.
      face: number of the face.
      corners: vertices of all faces.
    """
    abc = (look(trees.vertex, c, ray.world) - ray.pos for c in look(corners, face, ray.world))
    return triangle.hit(ray.way, *abc)


def _walk(trees: Trees, lane: _Lane, start: Array) -> tuple[Array, Array]:
    """The nearest face of each ray, and how far it is; `start` is how far the rays have come."""

    def step(state: tuple) -> tuple:
        node, best, face = state
        here = jnp.maximum(node, 0)
        met = (node != END) & (once(_entry, trees.low, trees.high, lane, here, best) < NEVER)
        leaf = met & (here < len(trees.face))
        of_leaf = jnp.where(leaf, here, 0)
        abc = (look(trees.vertex, c[of_leaf], lane.world) - lane.pos for c in trees.corner)
        t = once(triangle.meets, lane.way, *abc)
        nearer = leaf & (t + start >= 0) & (t < best)
        best, face = jnp.where(nearer, t, best), jnp.where(nearer, trees.face[of_leaf], face)
        after = jnp.where(met, trees.into[here], trees.past[here])
        return jnp.where(node == END, END, after), best, face

    def going(state: tuple) -> Array:
        return jnp.any(state[0] != END)

    state = lane.node, lane.limit, jnp.full_like(lane.node, END)
    _, best, face = lax.while_loop(going, step, state)
    found = face != END
    return jnp.where(found, jnp.maximum(best + start, 0), NEVER), jnp.maximum(face, 0)


def _entry(low: Vec, high: Vec, lane: _Lane, node: Array, limit: Array) -> Array:
    """Where rays enter boxes, 0 for rays inside; NEVER for those that miss them or are too far.

    Boxes are wider by what is not known of the ray: faces lie in their sides.
    """
    low, high = look((low, high), node, lane.world)
    enter, leave = jnp.zeros_like(limit), limit
    for x, u, a, b in zip(lane.pos.parts, lane.way.parts, low.parts, high.parts, strict=True):
        # a direction without a part along an axis gets a little one
        per = 1 / jnp.where(jnp.abs(u) > MINVAL, u, MINVAL)
        one, other = (a - lane.blur - x) * per, (b + lane.blur - x) * per
        enter = jnp.maximum(enter, jnp.minimum(one, other))
        leave = jnp.minimum(leave, jnp.maximum(one, other))
    return jnp.where(enter <= leave + _slack(leave) * jnp.abs(leave), enter, NEVER)


def _slack(like: Array) -> float:
    return ROUNDINGS * float(jnp.finfo(like.dtype).eps)
