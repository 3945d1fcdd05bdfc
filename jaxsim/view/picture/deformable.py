"""Rays and deformable objects: triangles of flexes and skins, capsules of tendons and rods.

Triangles are searched by bounding volume hierarchies like those of meshes, refitted to the present
points; faces that are adjacent in a file are near each other. Segments of strands are tested one
after another. A part is a triangle or, after all of these, a segment.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather
from jaxsim.enums import ObjType
from jaxsim.math import Vec, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.flex.flex import flex
from jaxsim.physics.ray import mesh, triangle
from jaxsim.physics.ray.local_rays import NO_HIT, LocalRays, gather_by_world, world_indices
from jaxsim.physics.ray.tree import RayPlan, Trees, build_trees, refit_trees
from jaxsim.physics.tendon.tendon import tendon
from jaxsim.view.flex.strands import Strands, capsule_entry, has_strands, strands
from jaxsim.view.flex.surface import DeformablePoints, soft_points
from jaxsim.view.flex.topology import surface_topology

NO_HIT_ID = -1


class FlexScene(NamedTuple):
    """Deformable objects in their present state; absent ones are None.

    Attributes:
      trees: hierarchies of triangles, one for each flex and skin.
      points: corners of all triangles and their normals.
      corner, texcoord_index: point indices and texture coordinate indices of each triangle, or
        NONE, three arrays `[faces]`; no `texcoord_index` if none has any.
      owner, flat: object of each triangle, and whether it is flat-shaded.
      strands: tendons and rods.
    """

    trees: Trees | None
    points: DeformablePoints | None
    corner: tuple[jax.Array, ...]
    texcoord_index: tuple[jax.Array, ...]
    owner: jax.Array
    flat: jax.Array
    strands: Strands | None


class FlexHits(NamedTuple):
    """Hits of rays, `[n, *W]`.

    Attributes:
      dist: distance [m]; NEVER: no hit.
      normal: surface normal, toward the ray origin.
      shade: shading normal.
      weights: barycentric coordinates in a triangle.
    """

    dist: jax.Array
    normal: Vec
    shade: Vec
    weights: tuple[jax.Array, ...]


@dataclass(frozen=True, eq=False)
class FlexConstants:
    """Constants of the drawable objects other than geoms: surfaces, tendons, flexes as rods.

    Attributes:
      type, id: `ObjType` and id of each.
      material: material of each, or NONE.
      faces: number of triangles.
    """

    type: np.ndarray
    id: np.ndarray
    material: np.ndarray
    faces: int


@cache_by_structure
def flex_constants(s: Structure) -> FlexConstants:
    """Return the constants."""
    plan = surface_topology(s)
    first = [np.asarray(s.flex_matid[a], int) for a in s.flex_elemadr] if s.nflex else []
    return FlexConstants(
        type=np.concatenate(
            [plan.type, np.full(s.ntendon, ObjType.TENDON), np.full(s.nflex, ObjType.FLEX)]
        ).astype(np.int32),
        id=np.concatenate([plan.id, np.arange(s.ntendon), np.arange(s.nflex)]).astype(np.int32),
        material=np.concatenate([plan.material, s.tendon_matid, first]).astype(np.int32),
        faces=len(plan.owner),
    )


def flex_scene(m: Model, d: Data, groups: tuple[bool, ...]) -> FlexScene | None:
    """Return the deformable objects in a world with the poses of bodies; None if there are none.

    Args:
      m, d: model and data.
      groups: visible groups.
    """
    faces, pieces = _forest(m.structure, groups), has_strands(m.structure)
    if not (len(faces.face) or pieces):
        return None
    none = d.xpos.x[:0]
    d = flex(m, d.replace(flexvert_xpos=d.xpos[:0]))
    points = trees = found = None
    if len(faces.face):
        points = soft_points(m, d)
        trees = refit_trees(faces, points.pos)
    if pieces:
        paths = dict.fromkeys(("ten_wrapadr", "ten_wrapnum", "wrap_obj", "wrap_xpos"), none)
        found = _visible_strands(
            m, strands(m, tendon(m, d.replace(**paths)) if m.ntendon else d), groups
        )
    plan = surface_topology(m.structure)
    corner, texcoord_index = (
        tuple(map(jnp.asarray, table)) for table in (plan.corner, plan.texcoord_index)
    )
    placed = bool((plan.texcoord_index >= 0).any())
    owner, flat = jnp.asarray(plan.owner), jnp.asarray(plan.flat)
    return FlexScene(trees, points, corner, texcoord_index if placed else (), owner, flat, found)


def _visible_strands(m: Model, found: Strands, groups: tuple[bool, ...]) -> Strands:
    """Return the strands of visible groups."""
    table = np.concatenate([m.tendon_group, m.flex_group]).clip(0, len(groups) - 1)
    shown = jnp.asarray(np.array(groups)[table])[found.owner]
    return found._replace(radius=jnp.where(shown, found.radius, -1))


def _forest(s: Structure, groups: tuple[bool, ...]) -> RayPlan:
    """Return the hierarchies of the visible surfaces."""
    plan = surface_topology(s)
    shown = np.array(groups)[plan.group.clip(0, len(groups) - 1)] if len(plan.group) else plan.group
    trees = np.flatnonzero(shown & (np.bincount(plan.owner, minlength=len(plan.type)) > 0))
    orders = [np.flatnonzero(plan.owner == k) for k in trees]
    return build_trees(len(plan.type), trees, orders, plan.corner.T)


def nearest(m: Model, scene: FlexScene, pos: Vec, way: Vec, limit: Array) -> tuple[Array, Array]:
    """Return the distances of the nearest hits, NEVER if there is none, and the parts hit.

    Args:
      m: the model.
      scene: the deformable objects.
      pos, way: rays; the directions have unit length.
      limit: largest distance of interest [m].
    """
    best, part = limit, jnp.full(limit.shape, NO_HIT_ID, jnp.int32)
    if scene.trees is not None:
        visible = _visible_objects(m)
        for tree in range(len(surface_topology(m.structure).type)):
            which = jnp.zeros((1, *limit.shape), jnp.int32)
            ray = jax.tree.map(
                lambda x: x[None], LocalRays(pos, way, pos, which[0], world_indices(limit))
            )
            seen = jnp.where(visible[tree : tree + 1], best, NO_HIT_ID)
            table = jnp.full(1, tree, jnp.int32)
            dist, face = mesh.nearest_mesh_hit(
                table, scene.trees, ray._replace(geom=which), seen[None]
            )
            nearer = dist[0] < best
            best, part = jnp.where(nearer, dist[0], best), jnp.where(nearer, face[0], part)
    if scene.strands is not None:
        first = flex_constants(m.structure).faces

        def iteration(state: tuple, one: tuple) -> tuple:
            best, part = state
            number, piece = one
            dist, _ = capsule_entry(jax.tree.map(lambda x: x[None], piece), pos, way)
            nearer = dist < best
            return (jnp.where(nearer, dist, best), jnp.where(nearer, first + number, part)), None

        number = jnp.arange(len(scene.strands.radius), dtype=jnp.int32)
        (best, part), _ = lax.scan(iteration, (best, part), (number, scene.strands))
    return jnp.where(part >= 0, best, NO_HIT), part


def differentiable_hits(m: Model, scene: FlexScene, pos: Vec, way: Vec, part: Array) -> FlexHits:
    """Return known hits as a differentiable function of rays and points.

    Args:
      m, scene, pos, way: as for `nearest`.
      part: its result; NONE for rays without a hit.
    """
    faces, zero = flex_constants(m.structure).faces, jnp.zeros_like(pos.x)
    dist, normal = zero + NO_HIT, Vec(zero, zero, zero + 1)
    shade, world = normal, world_indices(part)
    weights: tuple[Array, ...] = (zero, zero, zero)
    if scene.points is not None:
        here = (part >= 0) & (part < faces)
        face = jnp.where(here, part, 0)
        index = [c[face] for c in scene.corner]
        a, b, c = (gather_by_world(scene.points.pos, k, world) - pos for k in index)
        hit = triangle.intersect_triangle(way, a, b, c)
        dist, normal = jnp.where(here, hit.dist, dist), select_where(here, hit.normal, normal)
        point = way.scale(jnp.where(here, hit.dist, 0))
        weights = triangle.barycentric_weights(a - point, b - point, c - point)
        bent = [
            gather_by_world(scene.points.normal, k, world).scale(w)
            for k, w in zip(index, weights, strict=True)
        ]
        flat = scene.flat[face]
        shade = select_where(flat, hit.normal, (bent[0] + bent[1] + bent[2]).normalize())
    if scene.strands is not None:
        here = part >= faces
        piece = gather(scene.strands, jnp.where(here, part - faces, 0))
        far, out = capsule_entry(piece, pos, way)
        dist, normal = jnp.where(here, far, dist), select_where(here, out, normal)
        shade = select_where(here, out, shade)
    back = jnp.where(normal.dot(way) > 0, -1, 1).astype(zero.dtype)
    turned = jnp.where(shade.dot(normal.scale(back)) < 0, -1, 1).astype(zero.dtype)
    return FlexHits(dist, normal.scale(back), shade.scale(turned), weights)


def object_of_piece(m: Model, scene: FlexScene, part: Array) -> Array:
    """Return the object that a part belongs to, an index into `FlexConstants`; NONE for none."""
    table = flex_constants(m.structure)
    first = len(surface_topology(m.structure).type)
    thing = jnp.full(part.shape, NO_HIT_ID, jnp.int32)
    if scene.points is not None:
        own = scene.owner[jnp.clip(part, 0, table.faces - 1)]
        thing = jnp.where((part >= 0) & (part < table.faces), own, thing)
    if scene.strands is not None:
        owner = gather(scene.strands.owner, jnp.maximum(part - table.faces, 0))
        thing = jnp.where(part >= table.faces, first + owner, thing)
    return thing


def object_colors(m: Model) -> list[Array]:
    """Return red, green, blue and opacity of the objects' own colors, `[objects, *W]`."""
    plan = surface_topology(m.structure)
    found = []
    for k in range(4):
        parts = [
            jnp.concatenate([m.flex_rgba[:, k], m.skin_rgba[:, k]])[
                np.where(plan.type == ObjType.SKIN, m.nflex, 0) + plan.id
            ],
            m.tendon_rgba[:, k],
            m.flex_rgba[:, k],
        ]
        size = max((p.shape[-1] for p in parts if p.ndim > 1), default=1)
        parts = [
            jnp.broadcast_to(p, (len(p), *p.shape[1:-1], size)) if p.ndim > 1 else p for p in parts
        ]
        found.append(jnp.concatenate(parts))
    return found


def _visible_objects(m: Model) -> Array:
    """Return which objects are visible, by their own color or that of their material."""
    own, material = object_colors(m)[3] != 0, flex_constants(m.structure).material
    if not (material >= 0).any():
        return own
    painted = (m.mat_rgba[:, 3] != 0)[np.maximum(material, 0)]
    return jnp.where(column(material >= 0, own), painted, own)
