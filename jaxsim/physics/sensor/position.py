"""Sensors of the configuration; MuJoCo's documentation, XML reference: sensor.

Each function returns the outputs of a group of sensors, one array per entry of
`SensorGroup.addresses`.
"""

from collections.abc import Callable

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.arrays.kind_dispatch import compute_by_kind
from jaxsim.enums import MINVAL, SensorType
from jaxsim.math import Quat, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.camera_intrinsics import lens
from jaxsim.physics.body.object_frame import object_mat, object_pos, object_quat
from jaxsim.physics.body.site_volume import VOLUME_TYPES, points_inside_site
from jaxsim.physics.passive.energy import potential_energy
from jaxsim.physics.sensor.distance import distance_sensors
from jaxsim.physics.sensor.group import DISTANCE_SENSORS, SensorGroup
from jaxsim.physics.sensor.limit_state import joint_limit, tendon_limit
from jaxsim.physics.sensor.rangefinder import read_rangefinders


def _magnetometer(m: Model, d: Data, g: SensorGroup) -> tuple[Array, Array, Array]:
    R = object_mat(d, g.objtype, g.objid)
    return (R.T @ m.opt.magnetic).parts


def _camprojection(m: Model, d: Data, g: SensorGroup) -> tuple[Array, Array]:
    """Return pixel coordinates of sites in camera images, from the left and from the top.

    As in MuJoCo the principal point is the image center. Sites behind the camera, or outside of the
    image, are projected too.
    """
    of = lens(m, g.refid)
    # Position of the site in the camera's frame.
    p = gather_static(d.cam_xmat, g.refid).T @ (
        gather_static(d.site_xpos, g.objid) - gather_static(d.cam_xpos, g.refid)
    )
    # Keep the depth away from zero, with its sign.
    least = jnp.where(p.z < 0, -MINVAL, MINVAL)
    depth = jnp.where(jnp.abs(p.z) < MINVAL, least, p.z)
    return 0.5 * of.width - of.fx * p.x / depth, 0.5 * of.height + of.fy * p.y / depth


def _jointpos(m: Model, d: Data, g: SensorGroup) -> tuple[Array]:
    return (gather_static(d.qpos, m.jnt_qposadr[g.objid]),)


def _ballquat(m: Model, d: Data, g: SensorGroup) -> tuple[Array, Array, Array, Array]:
    adr = m.jnt_qposadr[g.objid]
    return Quat(*(gather_static(d.qpos, adr + k) for k in range(4))).normalize().parts


def _framepos(m: Model, d: Data, g: SensorGroup) -> tuple[Array, Array, Array]:
    pos = object_pos(d, g.objtype, g.objid)
    if g.reftype is None:
        return pos.parts
    # Relative to the reference frame.
    origin = object_pos(d, g.reftype, g.refid)
    return (object_mat(d, g.reftype, g.refid).T @ (pos - origin)).parts


def _framequat(m: Model, d: Data, g: SensorGroup) -> tuple[Array, Array, Array, Array]:
    quat = object_quat(m, d, g.objtype, g.objid)
    if g.reftype is not None:
        quat = object_quat(m, d, g.reftype, g.refid).conj * quat
    return quat.parts


def _frameaxis(k: int) -> Callable:
    def axis(m: Model, d: Data, g: SensorGroup) -> tuple[Array, Array, Array]:
        column: Vec = object_mat(d, g.objtype, g.objid).cols[k]
        if g.reftype is not None:
            column = object_mat(d, g.reftype, g.refid).T @ column
        return column.parts

    return axis


def _insidesite(m: Model, d: Data, g: SensorGroup) -> tuple[Array]:
    """Return 1 where the object's origin is inside the volume of a site."""
    # Offset of the object in the frame of the site.
    offset = object_pos(d, g.objtype, g.objid) - gather_static(d.site_xpos, g.refid)
    p = gather_static(d.site_xmat, g.refid).T @ offset
    table = {
        kind: lambda i, kind=kind: points_inside_site(
            m, kind, g.refid[i], gather_static(p, i)
        ).astype(p.x.dtype)
        for kind in VOLUME_TYPES
    }
    return (compute_by_kind(m.site_type[g.refid], table, p.x),)


def repeat_world_value(x: Array, g: SensorGroup) -> tuple[Array]:
    """Return one value of the world, for each sensor of the group."""
    return (jnp.broadcast_to(x, (len(g.ids), *x.shape[1:])),)


def gather_outputs(m: Model, x: Array, g: SensorGroup) -> tuple[Array, ...]:
    """Gather values `x` `[nout, *W]` of actuator outputs, for each sensor of the group."""
    first = m.actuator_outadr[g.objid]
    return tuple(gather_static(x, first + k) for k in range(len(g.addresses)))


POSITION_SENSORS = {
    SensorType.MAGNETOMETER: _magnetometer,
    SensorType.RANGEFINDER: read_rangefinders,
    SensorType.CAMPROJECTION: _camprojection,
    SensorType.JOINTPOS: _jointpos,
    SensorType.TENDONPOS: lambda m, d, g: (gather_static(d.ten_length, g.objid),),
    SensorType.ACTUATORPOS: lambda m, d, g: gather_outputs(m, d.actuator_length, g),
    SensorType.BALLQUAT: _ballquat,
    SensorType.JOINTLIMITPOS: lambda m, d, g: (joint_limit(m, d, g.objid).pos,),
    SensorType.TENDONLIMITPOS: lambda m, d, g: (tendon_limit(m, d, g.objid).pos,),
    SensorType.FRAMEPOS: _framepos,
    SensorType.FRAMEQUAT: _framequat,
    SensorType.FRAMEXAXIS: _frameaxis(0),
    SensorType.FRAMEYAXIS: _frameaxis(1),
    SensorType.FRAMEZAXIS: _frameaxis(2),
    SensorType.SUBTREECOM: lambda m, d, g: gather_static(d.subtree_com, g.objid).parts,
    SensorType.INSIDESITE: _insidesite,
    **dict.fromkeys(DISTANCE_SENSORS, distance_sensors),
    SensorType.E_POTENTIAL: lambda m, d, g: repeat_world_value(potential_energy(m, d), g),
    SensorType.CLOCK: lambda m, d, g: repeat_world_value(d.time, g),
}
