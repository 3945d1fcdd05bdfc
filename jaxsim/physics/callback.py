"""User callbacks in a step: functions of one world, called for all worlds.

`model/callbacks.py` documents their arguments and results. A callback is written for one world in
the user's layout and is batched by `call_as_one_world`. Corresponds to MuJoCo's `mjcb_*` callbacks.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import DisableBit, Stage
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.record.check import brief_value
from jaxsim.transforms.layout import call_as_one_world, unpack_values

# Fields that a control callback may set: MuJoCo's mjSTATE_USER.
_CONTROL_CALLBACK_FIELDS = (
    *("ctrl", "qfrc_applied", "xfrc_applied", "eq_active", "mocap_pos", "mocap_quat", "userdata"),
)


def has_callback(m: Model, name: str) -> bool:
    """Return True if the user has given the callback `name`."""
    return m.callbacks is not None and getattr(m.callbacks, name) is not None


def call_control(m: Model, d: Data) -> Data:
    """Apply the control callback, after positions and velocities are known (`mjcb_control`)."""
    if not has_callback(m, "control") or m.opt.disableflags & DisableBit.ACTUATION:
        return d

    def inputs(m: Model, d: Data, function: Callable) -> dict[str, Array]:
        # Call the user's function, and find the fields that it replaced.
        new = function(m, d)
        if not isinstance(new, Data):
            raise ValueError(
                f"callback control: expected a Data, d.replace(ctrl=...), got {brief_value(new)}"
            )
        # Compare by identity: the callback returns a modified copy of its input.
        changed = [n for n in Data.fields if getattr(new, n) is not getattr(d, n)]
        for name in changed:
            if name not in _CONTROL_CALLBACK_FIELDS:
                raise ValueError(
                    f"callback control: sets {name!r}; it may set "
                    f"{', '.join(_CONTROL_CALLBACK_FIELDS)}. A Data that "
                    "came through lax.cond, jit or where counts as changed in all fields: choose "
                    "numbers instead, d.replace(ctrl=jnp.where(...))"
                )
            shape = getattr(d, name).shape
            if jnp.shape(getattr(new, name)) != shape:
                got = brief_value(getattr(new, name))
                raise ValueError(f"callback control: {name}: expected shape {shape}, got {got}")
        return {n: jnp.asarray(getattr(new, n), getattr(d, n).dtype) for n in changed}

    return d.replace(**unpack_values(Data, _call_per_world(m, d, "control", inputs)))


def stage_inputs(m: Model, d: Data) -> dict[str, Any]:
    """Return the inputs to pass on to the next stage, if a control callback may have set them."""
    return (
        {n: getattr(d, n) for n in _CONTROL_CALLBACK_FIELDS} if has_callback(m, "control") else {}
    )


def passive_force(m: Model, d: Data) -> Array:
    """Return the force of the passive callback, `[nv, *W]` (`mjcb_passive`)."""
    return _numbers(m, d, "passive", (), (m.nv,))


def call_actuator_callback(
    m: Model, d: Data, name: str, i: np.ndarray, number: int, none: float
) -> Array:
    """Return what a callback computes for actuators `i`, `[number, *W]`; `none` without one."""
    if not has_callback(m, name):
        return jnp.full_like(gather_static(d.actuator_length, np.zeros(number, int)), none)
    return _numbers(m, d, name, (i,), (number,))


def user_sensor_readings(m: Model, d: Data, at: Stage, i: np.ndarray) -> Array:
    """Return the values of user sensors `i`, concatenated, `[n, *W]` (`mjcb_sensor`)."""
    if not has_callback(m, "sensor"):
        return jnp.zeros((int(np.sum(m.sensor_dim[i])), *d.qpos.shape[1:]), d.qpos.dtype)
    return _numbers(m, d, "sensor", (at, i), (int(np.sum(m.sensor_dim[i])),))


def call_contact_filter(m: Model, d: Data, geom1: np.ndarray, geom2: np.ndarray) -> Array:
    """Return which pairs of geoms the user excludes, `[n, *W]` bool (`mjcb_contactfilter`)."""
    return _numbers(m, d, "contactfilter", (geom1, geom2), geom1.shape) != 0


def _numbers(m: Model, d: Data, name: str, given: tuple, shape: tuple[int, ...]) -> Array:
    """Call a callback for each world, and check the shape of its result, `[*shape, *W]`."""

    def one(m: Model, d: Data, function: Callable) -> Array:
        out = jnp.asarray(function(m, d, *given), m.qpos0.dtype)
        if out.shape != shape:
            raise ValueError(f"callback {name}: expected shape {shape}, got {brief_value(out)}")
        return out

    return _call_per_world(m, d, name, one)


def _call_per_world(m: Model, d: Data, name: str, one: Callable) -> Any:
    """Call `one(m, d, callback)` per world; arrays that the callback captured are that world's."""
    function = getattr(m.callbacks, name)
    return call_as_one_world(
        one, m.replace_unchecked({"callbacks": None}, native=True), d, function
    )
