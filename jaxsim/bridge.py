"""Exchange with MuJoCo itself: its compiled models and its states, given by a caller who has it.

Nothing here imports MuJoCo; objects of its Python package are read and written by attribute names.
"""

import re
import sys
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.assemble import assemble
from jaxsim.data import Contact, Data
from jaxsim.fields import Field
from jaxsim.make_data import Keep, make_data
from jaxsim.model import Model, Option, Statistic

# kinds of objects, and how their name tables are called in mjModel
NAME_TABLES = {
    "body": "body",
    "joint": "jnt",
    "geom": "geom",
    "site": "site",
    "camera": "cam",
    "light": "light",
    "flex": "flex",
    "mesh": "mesh",
    "skin": "skin",
    "hfield": "hfield",
    "texture": "tex",
    "material": "mat",
    "pair": "pair",
    "exclude": "exclude",
    "equality": "eq",
    "tendon": "tendon",
    "actuator": "actuator",
    "sensor": "sensor",
    "numeric": "numeric",
    "text": "text",
    "tuple": "tuple",
    "key": "key",
    "plugin": "plugin",
}

# what a Model has as array leaves
LEAVES = frozenset(n for n, f in Model.fields.items() if not f.static and f.nested is None)

# Integer tables that say nothing about the motion: rendering, bounding volumes, buffers, layouts
# of the sparse matrices of the C library.
NOT_READ = re.compile(
    r"(bvh|tex|mat|skin|text)_.*|name_.*adr|names_map|.*_(matid|pathadr|bvhadr|bvhnum)"
    r"|n(buffer|narena|names|names_map|paths|signature|bvh.*|J.*)|signature|narena|njmax|nconmax|_.*"
    r"|[BD]_.*|map[DM]2[DM]|efm.*|mesh_(normal|texcoord|facenormal|facetexcoord).*"
)


def put_model(model: Any, *, contacts: int | None = None) -> Model:
    """Makes a Model of a compiled MuJoCo model.

    Args:
      model: a `mujoco.MjModel`.
      contacts: contacts a world has room for; None: chosen from the candidate pairs.

    Returns:
      The same model, with every field this package knows.

    Warns:
      UnsupportedWarning: the physics cannot run this model; `make_data` will refuse it.
    """
    fields: dict[str, Any] = {}
    for name in dir(model):
        value = getattr(model, name)
        if name in LEAVES or (_is_whole(value) and not NOT_READ.fullmatch(name)):
            fields[name] = value
    return assemble(
        fields,
        {name: getattr(model.opt, name) for name in Option.fields},
        {name: getattr(model.stat, name) for name in Statistic.fields},
        {kind: _names(model, table) for kind, table in NAME_TABLES.items()},
        contacts=contacts,
    )


def put_data(model: Any, data: Any, *, contacts: int | None = None, keep: Keep = "default") -> Data:
    """Makes a Data of a state of MuJoCo's, with the results that were computed for it.

    Args:
      model: the `mujoco.MjModel` of the state.
      data: a `mujoco.MjData`.
      contacts: contacts a world has room for, as given to `put_model`.
      keep: the results to keep, as in `make_data`.
    """
    d = make_data(put_model(model, contacts=contacts), keep)
    given: dict[str, Any] = {
        name: _like(getattr(d, name), getattr(data, name))
        for name, f in Data.fields.items()
        if f.nested is None and _is_exchanged(name, f, d, data)
    }
    warning = [w.number for w in data.warning][: len(d.warning)]
    given["warning"] = (
        jnp.zeros_like(d.warning).at[: len(warning)].set(jnp.asarray(warning, jnp.int32))
    )
    if d.contact is not None:
        given["contact"] = _contacts(d.contact, data.contact)
    return d.replace(**given)


def get_data_into(data: Any, model: Any, d: Data) -> None:
    """Writes the state, the inputs and the kept results of one world into a `mujoco.MjData`.

    Contacts are not written: `mj_forward` of MuJoCo finds them again.

    Raises:
      ValueError: the state is not one of this model.
    """
    if d.qpos.shape != (model.nq,):
        raise ValueError(f"qpos: has shape {d.qpos.shape}, one world of the model ({model.nq},)")
    for name, f in Data.fields.items():
        if f.nested is None and _is_exchanged(name, f, d, data):
            value, into = np.asarray(getattr(d, name)), getattr(data, name)
            if isinstance(into, np.ndarray):
                into[...] = value.reshape(into.shape)
            elif name == "time":
                data.time = float(value)


def get_data(model: Any, d: Data) -> Any:
    """A `mujoco.MjData` of one world, or a list of them if `d` has a leading axis of worlds."""
    new = sys.modules[type(model).__module__].MjData
    if d.time.ndim:
        worlds = d.time.shape[0]
        return [get_data(model, jax.tree.map(lambda x, i=i: x[i], d)) for i in range(worlds)]
    data = new(model)
    get_data_into(data, model, d)
    return data


def _names(model: Any, table: str) -> tuple[str, ...]:
    text = model.names
    addresses = getattr(model, f"name_{table}adr")
    return tuple(text[a : text.index(b"\0", a)].decode() for a in addresses)


def _is_whole(value: Any) -> bool:
    """Whether a value is a count, or a table of integers or flags."""
    table = isinstance(value, np.ndarray) and value.dtype.kind in "iub"
    return table or isinstance(value, int | np.integer)


def _is_exchanged(name: str, field: Field, d: Data, data: Any) -> bool:
    """Whether both sides have the field, with the same number of values."""
    if name == "warning" or field.static or getattr(d, name) is None or not hasattr(data, name):
        return False
    return np.size(getattr(data, name)) == np.size(getattr(d, name))


def _like(mine: jax.Array, theirs: Any) -> jax.Array:
    """A copy of their value in our shape and type; the next step there overwrites the original."""
    return jnp.array(np.reshape(theirs, mine.shape), dtype=mine.dtype)


def _contacts(empty: Contact, found: Any) -> Contact:
    """Copies MuJoCo's contacts into the slots there are."""
    count = min(len(found.dist), len(empty.dist))
    filled = {}
    for name in Contact.fields:
        slots = getattr(empty, name)
        values = np.asarray(getattr(found, name))[:count].reshape(count, *slots.shape[1:])
        filled[name] = slots.at[:count].set(jnp.asarray(values, dtype=slots.dtype))
    return Contact(**filled)
