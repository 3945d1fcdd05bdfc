"""Convert a `mujoco.MjData` to a Data, with the results computed for it."""

import sys
from typing import Any

import jax
import numpy as np

from jaxsim.io.bridge.check import check_same_model
from jaxsim.io.bridge.mjx_arguments import check_choices, move_to_device
from jaxsim.io.bridge.model import put_model
from jaxsim.io.bridge.sparse import ROW_OWNERS, constraint_row_field, dense_field
from jaxsim.model.allocate import Keep
from jaxsim.model.contact import Contact
from jaxsim.model.data import ROW_FIELDS, Data, SolverStat
from jaxsim.model.indices import time_indices
from jaxsim.physics.public.make_data import make_data


def put_data(
    model: Any,
    data: Any,
    device: Any = None,
    *,
    impl: Any = None,
    contacts: int | None = None,
    keep: Keep = "default",
    **buffers: int | None,
) -> Data:
    """Return the Data of a MuJoCo state, with the results computed for it.

    Args:
      model: the `mujoco.MjModel` of the state.
      data: a `mujoco.MjData`.
      device: device of its arrays; None: JAX's default.
      impl: "jax", accepted for MJX programs: there is one implementation.
      contacts: contact capacity of a world, as given to `put_model`.
      keep: the results to keep, as in `make_data`.
      buffers: those of MJX, as in `make_data`, without effect.

    Raises:
      ValueError: the state belongs to another model.
    """
    check_choices("put_data", impl, buffers)
    check_same_model("put_data", model, data)
    d = make_data(put_model(model, contacts=contacts), keep)
    given: dict[str, Any] = {
        name: _cast_like(mine, _mujoco_value(name, model, data, mine.shape))
        for name, field in Data.fields.items()
        if field.nested is None and (mine := getattr(d, name)) is not None
        if hasattr(data, name) or name == "warning_lastinfo"
    }
    if d.time_low is not None:  # the part that single precision loses
        given["time_low"] = _cast_like(d.time_low, data.time - np.float64(np.float32(data.time)))
    if d.history_low is not None:
        times = data.history[time_indices(model)]
        given["history_low"] = _cast_like(d.history_low, times - np.float64(np.float32(times)))
    if d.contact is not None:
        given["contact"] = _contacts(d.contact, model, data)
    if d.solver is not None:
        fields = {n: getattr(data.solver, n) for n in SolverStat.fields}
        given["solver"] = SolverStat(
            **{n: _cast_like(getattr(d.solver, n), a) for n, a in fields.items()}
        )
    return move_to_device(d.replace(**given), device)


def _mujoco_value(name: str, model: Any, data: Any, shape: tuple[int, ...]) -> Any:
    """Return the value of a field of mjData as a dense array."""
    if name in ROW_OWNERS:
        return dense_field(name, model, data, shape)
    if name in ROW_FIELDS:
        return constraint_row_field(name, model, data, shape)
    if name == "warning":
        return [w.number for w in data.warning][: shape[0]]
    if name == "warning_lastinfo":
        return [w.lastinfo for w in data.warning][: shape[0]]
    if name == "solver_niter":  # one entry per island in MuJoCo, one number here
        return np.max(data.solver_niter, initial=0)
    return getattr(data, name)


def _cast_like(mine: jax.Array, theirs: Any) -> jax.Array:
    """Return a copy of a value of mjData in the shape and type of our field.

    The copy is necessary because MuJoCo's next step overwrites the original. It is made by numpy,
    because `jnp.asarray` compiles a program for each shape.
    """
    return jax.device_put(np.array(np.reshape(theirs, mine.shape), mine.dtype))


def _contacts(empty: Contact, model: Any, data: Any) -> Contact:
    """Return MuJoCo's contacts in our contact slots."""
    found = data.contact
    count = min(len(found.dist), len(empty.dist))
    filled = {}
    for name in Contact.fields:
        slots = getattr(empty, name)
        if slots is None:
            continue
        made = _CONTACT_CONVERTERS.get(name)
        theirs = getattr(found, name) if made is None else made(model, data)
        values = np.asarray(theirs)[:count].reshape(count, *slots.shape[1:])
        full = np.array(slots)
        full[:count] = values
        filled[name] = jax.device_put(full)
    return empty.replace(**filled)


def _forces(model: Any, data: Any) -> np.ndarray:
    """Return the forces of MuJoCo's contacts (ncon, 6)."""
    mujoco = sys.modules[type(model).__module__.partition(".")[0]]
    forces = np.zeros((data.ncon, 6))
    for k, force in enumerate(forces):
        mujoco.mj_contactForce(model, data, k, force)
    return forces


_PASSIVE_EXCLUDE = 4  # mjContact.exclude


def _passive(model: Any, data: Any) -> np.ndarray:
    """Return which of MuJoCo's contacts are passive, bool (ncon,)."""
    return np.asarray(data.contact.exclude) == _PASSIVE_EXCLUDE


# contact fields without a counterpart of the same name in mjContact
_CONTACT_CONVERTERS = {"force": _forces, "passive": _passive}
