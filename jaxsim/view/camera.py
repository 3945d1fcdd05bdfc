"""The abstract camera: from where somebody looks at a world; MuJoCo's `mjvCamera`.

A free camera looks at a point, a tracking one at the center of mass of a body's subtree; both from
a distance, an azimuth and an elevation. A fixed camera is one of the model. What a camera sees is
in `frame.py`, what a mouse does to it in `mouse.py`.
"""

import operator
from enum import IntEnum

import jax
import jax.numpy as jnp

from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.physics.arrays.node import node

FOVY = 45.0  # MuJoCo's visual/global: fovy, azimuth, elevation of a free camera [degrees]
AZIMUTH = 90.0
ELEVATION = -45.0
AWAY = 1.5  # distance of a free camera, in extents of the model


class CameraType(IntEnum):
    """MuJoCo's mjtCamera, without cameras that somebody else moves."""

    FREE = 0
    TRACKING = 1
    FIXED = 2


@node("type", "fixedcamid", "trackbodyid", "orthographic")
class Camera:
    """An abstract camera; a pytree, so that it can be moved, differentiated and batched.

    Attributes:
      lookat: the point that a free camera looks at, in the world, (3,) [m].
      distance: how far it is from there, or from what it tracks, () [m].
      azimuth: angle of its direction about the vertical, from the x axis, () [degrees].
      elevation: angle of its direction above the horizon, () [degrees].
      fovy: vertical field of view of a free or tracking camera, () [degrees]; the height of the
        picture [m] if it is orthographic. MuJoCo has it in the model (visual/global).
      type: which kind of camera this is (static).
      fixedcamid: the camera of the model that a fixed one is, else -1 (static).
      trackbodyid: the body that a tracking one looks at, else -1 (static).
      orthographic: whether a free or tracking one looks along parallel rays (static).
    """

    lookat: jax.Array
    distance: jax.Array
    azimuth: jax.Array
    elevation: jax.Array
    fovy: jax.Array
    type: CameraType = CameraType.FREE
    fixedcamid: int = -1
    trackbodyid: int = -1
    orthographic: bool = False

    @classmethod
    def tracking(cls, m: Model, body: int | str, **free) -> "Camera":
        """Return a camera that looks at the center of mass of a body's subtree.

        Args:
          m: the model.
          body: number or name of the body.
          free: what `default_free_camera` takes.

        Raises:
          ValueError: there is no such body.
        """
        return _with(
            default_free_camera(m, **free),
            type=CameraType.TRACKING,
            trackbodyid=_given(m, "body", body, m.nbody),
        )

    @classmethod
    def fixed(cls, m: Model, camera: int | str) -> "Camera":
        """Return a camera of the model, by number or name.

        Raises:
          ValueError: there is no such camera.
        """
        found = _given(m, "camera", camera, m.ncam)
        return _with(default_free_camera(m), type=CameraType.FIXED, fixedcamid=found)

    def replace(self, **changes) -> "Camera":
        """Return a changed copy."""
        return _with(self, **changes)


def default_free_camera(
    m: Model,
    *,
    azimuth: float = AZIMUTH,
    elevation: float = ELEVATION,
    fovy: float = FOVY,
    orthographic: bool = False,
) -> Camera:
    """Return a free camera that sees the whole model: at its center, one and a half extents away.

    What MuJoCo reads from visual/global of a model, which a Model does not have, are arguments with
    MuJoCo's default values.

    Args:
      m: the model; `m.stat` counts.
      azimuth, elevation: direction [degrees].
      fovy: vertical field of view [degrees], or height of the picture [m].
      orthographic: whether it looks along parallel rays.
    """
    dtype = m.qpos0.dtype
    return Camera(
        lookat=jnp.asarray(m.stat.center, dtype),
        distance=AWAY * jnp.asarray(m.stat.extent, dtype),
        azimuth=jnp.asarray(azimuth, dtype),
        elevation=jnp.asarray(elevation, dtype),
        fovy=jnp.asarray(fovy, dtype),
        orthographic=orthographic,
    )


def _given(m: Model, kind: str, which: int | str, number: int) -> int:
    """Return the id of an object by number or name."""
    if isinstance(which, str):
        return name2id(m, kind, which)
    which = operator.index(which)
    if not 0 <= which < number:
        raise ValueError(f"Camera: there is no {kind} {which}; the model has {number}")
    return which


def _with(camera: Camera, **changes) -> Camera:
    return Camera(**(vars(camera) | changes))
