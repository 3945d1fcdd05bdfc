"""The abstract camera from which a world is viewed; MuJoCo's `mjvCamera`.

A free camera looks at a point, a tracking one at the center of mass of a body's subtree; both from
a distance, an azimuth and an elevation. A fixed camera is one of the model. `frame.py` computes
what a camera sees, `mouse.py` moves it with a mouse.
"""

import operator
from enum import IntEnum

import jax
import jax.numpy as jnp

from jaxsim.arrays.node import node
from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.model.shaped import Float

DEFAULT_FOVY = 45.0  # MuJoCo's visual/global: fovy, azimuth, elevation of a free camera [degrees]
DEFAULT_AZIMUTH = 90.0
DEFAULT_ELEVATION = -45.0
_FREE_CAMERA_DISTANCE = 1.5  # distance of a free camera, in extents of the model


class CameraType(IntEnum):
    """MuJoCo's mjtCamera, without user-defined cameras."""

    FREE = 0
    TRACKING = 1
    FIXED = 2


@node("type", "fixedcamid", "trackbodyid", "orthographic")
class Camera:
    """An abstract camera; a pytree, so that it can be moved, differentiated and batched.

    Attributes:
      lookat: the point that a free camera looks at, in the world, (3,) [m].
      distance: distance from there, or from the tracked point, () [m].
      azimuth: angle of its direction about the vertical, from the x axis, () [degrees].
      elevation: angle of its direction above the horizon, () [degrees].
      fovy: vertical field of view of a free or tracking camera, () [degrees]; the height of the
        picture [m] if it is orthographic. MuJoCo has it in the model (visual/global).
      type: kind of the camera (static).
      fixedcamid: id of the model's camera for a fixed one, else -1 (static).
      trackbodyid: id of the tracked body for a tracking one, else -1 (static).
      orthographic: whether a free or tracking one is orthographic (static).
    """

    lookat: Float[jax.Array, "3"]
    distance: Float[jax.Array, ""]
    azimuth: Float[jax.Array, ""]
    elevation: Float[jax.Array, ""]
    fovy: Float[jax.Array, ""]
    type: CameraType = CameraType.FREE
    fixedcamid: int = -1
    trackbodyid: int = -1
    orthographic: bool = False

    @classmethod
    def tracking(cls, m: Model, body: int | str, **free) -> "Camera":
        """Return a camera that looks at the center of mass of a body's subtree.

        Args:
          m: the model.
          body: id or name of the body.
          free: arguments of `default_free_camera`.

        Raises:
          ValueError: there is no such body.
        """
        return _with_camera(
            default_free_camera(m, **free),
            type=CameraType.TRACKING,
            trackbodyid=_object_id(m, "body", body, m.nbody),
        )

    @classmethod
    def fixed(cls, m: Model, camera: int | str) -> "Camera":
        """Return a camera of the model, by id or name.

        Raises:
          ValueError: there is no such camera.
        """
        found = _object_id(m, "camera", camera, m.ncam)
        return _with_camera(default_free_camera(m), type=CameraType.FIXED, fixedcamid=found)

    def replace(self, **changes) -> "Camera":
        """Return a copy with changed fields."""
        return _with_camera(self, **changes)


def default_free_camera(
    m: Model,
    *,
    azimuth: float = DEFAULT_AZIMUTH,
    elevation: float = DEFAULT_ELEVATION,
    fovy: float = DEFAULT_FOVY,
    orthographic: bool = False,
) -> Camera:
    """Return a free camera that sees the whole model: at its center, one and a half extents away.

    Corresponds to `mjv_defaultFreeCamera` in MuJoCo. Settings of visual/global, which a Model does
    not store, are arguments with MuJoCo's defaults.

    Args:
      m: the model; `m.stat` is used.
      azimuth, elevation: direction [degrees].
      fovy: vertical field of view [degrees], or height of the image [m].
      orthographic: whether the projection is orthographic.
    """
    dtype = m.qpos0.dtype
    return Camera(
        lookat=jnp.asarray(m.stat.center, dtype),
        distance=_FREE_CAMERA_DISTANCE * jnp.asarray(m.stat.extent, dtype),
        azimuth=jnp.asarray(azimuth, dtype),
        elevation=jnp.asarray(elevation, dtype),
        fovy=jnp.asarray(fovy, dtype),
        orthographic=orthographic,
    )


def _object_id(m: Model, kind: str, which: int | str, number: int) -> int:
    """Return the id of an object given by id or name."""
    if isinstance(which, str):
        return name2id(m, kind, which)
    which = operator.index(which)
    if not 0 <= which < number:
        raise ValueError(f"Camera: there is no {kind} {which}; the model has {number}")
    return which


def _with_camera(camera: Camera, **changes) -> Camera:
    return Camera(**(vars(camera) | changes))
