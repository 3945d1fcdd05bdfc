"""Model and Data as nested dicts of arrays, for flax, orbax and numpy.

    state = jaxsim.state_dict(d)                     # to be saved
    d = jaxsim.from_state_dict(like, state)          # like: any Data of this model and batch

These libraries store dicts of arrays, and orbax rejects arrays of size zero, of which every model
has some (no tendons, no cameras). The dict leaves them out, and static fields too. `save_model`
stores a complete model in a file. Neither stores callbacks or their parameters: save these
yourself; a restored model has the callbacks of `like`.

Both functions are registered with flax, so that a training state is saved together with the
simulation in it:

    state = {"params": params, "optimizer": optimizer_state, "worlds": d}
    data = flax.serialization.to_bytes(state)                       # msgpack
    state = flax.serialization.from_bytes(like, data)
    tree = flax.serialization.to_state_dict(state)                  # what orbax saves

`like` may hold shapes instead of arrays (`jax.eval_shape`): nothing is computed to restore.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import serialization

from jaxsim.model.callbacks import Callbacks
from jaxsim.model.contact import Contact
from jaxsim.model.data import Data, SolverStat
from jaxsim.model.model import Model
from jaxsim.model.option import Option, Statistic
from jaxsim.model.record.check import brief_value
from jaxsim.model.record.record import Record
from jaxsim.model.switch.hulls import hulls_differ

_RecordT = TypeVar("_RecordT", bound=Record)


def state_dict(record: Record) -> dict[str, Any]:
    """Return the arrays of a Model or a Data by field, without those of size zero.

    A nested record becomes a dict. Leaves that are shapes (`jax.eval_shape`) give a dict of shapes,
    into which orbax restores.

    Example:
      >>> state = state_dict(d)
      >>> state["qpos"].shape, "mocap_pos" in state  # there are no mocap bodies
      ((1,), False)
      >>> from_state_dict(jaxsim.make_data(m), state).qpos.shape
      (1,)
    """
    found: dict[str, Any] = {}
    for name, value in _array_fields(record):
        if isinstance(value, Record):
            found[name] = state_dict(value)
        elif np.size(value) if np.isscalar(value) else value.size:
            found[name] = value
    return found


def from_state_dict(like: _RecordT, state: Mapping[str, Any]) -> _RecordT:
    """Return the record from which `state_dict` made a dict.

    Args:
      like: a record of the same model with the same fields and batch; its values are not used.
      state: the result of `state_dict`.

    Raises:
      ValueError: a field is missing, unknown, has another shape, or was compiled out in `like` and
        is not zero. The message gives the path to it, from the outermost tree that flax restores.
    """
    path = serialization.current_path().split("/")
    return _fill_record(like, state, "".join(f"{name}." for name in path if name.strip(".")))


def _fill_record(like: Any, state: Any, prefix: str) -> Any:
    if not isinstance(state, Mapping):
        record = f"{prefix.removesuffix('.')} " if prefix else ""
        raise ValueError(f"state: {record}must be a dict of fields, got {brief_value(state)}")
    values: dict[str, Any] = {}
    rest = dict(state)
    for name, old in _array_fields(like):
        if isinstance(old, Record):
            values[name] = _fill_record(old, rest.pop(name, {}), f"{prefix}{name}.")
        elif np.size(old) if np.isscalar(old) else old.size:
            if name not in rest:
                raise ValueError(f"state: {prefix}{name} is missing")
            values[name] = new = rest.pop(name)
            if np.shape(new) != np.shape(old):
                shapes = f"expected shape {np.shape(old)}, got {np.shape(new)}"
                raise ValueError(f"state: {prefix}{name}: {shapes}")
        elif isinstance(old, jax.ShapeDtypeStruct):
            values[name] = jnp.zeros(old.shape, old.dtype)
    if rest:
        raise ValueError(f"state: {prefix}{sorted(rest)[0]} is no field of the given record")
    new = like.replace_unchecked(values, native=False)
    if isinstance(new, Model):
        new.check_values(f"state: {prefix}")
    if isinstance(new, Model) and hulls_differ(new.structure, new.mesh_vert):
        # marks in the structure that vertices were replaced
        return new.replace(mesh_vert=new.mesh_vert)
    return new


def _array_fields(record: Record) -> list[tuple[str, Any]]:
    """Return the fields of a record that hold arrays."""
    values = ((name, getattr(record, name)) for name, f in record.fields.items() if not f.static)
    return [(name, value) for name, value in values if not isinstance(value, Callbacks | None)]


for _record in (Model, Option, Statistic, Data, Contact, SolverStat):
    serialization.register_serialization_state(_record, state_dict, from_state_dict)
