"""Ray casts against one object; MuJoCo's `mj_rayMesh`, `mj_rayHfield` and `mj_rayFlex`.

For a shape without a model see `jaxsim.functions.ray_geom`.
"""

import operator
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.cache import bounded_cache
from jaxsim.enums import GeomType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.model.shaped import Float, Int
from jaxsim.physics.body.inertia import com_pos
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.flex.flex import flex as flex_stage
from jaxsim.physics.public.arguments import check_array, object_id
from jaxsim.physics.public.wrapper import to_items
from jaxsim.physics.query.ray import parse_rays, to_vectors
from jaxsim.physics.ray.cast import Rays, cast_at
from jaxsim.physics.ray.flex import Shown, SoftHits, cast_soft, visible_flex_items
from jaxsim.physics.unsupported import describe_object
from jaxsim.transforms.layout import batched
from jaxsim.transforms.program_cache import ProgramCache


class SurfaceHit(NamedTuple):
    """First intersection of a ray with a surface, or of each of several.

    Attributes:
      dist: distance, in lengths of the ray's vector; -1: no hit.
      normal: outward normal of the surface, in the world; zero without a hit.
    """

    dist: Float[Array, "*n"]
    normal: Float[Array, "*n 3"]


class FlexHit(NamedTuple):
    """First intersection of a ray with a flex, or of each of several.

    Attributes:
      dist: distance, in lengths of the ray's vector; -1: no hit.
      vertid: index of the nearest vertex, relative to the first of the flex; -1: none.
      normal: normal of the surface, in the world; for a face by its vertex order; zero without a
        hit.
    """

    dist: Float[Array, "*n"]
    vertid: Int[Array, "*n"]
    normal: Float[Array, "*n 3"]


def ray_mesh(
    m: Model,
    d: Data,
    geom: Int[Array, ""] | int | str,
    pnt: Float[Array, "*n 3"],
    vec: Float[Array, "*n 3"],
) -> SurfaceHit:
    """Find the first intersection of rays pnt + x vec, x >= 0, with a mesh; `mj_rayMesh`.

    Faces are hit from both sides, whether the geom is visible or not.

    Args:
      m: the model.
      d: data, of which qpos and the poses of mocap bodies are used.
      geom: id () or name of the geom. A traced id that is not a mesh is not hit.
      pnt: origin of a ray, (3,), or of each of several, (n, 3), in the world [m].
      vec: its direction, (3,) or (n, 3), in the world, of any length; zero hits nothing.

    Returns:
      A SurfaceHit: dist () or (n,), in lengths of `vec`, -1 for none; normal (3,) or (n, 3).

    Raises:
      ValueError: no such geom exists, or it is not a mesh; a shape or precision is wrong.
    """
    return _cast_at_geom("ray_mesh", GeomType.MESH, m, d, geom, pnt, vec)


def ray_hfield(
    m: Model,
    d: Data,
    geom: Int[Array, ""] | int | str,
    pnt: Float[Array, "*n 3"],
    vec: Float[Array, "*n 3"],
) -> SurfaceHit:
    """Find the first intersection of rays with a height field: surface, walls or base.

    Corresponds to `mj_rayHfield` in MuJoCo.

    Args:
      m, d, geom, pnt, vec: see `ray_mesh`.

    Returns:
      A SurfaceHit, see `ray_mesh`.

    Raises:
      ValueError: no such geom exists, or it is not a height field; a shape or precision is wrong.
    """
    return _cast_at_geom("ray_hfield", GeomType.HFIELD, m, d, geom, pnt, vec)


