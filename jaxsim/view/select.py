"""What is under a pixel; MuJoCo's `mjv_select`, by the rays of the physics."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.query.ray import ray
from jaxsim.view.body import in_body
from jaxsim.view.camera import Camera
from jaxsim.view.frame import pixel_ray

SHOWN = (True, True, True, False, False, False)  # groups that MuJoCo's viewers show at first
NOTHING = -1


class Selection(NamedTuple):
    """What is under a pixel.

    Attributes:
      body: number of the body, 0 for the world; -1: nothing is there.
      geom: number of the geom, or -1.
      flex, skin: -1: rays do not meet these.
      point: where the ray of the pixel meets it, in the world, (3,) [m]; zero for nothing.
      localpos: the same in the frame of the body, for `init_perturb`.
    """

    body: jax.Array
    geom: jax.Array
    flex: jax.Array
    skin: jax.Array
    point: jax.Array
    localpos: jax.Array


def select(
    m: Model,
    d: Data,
    camera: Camera,
    aspect: Array | float,
    relx: Array | float,
    rely: Array | float,
    geomgroup: Sequence[bool] = SHOWN,
    flg_static: bool = True,
) -> Selection:
    """The geom under a pixel, its body, and the point there.

    Args:
      m: the model.
      d: data, of which qpos (and the poses of mocap bodies) count.
      camera: where one looks from.
      aspect: width of the window by its height.
      relx, rely: the pixel, from 0 to 1, from the left and from below.
      geomgroup: six numbers, which groups of geoms are shown. Known when traced.
      flg_static: whether geoms that are fixed to the world are shown. Known when traced.

    Raises:
      ValueError: as for `jaxsim.ray`.
    """
    begin, way = pixel_ray(m, d, camera, aspect, relx, rely)
    hit = ray(m, d, begin, way, tuple(geomgroup), flg_static)
    met = hit.geomid >= 0
    bodies = jnp.asarray(m.geom_bodyid.astype(np.int32)) if m.ngeom else jnp.zeros(1, jnp.int32)
    body = bodies[jnp.maximum(hit.geomid, 0)]
    point = begin + jnp.where(met, hit.dist, 0) * way
    nothing = jnp.full_like(body, NOTHING)
    return Selection(
        body=jnp.where(met, body, nothing),
        geom=hit.geomid,
        flex=nothing,
        skin=nothing,
        point=jnp.where(met, point, 0),
        localpos=jnp.where(met, in_body(m, d, body, point), 0),
    )
