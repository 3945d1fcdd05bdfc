"""Projection of a camera: its frame in the world, its frustum, and the ray of a pixel.

MuJoCo's `mjv_cameraFrame` and `mjv_cameraFrustum`. A pixel is given as in `mjv_select`, by x and y
from 0 to 1, from the left and from the bottom.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.cache import bounded_cache
from jaxsim.enums import Projection
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.camlight import camlight
from jaxsim.physics.body.inertia import com_pos
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.public.arguments import check_data, check_model
from jaxsim.transforms.layout import batched
from jaxsim.transforms.program_cache import ProgramCache
from jaxsim.view.camera import Camera, CameraType


class CameraFrame(NamedTuple):
    """The frame of a camera in the world, (3,) each: position [m], and unit vectors."""

    pos: jax.Array
    forward: jax.Array
    up: jax.Array
    right: jax.Array


class Frustum(NamedTuple):
    """The image plane of a camera at unit distance; in meters if it is orthographic.

    Attributes:
      bottom, top: its edges, relative to the optical axis.
      center: horizontal offset of its center from the optical axis.
      width: its width if given by the camera's lens; 0: determined by the window.
    """

    bottom: jax.Array
    top: jax.Array
    center: jax.Array
    width: jax.Array

    @property
    def height(self) -> jax.Array:
        """Return its height: MuJoCo's `mjv_frustumHeight`."""
        return self.top - self.bottom


def camera_frame(m: Model, d: Data, camera: Camera) -> CameraFrame:
    """Return the position and the axes of a camera. Corresponds to `mjv_cameraFrame` in MuJoCo.

    Args:
      m: the model.
      d: data, of which qpos (and the poses of mocap bodies) are used.
      camera: the camera.
    """
    check_model("camera_frame", m)
    check_data("camera_frame", m, d)
    if camera.type == CameraType.FIXED:
        pos, mat = _model_camera(camera.fixedcamid)(m, d)
        return CameraFrame(pos, -mat[:, 2], mat[:, 1], mat[:, 0])
    at = camera.lookat
    if camera.type == CameraType.TRACKING:
        at = _tracked_center(camera.trackbodyid)(m, d)
    forward, up, right = free_camera_axes(camera)
    return CameraFrame(at - camera.distance * forward, forward, up, right)


def free_camera_axes(camera: Camera) -> tuple[Array, Array, Array]:
    """Return forward, up and right of a free camera, (3,) each."""
    yaw, rise = jnp.deg2rad(camera.azimuth), jnp.deg2rad(camera.elevation)
    ca, sa, ce, se = jnp.cos(yaw), jnp.sin(yaw), jnp.cos(rise), jnp.sin(rise)
    forward = jnp.stack([ce * ca, ce * sa, se])
    up = jnp.stack([-se * ca, -se * sa, ce])
    right = jnp.stack([sa, -ca, jnp.zeros_like(sa)])
    return forward, up, right


def camera_frustum(m: Model, camera: Camera) -> Frustum:
    """Return the image plane of a camera. Corresponds to `mjv_cameraFrustum` in MuJoCo.

    For a camera of the model it follows from its lens if the sensor has a size (MuJoCo's
    documentation, body/camera/sensorsize), else from its field of view.
    """
    check_model("camera_frustum", m)
    k = camera.fixedcamid
    fixed = camera.type == CameraType.FIXED
    fovy = m.cam_fovy[k] if fixed else camera.fovy
    half = 0.5 * (fovy if is_orthographic(m, camera) else 2 * jnp.tan(0.5 * jnp.deg2rad(fovy)))
    zero = jnp.zeros_like(half)
    frustum = Frustum(-half, half, zero, zero)
    if not fixed:
        return frustum
    (width, height), (fx, fy, cx, cy) = m.cam_sensorsize[k], m.cam_intrinsic[k]
    sized = (width > 0) & (height > 0)
    fx, fy = (jnp.where(sized, f, 1) for f in (fx, fy))
    by_lens = Frustum(-(0.5 * height + cy) / fy, (0.5 * height - cy) / fy, cx / fx, width / fx)
    return jax.tree.map(lambda lens, angle: jnp.where(sized, lens, angle), by_lens, frustum)


def pixel_ray(
    m: Model, d: Data, camera: Camera, aspect: Array | float, x: Array | float, y: Array | float
) -> tuple[jax.Array, jax.Array]:
    """Return the ray of a pixel.

    Args:
      m, d: as for `camera_frame`.
      camera: the camera.
      aspect: width of the window divided by its height; ignored for a camera with a sensor size.
      x, y: the pixel, from 0 to 1, from the left and from the bottom.

    Returns:
      The origin of the ray (3,) [m], and its direction (3,), of length 1 along the optical axis.
    """
    frame, frustum = camera_frame(m, d, camera), camera_frustum(m, camera)
    width = jnp.where(frustum.width > 0, frustum.width, aspect * frustum.height)
    rightward = frame.right * (frustum.center + (x - 0.5) * width)
    above = frame.up * (frustum.bottom + y * frustum.height)
    if is_orthographic(m, camera):
        return frame.pos + rightward + above, frame.forward
    return frame.pos, frame.forward + rightward + above


def is_orthographic(m: Model, camera: Camera) -> bool:
    """Return whether the projection of a camera is orthographic."""
    if camera.type == CameraType.FIXED:
        return m.cam_projection[camera.fixedcamid] == Projection.ORTHOGRAPHIC
    return camera.orthographic


@bounded_cache(64)
def _model_camera(camera: int) -> Callable[[Model, Data], tuple[Array, Array]]:
    """Return the position (3,) and orientation (3, 3) of a camera of the model."""

    def pose(m: Model, d: Data) -> tuple[Array, Array]:
        d = camlight(m, com_pos(m, kinematics(m, d)))
        pos, mat = (gather_static(x, np.array([camera])) for x in (d.cam_xpos, d.cam_xmat))
        rows = [jnp.stack([x[0] for x in row.parts]) for row in mat.rows]
        return jnp.stack([x[0] for x in pos.parts]), jnp.stack(rows)

    return ProgramCache(batched(pose), inline=True)


@bounded_cache(64)
def _tracked_center(body: int) -> Callable[[Model, Data], Array]:
    """Return the center of mass (3,) of a body's subtree."""

    def center(m: Model, d: Data) -> Array:
        found = gather_static(com_pos(m, kinematics(m, d)).subtree_com, np.array([body]))
        return jnp.stack([x[0] for x in found.parts])

    return ProgramCache(batched(center), inline=True)
