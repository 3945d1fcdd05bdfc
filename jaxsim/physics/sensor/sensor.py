"""Sensors: `d.sensordata`, from the tables of the sensor types.

MuJoCo's documentation, XML reference: sensor; corresponds to `mj_sensorPos`, `mj_sensorVel` and
`mj_sensorAcc`. Sensors of one group (group.py) are computed together, and all outputs of a stage
are scattered to `sensordata` in one gather. Cutoffs, delays and sleeping sensors are applied here.
"""

from collections.abc import Callable, Mapping, Sequence

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.kind_dispatch import concatenate_kinds
from jaxsim.enums import DataType, DisableBit, SensorType, Stage
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.subtree import subtree_vel
from jaxsim.physics.callback import user_sensor_readings
from jaxsim.physics.history.buffers import sensor_buffers
from jaxsim.physics.history.sampling import report_sensors, take_samples
from jaxsim.physics.plugin import missing_function as plugin_lack
from jaxsim.physics.sensor.acceleration import ACCELERATION_SENSORS, NEED_ACCELERATION, NEED_FORCE
from jaxsim.physics.sensor.body_force import body_acceleration, body_forces
from jaxsim.physics.sensor.distance import unsupported_distance_reason
from jaxsim.physics.sensor.group import DISTANCE_SENSORS, SensorGroup, has_sensor, sensor_groups
from jaxsim.physics.sensor.plugin import plugin_sensors
from jaxsim.physics.sensor.position import POSITION_SENSORS
from jaxsim.physics.sensor.rangefinder import unsupported_ray_reason
from jaxsim.physics.sensor.shape_query import RAY_INTERVALS
from jaxsim.physics.sensor.velocity import NEED_SUBTREE, VELOCITY_SENSORS
from jaxsim.physics.sleep.incidence import sensor_incidence
from jaxsim.physics.sleep.trees import can_sleep, tree_awake
from jaxsim.physics.unsupported import Refusal, make_refusal

_SENSOR_TABLES: Mapping[Stage, Mapping[SensorType, Callable]] = {
    Stage.POS: POSITION_SENSORS,
    Stage.VEL: VELOCITY_SENSORS,
    Stage.ACC: ACCELERATION_SENSORS,
}


BY_STAGE: Mapping[SensorType, Callable] = {
    SensorType.PLUGIN: plugin_sensors,
    SensorType.USER: lambda m, d, g: (user_sensor_readings(m, d, g.stage, g.ids),),
}


def all_sensors(m: Model, d: Data) -> Data:
    """Compute all sensors, after the acceleration is known."""
    return _read(m, _prepare_acc(m, _prepare_vel(m, d)), *_SENSOR_TABLES)


def sensor_pos(m: Model, d: Data) -> Data:
    """Compute the sensors of the configuration; corresponds to `mj_sensorPos` in MuJoCo."""
    return _read(m, d, Stage.POS)


def sensor_vel(m: Model, d: Data) -> Data:
    """Compute the sensors of the velocity; corresponds to `mj_sensorVel` in MuJoCo."""
    return _read(m, _prepare_vel(m, d), Stage.VEL)


def sensor_acc(m: Model, d: Data) -> Data:
    """Compute the sensors of the acceleration; corresponds to `mj_sensorAcc` in MuJoCo."""
    return _read(m, _prepare_acc(m, d), Stage.ACC)


def unsupported_sensors(m: Model) -> list[Refusal]:
    """Return the sensors that are not supported."""
    found = []
    # Determine what each sensor lacks, by its type.
    for i, kind in enumerate(m.sensor_type):
        lack = None
        if kind == SensorType.PLUGIN:
            lack = plugin_lack(m, m.sensor_plugin[i], "sensor")
        elif kind == SensorType.TOUCH and m.site_type[m.sensor_objid[i]] not in RAY_INTERVALS:
            lack = "touch in a site that is a mesh"
        elif kind in DISTANCE_SENSORS:
            lack = unsupported_distance_reason(m, i)
        elif kind == SensorType.RANGEFINDER:
            lack = unsupported_ray_reason(m, i)
        if lack:
            found.append(make_refusal(m, "sensor", i, f"{lack} is not supported"))
    return found


def _prepare_vel(m: Model, d: Data) -> Data:
    """Compute subtree velocities, if a sensor needs them or `d` keeps them."""
    if d.subtree_linvel is not None or has_sensor(m.structure, *NEED_SUBTREE):
        d = subtree_vel(m, d)
    return d


def _prepare_acc(m: Model, d: Data) -> Data:
    """Compute body accelerations and forces, if a sensor needs them or `d` keeps them."""
    forces = d.cfrc_int is not None or d.cfrc_ext is not None
    forces = forces or has_sensor(m.structure, *NEED_FORCE)
    if forces or d.cacc is not None or has_sensor(m.structure, *NEED_ACCELERATION):
        d = body_acceleration(m, d)
    return body_forces(m, d) if forces else d


