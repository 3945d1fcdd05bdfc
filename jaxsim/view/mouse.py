"""Camera motion by the mouse; MuJoCo's `mjv_moveCamera`.

A mouse moves by (reldx, reldy), in heights of the window, to the right and downwards. The formulas
reproduce the observed behavior of MuJoCo's function; a test compares both.
"""

from enum import IntEnum

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.model.model import Model
from jaxsim.physics.public.arguments import check_model
from jaxsim.view.camera import Camera, CameraType
from jaxsim.view.frame import free_camera_axes

_DEGREES_PER_WINDOW = 180.0  # rotation by a mouse motion over one height of the window [degrees]
_MAX_ELEVATION = 89.0  # limit of the elevation, up and down [degrees]
NEAREST, FARTHEST = 0.01, 100.0  # distances, in extents of the model
ORTHOGRAPHIC_STEP = (
    0.15  # motion per meter of distance in an orthographic view, relative to its height
)


class Mouse(IntEnum):
    """Action of a mouse motion: MuJoCo's mjtMouse."""

    ROTATE_V = 1
    ROTATE_H = 2
    MOVE_V = 3
    MOVE_H = 4
    ZOOM = 5
    MOVE_V_REL = 6
    MOVE_H_REL = 7
    TURN_V = 8
    TURN_H = 9


def move_camera(
    m: Model, camera: Camera, action: Mouse | int, reldx: Array | float, reldy: Array | float
) -> Camera:
    """Return a camera after a mouse motion. Corresponds to `mjv_moveCamera` in MuJoCo.

      ROTATE_V, ROTATE_H    orbit around the point it looks at
      MOVE_V                with the image: sideways and along the vertical
      MOVE_H                with the image: sideways and along the horizontal
      ZOOM                  toward the point it looks at and away
      MOVE_V_REL            sideways and along its up direction
      MOVE_H_REL            sideways and forward
      TURN_V, TURN_H        rotate in place, up and down or sideways

    A tracking camera can be rotated and zoomed, a fixed one does not move.

    Args:
      m: the model, whose extent bounds the distance.
      camera: the camera.
      action: action of the motion. Known when traced.
      reldx, reldy: mouse motion, to the right and down, in heights of the window.

    Raises:
      ValueError: there is no such action.
    """
    check_model("move_camera", m)
    action = _known_camera_action(action)
    free = camera.type == CameraType.FREE
    if camera.type == CameraType.FIXED or not (free or action in ROTATIONS or action == Mouse.ZOOM):
        return camera
    x, y = (jnp.asarray(v, camera.lookat.dtype) for v in (reldx, reldy))
    if action in ROTATIONS:
        return _rotate_view(camera, x, y)
    if action == Mouse.ZOOM:
        return _zoom_distance(m, camera, y)
    if action in (Mouse.TURN_V, Mouse.TURN_H):
        # the position is fixed, and the look-at point moves
        zero = jnp.zeros_like(x)
        turned = _rotate_view(camera, *((zero, y) if action == Mouse.TURN_V else (x, zero)))
        move = free_camera_axes(camera)[0] - free_camera_axes(turned)[0]
        return turned.replace(lookat=camera.lookat - camera.distance * move)
    forward, up, right = free_camera_axes(camera)
    if action == Mouse.MOVE_V_REL:
        return camera.replace(lookat=camera.lookat + x * right + y * up)
    if action == Mouse.MOVE_H_REL:
        return camera.replace(lookat=camera.lookat + x * right + y * forward)
    scale = camera.distance * motion_per_window_height(camera.fovy, camera.orthographic)
    level = jnp.stack([-right[1], right[0], jnp.zeros_like(x)])
    vertical = jnp.array([0, 0, 1], right.dtype)
    way = vertical if action == Mouse.MOVE_V else level
    return camera.replace(lookat=camera.lookat + scale * (y * way - x * right))


ROTATIONS = (Mouse.ROTATE_V, Mouse.ROTATE_H)


def motion_per_window_height(fovy: Array, orthographic: bool) -> jax.Array:
    """Return the motion of objects that follow the mouse over one window height, per meter of
    distance."""
    return ORTHOGRAPHIC_STEP * fovy if orthographic else 2 * jnp.tan(0.5 * jnp.deg2rad(fovy))


def align_to_camera(vec: Array, forward: Array) -> jax.Array:
    """Return a vector rotated about the vertical as (0, 1) is to the horizontal part of a
    direction.

    Corresponds to `mjv_alignToCamera` in MuJoCo.

    Args:
      vec: to the right, forward and up, (3,).
      forward: direction of a camera in the world, (3,), not vertical.

    Returns:
      The vector in the world, (3,).
    """
    x, y = forward[:2] / jnp.linalg.norm(forward[:2])
    return jnp.stack([vec[0] * y + vec[1] * x, vec[1] * y - vec[0] * x, vec[2]])


def check_action(function: str, action: Mouse | int) -> Mouse:
    """Return an action of the mouse; ValueError if there is no such action."""
    if action not in tuple(Mouse):
        names = ", ".join(a.name for a in Mouse)
        raise ValueError(f"{function}: action: expected one of {names}, got {action!r}")
    return Mouse(action)


def _known_camera_action(action: Mouse | int) -> Mouse:
    return check_action("move_camera", action)


def _rotate_view(camera: Camera, x: Array, y: Array) -> Camera:
    """Return the camera with azimuth and elevation changed by a motion."""
    azimuth = camera.azimuth - _DEGREES_PER_WINDOW * x
    azimuth = azimuth - jnp.where(azimuth > 180, 360, 0) + jnp.where(azimuth < -180, 360, 0)
    elevation = jnp.clip(
        camera.elevation - _DEGREES_PER_WINDOW * y, -_MAX_ELEVATION, _MAX_ELEVATION
    )
    return camera.replace(azimuth=azimuth, elevation=elevation)


def _zoom_distance(m: Model, camera: Camera, y: Array) -> Camera:
    """Return the camera with its distance scaled exponentially by a motion."""
    extent = m.stat.extent
    distance = camera.distance - 9 * extent * y * jnp.log1p(camera.distance / (3 * extent))
    return camera.replace(distance=jnp.clip(distance, NEAREST * extent, FARTHEST * extent))
