"""The numbers of a model that the name of a parameter selects, by object."""

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from jaxsim.identify.targets import actuators
from jaxsim.identify.targets.select import (
    DERIVED_FIELDS,
    PREFIXES,
    SIGNAL_FIELDS,
    TARGET_PATTERN,
    WILDCARDS,
    current_value,
    matching_ids,
    unknown_field,
)
from jaxsim.model.model import Model
from jaxsim.spelling import remedy

_UNIT_VECTOR_FIELDS = frozenset(("jnt_axis", "light_dir", "mesh_normal", "mesh_polynormal"))
# what a bare field leaves unchanged, and the name that changes both
_COUPLED_FIELDS = {
    "body_mass": ("body_inertia stays as it is", "'body:*/mass'"),
    "actuator_gainprm": ("the bias of servos stays as it is", "'actuator:*/kp' or 'actuator:*/kv'"),
    "actuator_biasprm": ("the gain of servos stays as it is", "'actuator:*/kp' or 'actuator:*/kv'"),
    "geom_size": ("mass and inertia of the body stay as they are", "'body:*/mass' as well"),
}
_NOT_MODEL_FIELDS = {
    "delay": "actions are delayed by Delayed(worlds, (least, most)), worlds.delay_most in a file; "
    "an actuator that has a delay (nsample) is 'actuator:NAME/delay'",
    "offset": "noise on what is seen is of the worlds: Noisy(worlds, obs=...)",
    "gain": "a gain of a control is 'actuator:NAME/gain' of a motor, 'actuator:NAME/kp' of a servo",
}


class Numbers(NamedTuple):
    """Numbers of a field that belong to objects.

    Attributes:
      field: "body_mass", "opt.gravity".
      adr: their flat addresses in the field, (n,).
      owner: index of the object that each belongs to, (n,).
      sign: sign of the number where the parameter is positive.
    """

    field: str
    adr: np.ndarray
    owner: np.ndarray
    sign: np.ndarray | float = 1.0


class RangedParameter(NamedTuple):
    """A physical parameter of some objects.

    Attributes:
      name: as given by the user.
      objects: number of objects.
      own: the numbers of the parameter itself; one entry for each field.
      followers: numbers in proportion to it.
      field: name that selects the bounds of its values (bounds.py).
      turned: the parameter is an orientation; `own` are quaternions.
    """

    name: str
    objects: int
    own: tuple[Numbers, ...]
    followers: tuple[Numbers, ...] = ()
    field: str = ""
    turned: bool = False

    @property
    def width(self) -> int:
        """Return the largest count of numbers of an object."""
        return max(int(np.bincount(n.owner).max()) for n in self.own)


def find_parameter(m: Model, name: str) -> RangedParameter:
    """Return the parameter of a name.

    Raises:
      ValueError: there is none, or a number of it cannot be drawn by itself.
    """
    found = TARGET_PATTERN.fullmatch(name) if isinstance(name, str) else None
    if found is None:
        raise ValueError(f"{name}: expected 'kind:name/field', a field or an option")
    kind, pattern, field, k = found["kind"], found["name"], found["field"], found["k"]
    component = None if k is None else int(k)
    if kind is None and field is None:
        return _field_or_option(m, name, pattern, component)
    if kind in SIGNAL_FIELDS and (kind != "sensor" or field in _NOT_MODEL_FIELDS):
        raise ValueError(f"{name}: {_NOT_MODEL_FIELDS.get(str(field), 'is not of a model')}")
    if kind not in PREFIXES:
        raise ValueError(f"{name}: no kind {kind!r}{remedy(str(kind), PREFIXES)}")
    try:
        ids = objects_of(m, kind, pattern)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if kind == "actuator" and field in actuators.ACTUATOR_PARAMETERS:
        return _actuator_parameter(m, name, pattern, str(field), component)
    special = _SPECIAL_PARAMETERS.get((kind, str(field)))
    if special is not None:
        if component is not None:
            raise ValueError(f"{name}: its numbers change together; leave [{component}] out")
        return special(m, name, ids, exact=not any(c in pattern for c in WILDCARDS))
    if field == "rotation":
        return _rotation(m, name, kind, ids)
    prefix = next((p for p in PREFIXES[kind] if f"{p}_{field}" in Model.fields), None)
    if prefix is None:
        raise unknown_field(name, str(kind), str(field))
    return _field_parameter(m, name, f"{prefix}_{field}", ids, component)


def objects_of(m: Model, kind: str, pattern: str) -> np.ndarray:
    """Return the ids of the objects whose names match; "*" is all but the world."""
    if pattern != "*":
        return matching_ids(m, kind, pattern)
    ids = np.arange(1 if kind == "body" else 0, len(m.names[kind]))
    if not len(ids):
        raise ValueError(f"the model has no {kind}")
    return ids


def _field_or_option(m: Model, name: str, field: str, component: int | None) -> RangedParameter:
    """Return a field of all objects by its own name, or an option."""
    option = field.removeprefix("opt.")
    if option in m.opt.fields and not m.opt.fields[option].static:
        return _field_parameter(m, name, f"opt.{option}", np.zeros(1, int), component)
    known = [n for n, f in Model.fields.items() if not f.static and f.nested is None]
    if field not in known:
        options = [f"opt.{n}" for n, f in m.opt.fields.items() if not f.static]
        raise ValueError(
            f"{name}: the model has no real field {field!r}{remedy(field, known + options)}"
        )
    array = np.asarray(current_value(m, field))
    if not array.size:
        raise ValueError(f"{name}: the model has no object with this field")
    left, better = _COUPLED_FIELDS.get(field, ("", ""))
    servos = field not in ("actuator_gainprm", "actuator_biasprm") or actuators.has_servos(m)
    if left and servos:
        warnings.warn(f"{name}: changes alone: {left}; use {better}", stacklevel=2)
    ids = np.arange(m.njnt if field.startswith("dof_") else array.shape[0] if array.ndim else 1)
    return _field_parameter(m, name, field, ids, component)


