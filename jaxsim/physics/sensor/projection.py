"""Where a camera sees a site; MuJoCo's documentation, XML reference: sensor/camprojection."""

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import MINVAL
from jaxsim.math import safe_divide
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import column, take
from jaxsim.physics.sensor.group import SensorGroup


def camera_projection(m: Model, d: Data, g: SensorGroup) -> tuple[Array, Array]:
    """Pixels of sites in the images of cameras, from the left and from the top.

    With the site at (x, y, z) in the frame of the camera, which looks along -z,

        u = width / 2 - fx x / z,    v = height / 2 + fy y / z .

    A site behind the camera, or beside the image, is projected all the same.
    """
    resolution = m.cam_resolution[g.refid].astype(m.cam_fovy.dtype)
    width, height = (column(resolution[:, k], m.cam_fovy) for k in range(2))
    p = take(d.cam_xmat, g.refid).T @ (take(d.site_xpos, g.objid) - take(d.cam_xpos, g.refid))
    least = jnp.where(p.z < 0, -MINVAL, MINVAL)
    depth = jnp.where(jnp.abs(p.z) < MINVAL, least, p.z)
    fx, fy = _focal(m, g, width, height)
    return 0.5 * width - fx * p.x / depth, 0.5 * height + fy * p.y / depth


def _focal(m: Model, g: SensorGroup, width: np.ndarray, height: np.ndarray) -> tuple[Array, Array]:
    """Focal lengths in pixels: of a lens where the sensor has a size, else by the angle of view."""
    size, lens = take(m.cam_sensorsize, g.refid), take(m.cam_intrinsic, g.refid)
    angle = jnp.deg2rad(take(m.cam_fovy, g.refid))
    by_angle = 0.5 * height / jnp.tan(0.5 * angle)
    sized = (size[:, 0] != 0) & (size[:, 1] != 0)
    fx, fy = (safe_divide(lens[:, k], size[:, k]) for k in range(2))
    return jnp.where(sized, fx * width, by_angle), jnp.where(sized, fy * height, by_angle)
