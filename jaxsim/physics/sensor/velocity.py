"""Sensors of the velocity; MuJoCo's documentation, XML reference: sensor.

Each function returns the outputs of a group of sensors, one array per entry of
`SensorGroup.addresses`.
"""

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import SensorType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.object_frame import object_mat, object_pos, object_velocities
from jaxsim.physics.passive.energy import kinetic_energy
from jaxsim.physics.sensor.group import SensorGroup
from jaxsim.physics.sensor.limit_state import joint_limit, tendon_limit
from jaxsim.physics.sensor.position import gather_outputs, repeat_world_value
from jaxsim.physics.sensor.tactile import tactile_sensors


def _velocimeter(m: Model, d: Data, g: SensorGroup) -> tuple[Array, Array, Array]:
    v = object_velocities(m, d, g.objtype, g.objid).lin
    return (object_mat(d, g.objtype, g.objid).T @ v).parts


def _gyro(m: Model, d: Data, g: SensorGroup) -> tuple[Array, Array, Array]:
    omega = object_velocities(m, d, g.objtype, g.objid).rot
    return (object_mat(d, g.objtype, g.objid).T @ omega).parts


def _jointvel(m: Model, d: Data, g: SensorGroup) -> tuple[Array]:
    return (gather_static(d.qvel, m.jnt_dofadr[g.objid]),)


def _ballangvel(m: Model, d: Data, g: SensorGroup) -> tuple[Array, Array, Array]:
    dof = m.jnt_dofadr[g.objid]
    x, y, z = (gather_static(d.qvel, dof + k) for k in range(3))
    return x, y, z


def _framelinvel(m: Model, d: Data, g: SensorGroup) -> tuple[Array, Array, Array]:
    """Return the velocity of the origin; in a reference frame, relative to its rotation too."""
    v = object_velocities(m, d, g.objtype, g.objid).lin
    if g.reftype is None:
        return v.parts
    # Subtract the motion of the reference frame at the object's origin.
    frame = object_velocities(m, d, g.reftype, g.refid)
    offset = object_pos(d, g.objtype, g.objid) - object_pos(d, g.reftype, g.refid)
    seen = v - frame.lin - frame.rot.cross(offset)
    return (object_mat(d, g.reftype, g.refid).T @ seen).parts


def _frameangvel(m: Model, d: Data, g: SensorGroup) -> tuple[Array, Array, Array]:
    omega = object_velocities(m, d, g.objtype, g.objid).rot
    if g.reftype is None:
        return omega.parts
    seen = omega - object_velocities(m, d, g.reftype, g.refid).rot
    return (object_mat(d, g.reftype, g.refid).T @ seen).parts


VELOCITY_SENSORS = {
    SensorType.VELOCIMETER: _velocimeter,
    SensorType.GYRO: _gyro,
    SensorType.JOINTVEL: _jointvel,
    SensorType.TENDONVEL: lambda m, d, g: (gather_static(d.ten_velocity, g.objid),),
    SensorType.ACTUATORVEL: lambda m, d, g: gather_outputs(m, d.actuator_velocity, g),
    SensorType.BALLANGVEL: _ballangvel,
    SensorType.JOINTLIMITVEL: lambda m, d, g: (joint_limit(m, d, g.objid).vel,),
    SensorType.TENDONLIMITVEL: lambda m, d, g: (tendon_limit(m, d, g.objid).vel,),
    SensorType.FRAMELINVEL: _framelinvel,
    SensorType.FRAMEANGVEL: _frameangvel,
    SensorType.SUBTREELINVEL: lambda m, d, g: gather_static(d.subtree_linvel, g.objid).parts,
    SensorType.SUBTREEANGMOM: lambda m, d, g: gather_static(d.subtree_angmom, g.objid).parts,
    SensorType.TACTILE: tactile_sensors,
    SensorType.E_KINETIC: lambda m, d, g: repeat_world_value(kinetic_energy(m, d), g),
}
# Sensor types that need subtree velocities.
NEED_SUBTREE = (SensorType.SUBTREELINVEL, SensorType.SUBTREEANGMOM)
