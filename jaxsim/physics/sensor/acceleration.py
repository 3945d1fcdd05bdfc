"""Sensors of acceleration and force; MuJoCo's documentation, XML reference: sensor.

Each function returns the outputs of a group of sensors, one array per entry of
`SensorGroup.addresses`.
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.gather import gather_static, weighted_sum
from jaxsim.arrays.kind_dispatch import compute_by_kind
from jaxsim.enums import ConstraintType, GeomType, SensorType, TrnType
from jaxsim.math import Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.object_frame import object_accelerations, object_mat
from jaxsim.physics.sensor.contact import contact_sensors
from jaxsim.physics.sensor.group import SensorGroup
from jaxsim.physics.sensor.position import gather_outputs
from jaxsim.physics.sensor.shape_query import RAY_INTERVALS, ray_hits_shape
from jaxsim.physics.solver.constraint_force import contact_side, limit_force, net_contact_force


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


def _touch(m: Model, d: Data, site: np.ndarray) -> Array:
    """Sum the normal forces of contacts in a site's volume, `[n, *W]` [N].

    A contact counts if it is on the site's body and its normal, as a ray from the contact point out
    of the body, intersects the site's volume.
    """
    force = net_contact_force(d)
    if force is None:
        return jnp.zeros((len(site), *d.qpos.shape[1:]), d.qpos.dtype)
    normal, contacts = force[0], d.found.contacts

    def force_inside(i: np.ndarray, kind: GeomType) -> Array:
        one = site[i]
        # The contact normal points from the first geom to the second, out of the first body.
        out = -contact_side(d, m.site_bodyid[one])
        R = gather_static(d.site_xmat, one).map(lambda a: a[:, None])
        place = gather_static(d.site_xpos, one)
        offset = Vec(
            *(p[None] - c[:, None] for p, c in zip(contacts.pos.parts, place.parts, strict=True))
        )
        axis = contacts.frame.rows[0].map(lambda a: a[None])
        size = gather_static(m.site_size, one)[:, :, None]
        meets = ray_hits_shape(kind, size, R.T @ offset, (R.T @ axis).scale(out))
        # Sum the repulsive normal forces of the contacts that meet the site.
        return apply(meets.astype(normal.dtype), jnp.maximum(normal, 0))

    table = {kind: lambda i, kind=kind: force_inside(i, kind) for kind in RAY_INTERVALS}
    return compute_by_kind(m.site_type[site], table, normal)


def _limit(kind: ConstraintType) -> Callable:
    return lambda m, d, g: (limit_force(d, kind, g.objid),)


ACCELERATION_SENSORS = {
    SensorType.TOUCH: lambda m, d, g: (_touch(m, d, g.objid),),
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
