"""Rays and one thing of a model; MuJoCo's `mj_rayMesh`, `mj_rayHfield` and `mj_rayFlex`.

The same for a shape without a model is `jaxsim.functions.ray_geom`.
"""

import operator
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.cache import bounded
from jaxsim.enums import GeomType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.physics.arguments import check_array, object_id
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.native import worlds
from jaxsim.physics.arrays.programs import Programs
from jaxsim.physics.arrays.select import take
from jaxsim.physics.body.inertia import com_pos
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.flex.flex import flex as flex_stage
from jaxsim.physics.public import items
from jaxsim.physics.query.ray import given_rays, in_parts
from jaxsim.physics.ray.cast import Rays, cast_at
from jaxsim.physics.ray.soft import Shown, SoftHits, cast_soft, drawn
from jaxsim.physics.refusal import named


class SurfaceHit(NamedTuple):
    """Where a ray meets a surface, or each of several.

    Attributes:
      dist: how far it goes, in lengths of its vector; -1: it misses the surface.
      normal: of the surface there, outwards, in the world; zero if the ray misses it.
    """

    dist: jax.Array
    normal: jax.Array


class FlexHit(NamedTuple):
    """Where a ray meets a flex, or each of several.

    Attributes:
      dist: how far it goes, in lengths of its vector; -1: it misses the flex.
      vertid: number of the nearest vertex, counted from the first of the flex; -1: none.
      normal: of the surface there, in the world; of a face by the order of its vertices; zero if
        the ray misses it.
    """

    dist: jax.Array
    vertid: jax.Array
    normal: jax.Array


def ray_mesh(m: Model, d: Data, geom: Array | int | str, pnt: Array, vec: Array) -> SurfaceHit:
    """Where rays pnt + x vec, x >= 0, first meet a mesh.

    Its faces are met from both sides, whether it is drawn or not.

    Args:
      m: the model.
      d: data, of which qpos (and the poses of mocap bodies) count.
      geom: number () or name of the geom. Of a number that is known only when the program runs, and
        is no mesh, nothing is met.
      pnt: where a ray begins, (3,), or where each of several does, (n, 3), in the world [m].
      vec: its direction, (3,) or (n, 3), in the world, of any length; zero meets nothing.

    Returns:
      A SurfaceHit: dist () or (n,), in lengths of `vec`, -1 for none; normal (3,) or (n, 3).

    Raises:
      ValueError: there is no such geom, or it is no mesh; a shape or precision is wrong.
    """
    return _ask("ray_mesh", GeomType.MESH, m, d, geom, pnt, vec)


def ray_hfield(m: Model, d: Data, geom: Array | int | str, pnt: Array, vec: Array) -> SurfaceHit:
    """Where rays pnt + x vec, x >= 0, first meet a height field: surface, walls or base.

    Args:
      m, d, geom, pnt, vec: as for `ray_mesh`.

    Returns:
      A SurfaceHit, likewise.

    Raises:
      ValueError: there is no such geom, or it is no height field; a shape or precision is wrong.
    """
    return _ask("ray_hfield", GeomType.HFIELD, m, d, geom, pnt, vec)


