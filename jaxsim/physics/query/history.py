"""Access to history buffers: past values of controls and sensors, and their initialization.

MuJoCo's documentation, Modeling: Delays; API reference: `mj_readCtrl`, `mj_readSensor`,
`mj_initCtrlHistory`, `mj_initSensorHistory`.
"""

import operator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import Interpolation
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.model.shaped import Float
from jaxsim.physics.history.buffers import (
    Buffers,
    Past,
    ctrl_buffers,
    load_history,
    newest_slot,
    sensor_buffers,
)
from jaxsim.physics.history.read import interpolate_history
from jaxsim.physics.public.arguments import check_data, check_model

_MODEL_INTERPOLATION = -1  # the interpolation of the element in the model


def read_ctrl(
    m: Model,
    d: Data,
    actuator: int | str,
    time: Float[jax.Array, ""] | float,
    interp: int = _MODEL_INTERPOLATION,
) -> Float[jax.Array, "ctrlnum"]:
    """Return the control that an actuator sees at a time: that of `time` minus its delay.

    Args:
      m: the model.
      d: one world.
      actuator: id or name.
      time: at which the control comes out of the delay [s]; `d.time` is what a step reads.
        In single precision a time is as far from now as it is from `d.time`.
      interp: an `Interpolation`; -1: as the actuator has it.

    Returns:
      (ctrlnum,). Of an actuator without a history `d.ctrl`.

    Raises:
      ValueError: there is no such actuator or interpolation.

    Example:
      >>> xml = '''<mujoco><worldbody><body><joint name="j"/><geom size=".1"/></body></worldbody>
      ...   <actuator><motor joint="j" nsample="4" delay=".002"/></actuator></mujoco>'''
      >>> m = jaxsim.load_model(xml)
      >>> d = jaxsim.step(m, jaxsim.make_data(m).replace(ctrl=jnp.array([3.0])))
      >>> read_ctrl(m, d, 0, d.time)
      Array([3.], dtype=float64)
    """
    i = _id("read_ctrl", m, d, "actuator", actuator)
    first, number = int(m.actuator_ctrladr[i]), int(m.actuator_ctrlnum[i])
    now = d.ctrl[first : first + number]
    return _read("read_ctrl", ctrl_buffers(m).of(i), d, now, time, m.actuator_delay[i], interp)


def read_sensor(
    m: Model,
    d: Data,
    sensor: int | str,
    time: Float[jax.Array, ""] | float,
    interp: int = _MODEL_INTERPOLATION,
) -> Float[jax.Array, "dim"]:
    """Return the reading that a sensor reports at a time: that of `time` minus its delay.

    Args:
      m: the model.
      d: one world.
      sensor: id or name.
      time: at which the reading comes out of the delay [s].
      interp: an `Interpolation`; -1: as the sensor has it.

    Returns:
      (dim,). Of a sensor without a history its part of `d.sensordata`.

    Raises:
      ValueError: there is no such sensor or interpolation; `d` carries no `sensordata`.
    """
    i = _id("read_sensor", m, d, "sensor", sensor)
    buffer = sensor_buffers(m).of(i)
    first, number = int(m.sensor_adr[i]), int(m.sensor_dim[i])
    outputs: Any = d.sensordata
    if outputs is not None:
        now = outputs[first : first + number]
    elif len(buffer.owner):
        now = jnp.zeros(number, d.history.dtype)
    else:
        raise ValueError("read_sensor: this Data does not carry 'sensordata', and the sensor has "
                         "no history; keep it: make_data(m, keep=['sensordata'])")  # fmt: skip
    return _read("read_sensor", buffer, d, now, time, m.sensor_delay[i], interp)


def init_ctrl_history(
    m: Model,
    d: Data,
    actuator: int | str,
    times: Float[jax.Array, "nsample"] | None,
    values: Float[jax.Array, "nsample ctrlnum"] | Float[jax.Array, "size"],
) -> Data:
    """Set the controls in an actuator's history buffer, before the simulation starts.

    Args:
      m: the model.
      d: one world.
      actuator: id or name.
      times: sample times, (nsample,) [s], increasing; None: keep the current ones.
      values: the controls, (nsample, ctrlnum) or flattened, oldest first.

    Raises:
      ValueError: the actuator has no history; a shape is wrong; times do not increase.
    """
    i = _id("init_ctrl_history", m, d, "actuator", actuator)
    return d.replace(
        **_write_samples("init_ctrl_history", m, d, ctrl_buffers(m).of(i), times, values)
    )


