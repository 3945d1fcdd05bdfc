"""Check that the tables of a model are consistent, because a saved file may contain anything.

Checked is what the engine relies on without further tests: lengths, ids, addresses and kinds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import numpy as np

from jaxsim.enums import JointType
from jaxsim.errors import AssetError
from jaxsim.io import tables
from jaxsim.model.model import Model
from jaxsim.model.motor import STATES, kind_of_states
from jaxsim.model.record.record import Record
from jaxsim.model.structure import Structure
from jaxsim.model.switch.switches import FIXED_FIELDS, SWITCHES

_MAX_INT32 = np.iinfo(np.int32).max


def check_consistency(m: Model) -> None:
    """Reject a model whose tables are inconsistent.

    Raises:
      AssetError: with the name of the table, the value, and what was expected.
    """
    check_structure(m.structure)
    sizes = {name: getattr(m, name) for name in tables.COUNT_NAMES}
    for record in (m, m.opt, m.stat):
        _check_leaves(record, sizes)
    for name, field in m.opt.fields.items():
        value = getattr(m.opt, name)
        if field.static and (type(value) is not int or not 0 <= value <= _MAX_INT32):
            raise AssetError(f"opt.{name} is {value!r}, expected a number from 0 to {_MAX_INT32}")
    for name, kinds in tables.OPTION_ENUM_VALUES.items():
        _check_kind(f"opt.{name}", np.array([getattr(m.opt, name)]), kinds)


def check_structure(s: Structure) -> None:
    """Reject a structure whose tables are inconsistent; see `check_consistency`."""
    for check in (
        _check_counts,
        _check_lengths,
        _check_ids,
        _check_spans,
        _check_images,
        _check_joints,
        _check_states,
        _check_local,
        _check_polygons,
        _check_hulls,
        _check_histories,
        _check_kinds,
        _check_objects,
        _check_names,
    ):
        check(s)


def _check_leaves(record: Record, sizes: dict[str, int]) -> None:
    """Check that leaves have their declared shapes, after any batch axes; a leaf may be absent."""
    for name, field in record.fields.items():
        value = getattr(record, name)
        if field.static or field.nested is not None or value is None:
            continue
        dims = field.dims(sizes)
        shape = getattr(value, "shape", None)
        if shape is None or value.dtype.kind != "f":
            raise AssetError(f"{name} is {value!r}, expected an array of real numbers")
        if shape[len(shape) - len(dims) :] != dims or len(shape) < len(dims):
            raise AssetError(f"{name} has the shape {shape}, expected {dims}")


def _check_counts(s: Structure) -> None:
    for name in tables.COUNT_NAMES:
        if name not in s:
            raise AssetError(f"{name} is missing")
        value = getattr(s, name)
        if type(value) is not int or not 0 <= value <= _MAX_INT32:
            raise AssetError(f"{name} is {value!r}, expected a count up to {_MAX_INT32}")
    if not s.nbody or not s.ncontact:
        raise AssetError("nbody and ncontact must be at least 1: the world is a body")


def _check_lengths(s: Structure) -> None:
    for switch in (*SWITCHES, *FIXED_FIELDS):
        if switch.flag not in s:
            raise AssetError(f"{switch.flag} is missing")
    for name, axes in tables.TABLE_AXES.items():
        if name not in s:
            raise AssetError(f"{name} is missing")
        _check_length(s, name, axes)
    for name in s:
        flag = None if name in tables.TABLE_AXES else re.fullmatch(tables.FLAG_PATTERN, name)
        if flag:
            _check_length(s, name, (tables.COUNT_OF_PREFIX.get(flag[1], f"n{flag[1]}"),))
        elif name.startswith("flg_") and type(getattr(s, name)) is not bool:
            raise AssetError(f"{name} is {getattr(s, name)!r}, expected True or False")


def _check_length(s: Structure, name: str, axes: tuple[str | int, ...]) -> None:
    value = getattr(s, name)
    expected = tuple(n if isinstance(n, int) else getattr(s, n) for n in axes)
    if isinstance(value, bytes):
        if (len(value),) != expected:
            raise AssetError(f"{name} has {len(value)} bytes, expected {expected[0]}")
        return
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iub":
        raise AssetError(f"{name} is {str(value)[:40]!r}, expected a table of whole numbers")
    if value.shape != expected:
        raise AssetError(f"{name} has the shape {value.shape}, expected {expected}")


def _check_ids(s: Structure) -> None:
    for names, count, least in tables.IDS:
        for name in names.split():
            _check_between(name, getattr(s, name), least, getattr(s, count) - 1, count)
    for name in tables.PARENT_TABLES:
        parent = _widen_table(s, name)
        # the world is its own parent
        late = np.flatnonzero(parent >= np.maximum(np.arange(len(parent)), 1))
        late = late[(late > 0) | (name != "body_parentid")]
        if len(late):
            raise AssetError(
                f"{name}[{late[0]}] is {parent[late[0]]}; a parent must precede its children"
            )


def _check_spans(s: Structure) -> None:
    for adr, num, count, marked in tables.SPANS:
        start, length, most = _widen_table(s, adr), _widen_table(s, num), getattr(s, count)
        _check_between(num, length, 0, most, count)
        used = length > 0
        _check_between(adr, start, -1, most, count)
        if marked and ((start == -1) == used).any():
            raise AssetError(
                f"{adr} is {start}, {num} is {length}; an empty part must have the address -1"
            )
        _check_between(adr, np.where(used, start, 0), 0, most, count)
        _check_between(f"{adr} + {num}", np.where(used, start + length, 0), 0, most, count)
    for adr, count in tables.SPAN_STARTS.items():
        _check_between(adr, getattr(s, adr), -1, getattr(s, count), count)
    if s.sensor_dim.sum() != s.nsensordata:
        raise AssetError(f"nsensordata is {s.nsensordata}, the sensors have {s.sensor_dim.sum()}")


def _check_images(s: Structure) -> None:
    """Check that height fields and textures lie within their data."""
    for kind, sizes, count in (
        ("hfield", ("hfield_nrow", "hfield_ncol"), "nhfielddata"),
        ("tex", ("tex_height", "tex_width", "tex_nchannel"), "ntexdata"),
    ):
        adr, most = _widen_table(s, f"{kind}_adr"), getattr(s, count)
        for name in sizes:
            _check_between(name, getattr(s, name), 0, _MAX_INT32, "the limit")
        # In floating point, because the product of three sizes may overflow integers.
        length = np.prod([_widen_table(s, name).astype(np.float64) for name in sizes], axis=0)
        _check_between(f"{kind}_adr and size", np.where(adr >= 0, adr + length, 0), 0, most, count)


def _check_joints(s: Structure) -> None:
    _check_kind("jnt_type", s.jnt_type, JointType)
    kinds = map(JointType, s.jnt_type)
    width = np.array([(kind.nq, kind.nv) for kind in kinds], int).reshape(-1, 2)
    for i, (adr, count) in enumerate((("jnt_qposadr", "nq"), ("jnt_dofadr", "nv"))):
        start, most = _widen_table(s, adr), getattr(s, count)
        _check_between(adr, start, 0, most, count)
        _check_between(f"{adr} and its width", start + width[:, i], 0, most, count)
        if width[:, i].sum() != most:
            raise AssetError(f"{count} is {most}, the joints have {width[:, i].sum()}")


def _check_states(s: Structure) -> None:
    """Check that controllers and motors have the activations that `act` stores for them."""
    kinds = kind_of_states(s.actuator_dyntype, s.actuator_gaintype)
    number = (s.actuator_states != 0).sum(axis=1)
    wrong = np.isin(kinds, tuple(STATES)) & (number != s.actuator_actnum)
    if wrong.any():
        raise AssetError(
            f"actuator_states of item {np.flatnonzero(wrong)[0]} contradict actuator_actnum"
        )


def _check_histories(s: Structure) -> None:
    """Check that buffers of samples end within the history."""
    for kind, width in (("actuator", s.actuator_ctrlnum), ("sensor", s.sensor_dim)):
        name = f"{kind}_historyadr"
        first, samples = _widen_table(s, name), _widen_table(s, f"{kind}_history")[:, 0]
        end = first + 2 + samples * (1 + width.astype(int))
        bad = (first >= 0) & ((samples <= 0) | (end > s.nhistory))
        if bad.any():
            place = _first_wrong_entry(name, first, np.argwhere(bad))
            raise AssetError(f"{place}: its samples exceed nhistory {s.nhistory}")


def _check_local(s: Structure) -> None:
    for name, span, num in tables.LOCAL_NUMBERS:
        values = _widen_table(s, name)
        most = np.zeros(len(values), np.int64)
        most[_concatenate_spans(s, *span)] = np.repeat(getattr(s, num), getattr(s, span[1]))
        _check_below(name, values, most.reshape(-1, *[1] * (values.ndim - 1)))
    _check_below("mesh_extrema", _widen_table(s, "mesh_extrema"), s.mesh_vertnum[:, None])


def _check_polygons(s: Structure) -> None:
    """Check that polygon vertices belong to their mesh, and so do the polygons of each vertex."""
    for item, entry, owned, num in (
        ("mesh_poly", "mesh_polyvert", "mesh_polyvert", "mesh_vertnum"),
        ("mesh_vert", "mesh_polymap", "mesh_polymap", "mesh_polynum"),
    ):
        most_of_item = np.zeros(len(getattr(s, f"{owned}adr")), np.int64)
        most_of_item[_concatenate_spans(s, f"{item}adr", f"{item}num")] = np.repeat(
            getattr(s, num), getattr(s, f"{item}num")
        )
        values = _widen_table(s, entry)
        most = np.zeros(len(values), np.int64)
        most[_concatenate_spans(s, f"{owned}adr", f"{owned}num")] = np.repeat(
            most_of_item, getattr(s, f"{owned}num")
        )
        _check_below(entry, values, most)


def _check_hulls(s: Structure) -> None:
    """Check that support-map cells have parts, and that parts have candidates or a fan."""
    first, power = np.divmod(_widen_table(s, "hull_cell"), 8)
    _check_between("hull_cell", first, 0, s.nhullpart, "nhullpart")
    _check_between("hull_cell and its parts", first + 4**power, 0, s.nhullpart, "nhullpart")
    _check_between("hull_part", s.hull_part, -s.nhullfan, s.nhullvert - 1, "nhullvert")
    if len(np.unique(s.hull_vertid)) != s.nhullpoint:
        raise AssetError("nhullpoint is not the number of vertices in hull_vertid")


def _concatenate_spans(s: Structure, adr: str, num: str) -> np.ndarray:
    """Return the rows of all spans, concatenated."""
    start, length = _widen_table(s, adr), _widen_table(s, num)
    before = np.cumsum(length) - length
    return np.repeat(start - before, length) + np.arange(length.sum())


def _check_kinds(s: Structure) -> None:
    for name, kinds in tables.ENUM_VALUES.items():
        _check_kind(name, getattr(s, name), kinds)


def _check_objects(s: Structure) -> None:
    for name, kind, counts, least, column in tables.OBJECT_REFERENCES:
        ids, kinds = getattr(s, name), getattr(s, kind)
        ids = ids[:, column] if ids.ndim == 2 else ids
        for value in counts.keys() & set(kinds.tolist()):
            some = np.where(kinds == value, ids, 0)
            _check_between(name, some, least, getattr(s, counts[value]) - 1, counts[value])


def _check_names(s: Structure) -> None:
    places: tuple = (str | None, int | None, str)
    for table, form in (
        ("names", (str, tuple)),
        ("refusals", places),
        ("contact_refusals", places),
        ("clash_places", places),
        ("plugin_keys", (str, int)),
        ("collider_keys", (int, int, int)),
    ):
        rows = getattr(s, table) if table in s else None
        if not isinstance(rows, tuple):
            raise AssetError(f"{table} is missing")
        for row in rows:
            if not _is_row(row, form):
                raise AssetError(f"{table} has an entry {str(row)[:40]!r}")
    if len(s.plugin_keys) != s.nplugin:
        raise AssetError(f"{len(s.plugin_keys)} plugins are named, nplugin is {s.nplugin}")
    known = dict(s.names)
    for kind, names in known.items():
        if not all(isinstance(name, str) for name in names):
            raise AssetError(f"a name of {kind} is no text")
    for kind, count in tables.NAMED.items():
        if len(known.get(kind, ())) != getattr(s, count):
            raise AssetError(
                f"{len(known.get(kind, ()))} names of {kind}, {count} is {getattr(s, count)}"
            )


def _is_row(row: object, form: tuple) -> bool:
    """Return whether a value is a tuple of values of these types."""
    if not isinstance(row, tuple) or len(row) != len(form):
        return False
    return all(isinstance(value, kind) for value, kind in zip(row, form, strict=True))


def _widen_table(s: Structure, name: str) -> np.ndarray:
    """Return a table in a type wide enough to add up its entries."""
    return np.asarray(getattr(s, name)).astype(np.int64)


def _check_kind(name: str, values: np.ndarray, kinds: Iterable[int]) -> None:
    found = set(values.ravel().tolist())
    if not found.issubset(kinds):
        known = sorted(int(kind) for kind in kinds)
        bad = np.argwhere(~np.isin(values, known))
        raise AssetError(f"{_first_wrong_entry(name, values, bad)}, expected one of {known}")


def _check_below(name: str, values: np.ndarray, most: np.ndarray) -> None:
    wrong = (values < -1) | (values >= most)
    if wrong.any():
        raise AssetError(
            f"{_first_wrong_entry(name, values, np.argwhere(wrong))}, more than its owner has"
        )


def _check_between(name: str, values: np.ndarray, least: int, most: int, count: str) -> None:
    # The common case first: a model has two hundred tables.
    if values.size and (values.min() < least or values.max() > most):
        bad = np.argwhere((values < least) | (values > most))
        raise AssetError(
            f"{_first_wrong_entry(name, values, bad)}, expected {least} to {most} ({count})"
        )


def _first_wrong_entry(name: str, values: np.ndarray, bad: np.ndarray) -> str:
    """Return the first wrong entry of a table, with its index and value."""
    return f"{name}[{', '.join(map(str, bad[0]))}] is {values[tuple(bad[0])]}"
