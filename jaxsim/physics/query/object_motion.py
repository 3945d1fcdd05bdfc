"""Velocity and acceleration of bodies, geoms, sites and cameras, from the state alone.

MuJoCo's `mj_objectVelocity` and `mj_objectAcceleration`. All objects of a type are computed
together (`body/object_frame.py`), and one of them is selected; its id may be traced.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather
from jaxsim.cache import bounded_cache
from jaxsim.enums import ObjType
from jaxsim.math import Quat, Rot, Spatial, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float, Int
from jaxsim.physics.body import object_frame as frames
from jaxsim.physics.body.camlight import camlight
from jaxsim.physics.body.inertia import com_pos
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.body.rne import com_vel
from jaxsim.physics.public.arguments import object_id
from jaxsim.physics.public.wrapper import make_public
from jaxsim.physics.sensor.body_force import body_acceleration

# Size in the model, and kind for `name2id`, of each object type.
_OBJECT_KINDS: dict[ObjType, tuple[str, str]] = {
    ObjType.BODY: ("nbody", "body"),
    ObjType.XBODY: ("nbody", "body"),
    ObjType.GEOM: ("ngeom", "geom"),
    ObjType.SITE: ("nsite", "site"),
    ObjType.CAMERA: ("ncam", "camera"),
}


def object_velocity(
    m: Model,
    d: Data,
    objtype: ObjType | int | str,
    objid: Int[Array, ""] | int | str,
    flg_local: bool = False,
) -> Float[Array, "6"]:
    """Compute the velocity of an object's frame; corresponds to `mj_objectVelocity`.

    Args:
      m: the model.
      d: data, of which qpos, qvel and the poses of mocap bodies are used.
      objtype: "body" (the inertial frame), "xbody" (the body's own frame), "geom", "site" or
        "camera", or an `ObjType`; static.
      objid: id () or name of the object.
      flg_local: in the axes of the object instead of the world's; static.

    Returns:
      (6,): angular velocity [rad/s], linear velocity of the origin [m/s].

    Raises:
      ValueError: no such type, or no such object exists.
    """
    kind, objid = _resolve_object("object_velocity", m, objtype, objid)
    return _motion_function("object_velocity", kind, bool(flg_local))(m, d, objid)


def object_acceleration(
    m: Model,
    d: Data,
    objtype: ObjType | int | str,
    objid: Int[Array, ""] | int | str,
    flg_local: bool = False,
) -> Float[Array, "6"]:
    """Compute the acceleration of an object's frame at `d.qacc`; `mj_objectAcceleration`.

    As for an accelerometer, gravity is included: an object at rest has an upward acceleration.

    Args:
      m: the model.
      d: data, of which qpos, qvel, qacc and the poses of mocap bodies are used.
      objtype, objid, flg_local: see `object_velocity`.

    Returns:
      (6,): angular acceleration [rad/s^2], linear acceleration of the origin [m/s^2].

    Raises:
      ValueError: no such type, or no such object exists.
    """
    kind, objid = _resolve_object("object_acceleration", m, objtype, objid)
    return _motion_function("object_acceleration", kind, bool(flg_local))(m, d, objid)


def _resolve_object(
    function: str, m: Model, objtype: ObjType | int | str, objid: Array | int | str
) -> tuple[ObjType, Array | int]:
    """Return type and id of an object; its existence is checked unless the id is traced."""
    names = {kind.name.lower(): kind for kind in _OBJECT_KINDS}
    kind = names.get(objtype) if isinstance(objtype, str) else objtype
    if kind not in _OBJECT_KINDS:
        known = ", ".join(f"'{name}'" for name in names)
        raise ValueError(f"{function}: objtype: expected one of {known}, got {objtype!r}")
    kind = ObjType(kind)
    _, word = _OBJECT_KINDS[kind]
    return kind, object_id(function, m, "objid", objid, word)


@bounded_cache(256)
def _motion_function(function: str, kind: ObjType, local: bool) -> Callable[..., jax.Array]:
    """Return the public function for one type of object."""

    def core(m: Model, d: Data, objid: Array) -> Array:
        ids = np.arange(getattr(m, _OBJECT_KINDS[kind][0]))
        d, motions = _MOTION_FUNCTIONS[function](m, d, kind, ids)
        # Evaluate all objects of the kind and select the requested one.
        motion = gather(motions, objid)
        if local:
            R = gather(frames.object_mat(d, kind, ids), objid)
            motion = rotate_to_frame(R, motion)
        return motion.to_array()[0]

    core.__name__ = function
    return make_public(core)


def _velocities(m: Model, d: Data, kind: ObjType, ids: np.ndarray) -> tuple[Data, Spatial]:
    d = com_vel(m, camlight(m, com_pos(m, kinematics(m, d))))
    return d, frames.object_velocities(m, d, kind, ids)


def _accelerations(m: Model, d: Data, kind: ObjType, ids: np.ndarray) -> tuple[Data, Spatial]:
    if d.qacc is None:
        raise ValueError(
            "object_acceleration: this Data does not carry 'qacc'; keep it: "
            "make_data(m, keep=['qacc'])"
        )
    d = com_vel(m, camlight(m, com_pos(m, kinematics(m, d))))
    d = body_acceleration(m, d)
    return d, frames.object_accelerations(m, d, kind, ids)


_MOTION_FUNCTIONS = {"object_velocity": _velocities, "object_acceleration": _accelerations}


def rotate_to_frame(R: Rot, v: Spatial) -> Spatial:
    """Rotate a spatial vector from world axes to the axes of a frame."""
    return Spatial.of(R.T @ v.rot, R.T @ v.lin)


def local_to_global(
    m: Model,
    d: Data,
    pos: Float[Array, "3"],
    quat: Float[Array, "4"],
    body: Int[Array, ""],
) -> tuple[Float[Array, "3"], Float[Array, "3 3"]]:
    """Compute the pose in the world of a frame given in a body; `mj_local2Global`.

    MuJoCo's argument `sameframe`, a shortcut for frames equal to the body's own, does not exist.

    Args:
      m: model.
      d: data, of which qpos and the poses of mocap bodies are used.
      pos: position in the body's frame, (3,) [m].
      quat: orientation in the body's frame, (4,), norm 1.
      body: id or name of the body.

    Returns:
      xpos (3,) [m], xmat (3, 3).
    """
    d = kinematics(m, d)
    origin, turn = gather(d.xpos, body), gather(d.xquat, body)
    xpos = origin + turn.rotate(Vec(*(pos[k : k + 1] for k in range(3))))
    own = Quat(*(quat[k : k + 1] for k in range(4)))
    xmat = (turn * own).matrix()
    rows = [jnp.concatenate(row.parts) for row in xmat.rows]
    return jnp.concatenate(xpos.parts), jnp.stack(rows)
