"""Ray casting against all geoms of a model; MuJoCo's `mj_ray`.

The search iterates over the types of geoms, and over blocks of geoms and rays, so that memory is
bounded. It finds geom and part (face, cell, ...) of the first intersection, without derivatives.
The distance is then recomputed for each ray by the formula of its geom, as a differentiable
function of ray, pose and size.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.gather import column, gather, gather_static
from jaxsim.enums import MINVAL
from jaxsim.math import Vec, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure
from jaxsim.physics.collision.shape import PlacedGeoms, place_geoms
from jaxsim.physics.ray.local_rays import NO_HIT, LocalRays
from jaxsim.physics.ray.surfaces import RAY_SURFACES, Surfaces, ray_surfaces
from jaxsim.transforms.materialize import materialize_result
from jaxsim.transforms.tuning import tuning

RAY_MISS = -1  # geom and distance of a ray without a hit


class Rays(NamedTuple):
    """Rays in the world, `[n, *W]`.

    Attributes:
      pos: origin [m].
      vec: direction; distances are in its length.
      unseen: bodies whose geoms are excluded, one per array; -1: none.
      sees: bool `[n, ngeom, *W]`, geoms included for each ray; None: all.
      cutoff: largest distance of the bounding spheres of geoms from the origin [m]; None: no limit.
        As in MuJoCo it does not apply to bodies without colliding geoms.
    """

    pos: Vec
    vec: Vec
    unseen: tuple[jax.Array, ...]
    cutoff: jax.Array | None = None
    sees: jax.Array | None = None


class Hits(NamedTuple):
    """First intersections of rays, `[n, *W]`.

    Attributes:
      dist: distance, in lengths of the ray's vector; -1 for no hit.
      geom: geom hit, or -1.
      normal: outward normal of the surface, in the world; or zero.
      part: part of the geom: for a mesh the face, among those of all meshes.
    """

    dist: jax.Array
    geom: jax.Array
    normal: Vec
    part: jax.Array


class _Found(NamedTuple):
    """Search result: distance [m], geom, and part of its surface."""

    dist: jax.Array
    geom: jax.Array
    part: jax.Array


class _Scene(NamedTuple):
    """Geoms for the search.

    Attributes:
      geoms: poses and sizes of all geoms, `[ngeom, *W]`.
      visible: True if the geom is rendered.
      body: body of each geom.
      reach: radius of the bounding sphere; infinite where a cutoff does not apply [m].
      surfaces: tables that the geom types need.
    """

    geoms: PlacedGeoms
    visible: jax.Array
    body: jax.Array
    reach: jax.Array
    surfaces: Surfaces


def cast_rays(
    m: Model, d: Data, rays: Rays, geoms: np.ndarray, made: Surfaces | None = None
) -> Hits:
    """Find the first intersection of each ray.

    Args:
      m: the model.
      d: data with the poses of the geoms.
      rays: the rays; one with a zero direction hits nothing.
      geoms: candidate geoms, ascending. Invisible geoms are excluded, unless `rays.sees` is given.
      made: surfaces of these geoms; None: build them here. Programs with several casts share them.
    """
    # Broadcast all per-ray arrays to the same shape.
    like = jnp.zeros_like(d.qpos, shape=(len(rays.pos.x), *d.qpos.shape[1:]))
    sees, rays = rays.sees, rays._replace(sees=None)
    rays = jax.tree.map(lambda x: jnp.broadcast_to(x, like.shape), rays)._replace(sees=sees)
    if not (len(geoms) and len(like)):
        return _no_hit(like)
    # Search without derivatives, then evaluate the hits differentiably.
    rays, length = normalize_rays(rays)
    scene = _scene(m, d, geoms, like, made)
    if rays.sees is not None:
        scene = scene._replace(visible=jnp.ones_like(scene.visible))
    types = np.unique(m.geom_type[geoms])
    found = _search_nearest(m, scene, rays, [geoms[m.geom_type[geoms] == t] for t in types])
    return _make_hits(m, scene, rays, length, types, found)


def cast_at(m: Model, d: Data, rays: Rays, geom: Array, type_: int) -> Hits:
    """Find the first intersection of each ray with one geom, visible or not.

    Args:
      m: the model.
      d: data with the poses of the geoms.
      rays: the rays; one with a zero direction hits nothing.
      geom: id of the geom, `[1, *W]`; a geom of another type is not hit.
      type_: type of the geom.
    """
    like = jnp.zeros_like(d.qpos, shape=(len(rays.pos.x), *d.qpos.shape[1:]))
    rays = jax.tree.map(lambda x: jnp.broadcast_to(x, like.shape), rays)
    geoms = np.flatnonzero(m.geom_type == type_).astype(np.int32)
    if not (len(geoms) and len(like)):
        return _no_hit(like)
    # Search the surface of the one geom; a geom of another type is masked.
    rays, length = normalize_rays(rays)
    scene = _scene(m, d, geoms, like)
    geom = jnp.broadcast_to(geom, like.shape)
    of_type = jnp.asarray(m.geom_type == type_)[geom]
    some = jnp.where(of_type, geom, geoms[0])
    limit = jnp.where(of_type, NO_HIT, RAY_MISS).astype(like.dtype)[None]
    # The search has no derivative.
    here, way = lax.stop_gradient((scene, rays))
    ray = materialize_result(_to_local_rays, gather(here.geoms, some), way, _worlds(like))
    ray = jax.tree.map(lambda x: x[None], ray)
    dist, part = materialize_result(RAY_SURFACES[type_].nearest, here.surfaces, ray, limit)
    found = _Found(jnp.where(of_type, dist[0], NO_HIT), some, part[0])
    return _make_hits(m, scene, rays, length, np.array([type_], np.int32), found)


def recompute_hits(
    m: Model, d: Data, rays: Rays, geoms: np.ndarray, hits: Hits, made: Surfaces | None = None
) -> Hits:
    """Re-evaluate known hits as a differentiable function of rays, poses and sizes.

    Args:
      m, d, rays, geoms, made: see `cast_rays`.
      hits: its result, for the same rays.
    """
    like = hits.dist
    rays = jax.tree.map(lambda x: jnp.broadcast_to(x, like.shape), rays)
    if not (len(geoms) and len(like)):
        return hits
    rays, length = normalize_rays(rays)
    # Reconstruct the search result from the stored hits.
    far = lax.stop_gradient(jnp.where(hits.geom >= 0, hits.dist * length, NO_HIT))
    found = _Found(far, jnp.maximum(hits.geom, 0), hits.part)
    scene, types = _scene(m, d, geoms, like, made), np.unique(m.geom_type[geoms])
    return _make_hits(m, scene, rays, length, types, found)


def normalize_rays(rays: Rays) -> tuple[Rays, Array]:
    """Normalize the rays; return them with the lengths of their vectors (0: no direction)."""
    # Normalize the direction; a zero vector becomes z with length 0.
    x, y, z = rays.vec.map(jnp.abs).parts
    moves = jnp.maximum(jnp.maximum(x, y), z) >= MINVAL
    zero = jnp.zeros_like(x)
    vec = select_where(moves, rays.vec, Vec(zero, zero, zero + 1))
    length = vec.norm()
    return rays._replace(vec=vec.scale(1 / length)), jnp.where(moves, length, 0)


def _scene(
    m: Model, d: Data, geoms: np.ndarray, like: Array, made: Surfaces | None = None
) -> _Scene:
    body = jnp.asarray(column(m.geom_bodyid.astype(np.int32), like))
    # As in MuJoCo, the cutoff applies to geoms with a bounding sphere, in bodies that collide.
    bounded = column(_geoms_of_bounded_bodies(m.structure), like) & (m.geom_rbound > 0)
    reach = jnp.where(bounded, m.geom_rbound, jnp.inf)
    made = ray_surfaces(m, geoms) if made is None else made
    return _Scene(place_geoms(m, d), _visible_geoms(m), body, reach, made)


def _geoms_of_bounded_bodies(s: Structure) -> np.ndarray:
    """Return geoms of bodies with bounding volumes in MuJoCo: those with a colliding geom."""
    collides = (s.geom_contype != 0) | (s.geom_conaffinity != 0)
    return np.isin(s.geom_bodyid, s.geom_bodyid[collides])


def _make_hits(
    m: Model, scene: _Scene, rays: Rays, length: Array, types: np.ndarray, found: _Found
) -> Hits:
    """Convert a search result to hits, with distances in lengths of the rays' vectors."""
    moves = length > 0
    met = moves & (found.dist < NO_HIT)
    dist, normal = _hit_distance_and_normal(m, scene, rays, types, found)
    return Hits(
        dist=jnp.where(met, jnp.where(met, dist, 0) / jnp.where(moves, length, 1), RAY_MISS),
        geom=jnp.where(met, found.geom, RAY_MISS),
        normal=normal.map(lambda x: jnp.where(met, x, 0)),
        part=found.part,
    )


