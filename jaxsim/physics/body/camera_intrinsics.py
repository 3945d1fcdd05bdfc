"""Camera intrinsics, in pixels.

MuJoCo's documentation, XML reference: body/camera, resolution, fovy, sensorsize and focal. A point
(x, y, z) in the frame of a camera, which looks along -z, is projected to

    (cx - fx x / z, cy + fy y / z)

relative to the upper left corner of the image.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.gather import column, gather_static
from jaxsim.math import safe_divide
from jaxsim.model.model import Model


class Lens(NamedTuple):
    """Intrinsics of some cameras, `[n, *W]` each [pixels].

    Attributes:
      width, height: image size.
      fx, fy: focal lengths.
      cx, cy: principal point.
    """

    width: jax.Array
    height: jax.Array
    fx: jax.Array
    fy: jax.Array
    cx: jax.Array
    cy: jax.Array


def lens(m: Model, cam: np.ndarray) -> Lens:
    """Return intrinsics of perspective cameras, from the sensor size if set, else from fovy."""
    # Focal length in pixels from the sensor size, or from the vertical field of view.
    resolution = m.cam_resolution[cam].astype(m.cam_fovy.dtype)
    width, height = (jnp.asarray(column(resolution[:, k], m.cam_fovy)) for k in range(2))
    size, given = gather_static(m.cam_sensorsize, cam), gather_static(m.cam_intrinsic, cam)
    sized = (size[:, 0] != 0) & (size[:, 1] != 0)
    angle = jnp.deg2rad(gather_static(m.cam_fovy, cam))
    by_angle = 0.5 * height / jnp.tan(0.5 * angle)
    fx, fy, cx, cy = (
        safe_divide(given[:, k], size[:, k % 2]) * (width, height)[k % 2] for k in range(4)
    )
    return Lens(
        width,
        height,
        fx=jnp.where(sized, fx, by_angle),
        fy=jnp.where(sized, fy, by_angle),
        cx=jnp.where(sized, cx, 0.5 * width),
        cy=jnp.where(sized, cy, 0.5 * height),
    )
