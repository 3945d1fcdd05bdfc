"""Ray casts that depend on the configuration alone; `mj_ray` and `mj_multiRay` in MuJoCo."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.cache import bounded_cache
from jaxsim.math import Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.model.shaped import Bool, Float, Int
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.public.arguments import (
    check_array,
    check_data,
    check_equal_counts,
    check_model,
    check_points,
)
from jaxsim.physics.public.wrapper import to_items
from jaxsim.physics.ray.cast import Rays, cast_rays
from jaxsim.physics.ray.surfaces import NUM_GEOM_GROUPS, filter_visible_geoms, unknown_sdf_geoms
from jaxsim.physics.unsupported import describe_object
from jaxsim.transforms.layout import batched
from jaxsim.transforms.program_cache import ProgramCache


class RayHit(NamedTuple):
    """First intersection of a ray, or of each of several.

    Attributes:
      dist: distance, in lengths of the ray's vector; -1: no hit.
      geomid: id of the geom that is hit; -1: none.
      normal: outward normal of the surface, in the world; zero without a hit.
    """

    dist: Float[Array, "*n"]
    geomid: Int[Array, "*n"]
    normal: Float[Array, "*n 3"]


def ray(
    m: Model,
    d: Data,
    pnt: Float[Array, "*n 3"],
    vec: Float[Array, "*n 3"],
    geomgroup: Sequence[bool] | Bool[Array, "6"] | None = None,
    flg_static: bool = True,
    bodyexclude: Int[Array, "*k"] | Sequence[int | str] | int | str = -1,
) -> RayHit:
    """Find the first visible geom on rays pnt + x vec, x >= 0; corresponds to `mj_ray`.

    The result depends on the configuration alone. It is differentiable with the geom that is hit,
    and the part of it, held fixed. Geoms that contain the origin are hit from inside; planes are
    hit from the front only, within their rendered rectangle. Geoms whose color (or material color)
    has alpha 0 are invisible. For many worlds use jax.vmap.

    Args:
      m: the model.
      d: data, of which qpos and the poses of mocap bodies are used.
      pnt: origin of a ray, (3,), or of each of several, (n, 3), in the world [m].
      vec: its direction, (3,), or their directions, (n, 3), in the world, of any length; a zero
        vector hits nothing. A single point or direction is broadcast.
      geomgroup: six booleans, the geom groups to include; None: all; static.
      flg_static: include geoms that are fixed to the world; static.
      bodyexclude: id () or name of a body whose geoms are excluded, or several (k,), such as all of
        a robot that carries the sensor; -1: none.

    Returns:
      A RayHit: dist () or (n,), in lengths of `vec` ([m] for a unit vector), or -1; geomid () or
      (n,), or -1; normal (3,) or (n, 3), the outward unit normal of the surface in the world, or
      zero.

    Raises:
      ValueError: a shape or precision is wrong, `pnt` and `vec` differ in length, `geomgroup` is
        not six static values, or a geom has an unknown signed distance.
    """
    return _check_and_cast("ray", m, d, pnt, vec, geomgroup, flg_static, bodyexclude)


def multi_ray(
    m: Model,
    d: Data,
    pnt: Float[Array, "3"],
    vec: Float[Array, "n 3"],
    geomgroup: Sequence[bool] | Bool[Array, "6"] | None = None,
    flg_static: bool = True,
    bodyexclude: Int[Array, "*k"] | Sequence[int | str] | int | str = -1,
    cutoff: Float[Array, ""] | float | None = None,
) -> RayHit:
    """Find the first visible geom on rays from one point; corresponds to `mj_multiRay`.

    This is `ray` with a cutoff. As in MuJoCo the cutoff applies to geoms, not to the end of rays: a
    geom whose bounding sphere (`geom_rbound` about its origin) is farther away is not hit, but the
    hit point on a nearer one may be farther. It does not apply to planes, nor to bodies without
    colliding geoms.

    Args:
      m, d: see `ray`.
      pnt: origin of the rays, (3,), in the world [m].
      vec: their directions, (n, 3), in the world, of any length.
      geomgroup, flg_static, bodyexclude: see `ray`.
      cutoff: largest distance of geoms from `pnt` [m], for any lengths of `vec`; None: no limit.

    Returns:
      A RayHit: dist (n,), in lengths of `vec`; geomid (n,); normal (n, 3).

    Raises:
      ValueError: see `ray`.
    """
    for name, value, rank in (("pnt", pnt, 1), ("vec", vec, 2)):
        if np.ndim(value) != rank:
            shape = "(3,)" if rank == 1 else "(n, 3)"
            raise ValueError(
                f"multi_ray: {name}: expected shape {shape}, got {np.shape(value)}; "
                "jaxsim.support.ray takes one or several of both"
            )
    return _check_and_cast("multi_ray", m, d, pnt, vec, geomgroup, flg_static, bodyexclude, cutoff)


def _check_and_cast(
    name: str,
    m: Model,
    d: Data,
    pnt: Array,
    vec: Array,
    geomgroup: Sequence[bool] | Array | None,
    flg_static: bool,
    bodyexclude: Array | Sequence[int | str] | int | str,
    cutoff: Array | float | None = None,
) -> RayHit:
    """Check the arguments and cast one or many rays."""
    pnt, vec, single = parse_rays(name, m, d, pnt, vec)
    bodyexclude = jnp.asarray(_body_ids(m, bodyexclude))
    if bodyexclude.ndim != 1:  # several bodies
        check_array(name, m, "bodyexclude", bodyexclude)
    elif not jnp.issubdtype(bodyexclude.dtype, np.integer):
        raise ValueError(f"{name}: bodyexclude: expected integers, got {bodyexclude.dtype}")
    groups = parse_geom_groups(name, geomgroup)
    check_visible_geoms(name, m, filter_visible_geoms(m.structure, groups, bool(flg_static)))
    others = [bodyexclude]
    if cutoff is not None:
        check_array(name, m, "cutoff", cutoff)
        others.append(jnp.asarray(cutoff, m.qpos0.dtype))
    others = [to_items(x, m.qpos0.dtype) for x in others]
    # One compiled program per set of static arguments.
    hits = _ray_program(groups, bool(flg_static))(m, d, pnt, vec, *others)
    return jax.tree.map(lambda x: x[0], hits) if single else hits


@bounded_cache(64)
def _ray_program(geomgroup: tuple[bool, ...] | None, flg_static: bool) -> Callable[..., RayHit]:
    """Return the compiled function that casts rays at the geoms of some groups."""

    def rays(m: Model, d: Data, pnt: Array, vec: Array, body: Array, cutoff=None) -> RayHit:
        d = kinematics(m, d)
        unseen = tuple(body[k : k + 1] for k in range(len(body)))
        beams = Rays(to_vectors(pnt), to_vectors(vec), unseen, cutoff)
        hits = cast_rays(m, d, beams, filter_visible_geoms(m.structure, geomgroup, flg_static))
        return RayHit(hits.dist, hits.geom, jnp.stack(hits.normal.parts, axis=1))

    # Compiled, because JAX recompiles loops and branches in each call of a bare function.
    return ProgramCache(batched(rays), inline=True)


def to_vectors(vectors: Array) -> Vec:
    """Return vectors `[n, 3, *W]` by components."""
    return Vec(*(vectors[:, k] for k in range(3)))


def parse_rays(name: str, m: Model, d: Data, pnt: Array, vec: Array) -> tuple[Array, Array, bool]:
    """Return points and directions (n, 3) of rays, and True if a single ray was given.

    Args:
      name: the caller, for messages.
      m, d: model and data, which are checked too.
      pnt, vec: (3,) or (n, 3).
    """
    check_model(name, m)
    check_data(name, m, d)
    for argument, value in (("pnt", pnt), ("vec", vec)):
        check_points(name, m, argument, value)
    check_equal_counts(name, pnt=pnt, vec=vec)
    pnt, vec = (jnp.asarray(x).astype(m.qpos0.dtype) for x in (pnt, vec))
    # Broadcast one point to all directions, and one direction to all points.
    shape = jnp.broadcast_shapes(pnt.shape, vec.shape)
    pnt, vec = (jnp.broadcast_to(x, shape).reshape(-1, 3) for x in (pnt, vec))
    return pnt, vec, len(shape) == 1


def check_visible_geoms(name: str, m: Model, geoms: np.ndarray) -> None:
    """Raise ValueError if one of the geoms does not support rays."""
    for geom in np.intersect1d(geoms, unknown_sdf_geoms(m.structure)):
        raise ValueError(
            f"{name}: {describe_object(m, 'geom', geom)}: the signed distance of its plugin is not "
            "known; register the plugin, or exclude the geom by its group"
        )


def parse_geom_groups(
    name: str, groups: Sequence[bool] | Array | None, argument: str = "geomgroup"
) -> tuple[bool, ...] | None:
    """Return which groups are included, as a static tuple; None: all.

    Raises:
      ValueError: they are not six static values.
    """
    if groups is None:
        return None
    if isinstance(groups, jax.core.Tracer) or np.shape(groups) != (NUM_GEOM_GROUPS,):
        raise ValueError(
            f"{name}: {argument}: expected None or {NUM_GEOM_GROUPS} static booleans, "
            f"got {groups!r}"
        )
    return tuple(bool(g) for g in np.asarray(groups))


def _body_ids(
    m: Model, bodies: Array | Sequence[int | str] | int | str
) -> Array | Sequence[int] | int:
    """Return ids of bodies given by id or name."""
    if isinstance(bodies, str):
        return name2id(m, "body", bodies)
    if isinstance(bodies, Sequence):
        return [name2id(m, "body", b) if isinstance(b, str) else b for b in bodies]
    return bodies
