"""Distance of two geoms from the configuration alone; MuJoCo's `mj_geomDistance`."""

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather
from jaxsim.math import Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float, Int
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.collision.distance import (
    all_query_types,
    distances,
    nearest_segment,
    unsupported_reason,
    unsupported_reason_of_geom,
)
from jaxsim.physics.collision.shape import PlacedGeoms
from jaxsim.physics.public.arguments import check_model, object_id
from jaxsim.physics.public.wrapper import make_public


def geom_distance(
    m: Model,
    d: Data,
    geom1: Int[Array, ""] | int | str,
    geom2: Int[Array, ""] | int | str,
    distmax: Float[Array, ""] | float,
) -> tuple[Float[Array, ""], Float[Array, "6"]]:
    """Compute the smallest signed distance of two geoms, and the nearest points.

    The distance depends on the configuration alone; contact filters do not apply. Corresponds to
    `mj_geomDistance` in MuJoCo.

    Args:
      m: the model.
      d: data, of which qpos and the poses of mocap bodies are used.
      geom1, geom2: ids or names of the geoms.
      distmax: largest distance to detect [m].

    Returns:
      dist (), negative in penetration [m]; `distmax` if the geoms are no nearer. fromto (6,): the
      points of the first and of the second geom, in world coordinates [m]; zeros if the distance
      exceeds `distmax`.

    Raises:
      ValueError: a geom does not exist, or is an `sdf` geom whose signed distance is not known.
    """
    check_model("geom_distance", m)
    return _geom_distance(m, d, *_resolve_geoms(m, geom1, geom2), distmax)


def _measure(m: Model, d: Data, geom1: Array, geom2: Array, distmax: Array) -> tuple[Array, Array]:
    """Compute distance `[*W]` and segment `[6, *W]` of two geoms, ids and limit `[1, *W]`."""
    d = kinematics(m, d)
    size = Vec(*(m.geom_size[:, k] for k in range(3)))
    a, b = (
        PlacedGeoms(gather(d.geom_xpos, g), gather(d.geom_xmat, g), gather(size, g), g)
        for g in (geom1, geom2)
    )
    found = distances(m, a, b, distmax, all_query_types(m))
    # Beyond `distmax` the distance is the limit and the segment zero.
    near = found.dist < distmax
    ends = (x for end in nearest_segment(found) for x in end.parts)
    fromto = jnp.stack([jnp.where(near, x, 0)[0] for x in ends])
    return jnp.where(near, found.dist, distmax)[0], fromto


_geom_distance = make_public(_measure, name="geom_distance")


def _resolve_geoms(m: Model, *geoms: Array | int | str) -> list[Array | int]:
    """Return ids of geoms given by id or name, whose distance is supported.

    Raises:
      ValueError: no such geom exists, or the distance is not supported. For ids that are traced
        every geom of the model must be supported.
    """
    ids = [object_id("geom_distance", m, f"geom{k}", geom) for k, geom in enumerate(geoms, start=1)]
    known = [None if isinstance(g, jax.core.Tracer) else g for g in ids]
    first, second = known
    if first is None or second is None:
        lacks = (unsupported_reason_of_geom(m, geom) for geom in range(m.ngeom))
        lacking = next(filter(None, lacks), None)
        remedy = "; give both geoms by name, or by numbers that are known when it is traced"
    else:
        lacking, remedy = unsupported_reason(m, first, second), ""
    if lacking:
        raise ValueError(f"geom_distance: {lacking} is not supported{remedy}")
    return ids
