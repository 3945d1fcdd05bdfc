"""Sensors: `d.sensordata`, from the tables of the kinds of sensors.

MuJoCo's documentation, XML reference: sensor. Sensors of one kind are computed together, and all
numbers of a stage are put in place at once.
"""

from collections.abc import Callable, Mapping

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import DataType, DisableBit, GeomType, ObjType, SensorType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.kinds import join
from jaxsim.physics.arrays.select import column, take
from jaxsim.physics.body.subtree import subtree_vel
from jaxsim.physics.refusal import Refusal, plugin_name, refuse
from jaxsim.physics.sensor.acceleration import ACCELERATION, NEED_ACCELERATION, NEED_FORCE
from jaxsim.physics.sensor.body_force import body_acceleration, body_forces
from jaxsim.physics.sensor.group import has_sensor, sensor_groups
from jaxsim.physics.sensor.position import POSITION
from jaxsim.physics.sensor.shape_query import INSIDE
from jaxsim.physics.sensor.velocity import NEED_SUBTREE, VELOCITY

Table = Mapping[SensorType, Callable]


def sensor(m: Model, d: Data) -> Data:
    """All sensors, after the acceleration is known."""
    return _read(m, _prepare_acc(m, _prepare_vel(m, d)), POSITION | VELOCITY | ACCELERATION)


def sensor_pos(m: Model, d: Data) -> Data:
    """Sensors that need the configuration only."""
    return _read(m, d, POSITION)


def sensor_vel(m: Model, d: Data) -> Data:
    """Sensors that need the velocity."""
    return _read(m, _prepare_vel(m, d), VELOCITY)


def sensor_acc(m: Model, d: Data) -> Data:
    """Sensors that need the acceleration."""
    return _read(m, _prepare_acc(m, d), ACCELERATION)


def refusals(m: Model) -> list[Refusal]:
    """Sensors that are not simulated, named."""
    known = POSITION | VELOCITY | ACCELERATION
    found = []
    for i, kind in enumerate(m.sensor_type):
        lack = None
        if kind == SensorType.PLUGIN:
            lack = plugin_name(m, m.sensor_plugin[i])
        elif kind not in known:
            lack = f"sensor type {SensorType(kind).name.lower()}"
        elif m.sensor_historyadr[i] >= 0:
            lack = "a delayed or sampled sensor (nsample, delay, interval)"
        elif (site := _volume(m, i)) is not None and m.site_type[site] not in INSIDE:
            lack = f"a volume of site type {GeomType(m.site_type[site]).name.lower()}"
        if lack:
            found.append(refuse(m, "sensor", i, f"{lack} is not supported"))
    return found


def _volume(m: Model, i: int) -> int | None:
    """The site whose volume a sensor asks about."""
    if m.sensor_type[i] == SensorType.INSIDESITE:
        return m.sensor_refid[i]
    in_site = m.sensor_type[i] in (SensorType.TOUCH, SensorType.CONTACT)
    return m.sensor_objid[i] if in_site and m.sensor_objtype[i] == ObjType.SITE else None


def _prepare_vel(m: Model, d: Data) -> Data:
    """Results that only some sensors need, or a `Data` that keeps them."""
    if d.subtree_linvel is not None or has_sensor(m.structure, *NEED_SUBTREE):
        d = subtree_vel(m, d)
    return d


def _prepare_acc(m: Model, d: Data) -> Data:
    """Likewise, of the acceleration."""
    forces = d.cfrc_int is not None or d.cfrc_ext is not None
    forces = forces or has_sensor(m.structure, *NEED_FORCE)
    if forces or d.cacc is not None or has_sensor(m.structure, *NEED_ACCELERATION):
        d = body_acceleration(m, d)
    return body_forces(m, d) if forces else d


def _read(m: Model, d: Data, table: Table) -> Data:
    """Writes the outputs of the sensors in a table; the others keep theirs."""
    if m.opt.disableflags & DisableBit.SENSOR:
        return d
    groups = [g for g in sensor_groups(m) if g.type in table]
    if not groups:
        return d
    outputs = [out for g in groups for out in table[g.type](m, d, g)]
    place = np.concatenate([place for g in groups for place in g.places])
    owner = np.repeat(np.arange(m.nsensor), m.sensor_dim)[place]
    values = _cut(m, owner, join(outputs))
    source = np.full(m.nsensordata, -1)
    source[place] = np.arange(len(place))
    if (source >= 0).all():
        return d.replace(sensordata=take(values, source))
    kept = np.flatnonzero(source < 0)
    source[kept] = len(place) + np.arange(len(kept))
    return d.replace(sensordata=take(join([values, take(d.sensordata, kept)]), source))


def _cut(m: Model, owner: np.ndarray, values):
    """Limits numbers to the cutoff of their sensors; a cutoff of zero is none.

    Directions and what contact sensors report have no cutoff.
    """
    cutoff = take(m.sensor_cutoff, owner)
    free = np.isin(m.sensor_datatype[owner], (DataType.AXIS, DataType.QUATERNION))
    free |= m.sensor_type[owner] == SensorType.CONTACT
    lower = jnp.where(column(m.sensor_datatype[owner] == DataType.REAL, values), -cutoff, -jnp.inf)
    cut = (cutoff > 0) & column(~free, values)
    return jnp.where(cut, jnp.clip(values, lower, cutoff), values)