def _field_parameter(
    m: Model, name: str, field: str, ids: np.ndarray, component: int | None
) -> RangedParameter:
    """Return the numbers of one field; `ids` are joints for a field of dofs."""
    declared = Model.fields.get(field)
    if field in DERIVED_FIELDS:
        raise ValueError(f"{name}: {field} follows from other numbers; draw those")
    if field in _UNIT_VECTOR_FIELDS or (declared is not None and declared.kind in ("quat", "rot")):
        raise ValueError(f"{name}: numbers of a unit length are not free; use '/rotation'")
    if field in ("qpos0", "qpos_spring") and (m.nq != m.nv):
        raise ValueError(f"{name}: has quaternions; draw the start in Env.start instead")
    array = np.asarray(current_value(m, field))
    if field.startswith("opt."):
        items, width, owner = np.zeros(1, int), array.size, np.zeros(1, int)
    else:
        width = int(np.prod(array.shape[1:], dtype=int))
        items, owner = ids, np.arange(len(ids))
        if field.startswith("dof_"):
            owner = np.concatenate(
                [np.full((m.dof_jntid == j).sum(), i) for i, j in enumerate(ids)]
            )
            items = np.concatenate([np.flatnonzero(m.dof_jntid == j) for j in ids])
        if len(items) and items.max() >= array.shape[0]:
            raise ValueError(f"{name}: {field} has no number of its own for each of these objects")
    if component is not None and component >= width:
        raise ValueError(f"{name}: expected an index below {width}, got {component}")
    if field == "body_inertia" and component is not None:
        raise ValueError(f"{name}: moments change together; leave [{component}] out")
    columns = np.arange(width) if component is None else np.array([component])
    adr = (items[:, None] * width + columns).ravel()
    own = Numbers(field, adr, np.repeat(owner, len(columns)))
    return RangedParameter(name, int(owner.max()) + 1 if len(owner) else 0, (own,), field=field)


def numbers_of(field: str, width: int, ids: np.ndarray, columns: Any, sign: float = 1.0) -> Numbers:
    """Return columns of the rows of some objects in a field of `width` columns."""
    columns = np.atleast_1d(columns)
    adr = (ids[:, None] * width + columns).ravel()
    return Numbers(field, adr, np.repeat(np.arange(len(ids)), len(columns)), sign)


def mass_of(m: Model, name: str, ids: np.ndarray, exact: bool) -> RangedParameter:
    """Return the mass of bodies; their inertia follows, as for another density."""
    ids = ids if exact else ids[np.asarray(m.body_mass)[ids] > 0]
    own = numbers_of("body_mass", 1, ids, 0)
    return RangedParameter(
        name, len(ids), (own,), (numbers_of("body_inertia", 3, ids, range(3)),), "_mass"
    )


def _inertia(m: Model, name: str, ids: np.ndarray, exact: bool) -> RangedParameter:
    """Return the moments of inertia of bodies, with one factor for each body."""
    ids = ids if exact else ids[np.asarray(m.body_mass)[ids] > 0]
    own = numbers_of("body_inertia", 3, ids, range(3))
    return RangedParameter(name, len(ids), (own,), field="body_inertia")


def _actuator_parameter(
    m: Model, name: str, pattern: str, field: str, component: int | None
) -> RangedParameter:
    """Return a parameter of actuators by its name in MJCF."""
    ids = objects_of(m, "actuator", pattern)
    exact = not any(c in pattern for c in WILDCARDS)
    components = actuators.count_of(m, ids, field, component)
    found = [actuators.entries_of(m, name, ids, field, k, exact) for k in components]
    by_field: dict[str, list[Numbers]] = {}
    for _, parts in found:
        for part in parts:
            by_field.setdefault(part.field, []).append(Numbers(*part))
    own = tuple(
        Numbers(n, *map(np.concatenate, zip(*(part[1:] for part in of), strict=True)))
        for n, of in by_field.items()
    )
    return RangedParameter(name, len(found[0][0]), own, field=f"_{field}")


def _delay(m: Model, name: str, ids: np.ndarray, exact: bool) -> RangedParameter:
    """Return the delays of actuators that have a history."""
    has = np.asarray(m.actuator_hashistory, bool)[ids]
    if not has.any() or (exact and not has.all()):
        raise ValueError(
            f"{name}: has no history; write nsample in the model, or delay all actions by "
            "Delayed(worlds, (least, most)), worlds.delay_most in a file"
        )
    return RangedParameter(
        name,
        int(has.sum()),
        (numbers_of("actuator_delay", 1, ids[has], 0),),
        field="actuator_delay",
    )


def _rotation(m: Model, name: str, kind: str, ids: np.ndarray) -> RangedParameter:
    field = f"{PREFIXES[kind][0]}_quat"
    if field not in Model.fields:
        raise ValueError(f"{name}: a {kind} has no orientation")
    own = Numbers(field, ids, np.arange(len(ids)))
    return RangedParameter(name, len(ids), (own,), turned=True)


_SPECIAL_PARAMETERS: dict[tuple[str, str], Callable[..., RangedParameter]] = {
    ("body", "mass"): mass_of,
    ("body", "inertia"): _inertia,
    ("actuator", "delay"): _delay,
}
