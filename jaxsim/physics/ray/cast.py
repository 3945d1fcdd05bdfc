"""Rays and all geoms of a model: which one each ray meets first, where, and the normal there.

MuJoCo's `mj_ray`. The search goes through the types of geoms, and of each type through some geoms
at a time for some rays at a time, so that memory is bounded: it finds the geom and the part of it,
which are decided, without derivative. What is met is then computed once more for each ray, by the
formula of its geom, as a function of ray, pose and size.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.enums import MINVAL
from jaxsim.math import Vec, select
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure
from jaxsim.physics.arrays.array import Array, Tree
from jaxsim.physics.arrays.once import once
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.arrays.select import column, pick, take
from jaxsim.physics.collision.shape import Placed, placed
from jaxsim.physics.ray.local import NEVER, Local
from jaxsim.physics.ray.surfaces import SURFACES, Surfaces, surfaces

TURN = 256  # times as many rays and geoms are looked at together as lanes are searched together
NOTHING = -1  # geom and distance of a ray that meets nothing


class Rays(NamedTuple):
    """Rays in the world, `[n, *W]`.

    Attributes:
      pos: where they begin [m].
      vec: direction; distances are counted in its length.
      unseen: bodies whose geoms a ray does not see, one of each array; -1: none.
      sees: bool `[n, ngeom, *W]`, which geoms each ray may meet; None: all.
      cutoff: how far from where it begins the bounding sphere of a geom that it sees may be [m];
        None: anywhere. As in MuJoCo it does not count for bodies without geoms that can collide.
    """

    pos: Vec
    vec: Vec
    unseen: tuple[jax.Array, ...]
    cutoff: jax.Array | None = None
    sees: jax.Array | None = None


class Hits(NamedTuple):
    """What rays meet first, `[n, *W]`.

    Attributes:
      dist: how far they go, in lengths of the ray's vector; -1 for those that meet nothing.
      geom: which geom they meet, or -1.
      normal: of the surface there, outwards, in the world; or zero.
      part: which part of the geom they meet: of a mesh the face, among those of all meshes.
    """

    dist: jax.Array
    geom: jax.Array
    normal: Vec
    part: jax.Array


class _Found(NamedTuple):
    """How far rays go [m], the geom that they meet, and the part of its surface."""

    dist: jax.Array
    geom: jax.Array
    part: jax.Array


class _Scene(NamedTuple):
    """What may be met.

    Attributes:
      geoms: all geoms where they are, `[ngeom, *W]`.
      visible: whether they are drawn.
      body: what they are fixed to.
      reach: radius of their bounding spheres; infinite where a cutoff does not count [m].
      surfaces: what their types need.
    """

    geoms: Placed
    visible: jax.Array
    body: jax.Array
    reach: jax.Array
    surfaces: Surfaces


def cast(m: Model, d: Data, rays: Rays, geoms: np.ndarray, made: Surfaces | None = None) -> Hits:
    """What rays meet first.

    Args:
      m: the model.
      d: data with the poses of the geoms.
      rays: the rays; one without direction meets nothing.
      geoms: those that may be met, rising. Geoms that are drawn invisible are not, unless the
        rays say what they see.
      made: surfaces of these geoms; None: they are made here. Who casts rays in several places of a
        program makes them once.
    """
    like = jnp.zeros_like(d.qpos, shape=(len(rays.pos.x), *d.qpos.shape[1:]))
    sees, rays = rays.sees, rays._replace(sees=None)
    rays = jax.tree.map(lambda x: jnp.broadcast_to(x, like.shape), rays)._replace(sees=sees)
    if not (len(geoms) and len(like)):
        return _nothing(like)
    rays, length = of_unit_length(rays)
    scene = _scene(m, d, geoms, like, made)
    if rays.sees is not None:
        scene = scene._replace(visible=jnp.ones_like(scene.visible))
    types = np.unique(m.geom_type[geoms])
    found = _search(m, scene, rays, [geoms[m.geom_type[geoms] == t] for t in types])
    return _hits(m, scene, rays, length, types, found)


def cast_at(m: Model, d: Data, rays: Rays, geom: Array, type_: int) -> Hits:
    """What rays meet of one geom, whether it is drawn or not.

    Args:
      m: the model.
      d: data with the poses of the geoms.
      rays: the rays; one without direction meets nothing.
      geom: number of the geom, `[1, *W]`; of one that is not of this type nothing is met.
      type_: type of the geom.
    """
    like = jnp.zeros_like(d.qpos, shape=(len(rays.pos.x), *d.qpos.shape[1:]))
    rays = jax.tree.map(lambda x: jnp.broadcast_to(x, like.shape), rays)
    geoms = np.flatnonzero(m.geom_type == type_).astype(np.int32)
    if not (len(geoms) and len(like)):
        return _nothing(like)
    rays, length = of_unit_length(rays)
    scene = _scene(m, d, geoms, like)
    geom = jnp.broadcast_to(geom, like.shape)
    of_type = jnp.asarray(m.geom_type == type_)[geom]
    some = jnp.where(of_type, geom, geoms[0])
    limit = jnp.where(of_type, NEVER, NOTHING).astype(like.dtype)[None]
    here, way = lax.stop_gradient((scene, rays))
    ray = once(_local, pick(here.geoms, some), way, _worlds(like))
    ray = jax.tree.map(lambda x: x[None], ray)
    dist, part = once(SURFACES[type_].nearest, here.surfaces, ray, limit)
    found = _Found(jnp.where(of_type, dist[0], NEVER), some, part[0])
    return _hits(m, scene, rays, length, np.array([type_], np.int32), found)


def cast_again(
    m: Model, d: Data, rays: Rays, geoms: np.ndarray, hits: Hits, made: Surfaces | None = None
) -> Hits:
    """What rays were found to meet, as a differentiable function of rays, poses and sizes.

    Args:
      m, d, rays, geoms, made: as for `cast`.
      hits: its result, of the same rays.
    """
    like = hits.dist
    rays = jax.tree.map(lambda x: jnp.broadcast_to(x, like.shape), rays)
    if not (len(geoms) and len(like)):
        return hits
    rays, length = of_unit_length(rays)
    far = lax.stop_gradient(jnp.where(hits.geom >= 0, hits.dist * length, NEVER))
    found = _Found(far, jnp.maximum(hits.geom, 0), hits.part)
    scene, types = _scene(m, d, geoms, like, made), np.unique(m.geom_type[geoms])
    return _hits(m, scene, rays, length, types, found)


def of_unit_length(rays: Rays) -> tuple[Rays, Array]:
    """Rays whose distances are in meters, and how long their vectors were; 0: no direction."""
    x, y, z = rays.vec.map(jnp.abs).parts
    moves = jnp.maximum(jnp.maximum(x, y), z) >= MINVAL
    zero = jnp.zeros_like(x)
    vec = select(moves, rays.vec, Vec(zero, zero, zero + 1))
    length = vec.norm()
    return rays._replace(vec=vec.scale(1 / length)), jnp.where(moves, length, 0)


def _scene(
    m: Model, d: Data, geoms: np.ndarray, like: Array, made: Surfaces | None = None
) -> _Scene:
    body = jnp.asarray(column(m.geom_bodyid.astype(np.int32), like))
    bounded = column(_in_bounded_body(m.structure), like) & (m.geom_rbound > 0)
    reach = jnp.where(bounded, m.geom_rbound, jnp.inf)
    made = surfaces(m, geoms) if made is None else made
    return _Scene(placed(m, d), _visible(m), body, reach, made)


def _in_bounded_body(s: Structure) -> np.ndarray:
    """Geoms of bodies that have bounding volumes in MuJoCo: those with a geom that can collide."""
    collides = (s.geom_contype != 0) | (s.geom_conaffinity != 0)
    return np.isin(s.geom_bodyid, s.geom_bodyid[collides])


def _hits(
    m: Model, scene: _Scene, rays: Rays, length: Array, types: np.ndarray, found: _Found
) -> Hits:
    """What was found, with distances in lengths of the vectors of the rays."""
    moves = length > 0
    met = moves & (found.dist < NEVER)
    dist, normal = _at(m, scene, rays, types, found)
    return Hits(
        dist=jnp.where(met, jnp.where(met, dist, 0) / jnp.where(moves, length, 1), NOTHING),
        geom=jnp.where(met, found.geom, NOTHING),
        normal=normal.map(lambda x: jnp.where(met, x, 0)),
        part=found.part,
    )


def _nothing(like: Array) -> Hits:
    zero, none = jnp.zeros_like(like), jnp.zeros(like.shape, jnp.int32)
    return Hits(zero - 1, none + NOTHING, Vec(zero, zero, zero), none)


def _at(m: Model, scene: _Scene, rays: Rays, types: np.ndarray, found: _Found) -> tuple[Array, Vec]:
    """Distance [m] and normal of what was found, of geoms of some types; differentiable."""
    geoms = pick(scene.geoms, found.geom)
    ray = once(_local, geoms, rays, _worlds(found.dist))
    ray = jax.tree.map(lambda x: x[None], ray)
    kind = jnp.asarray(m.geom_type, jnp.int32)[found.geom]
    near = jnp.where(found.dist < NEVER, found.dist, 0)
    dist, normal = found.dist, jax.tree.map(jnp.zeros_like, rays.vec)
    one = jnp.ones_like(ray.size.x)
    for type_ in types:
        here = kind == type_
        # the formula of a type has no derivative where sizes that others do not have are zero
        of_type = ray._replace(size=select(here[None], ray.size, Vec(one, one, one)))
        hit = once(SURFACES[type_].hit, scene.surfaces, of_type, near[None], found.part[None])
        dist = jnp.where(here & (hit.dist[0] < NEVER), hit.dist[0], dist)
        normal = select(here, hit.normal[0], normal)
    return dist, geoms.rot @ normal


def _search(m: Model, scene: _Scene, rays: Rays, of_type: list[np.ndarray]) -> _Found:
    """The first geom of each ray, of geoms that are grouped by type."""
    scene, rays = lax.stop_gradient((scene, rays))
    worlds = int(np.prod(rays.pos.x.shape[1:], dtype=int))
    together = TURN * platform().lanes // worlds

    def of_rays(rays: Rays) -> _Found:
        dist = jnp.full_like(rays.pos.x, NEVER)
        none = jnp.zeros(dist.shape, jnp.int32)
        best, size = _Found(dist, none, none), max(1, together // len(dist))
        for ids in of_type:
            nearest = SURFACES[m.geom_type[ids[0]]].nearest
            best = _of_type(best, scene, rays, ids, size, nearest)
        return best

    return by_parts(of_rays, rays, max(1, together))


def _of_type(
    best: _Found, scene: _Scene, rays: Rays, ids: np.ndarray, size: int, nearest: Callable
) -> _Found:
    """What is nearer than the best so far, of geoms of one type, `size` at a time."""

    def turn(best: _Found, some: tuple[Placed, Array, Array, Array]) -> tuple[_Found, None]:
        return _of_some(best, _Scene(*some, scene.surfaces), rays, nearest), None

    size = min(size, len(ids))
    blocks = -(-len(ids) // size)
    ids = ids[np.minimum(np.arange(blocks * size), len(ids) - 1)]
    some = take((scene.geoms, scene.visible, scene.body, scene.reach), ids)
    some = jax.tree.map(lambda x: x.reshape(blocks, size, *x.shape[1:]), some)
    if blocks == 1:
        return turn(best, jax.tree.map(lambda x: x[0], some))[0]
    return lax.scan(turn, best, some)[0]


def _of_some(best: _Found, some: _Scene, rays: Rays, nearest: Callable) -> _Found:
    """The same, all of these geoms together."""
    geoms, visible, body = jax.tree.map(lambda x: x[:, None], (some.geoms, some.visible, some.body))
    every = jax.tree.map(lambda x: x[None], rays._replace(sees=None))
    ray = once(_local, geoms, every, _worlds(best.dist)[None])
    sees = visible
    for unseen in every.unseen:
        sees &= body != unseen
    if rays.sees is not None:
        ids = geoms.id.reshape(len(geoms.id))
        sees &= jnp.moveaxis(jnp.take(rays.sees, ids, axis=1), 1, 0)
    if rays.cutoff is not None:
        sees &= (geoms.pos - every.pos).norm() - some.reach[:, None] <= every.cutoff
    limit = jnp.where(sees, best.dist[None], NOTHING)
    dist, part = once(nearest, some.surfaces, ray, limit)
    here = _Found(jnp.where(sees, dist, NEVER), jnp.broadcast_to(ray.geom, dist.shape), part)
    every = jax.tree.map(lambda one, many: jnp.concatenate([one[None], many]), best, here)
    return jax.tree.map(lambda x: x[0], _least(every))


def _least(found: _Found) -> _Found:
    """The nearest along the first axis; of equally near ones the geom of the lowest number."""
    number = len(found.dist)
    if number == 1:
        return found
    half = number // 2
    one, other, rest = (
        jax.tree.map(lambda x: x[first:last], found)  # noqa: B023
        for first, last in ((0, half), (half, 2 * half), (2 * half, number))
    )
    nearer = other.dist < one.dist
    nearer |= (other.dist == one.dist) & (other.geom < one.geom)
    least = select(nearer, other, one)
    return _least(jax.tree.map(lambda *x: jnp.concatenate(x), least, rest))


def _local(geoms: Placed, rays: Rays, world: Array) -> Local:
    """Rays in the frames of geoms."""
    turn = geoms.rot.T
    return Local(turn @ (rays.pos - geoms.pos), turn @ rays.vec, geoms.size, geoms.id, world)


def _worlds(like: Array) -> Array:
    """The number of the world of each ray, `[1, *W]`."""
    if like.ndim == 1:
        return jnp.zeros(1, jnp.int32)
    return jnp.arange(like.shape[-1], dtype=jnp.int32)[None]


def _visible(m: Model) -> Array:
    """Geoms that are drawn, by their own color or that of their material, `[ngeom, *W]`."""
    own = m.geom_rgba[:, 3] != 0
    material = m.geom_matid
    if not (material >= 0).any():
        return own
    painted = take(m.mat_rgba[:, 3] != 0, np.maximum(material, 0))
    return jnp.where(column(material >= 0, own), painted, own)


def by_parts(function: Callable[[Rays], Tree], rays: Rays, most: int) -> Tree:
    """`function` of the rays, of some at a time."""
    number = len(rays.pos.x)
    if number <= most:
        return function(rays)
    parts = -(-number // most)
    size = -(-number // parts)
    index = np.minimum(np.arange(parts * size), number - 1)
    split = jax.tree.map(lambda x: x.reshape(parts, size, *x.shape[1:]), take(rays, index))
    found = lax.map(function, split)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:number], found)
