"""Sensors of acceleration and force; MuJoCo's documentation, XML reference: sensor.

Each function returns the outputs of a group of sensors, one array per entry of
`SensorGroup.addresses`.
"""

from collections.abc import Callable

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static, weighted_sum
from jaxsim.enums import ConstraintType, SensorType, TrnType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.object_frame import object_accelerations, object_mat
from jaxsim.physics.sensor.contact import contact_sensors
from jaxsim.physics.sensor.group import SensorGroup
from jaxsim.physics.sensor.position import gather_outputs
from jaxsim.physics.sensor.touch import touch
from jaxsim.physics.solver.constraint_force import limit_force


def _accelerometer(m: Model, d: Data, g: SensorGroup) -> tuple[Array, Array, Array]:
    a = object_accelerations(m, d, g.objtype, g.objid).lin
    return (object_mat(d, g.objtype, g.objid).T @ a).parts


def _force(m: Model, d: Data, g: SensorGroup) -> tuple[Array, Array, Array]:
    """Return the force of the parent on the site's body, in the site's frame."""
    force = gather_static(d.cfrc_int, m.site_bodyid[g.objid]).lin
    return (gather_static(d.site_xmat, g.objid).T @ force).parts


def _torque(m: Model, d: Data, g: SensorGroup) -> tuple[Array, Array, Array]:
    """Return the torque of the parent on the site's body about the site, in the site's frame."""
    # Wrench about the subtree's center of mass, transported to the site.
    body = m.site_bodyid[g.objid]
    wrench = gather_static(d.cfrc_int, body)
    arm = gather_static(d.site_xpos, g.objid) - gather_static(d.subtree_com, m.body_rootid[body])
    return (gather_static(d.site_xmat, g.objid).T @ (wrench.rot - arm.cross(wrench.lin))).parts


def _tendonactfrc(m: Model, d: Data, g: SensorGroup) -> tuple[Array]:
    """Return the sum of the actuator forces on a tendon."""
    # Which actuators act on each of the tendons.
    on_tendon = m.actuator_trntype == TrnType.TENDON
    mine = (m.actuator_trnid[:, 0] == g.objid[:, None]) & on_tendon
    return (weighted_sum(1.0 * mine, gather_static(d.actuator_force, m.actuator_outadr)),)


def _limit(kind: ConstraintType) -> Callable:
    return lambda m, d, g: (limit_force(d, kind, g.objid),)


ACCELERATION_SENSORS = {
    SensorType.TOUCH: lambda m, d, g: (touch(m, d, g.objid),),
    SensorType.ACCELEROMETER: _accelerometer,
    SensorType.FORCE: _force,
    SensorType.TORQUE: _torque,
    SensorType.ACTUATORFRC: lambda m, d, g: gather_outputs(m, d.actuator_force, g),
    SensorType.JOINTACTFRC: lambda m, d, g: (
        gather_static(d.qfrc_actuator, m.jnt_dofadr[g.objid]),
    ),
    SensorType.TENDONACTFRC: _tendonactfrc,
    SensorType.JOINTLIMITFRC: _limit(ConstraintType.LIMIT_JOINT),
    SensorType.TENDONLIMITFRC: _limit(ConstraintType.LIMIT_TENDON),
    SensorType.CONTACT: contact_sensors,
    SensorType.FRAMELINACC: lambda m, d, g: (
        object_accelerations(m, d, g.objtype, g.objid).lin.parts
    ),
    SensorType.FRAMEANGACC: lambda m, d, g: (
        object_accelerations(m, d, g.objtype, g.objid).rot.parts
    ),
}
# Sensor types that need body accelerations, or forces between bodies.
NEED_ACCELERATION = (
    SensorType.ACCELEROMETER,
    SensorType.FORCE,
    SensorType.TORQUE,
    SensorType.FRAMELINACC,
    SensorType.FRAMEANGACC,
)
NEED_FORCE = (SensorType.FORCE, SensorType.TORQUE)