def _no_hit(like: Array) -> Hits:
    zero, none = jnp.zeros_like(like), jnp.zeros(like.shape, jnp.int32)
    return Hits(zero - 1, none + RAY_MISS, Vec(zero, zero, zero), none)


def _hit_distance_and_normal(
    m: Model, scene: _Scene, rays: Rays, types: np.ndarray, found: _Found
) -> tuple[Array, Vec]:
    """Compute distance [m] and normal of a search result; differentiable."""
    # Gather the geom of each ray and transform the ray to its frame.
    geoms = gather(scene.geoms, found.geom)
    ray = materialize_result(_to_local_rays, geoms, rays, _worlds(found.dist))
    ray = jax.tree.map(lambda x: x[None], ray)
    kind = jnp.asarray(m.geom_type, jnp.int32)[found.geom]
    near = jnp.where(found.dist < NO_HIT, found.dist, 0)
    dist, normal = found.dist, jax.tree.map(jnp.zeros_like, rays.vec)
    one = jnp.ones_like(ray.size.x)
    # Evaluate the formula of each type and select by the type of the geom found.
    for type_ in types:
        here = kind == type_
        # Guard the derivative of the formula against zero sizes of other geom types.
        of_type = ray._replace(size=select_where(here[None], ray.size, Vec(one, one, one)))
        hit = materialize_result(
            RAY_SURFACES[type_].hit, scene.surfaces, of_type, near[None], found.part[None]
        )
        dist = jnp.where(here & (hit.dist[0] < NO_HIT), hit.dist[0], dist)
        normal = select_where(here, hit.normal[0], normal)
    return dist, geoms.rot @ normal


