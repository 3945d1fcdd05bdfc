"""Assemble a Model from compiled tables: real numbers become array leaves, the rest the structure.

Both entries to the engine end here: a model compiled from MJCF (`load.py`) and a compiled model of
MuJoCo's (`bridge`). The field tables of `Model`, `Option` and `Statistic` decide which fields are
leaves.
"""

import math
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxsim.enums import WrapType
from jaxsim.errors import SourceLocation, UnsupportedWarning
from jaxsim.extend.plugin import Config, Plugin, settings_in
from jaxsim.extend.registry import collider_keys, plugin_key, registered_plugins
from jaxsim.io.capacity.capacity import with_capacity
from jaxsim.io.capacity.prisms import prisms_under, prisms_under_elements
from jaxsim.io.hull_tables import hull_tables
from jaxsim.io.search_order import mesh_order, shell_order
from jaxsim.io.unsupported import ElementLocations, unsupported_features
from jaxsim.model.flex.tables import flex_tables
from jaxsim.model.model import Model
from jaxsim.model.motor import actuator_states
from jaxsim.model.option import Option, Statistic
from jaxsim.model.record.record import Record
from jaxsim.model.structure import HULLS_MOVED, Structure
from jaxsim.model.switch.switches import Free, flags, free_fields, freeable
from jaxsim.physics.collision.smooth import SMOOTHING_CUTOFF
from jaxsim.spelling import remedy

_ModelTables = Mapping[str, Any]

# File paths are left out: the same model in another folder is the same program.
_PATH_FIELD = re.compile(r"n?paths|\w+_pathadr")


def assemble(
    fields: _ModelTables,
    opt: _ModelTables,
    stat: _ModelTables,
    names: Mapping[str, tuple[str, ...]],
    *,
    contacts: int | None = None,
    pairs: int | None = None,
    smooth: float | None = None,
    origin: str | None = None,
    locations: ElementLocations | None = None,
    plugins: Sequence[str] = (),
    actuator_origin: tuple[tuple, ...] = (),
) -> Model:
    """Make the Model of compiled tables.

    Args:
      fields: arrays and counts under MuJoCo's mjModel names.
      opt: simulation options, by name.
      stat: statistics, by name.
      names: names of the objects of each kind, by id.
      contacts: contact capacity of a world; None: a default (`capacity/capacity.py`).
      pairs: capacity for near pairs of each group; None: a default (`capacity/capacity.py`).
      smooth: distance at which contacts start to act [m]; None or 0: only in contact.
      origin: file the model came from, for messages.
      locations: source locations of the objects of each kind, by id, for messages.
      plugins: name of the plugin of each instance.
      actuator_origin: what the file gives for each actuator (compile/context.py).

    Returns:
      The Model. Leaves have the default precision of JAX: float32, or float64 under x64.

    Warns:
      UnsupportedWarning: the physics cannot run this model; `make_data` will refuse it.
    """
    fields = {**fields, **_plugin_numbers(fields, plugins)}
    sizes = {name: int(value) for name, value in fields.items() if _is_count(value)}
    leaves = _convert_leaves(Model, fields, sizes)
    static = {name: value for name, value in fields.items() if name not in leaves}
    tables = _tables(static, names, plugins)
    tables |= flags(lambda name: opt[name[4:]] if name.startswith("opt.") else fields[name])
    tables |= _derived_tables(fields, SMOOTHING_CUTOFF * (smooth or 0))
    tables |= {"actuator_origin": actuator_origin} if actuator_origin else {}
    if smooth:
        leaves["smooth"] = _convert_leaf("smooth", Model.fields["smooth"], smooth, sizes)

    # All on the host until the structure has what follows from the whole model, which goes to the
    # device at once.
    m = Model(
        structure=Structure(tables),
        opt=_assemble_record(Option, opt, sizes),
        stat=_assemble_record(Statistic, stat, sizes),
        **leaves,
    )
    m = with_capacity(m, contacts, pairs)
    m = m.with_tables(**unsupported_features(m, locations or {}, origin))
    if m.unsupported:
        warn_unsupported(m.unsupported)
    return jax.device_put(m)


def _derived_tables(fields: _ModelTables, reach: float) -> dict[str, Any]:
    """Return the tables derived from the fields; `reach` is the range of smoothed contacts [m]."""
    return {
        **hull_tables(fields),
        **flex_tables(fields),
        "actuator_states": actuator_states(fields.__getitem__),
        "wrap_sideid": _side_sites(fields),
        "geom_prismnum": prisms_under(fields, reach),
        "flex_prismnum": prisms_under_elements(fields, reach),
        "mesh_faceorder": mesh_order(fields),
        "flex_elemorder": shell_order(fields),
    }


def _tables(
    static: _ModelTables, names: Mapping[str, tuple[str, ...]], plugins: Sequence[str]
) -> dict[str, Any]:
    """Return the tables that decide the program: fields that are no leaves, names, and keys of
    registered plugins and colliders."""
    return {
        **{
            name: _convert_table(value)
            for name, value in static.items()
            if not _PATH_FIELD.fullmatch(name)
        },
        "names": tuple((kind, tuple(of_kind)) for kind, of_kind in sorted(names.items())),
        "plugin_keys": tuple(plugin_key(name) for name in plugins),
        "collider_keys": collider_keys(),
    }


