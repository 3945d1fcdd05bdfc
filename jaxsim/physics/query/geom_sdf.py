"""Signed distance of points from a geom, and its gradient; `mjc_distance` and `mjc_gradient`.

These are the fields that the contact search of `sdf` geoms descends: shapes of plugins, octrees of
meshes, and primitives.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.cache import bounded_cache
from jaxsim.enums import GeomType
from jaxsim.math import Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float
from jaxsim.model.structure import Structure
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.collision.field.distance import distance_and_slope
from jaxsim.physics.collision.field.fields import fields_of
from jaxsim.physics.collision.field.kinds import NO_SDF, kind_of
from jaxsim.physics.public.arguments import check_data, check_model, check_points
from jaxsim.physics.query.ray import to_vectors
from jaxsim.physics.query.ray_of_geom import resolve_geom
from jaxsim.physics.unsupported import describe_object
from jaxsim.transforms.layout import batched
from jaxsim.transforms.program_cache import ProgramCache


class GeomSdf(NamedTuple):
    """Signed distance of a point from a geom, or of each of several.

    Attributes:
      distance: [m], negative inside.
      gradient: direction of increase, in the world; see `geom_sdf`.
    """

    distance: Float[Array, "*n"]
    gradient: Float[Array, "*n 3"]


def geom_sdf(m: Model, d: Data, geom: int | str, point: Float[Array, "*n 3"]) -> GeomSdf:
    """Compute the signed distance of points from a geom, and its gradient.

    An `sdf` geom uses the distance of its plugin's shape, or of its mesh by the octree; a plane,
    sphere, capsule, ellipsoid, cylinder or box that of the primitive. It is exact for some shapes
    and near the surface for others, as MuJoCo's `mjc_distance`. The gradient is `mjc_gradient`,
    which the contact search follows. It is the derivative of the distance except for two shapes:
    for an ellipsoid it has unit length; inside a box it blends from the direction of the center to
    the face normals. The exact derivative is `jax.grad` of the distance.

    Args:
      m: the model.
      d: data, of which qpos and the poses of mocap bodies are used.
      geom: id or name of the geom; static.
      point: (3,), or several (n, 3), in the world [m].

    Returns:
      A GeomSdf: distance () or (n,) [m], gradient (3,) or (n, 3), in the world.

    Raises:
      ValueError: no such geom exists, it has no signed distance (a height field, a mesh that is not
        of type "sdf", an unknown plugin), or a shape or precision is wrong.
    """
    check_model("geom_sdf", m)
    check_data("geom_sdf", m, d)
    check_points("geom_sdf", m, "point", point)
    number = resolve_geom("geom_sdf", m, geom)
    if not isinstance(number, int):
        raise ValueError("geom_sdf: geom: expected a number or name that is known when traced")
    if kind_of(m.structure, number) == NO_SDF:
        raise ValueError(
            f"geom_sdf: {describe_object(m, 'geom', number)}: {_reason(m.structure, number)}"
        )
    point = jnp.asarray(point).astype(m.qpos0.dtype)
    found = _sdf_function(number)(m, d, point.reshape(-1, 3))
    return found if point.ndim == 2 else jax.tree.map(lambda x: x[0], found)


def _reason(s: Structure, geom: int) -> str:
    kind = GeomType(s.geom_type[geom])
    if kind == GeomType.SDF:
        return "the signed distance of its plugin is not known"
    remedy = '; its type would have to be "sdf"' if kind == GeomType.MESH else ""
    return f"a geom of type {kind.name.lower()} has no signed distance{remedy}"


@bounded_cache(64)
def _sdf_function(geom: int) -> Callable[..., GeomSdf]:
    """Return a compiled function for the signed distance of one geom, of points `[n, 3, *W]`."""

    def sdf(m: Model, d: Data, point: Array) -> GeomSdf:
        s, d = m.structure, kinematics(m, d)
        kind, one = kind_of(s, geom), np.array([geom])
        # The points in the frame of the geom.
        turn = gather_static(d.geom_xmat, one)
        at = turn.T @ (to_vectors(point) - gather_static(d.geom_xpos, one))
        # Only this geom has a signed distance; all others are NO_SDF.
        names = [kind if k == geom else NO_SDF for k in range(s.ngeom)]
        size = Vec(*(m.geom_size[:, k][geom : geom + 1] for k in range(3)))
        ids = jnp.broadcast_to(jnp.int32(geom), (1, *at.x.shape[1:]))
        solid = fields_of(m, names, (kind,)).solid_of(ids, size, (kind,))
        # Value and gradient, rotated back to the world.
        value, slope = distance_and_slope(at.map(lambda x: x[:, None]), solid)
        gradient = turn @ slope.map(lambda x: x[:, 0])
        return GeomSdf(value[:, 0], jnp.stack(gradient.parts, axis=1))

    return ProgramCache(batched(sdf), inline=True)