def _search_nearest(m: Model, scene: _Scene, rays: Rays, of_type: list[np.ndarray]) -> _Found:
    """Search the first geom of each ray, among geoms grouped by type."""
    # The search has no derivative.
    scene, rays = lax.stop_gradient((scene, rays))
    worlds = int(np.prod(rays.pos.x.shape[1:], dtype=int))
    # Limit rays times geoms per iteration, so that memory is bounded.
    together = tuning().ray_pairs_per_lane * tuning().search_lanes // worlds

    def of_rays(rays: Rays) -> _Found:
        dist = jnp.full_like(rays.pos.x, NO_HIT)
        none = jnp.zeros(dist.shape, jnp.int32)
        best, size = _Found(dist, none, none), max(1, together // len(dist))
        for ids in of_type:
            nearest = RAY_SURFACES[m.geom_type[ids[0]]].nearest
            best = _search_type(best, scene, rays, ids, size, nearest)
        return best

    return map_ray_chunks(of_rays, rays, max(1, together))


def _search_type(
    best: _Found, scene: _Scene, rays: Rays, ids: np.ndarray, size: int, nearest: Callable
) -> _Found:
    """Update the nearest hits with geoms of one type, `size` at a time."""

    def iterate(best: _Found, some: tuple[PlacedGeoms, Array, Array, Array]) -> tuple[_Found, None]:
        return _search_block(best, _Scene(*some, scene.surfaces), rays, nearest), None

    # Divide the geoms into blocks of equal size; the last geom fills up the last block.
    size = min(size, len(ids))
    blocks = -(-len(ids) // size)
    ids = ids[np.minimum(np.arange(blocks * size), len(ids) - 1)]
    some = gather_static((scene.geoms, scene.visible, scene.body, scene.reach), ids)
    some = jax.tree.map(lambda x: x.reshape(blocks, size, *x.shape[1:]), some)
    if blocks == 1:
        return iterate(best, jax.tree.map(lambda x: x[0], some))[0]
    return lax.scan(iterate, best, some)[0]


def _search_block(best: _Found, some: _Scene, rays: Rays, nearest: Callable) -> _Found:
    """Update the nearest hits with one block of geoms."""
    # Every geom of the block against every ray.
    geoms, visible, body = jax.tree.map(lambda x: x[:, None], (some.geoms, some.visible, some.body))
    every = jax.tree.map(lambda x: x[None], rays._replace(sees=None))
    ray = materialize_result(_to_local_rays, geoms, every, _worlds(best.dist)[None])
    # Visibility, excluded bodies, per-ray masks and cutoff.
    sees = visible
    for unseen in every.unseen:
        sees &= body != unseen
    if rays.sees is not None:
        ids = geoms.id.reshape(len(geoms.id))
        sees &= jnp.moveaxis(jnp.take(rays.sees, ids, axis=1), 1, 0)
    if rays.cutoff is not None:
        sees &= (geoms.pos - every.pos).norm() - some.reach[:, None] <= every.cutoff
    # Only hits nearer than the best so far count.
    limit = jnp.where(sees, best.dist[None], RAY_MISS)
    dist, part = materialize_result(nearest, some.surfaces, ray, limit)
    here = _Found(jnp.where(sees, dist, NO_HIT), jnp.broadcast_to(ray.geom, dist.shape), part)
    # Reduce over the block and the previous best.
    every = jax.tree.map(lambda one, many: jnp.concatenate([one[None], many]), best, here)
    return jax.tree.map(lambda x: x[0], _least(every))


def _least(found: _Found) -> _Found:
    """Reduce to the nearest along the first axis; ties are won by the smallest geom id."""
    number = len(found.dist)
    if number == 1:
        return found
    half = number // 2
    one, other, rest = (
        jax.tree.map(lambda x: x[first:last], found)  # noqa: B023
        for first, last in ((0, half), (half, 2 * half), (2 * half, number))
    )
    # Tournament: compare halves, then recurse.
    nearer = other.dist < one.dist
    nearer |= (other.dist == one.dist) & (other.geom < one.geom)
    least = select_where(nearer, other, one)
    return _least(jax.tree.map(lambda *x: jnp.concatenate(x), least, rest))


def _to_local_rays(geoms: PlacedGeoms, rays: Rays, world: Array) -> LocalRays:
    """Transform rays to the frames of geoms."""
    turn = geoms.rot.T
    return LocalRays(turn @ (rays.pos - geoms.pos), turn @ rays.vec, geoms.size, geoms.id, world)


def _worlds(like: Array) -> Array:
    """Return the index of each ray's world, `[1, *W]`."""
    if like.ndim == 1:
        return jnp.zeros(1, jnp.int32)
    return jnp.arange(like.shape[-1], dtype=jnp.int32)[None]


def _visible_geoms(m: Model) -> Array:
    """Return the visible geoms, by their own alpha or that of their material, `[ngeom, *W]`."""
    own = m.geom_rgba[:, 3] != 0
    material = m.geom_matid
    if not (material >= 0).any():
        return own
    painted = gather_static(m.mat_rgba[:, 3] != 0, np.maximum(material, 0))
    return jnp.where(column(material >= 0, own), painted, own)


def map_ray_chunks(function: Callable[[Rays], PyTree], rays: Rays, most: int) -> PyTree:
    """Apply `function` to the rays in blocks of at most `most`."""
    number = len(rays.pos.x)
    if number <= most:
        return function(rays)
    # Divide into parts of equal size; the last ray fills up the last part.
    parts = -(-number // most)
    size = -(-number // parts)
    index = np.minimum(np.arange(parts * size), number - 1)
    split = jax.tree.map(lambda x: x.reshape(parts, size, *x.shape[1:]), gather_static(rays, index))
    found = lax.map(function, split)
    return jax.tree.map(lambda x: x.reshape(-1, *x.shape[2:])[:number], found)