def _read(m: Model, d: Data, *stages: Stage) -> Data:
    """Write the outputs of the sensors of some stages; the others keep theirs.

    Sensors with history buffers are sampled at the end of a step even if sensors are disabled.
    """
    disabled = m.opt.disableflags & DisableBit.SENSOR
    if disabled and not len(sensor_buffers(m).owner):
        return d
    # Groups that belong to these stages, with user callbacks last.
    found = [(g, function) for g in sensor_groups(m) if (function := _function(g, stages))]
    of_user = [pair for pair in found if pair[0].type == SensorType.USER]
    others = [pair for pair in found if pair[0].type != SensorType.USER]
    for part in (others, [] if disabled else of_user):  # a callback sees the results of the others
        d = _write_groups(m, d, part) if part else d
    return d


def _write_groups(m: Model, d: Data, found: list[tuple[SensorGroup, Callable]]) -> Data:
    """Write the outputs of groups of sensors by the functions that compute them."""
    disabled, samples = m.opt.disableflags & DisableBit.SENSOR, len(sensor_buffers(m).owner)
    groups = [g for g, _ in found]
    # Concatenate the outputs of all groups, then apply the cutoffs.
    outputs = [out for g, function in found for out in function(m, d, g)]
    place = np.concatenate([place for g in groups for place in g.addresses])
    owner = np.repeat(np.arange(m.nsensor), m.sensor_dim)[place]
    values = _apply_cutoff(m, owner, concatenate_kinds(outputs))
    computed = _write_values(m, values, place, d.sensordata)
    # Without histories the computed values are the output.
    if not samples:
        return _keep_sleeping_values(m, d, d.replace(sensordata=computed))
    # With histories: report the delayed or interpolated value and record the new sample.
    given = d.sensordata if disabled else report_sensors(m, d, computed, place)
    new = d.replace(readings=take_samples(m, d, computed, given, place))
    return new if disabled else _keep_sleeping_values(m, d, new.replace(sensordata=given))


def _write_values(m: Model, values: Array, place: np.ndarray, before: Array | None) -> Array:
    """Replace some entries of sensordata `[nsensordata, *W]`; the others are unchanged."""
    # Source of each number: a new value, or the previous one.
    source = np.full(m.nsensordata, -1)
    source[place] = np.arange(len(place))
    kept = np.flatnonzero(source < 0)
    if len(kept):
        source[kept] = len(place) + np.arange(len(kept))
        # A Data that does not carry them has no values before its first sensor stage.
        none = jnp.zeros((len(kept), *(1,) * (values.ndim - 1)), values.dtype)
        values = concatenate_kinds(
            [values, none if before is None else gather_static(before, kept)]
        )
    return gather_static(values, source)


def _keep_sleeping_values(m: Model, d: Data, new: Data) -> Data:
    """Keep the outputs of sleeping sensors.

    As in MuJoCo a sensor with a history does not sleep.
    """
    if not can_sleep(m) or d.sensordata is None:
        return new
    # A sensor sleeps with the trees it depends on, unless it has a history.
    awake = sensor_incidence(m).awake(tree_awake(d))
    awake = awake | column(m.sensor_historyadr >= 0, awake)
    awake = gather_static(awake, np.repeat(np.arange(m.nsensor), m.sensor_dim))
    return new.replace(sensordata=jnp.where(awake, new.sensordata, d.sensordata))


def _function(g: SensorGroup, stages: Sequence[Stage]) -> Callable | None:
    """Return the function that computes a group in one of some stages; None: another stage does."""
    if g.type in BY_STAGE:
        return BY_STAGE[g.type] if g.stage in stages else None
    tables = (_SENSOR_TABLES[stage] for stage in stages)
    return next((table[g.type] for table in tables if g.type in table), None)


def _apply_cutoff(m: Model, owner: np.ndarray, values: Array) -> Array:
    """Clamp outputs to the cutoff of their sensors; a cutoff of zero means none.

    Directions, segments and outputs of contact sensors are not clamped.
    """
    cutoff = gather_static(m.sensor_cutoff, owner)
    # Exempt unit vectors, contact sensors and segments.
    free = np.isin(m.sensor_datatype[owner], (DataType.AXIS, DataType.QUATERNION))
    free |= np.isin(m.sensor_type[owner], (SensorType.CONTACT, SensorType.GEOMFROMTO))
    # Real data is limited on both sides, positive data above only.
    lower = jnp.where(column(m.sensor_datatype[owner] == DataType.REAL, values), -cutoff, -jnp.inf)
    cut = (cutoff > 0) & column(~free, values)
    return jnp.where(cut, jnp.clip(values, lower, cutoff), values)
