"""Rays and what changes its form: triangles of flexes and skins, capsules of tendons and rods.

Triangles are found by trees of boxes like those of meshes, whose boxes are made anew of the points
as they are; faces that follow each other in a file are near each other. Pieces of strands are
looked at one after another. A part is a triangle or, after all of these, a piece.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.enums import ObjType
from jaxsim.math import Vec, select
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import column, pick
from jaxsim.physics.flex.flex import flex
from jaxsim.physics.ray import mesh, triangle
from jaxsim.physics.ray.local import NEVER, Local, look, worlds_of
from jaxsim.physics.ray.tree import Plan, Trees, forest, grown
from jaxsim.physics.tendon.tendon import tendon
from jaxsim.view.soft.strands import Strands, crossing, has_strands, strands
from jaxsim.view.soft.surface import Points, soft_points
from jaxsim.view.soft.topology import topology

NONE = -1


class Soft(NamedTuple):
    """What may be met, as it is; what a model has not is None.

    Attributes:
      trees: of triangles, one for each flex and skin.
      points: corners of all triangles and normals there.
      corner, place: of each triangle which points, and which texture coordinates, or NONE, three
        arrays `[faces]`; no `place` if none has any.
      owner, flat: of each triangle its thing, and whether it is flat.
      strands: tendons and rods.
    """

    trees: Trees | None
    points: Points | None
    corner: tuple[jax.Array, ...]
    place: tuple[jax.Array, ...]
    owner: jax.Array
    flat: jax.Array
    strands: Strands | None


class Met(NamedTuple):
    """What rays meet, `[n, *W]`.

    Attributes:
      dist: how far they go [m]; NEVER: they meet nothing.
      normal: of the surface there, towards where the ray begins.
      shade: the normal that light sees.
      weights: how near the point is to the three corners of a triangle.
    """

    dist: jax.Array
    normal: Vec
    shade: Vec
    weights: tuple[jax.Array, ...]


@dataclass(frozen=True, eq=False)
class Things:
    """Constants of what may be met, after the geoms: surfaces, tendons, flexes as rods.

    Attributes:
      type, id: `ObjType` and number of each.
      material: of each, or NONE.
      faces: how many triangles there are.
    """

    type: np.ndarray
    id: np.ndarray
    material: np.ndarray
    faces: int


@derived
def things(s: Structure) -> Things:
    """Return the constants."""
    plan = topology(s)
    first = [np.asarray(s.flex_matid[a], int) for a in s.flex_elemadr] if s.nflex else []
    return Things(
        type=np.concatenate(
            [plan.type, np.full(s.ntendon, ObjType.TENDON), np.full(s.nflex, ObjType.FLEX)]
        ).astype(np.int32),
        id=np.concatenate([plan.id, np.arange(s.ntendon), np.arange(s.nflex)]).astype(np.int32),
        material=np.concatenate([plan.material, s.tendon_matid, first]).astype(np.int32),
        faces=len(plan.owner),
    )


def soft(m: Model, d: Data, groups: tuple[bool, ...]) -> Soft | None:
    """What may be met besides geoms in a world with the poses of bodies; None: nothing.

    Args:
      m, d: model and data.
      groups: which groups are shown.
    """
    faces, pieces = _forest(m.structure, groups), has_strands(m.structure)
    if not (len(faces.face) or pieces):
        return None
    none = d.xpos.x[:0]
    d = flex(m, d.replace(flexvert_xpos=d.xpos[:0]))
    points = trees = found = None
    if len(faces.face):
        points = soft_points(m, d)
        trees = grown(faces, points.pos)
    if pieces:
        paths = dict.fromkeys(("ten_wrapadr", "ten_wrapnum", "wrap_obj", "wrap_xpos"), none)
        found = _shown(m, strands(m, tendon(m, d.replace(**paths)) if m.ntendon else d), groups)
    plan = topology(m.structure)
    corner, place = (tuple(map(jnp.asarray, table)) for table in (plan.corner, plan.place))
    placed = bool((plan.place >= 0).any())
    owner, flat = jnp.asarray(plan.owner), jnp.asarray(plan.flat)
    return Soft(trees, points, corner, place if placed else (), owner, flat, found)


def _shown(m: Model, found: Strands, groups: tuple[bool, ...]) -> Strands:
    """Return the strands of groups that are shown."""
    table = np.concatenate([m.tendon_group, m.flex_group]).clip(0, len(groups) - 1)
    shown = jnp.asarray(np.array(groups)[table])[found.owner]
    return found._replace(radius=jnp.where(shown, found.radius, -1))


def _forest(s: Structure, groups: tuple[bool, ...]) -> Plan:
    """Return the trees of the surfaces that are shown."""
    plan = topology(s)
    shown = np.array(groups)[plan.group.clip(0, len(groups) - 1)] if len(plan.group) else plan.group
    trees = np.flatnonzero(shown & (np.bincount(plan.owner, minlength=len(plan.type)) > 0))
    orders = [np.flatnonzero(plan.owner == k) for k in trees]
    return forest(len(plan.type), trees, orders, plan.corner.T)


def nearest(m: Model, scene: Soft, pos: Vec, way: Vec, limit: Array) -> tuple[Array, Array]:
    """How far rays go, NEVER if they meet nothing, and which part they meet.

    Args:
      m: the model.
      scene: what may be met.
      pos, way: rays; the directions have unit length.
      limit: how far they are of interest [m].
    """
    best, part = limit, jnp.full(limit.shape, NONE, jnp.int32)
    if scene.trees is not None:
        visible = _opaque(m)
        for tree in range(len(topology(m.structure).type)):
            which = jnp.zeros((1, *limit.shape), jnp.int32)
            ray = jax.tree.map(lambda x: x[None], Local(pos, way, pos, which[0], worlds_of(limit)))
            seen = jnp.where(visible[tree : tree + 1], best, NONE)
            table = jnp.full(1, tree, jnp.int32)
            dist, face = mesh.nearest(table, scene.trees, ray._replace(geom=which), seen[None])
            nearer = dist[0] < best
            best, part = jnp.where(nearer, dist[0], best), jnp.where(nearer, face[0], part)
    if scene.strands is not None:
        first = things(m.structure).faces

        def turn(state: tuple, one: tuple) -> tuple:
            best, part = state
            number, piece = one
            dist, _ = crossing(jax.tree.map(lambda x: x[None], piece), pos, way)
            nearer = dist < best
            return (jnp.where(nearer, dist, best), jnp.where(nearer, first + number, part)), None

        number = jnp.arange(len(scene.strands.radius), dtype=jnp.int32)
        (best, part), _ = lax.scan(turn, (best, part), (number, scene.strands))
    return jnp.where(part >= 0, best, NEVER), part


def again(m: Model, scene: Soft, pos: Vec, way: Vec, part: Array) -> Met:
    """What rays were found to meet, as a differentiable function of rays and points.

    Args:
      m, scene, pos, way: as for `nearest`.
      part: its result; NONE for rays that meet nothing.
    """
    faces, zero = things(m.structure).faces, jnp.zeros_like(pos.x)
    dist, normal = zero + NEVER, Vec(zero, zero, zero + 1)
    shade, world = normal, worlds_of(part)
    weights: tuple[Array, ...] = (zero, zero, zero)
    if scene.points is not None:
        here = (part >= 0) & (part < faces)
        face = jnp.where(here, part, 0)
        index = [c[face] for c in scene.corner]
        a, b, c = (look(scene.points.pos, k, world) - pos for k in index)
        hit = triangle.hit(way, a, b, c)
        dist, normal = jnp.where(here, hit.dist, dist), select(here, hit.normal, normal)
        point = way.scale(jnp.where(here, hit.dist, 0))
        weights = triangle.weights(a - point, b - point, c - point)
        bent = [
            look(scene.points.normal, k, world).scale(w)
            for k, w in zip(index, weights, strict=True)
        ]
        flat = scene.flat[face]
        shade = select(flat, hit.normal, (bent[0] + bent[1] + bent[2]).normalize())
    if scene.strands is not None:
        here = part >= faces
        piece = pick(scene.strands, jnp.where(here, part - faces, 0))
        far, out = crossing(piece, pos, way)
        dist, normal = jnp.where(here, far, dist), select(here, out, normal)
        shade = select(here, out, shade)
    back = jnp.where(normal.dot(way) > 0, -1, 1).astype(zero.dtype)
    turned = jnp.where(shade.dot(normal.scale(back)) < 0, -1, 1).astype(zero.dtype)
    return Met(dist, normal.scale(back), shade.scale(turned), weights)


def thing_of(m: Model, scene: Soft, part: Array) -> Array:
    """Return the thing that a part belongs to, a number of `Things`; NONE for none."""
    table = things(m.structure)
    first = len(topology(m.structure).type)
    thing = jnp.full(part.shape, NONE, jnp.int32)
    if scene.points is not None:
        own = scene.owner[jnp.clip(part, 0, table.faces - 1)]
        thing = jnp.where((part >= 0) & (part < table.faces), own, thing)
    if scene.strands is not None:
        owner = pick(scene.strands.owner, jnp.maximum(part - table.faces, 0))
        thing = jnp.where(part >= table.faces, first + owner, thing)
    return thing


def colors(m: Model) -> list[Array]:
    """Red, green, blue and opacity that things have of their own, `[things, *W]`."""
    plan = topology(m.structure)
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


def _opaque(m: Model) -> Array:
    """Things that are not invisible, by their own color or that of their material."""
    own, material = colors(m)[3] != 0, things(m.structure).material
    if not (material >= 0).any():
        return own
    painted = (m.mat_rgba[:, 3] != 0)[np.maximum(material, 0)]
    return jnp.where(column(material >= 0, own), painted, own)