def freed_model(m: Model, free: Free) -> Model:
    """Return a model in which some fields are live even where they are zero.

    Args:
      m: the model.
      free: names of real fields, or "all", as for `load_model`.

    Raises:
      ValueError: there is no such field.
    """
    if free != "all":
        free = [free] if isinstance(free, str) else list(free)
        known = {n for n, f in Model.fields.items() if not f.static and f.nested is None}
        known |= {f"opt.{n}" for n, f in Option.fields.items() if not f.static}
        unknown = [name for name in free if name not in known]
        if unknown:
            end = remedy(unknown[0], known)
            raise ValueError(f"free: a model has no real field {unknown[0]!r}{end}")
        if not free:
            return m
    moving = m.nhull and (free == "all" or "mesh_vert" in free)
    marks = {HULLS_MOVED: True} if moving else {}
    return m.replace(structure=free_fields(m.structure, free).replace(**marks))


def live_model(m: Model, fields: Iterable[str]) -> Model:
    """Return the model with some fields live: those that were compiled out are freed.

    Args:
      m: the model; its numbers may be traced.
      fields: names of fields that will change, "opt.density" for one of the options.
    """
    return freed_model(m, freeable(m.structure, fields))


def warn_unsupported(refusals: Sequence[tuple[str | None, int | None, str]]) -> None:
    """Warn at loading time that the model cannot be simulated, with the first reason."""
    file, line, message = refusals[0]
    more = f" (and {len(refusals) - 1} more)" if len(refusals) > 1 else ""
    text = (
        f"{SourceLocation(file, line)}: {message}{more}; the model can be read, but not simulated"
    )
    warnings.warn(text, UnsupportedWarning, stacklevel=4)


def undeclared_arrays(fields: _ModelTables) -> list[str]:
    """Return the names of real-valued arrays of a compiled model that are no leaves of `Model`.

    They are stored in the structure, where they can be read but not batched or differentiated.
    """
    real = (n for n, v in fields.items() if isinstance(v, np.ndarray) and v.dtype.kind == "f")
    return sorted(name for name in real if name not in Model.fields)


def _side_sites(fields: _ModelTables) -> np.ndarray:
    """Return the side site of each wrapping geom, `[nwrap]`, or -1; MuJoCo stores it as a real
    number."""
    wraps = np.isin(fields["wrap_type"], (WrapType.SPHERE, WrapType.CYLINDER))
    side = np.where(wraps, fields["wrap_prm"], -1)
    return np.maximum(np.rint(side), -1).astype(np.int32)


def _convert_leaves(
    record: type[Record], given: _ModelTables, sizes: Mapping[str, int]
) -> dict[str, np.ndarray]:
    """Return the declared array fields that were given; the others stay None."""
    return {
        name: _convert_leaf(name, f, given[name], sizes)
        for name, f in record.fields.items()
        if not f.static and f.nested is None and name in given
    }


def _assemble_record(record: type[Record], given: _ModelTables, sizes: Mapping[str, int]) -> Any:
    statics = {n: int(given[n]) for n, f in record.fields.items() if f.static and n in given}
    return record(**_convert_leaves(record, given, sizes), **statics)


def _convert_leaf(name: str, field, value, sizes: Mapping[str, int]) -> np.ndarray:
    # Convert and copy with numpy: JAX would compile a program for each shape.
    value = np.array(value, dtype=jax.dtypes.canonicalize_dtype(np.float64))
    dims = field.dims(sizes)
    if value.size != math.prod(dims):
        raise ValueError(f"{name}: has shape {value.shape}, expected {dims}")
    return value.reshape(dims)


def _is_count(value) -> bool:
    return isinstance(value, int | np.integer)


def _convert_table(value):
    """Return a structure table: a Python value for a single number, otherwise numpy."""
    if isinstance(value, np.ndarray) and value.ndim:
        return value
    return value.item() if isinstance(value, np.generic | np.ndarray) else value


def _plugin_numbers(fields: _ModelTables, names: Sequence[str]) -> dict[str, Any]:
    """Return the fields `plugin_state0`, `plugin_params`, and the addresses of the parameters.

    Args:
      fields: tables of the model.
      names: name of the plugin of each instance; an unregistered plugin contributes nothing.

    Raises:
      ValueError: the parameters of a plugin are no real numbers.
    """
    known = registered_plugins()
    start = np.zeros(int(fields["npluginstate"]))
    params = [np.zeros(0)]
    for name, at, adr, num in zip(
        names,
        fields["plugin_attradr"],
        fields["plugin_stateadr"],
        fields["plugin_statenum"],
        strict=True,
    ):
        if name not in known:
            params.append(np.zeros(0))
            continue
        config = settings_in(known[name], fields["plugin_attr"], at)
        start[adr : adr + num] = np.asarray(known[name].state(config), float).ravel()
        params.append(_flatten_params(known[name], config))
    number = np.array([len(p) for p in params[1:]], np.int32)
    return {
        "plugin_state0": start,
        "plugin_params": np.concatenate(params),
        "npluginparam": int(number.sum()),
        "plugin_paramadr": (np.cumsum(number) - number).astype(np.int32),
        "plugin_paramnum": number,
    }


def _flatten_params(plugin: Plugin, config: Config) -> np.ndarray:
    """Return the parameters of an instance as one vector."""
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(plugin.params(config))]
    for leaf in leaves:
        if leaf.dtype.kind not in "fiu":
            raise ValueError(
                f"plugin {plugin.name!r}: params: expected real numbers, got {leaf.dtype}"
            )
    return np.concatenate([np.zeros(0), *[leaf.astype(float).ravel() for leaf in leaves]])