def init_sensor_history(
    m: Model,
    d: Data,
    sensor: int | str,
    times: Float[jax.Array, "nsample"] | None,
    values: Float[jax.Array, "nsample dim"] | Float[jax.Array, "size"],
    phase: Float[jax.Array, ""] | float,
) -> Data:
    """Set the readings in a sensor's history buffer, before the simulation starts.

    Args:
      m: the model.
      d: one world.
      sensor: id or name.
      times: sample times, (nsample,) [s], increasing; None: keep the current ones.
      values: the readings, (nsample, dim) or flattened, oldest first.
      phase: time of the sensor's last sample, if it has an interval [s].

    Raises:
      ValueError: the sensor has no history; a shape is wrong; times do not increase.
    """
    i = _id("init_sensor_history", m, d, "sensor", sensor)
    b = sensor_buffers(m).of(i)
    written = _write_samples("init_sensor_history", m, d, b, times, values)
    # Set the time of the last sample; its low part in single precision is zero.
    history = written["history"].at[b.user[0]].set(jnp.asarray(phase, d.history.dtype))
    if d.history_low is not None:
        written["history_low"] = written["history_low"].at[b.low[0] - m.nhistory].set(0)
    return d.replace(**written | {"history": history})


def _id(function: str, m: Model, d: Data, kind: str, which: int | str) -> int:
    """Check model and world, and return the id of an actuator or sensor."""
    check_model(function, m)
    check_data(function, m, d)
    number = m.nactuator if kind == "actuator" else m.nsensor
    i = name2id(m, kind, which) if isinstance(which, str) else operator.index(which)
    if not 0 <= i < number:
        raise ValueError(f"{function}: {kind}: the model has {number}, there is no number {i}")
    return i


def _read(
    function: str,
    b: Buffers,
    d: Data,
    now: jax.Array,
    time: jax.Array | float,
    delay: jax.Array,
    interp: int,
) -> jax.Array:
    known = (_MODEL_INTERPOLATION, *Interpolation)
    if interp not in known:
        raise ValueError(f"{function}: interp: expected one of {[*map(int, known)]}, got {interp}")
    if not len(b.owner):
        return now
    # Override the model's interpolation.
    if interp != _MODEL_INTERPOLATION:
        b = b._replace(interp=np.full_like(b.interp, interp))
    numbers, own, low = load_history(d)
    history = Past(numbers, own[None], None if low is None else low[None])
    time = jnp.asarray(time, delay.dtype)
    # In single precision, times are relative to now.
    at = time if history.time_low is None else time - d.time
    return interpolate_history(b, history, (at - delay)[None])


def _write_samples(
    function: str, m: Model, d: Data, b: Buffers, times: jax.Array | None, values: jax.Array
) -> dict[str, jax.Array]:
    """Return `d.history` with the samples of one buffer replaced, and `d.history_low`."""
    history, low = d.history, {}
    if not len(b.owner):
        raise ValueError(f"{function}: there is no history; give the element nsample")
    size, number = int(b.size[0]), len(b.number)
    shapes = (size, number), (size * number,)
    if np.shape(values) not in shapes:
        raise ValueError(
            f"{function}: values: expected shape {shapes[0]} or {shapes[1]}, got {np.shape(values)}"
        )
    # Slots of the ring buffer, in temporal order: existing times start behind the cursor.
    slots = jnp.arange(size, dtype=jnp.int32)
    if times is None:
        slots = (newest_slot(b, history) + 1 + slots) % size
    else:
        # With new times the samples begin at slot 0 and the cursor is at the last.
        _check_times(function, times, size)
        history = history.at[b.time[0] + slots].set(jnp.asarray(times, history.dtype))
        history = history.at[b.user[0] + 1].set(size - 1)
    if d.history_low is not None:
        first = b.low[0] + 1 - m.nhistory
        none = d.history_low.at[first : first + size].set(0)
        low = {"history_low": d.history_low if times is None else none}
    samples = jnp.asarray(values, history.dtype).reshape(size, number)
    # Address of each sample's numbers.
    places = b.value[None, :] + slots[:, None] * b.stride[None, :]
    return {"history": history.at[places].set(samples), **low}


def _check_times(function: str, times: jax.Array, size: int) -> None:
    """Raise ValueError if times do not match the samples, or are known not to increase."""
    if np.shape(times) != (size,):
        raise ValueError(f"{function}: times: expected shape ({size},), got {np.shape(times)}")
    if not isinstance(times, jax.core.Tracer) and not (np.diff(np.asarray(times)) > 0).all():
        raise ValueError(f"{function}: times: expected increasing numbers, got {np.asarray(times)}")
