"""Frames of model objects: pose, velocity, acceleration of bodies, geoms, sites and cameras.

An object of type BODY is the body's inertial frame, XBODY its own frame. All results are in world
axes.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jaxsim.arrays.gather import gather_static
from jaxsim.enums import ObjType
from jaxsim.math import Quat, Rot, Spatial, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model


class _Frame(NamedTuple):
    """Accessors of the frames of objects of one type, by their ids `[n]`.

    Attributes:
      body: m, ids -> bodies that the objects are fixed to.
      pos: d, ids -> positions.
      mat: d, ids -> orientations as matrices.
      quat: m, d, ids -> orientations as quaternions.
    """

    body: Callable
    pos: Callable
    mat: Callable
    quat: Callable


def _attached_frame(bodyid: str, pos: str, mat: str, quat: str) -> _Frame:
    """Return the accessors for objects in bodies, from the names of their fields."""
    return _Frame(
        body=lambda m, ids: getattr(m, bodyid)[ids],
        pos=lambda d, ids: gather_static(getattr(d, pos), ids),
        mat=lambda d, ids: gather_static(getattr(d, mat), ids),
        quat=lambda m, d, ids: (
            gather_static(d.xquat, getattr(m, bodyid)[ids]) * gather_static(getattr(m, quat), ids)
        ),
    )


_OBJECT_FRAMES = {
    ObjType.BODY: _Frame(
        body=lambda m, ids: ids,
        pos=lambda d, ids: gather_static(d.xipos, ids),
        mat=lambda d, ids: gather_static(d.ximat, ids),
        quat=lambda m, d, ids: gather_static(d.xquat, ids) * gather_static(m.body_iquat, ids),
    ),
    ObjType.XBODY: _Frame(
        body=lambda m, ids: ids,
        pos=lambda d, ids: gather_static(d.xpos, ids),
        mat=lambda d, ids: gather_static(d.xmat, ids),
        quat=lambda m, d, ids: gather_static(d.xquat, ids),
    ),
    ObjType.GEOM: _attached_frame("geom_bodyid", "geom_xpos", "geom_xmat", "geom_quat"),
    ObjType.SITE: _attached_frame("site_bodyid", "site_xpos", "site_xmat", "site_quat"),
    ObjType.CAMERA: _attached_frame("cam_bodyid", "cam_xpos", "cam_xmat", "cam_quat"),
}


def object_body(m: Model, kind: ObjType, ids: np.ndarray) -> np.ndarray:
    """Return the bodies that objects are fixed to, ids `[n]`."""
    return _OBJECT_FRAMES[kind].body(m, ids)


def object_pos(d: Data, kind: ObjType, ids: np.ndarray) -> Vec:
    """Return the positions of objects [m], three components `[n, *W]`."""
    return _OBJECT_FRAMES[kind].pos(d, ids)


def object_mat(d: Data, kind: ObjType, ids: np.ndarray) -> Rot:
    """Return the orientations of objects, matrices of nine entries `[n, *W]`."""
    return _OBJECT_FRAMES[kind].mat(d, ids)


def object_quat(m: Model, d: Data, kind: ObjType, ids: np.ndarray) -> Quat:
    """Return the orientations of objects, quaternions of four components `[n, *W]`."""
    return _OBJECT_FRAMES[kind].quat(m, d, ids)


def object_velocities(m: Model, d: Data, kind: ObjType, ids: np.ndarray) -> Spatial:
    """Return angular velocity [rad/s], and velocity of the objects' origins [m/s]."""
    # `cvel` is the velocity of the body at the center of mass of its tree: move it to the object.
    body = object_body(m, kind, ids)
    v = gather_static(d.cvel, body)
    return Spatial.of(v.rot, v.at(_arm(m, d, kind, ids, body)))


def object_accelerations(m: Model, d: Data, kind: ObjType, ids: np.ndarray) -> Spatial:
    """Return angular acceleration [rad/s^2], and acceleration of the objects' origins [m/s^2].

    It is what an accelerometer measures: gravity is included as an upward acceleration.

        linear = a + alpha x r + omega x v

    with a that of `cacc`, at the center of mass of the tree, r the vector from there to the origin,
    and v the velocity of the origin.
    """
    body = object_body(m, kind, ids)
    arm = _arm(m, d, kind, ids, body)
    a, v = gather_static(d.cacc, body), gather_static(d.cvel, body)
    return Spatial.of(a.rot, a.at(arm) + v.rot.cross(v.at(arm)))


def _arm(m: Model, d: Data, kind: ObjType, ids: np.ndarray, body: np.ndarray) -> Vec:
    """Return the vectors from the centers of mass of the objects' trees to the objects [m]."""
    return object_pos(d, kind, ids) - gather_static(d.subtree_com, m.body_rootid[body])