def ray_flex(
    m: Model,
    d: Data,
    flex: int | str,
    pnt: Float[Array, "*n 3"],
    vec: Float[Array, "*n 3"],
    flex_layer: int = 0,
    flg_vert: bool = False,
    flg_edge: bool = True,
    flg_face: bool = False,
    flg_skin: bool = True,
) -> FlexHit:
    """Find the first intersection of rays pnt + x vec, x >= 0, with a flex as it is rendered.

    Corresponds to `mj_rayFlex` in MuJoCo. Vertices are spheres of the flex's radius, edges capsules
    of that radius, faces have no thickness; the flags select which of them exist, as in MuJoCo's
    viewers (whose defaults these are). The skin consists of edges and faces, for solids the outer
    ones. With edges, vertices are not tested separately. As in MuJoCo, `jaxsim.support.ray` and
    rangefinders ignore flexes. The result is differentiable with the element that is hit held
    fixed.

    Args:
      m: the model.
      d: data, of which qpos and the poses of mocap bodies are used.
      flex: id or name of the flex; static, as are the layer and the flags.
      pnt: origin of a ray, (3,), or of each of several, (n, 3), in the world [m].
      vec: its direction, (3,) or (n, 3), in the world, of any length; zero hits nothing.
      flex_layer: for solids without a skin, the layer of elements, from outside, whose faces exist.
      flg_vert, flg_edge, flg_face, flg_skin: existing elements.

    Returns:
      A FlexHit: dist () or (n,), in lengths of `vec`, -1 for none; vertid () or (n,); normal (3,)
      or (n, 3).

    Raises:
      ValueError: no such flex exists; a shape or precision is wrong.
    """
    # Check the arguments and resolve names.
    pnt, vec, single = parse_rays("ray_flex", m, d, pnt, vec)
    if isinstance(flex, str):
        flex = name2id(m, "flex", flex)
    flex = operator.index(flex)
    if not 0 <= flex < m.nflex:
        raise ValueError(f"ray_flex: flex: there is no flex {flex}; the model has {m.nflex}")
    shown = Shown(int(flex_layer), *map(bool, (flg_vert, flg_edge, flg_face, flg_skin)))
    # One compiled program per flex and set of flags.
    hits = _flex_hits(flex, shown)(m, d, pnt, vec)
    return jax.tree.map(lambda x: x[0], hits) if single else hits


@bounded_cache(64)
def _flex_hits(flex: int, shown: Shown) -> Callable[..., FlexHit]:
    def rays(m: Model, d: Data, pnt: Array, vec: Array) -> FlexHit:
        hits = soft_hits(m, flex_stage(m, com_pos(m, kinematics(m, d))), flex, shown, pnt, vec)
        return FlexHit(hits.dist, hits.vert, jnp.stack(hits.normal.parts, axis=1))

    return ProgramCache(batched(rays), inline=True)  # as in query/ray.py


def soft_hits(m: Model, d: Data, flex: int, shown: Shown, pnt: Array, vec: Array) -> SoftHits:
    """Cast rays `[n, 3, *W]` against a flex, for data with its vertices."""
    first = int(m.flex_vertadr[flex])
    points = gather_static(d.flexvert_xpos, np.arange(first, first + int(m.flex_vertnum[flex])))
    rays = Rays(to_vectors(pnt), to_vectors(vec), unseen=())
    tables = visible_flex_items(m.structure, flex, shown)
    return cast_soft(
        points, gather_static(m.flex_radius, np.full(len(points.x), flex)), tables, rays
    )


def _cast_at_geom(
    name: str,
    type_: GeomType,
    m: Model,
    d: Data,
    geom: Array | int | str,
    pnt: Array,
    vec: Array,
) -> SurfaceHit:
    pnt, vec, single = parse_rays(name, m, d, pnt, vec)
    geom = resolve_geom(name, m, geom)
    if isinstance(geom, int) and m.geom_type[geom] != type_:
        kind = GeomType(m.geom_type[geom]).name.lower()
        raise ValueError(
            f"{name}: {describe_object(m, 'geom', geom)} is of type {kind}, expected "
            f"{type_.name.lower()}"
        )
    hits = _cast_function(type_)(m, d, pnt, vec, to_items(geom, m.qpos0.dtype))
    return jax.tree.map(lambda x: x[0], hits) if single else hits


@bounded_cache(64)
def _cast_function(type_: GeomType) -> Callable[..., SurfaceHit]:
    def rays(m: Model, d: Data, pnt: Array, vec: Array, geom: Array) -> SurfaceHit:
        d = kinematics(m, d)
        hits = cast_at(m, d, Rays(to_vectors(pnt), to_vectors(vec), unseen=()), geom, type_)
        return SurfaceHit(hits.dist, jnp.stack(hits.normal.parts, axis=1))

    return ProgramCache(batched(rays), inline=True)  # as in query/ray.py


def resolve_geom(name: str, m: Model, geom: Array | int | str) -> Array | int:
    """Return the id of a geom given by id or name, an int unless it is traced.

    Raises:
      ValueError: no such geom exists.
    """
    number: Array | int = object_id(name, m, "geom", geom)
    check_array(name, m, "geom", number)
    return number
