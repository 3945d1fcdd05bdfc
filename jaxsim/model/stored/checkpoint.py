"""Model and Data as plain dicts of arrays, for libraries that save such: flax, orbax, numpy.

    state = jaxsim.state_dict(d)                     # to be saved
    d = jaxsim.from_state_dict(like, state)          # like: any Data of this model and batch

Those libraries know dicts and arrays, and orbax refuses arrays of size zero, of which every model
has some (no tendons, no cameras). The dict leaves them out; what is static is not in it either.
`save_model` keeps a model whole, in a file of its own. Neither has callbacks or the numbers that
were given with them: save these yourself; a restored model has the callbacks of `like`.

Both functions are registered with flax, so that a state of training is saved with the simulation
in it:

    state = {"params": params, "optimizer": optimizer_state, "worlds": d}
    data = flax.serialization.to_bytes(state)                       # msgpack
    state = flax.serialization.from_bytes(like, data)
    tree = flax.serialization.to_state_dict(state)                  # what orbax saves

`like` may have shapes for arrays (`jax.eval_shape`): nothing is computed to restore.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from flax import serialization

from jaxsim.model.callbacks import Callbacks
from jaxsim.model.data import Contact, Data, SolverStat
from jaxsim.model.fields import Record, brief
from jaxsim.model.model import Model, Option, Statistic
from jaxsim.model.switch.hulls import hulls_differ

AnyRecord = TypeVar("AnyRecord", bound=Record)


def state_dict(record: Record) -> dict[str, Any]:
    """Return the arrays of a Model or a Data by field, without those of size zero.

    A field that is a record of its own is a dict. Leaves that are shapes (`jax.eval_shape`) give a
    dict of shapes, into which orbax restores.

    Example:
      >>> state = state_dict(d)
      >>> state["qpos"].shape, "mocap_pos" in state  # there are no mocap bodies
      ((1,), False)
      >>> from_state_dict(jaxsim.make_data(m), state).qpos.shape
      (1,)
    """
    found: dict[str, Any] = {}
    for name, value in _present(record):
        if isinstance(value, Record):
            found[name] = state_dict(value)
        elif np.size(value) if np.isscalar(value) else value.size:
            found[name] = value
    return found


def from_state_dict(like: AnyRecord, state: Mapping[str, Any]) -> AnyRecord:
    """Return the record that `state_dict` was given.

    Args:
      like: a record of the same model with the same fields and batch; its numbers do not matter.
      state: what `state_dict` made.

    Raises:
      ValueError: a field is missing, is not one of `like`, or has another shape. The message has
        the path to it, from the outermost tree that flax restores.
    """
    path = serialization.current_path().split("/")
    return _filled(like, state, "".join(f"{name}." for name in path if name.strip(".")))


def _filled(like: Any, state: Any, prefix: str) -> Any:
    if not isinstance(state, Mapping):
        record = f"{prefix.removesuffix('.')} " if prefix else ""
        raise ValueError(f"state: {record}must be a dict of fields, got {brief(state)}")
    values: dict[str, Any] = {}
    rest = dict(state)
    for name, old in _present(like):
        if isinstance(old, Record):
            values[name] = _filled(old, rest.pop(name, {}), f"{prefix}{name}.")
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
    new = like.converted(values, native=False)
    if isinstance(new, Model) and hulls_differ(new.structure, new.mesh_vert):
        return new.replace(mesh_vert=new.mesh_vert)  # which marks its structure
    return new


def _present(record: Record) -> list[tuple[str, Any]]:
    """Return the fields with arrays that a record has."""
    values = ((name, getattr(record, name)) for name, f in record.fields.items() if not f.static)
    return [(name, value) for name, value in values if not isinstance(value, Callbacks | None)]


for _record in (Model, Option, Statistic, Data, Contact, SolverStat):
    serialization.register_serialization_state(_record, state_dict, from_state_dict)