def ray_flex(
    m: Model,
    d: Data,
    flex: int | str,
    pnt: Array,
    vec: Array,
    flex_layer: int = 0,
    flg_vert: bool = False,
    flg_edge: bool = True,
    flg_face: bool = False,
    flg_skin: bool = True,
) -> FlexHit:
    """Where rays pnt + x vec, x >= 0, first meet a flex, as it is drawn.

    MuJoCo's `mj_rayFlex`. Balls of the flex's radius are met at vertices, rods of that radius along
    edges, and faces without a thickness; the flags say which of them are drawn, as MuJoCo's
    viewers have them (these are its defaults). The skin is edges and faces, of solids the outer
    ones. Where edges are met vertices are not looked at. `jaxsim.ray` and rangefinders do not meet
    flexes, as in MuJoCo. Differentiable: what is met, and which part of it, is held fixed.

    Args:
      m: the model.
      d: data, of which qpos (and the poses of mocap bodies) count.
      flex: number or name of the flex. Known when traced, as are the layer and the flags.
      pnt: where a ray begins, (3,), or where each of several does, (n, 3), in the world [m].
      vec: its direction, (3,) or (n, 3), in the world, of any length; zero meets nothing.
      flex_layer: of a flex of solids, which layer of elements, counted from outside, has its faces
        drawn; without a skin.
      flg_vert, flg_edge, flg_face, flg_skin: what is drawn.

    Returns:
      A FlexHit: dist () or (n,), in lengths of `vec`, -1 for none; vertid () or (n,); normal (3,)
      or (n, 3).

    Raises:
      ValueError: there is no such flex; a shape or precision is wrong.
    """
    pnt, vec, single = given_rays("ray_flex", m, d, pnt, vec)
    if isinstance(flex, str):
        flex = name2id(m, "flex", flex)
    flex = operator.index(flex)
    if not 0 <= flex < m.nflex:
        raise ValueError(f"ray_flex: flex: there is no flex {flex}; the model has {m.nflex}")
    shown = Shown(int(flex_layer), *map(bool, (flg_vert, flg_edge, flg_face, flg_skin)))
    hits = _flex_hits(flex, shown)(m, d, pnt, vec)
    return jax.tree.map(lambda x: x[0], hits) if single else hits


@bounded(64)
def _flex_hits(flex: int, shown: Shown) -> Callable[..., FlexHit]:
    def rays(m: Model, d: Data, pnt: Array, vec: Array) -> FlexHit:
        hits = soft_hits(m, flex_stage(m, com_pos(m, kinematics(m, d))), flex, shown, pnt, vec)
        return FlexHit(hits.dist, hits.vert, jnp.stack(hits.normal.parts, axis=1))

    return Programs(worlds(rays), inline=True)  # as in query/ray.py


def soft_hits(m: Model, d: Data, flex: int, shown: Shown, pnt: Array, vec: Array) -> SoftHits:
    """What rays `[n, 3, *W]` meet of a flex, of data with its vertices."""
    first = int(m.flex_vertadr[flex])
    points = take(d.flexvert_xpos, np.arange(first, first + int(m.flex_vertnum[flex])))
    rays = Rays(in_parts(pnt), in_parts(vec), unseen=())
    tables = drawn(m.structure, flex, shown)
    return cast_soft(points, take(m.flex_radius, np.full(len(points.x), flex)), tables, rays)


def _ask(
    name: str,
    type_: GeomType,
    m: Model,
    d: Data,
    geom: Array | int | str,
    pnt: Array,
    vec: Array,
) -> SurfaceHit:
    pnt, vec, single = given_rays(name, m, d, pnt, vec)
    geom = given_geom(name, m, geom)
    if isinstance(geom, int) and m.geom_type[geom] != type_:
        kind = GeomType(m.geom_type[geom]).name.lower()
        raise ValueError(
            f"{name}: {named(m, 'geom', geom)} is of type {kind}, expected {type_.name.lower()}"
        )
    hits = _hits(type_)(m, d, pnt, vec, items(geom, m.qpos0.dtype))
    return jax.tree.map(lambda x: x[0], hits) if single else hits


@bounded(64)
def _hits(type_: GeomType) -> Callable[..., SurfaceHit]:
    def rays(m: Model, d: Data, pnt: Array, vec: Array, geom: Array) -> SurfaceHit:
        d = kinematics(m, d)
        hits = cast_at(m, d, Rays(in_parts(pnt), in_parts(vec), unseen=()), geom, type_)
        return SurfaceHit(hits.dist, jnp.stack(hits.normal.parts, axis=1))

    return Programs(worlds(rays), inline=True)  # as in query/ray.py


def given_geom(name: str, m: Model, geom: Array | int | str) -> Array | int:
    """The id of a geom given by id or name, an int if it is known when traced.

    Raises:
      ValueError: there is no such geom.
    """
    number: Array | int = object_id(name, m, "geom", geom)
    check_array(name, m, "geom", number)
    return number
