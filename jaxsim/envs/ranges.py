"""Ranges of physical parameters for domain randomization, by the name of the parameter.

    "body:torso/mass": (0.8, 1.2)                 a factor, uniform
    "joint:*/damping": scale(0.5, 2)              a factor, uniform in its logarithm
    "actuator:hip/kp": scale(sd=0.1)              a factor, log-normal
    "geom:foot*/friction[0]": linear(0.4, 1.2)    the value itself
    "body:torso/mass": shift(-1, 3)               an offset that is added
    "body:torso/inertia": pseudo_inertia(sd=0.1)  mass, center of mass and inertia

Names and forms are those of identification (identify/targets/select.py, identify/forms.py); "*"
selects all objects, unnamed ones included. One factor is drawn for each object, and dependent
numbers change with it: inertia with mass, the bias of a servo with its gain. A bare field,
"body_mass", changes alone.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import JointType
from jaxsim.identify import inertia
from jaxsim.identify.forms import Form, ends
from jaxsim.identify.targets import actuators
from jaxsim.identify.targets.actuator_formulas import (
    ActuatorFormulas,
    actuator_formulas,
    entries_set,
)
from jaxsim.identify.targets.select import (
    DERIVED_FIELDS,
    LIMITED,
    PREFIXES,
    SIGNAL_FIELDS,
    TARGET_PATTERN,
    WILDCARDS,
    check_present,
    current_value,
    matching_ids,
    unknown_field,
)
from jaxsim.io.assemble import live_model
from jaxsim.math.rotation import Quat
from jaxsim.math.vector import Vec
from jaxsim.model.model import Model
from jaxsim.spelling import remedy

# lower bounds, by the ends of the names of fields; "above" excludes the bound itself
_POSITIVE_FIELDS = ("_mass", "_inertia", "timestep", "_resistance")
_NONNEGATIVE_FIELDS = (
    *("_damping", "_frictionloss", "_armature", "_friction", "_margin", "_delay"),
    *("density", "viscosity", "_kp", "_kv", "_dampratio", "_diameter", "_timeconst"),
    *("_motorconst", "_nominal", "_inductance", "_saturation", "_controller"),
)
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


@dataclass(frozen=True)
class Range:
    """A uniform range; returned by `factor` and `shift`.

    Attributes:
      kind: "factor" or "shift".
      low, high: its bounds.
      share: one draw for all objects that the name selects; else one for each.
    """

    kind: str
    low: float
    high: float
    share: bool = False


def factor(low: float, high: float, *, share: bool = False) -> Range:
    """Return a factor, uniform in [low, high]; a pair (low, high) means the same."""
    return Range("factor", low, high, share)


def shift(low: float, high: float, *, share: bool = False) -> Range:
    """Return an offset, uniform in [low, high], in the units of the parameter."""
    return Range("shift", low, high, share)


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
      field: name that selects the bounds above.
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


Ranges = Mapping[str, Any] | Iterable[tuple[str, Any]]
ChangeFunction = Callable[[Model, jax.Array], dict[str, Any]]


def change_of(m: Model, ranges: Ranges) -> "RandomChange":
    """Return the random change of a model that ranges specify.

    Args:
      m: the model.
      ranges: a pair (low, high), `factor`, `shift`, or a Form of identification, by name; or a
        sequence of names with ranges, in which a name may occur twice: a factor, then an offset.

    Returns:
      The function from a model and a key to new leaves by name, for `randomize`.

    Raises:
      ValueError: a name selects nothing, a range is invalid, or it allows unphysical values.
    """
    draws: list[_Draw | _DrawInertia] = []
    taken: dict[tuple[str, int], tuple[str, str, str]] = {}
    named = []
    for name, range_ in ranges.items() if isinstance(ranges, Mapping) else ranges:
        draw = _draw(m, name, range_)
        slots = [e for n in draw.sets for i in n.adr for e in entries_set(n.field, int(i))]
        for field, adr, group in slots:
            other, theirs, target = taken.get((field, adr), (None, "", ""))
            # a factor or an offset may follow on a number, but not on one that a formula replaces
            may_follow = not draw.replaces and target == _target_of(draw)
            if other is not None and not may_follow and not (group and group == theirs):
                raise ValueError(f"{name}: sets the same number as {other!r}; leave one out")
        taken |= {(f, a): (name, group, _target_of(draw)) for f, a, group in slots}
        draws.append(draw)
        found = TARGET_PATTERN.fullmatch(name)
        kind, of = (found["kind"], found["field"]) if found else (None, None)
        named.append((kind, of, [(n.field, n.adr) for n in draw.sets]))
    return RandomChange(tuple(draws), actuator_formulas(m, named))


def _target_of(draw: "_Draw | _DrawInertia") -> str:
    """Return the fields of formulas of actuators that a draw sets, "" if there are none."""
    return " ".join(n.field for n in draw.sets if n.field in actuators.FORMULA_FIELDS)


@dataclass(frozen=True, eq=False)
class RandomChange:
    """A random change of a model by ranges: a function of the model and a key."""

    draws: tuple[Any, ...]
    formulas: ActuatorFormulas

    def __call__(self, m: Model, key: jax.Array) -> dict[str, Any]:
        """Return the new leaves by name."""
        changed: dict[str, Any] = self.formulas.initial(m.qpos0.dtype)
        keys = jax.random.split(key, max(len(self.draws), 1))
        for draw, own in zip(self.draws, keys, strict=False):
            changed |= draw.leaves(m, changed, own)
        return self.formulas.evaluate(live_model(m, changed), changed)


@dataclass(frozen=True, eq=False)
class _Draw:
    """A parameter, and the form in which it is drawn."""

    p: RangedParameter
    form: Form | Range

    @property
    def sets(self) -> tuple[Numbers, ...]:
        """Return the numbers that change."""
        return (*self.p.own, *self.p.followers)

    @property
    def replaces(self) -> bool:
        """Return whether the number of the model is replaced, not multiplied or added to."""
        return self.form.kind in ("linear", "log")

    def leaves(self, m: Model, changed: Mapping[str, Any], key: jax.Array) -> dict[str, Any]:
        """Return new leaves from a model, the leaves changed so far, and a key."""
        drawn = _rotate_orientations if self.p.turned else _sample_leaves
        return drawn(m, changed, key, self.p, self.form)


def _draw(m: Model, name: str, form: Any) -> "_Draw | _DrawInertia":
    form = _form(name, form)
    if form.kind == "inertia":
        return _draw_inertia(m, name, form)
    p = find_parameter(m, name)
    return _Draw(p, _check_range(m, p, form))


def _form(name: str, form: Any) -> Form | Range:
    """Return a range as given, as a Form or Range."""
    if isinstance(form, tuple | list) and len(form) == 2:
        form = factor(*form)
    if isinstance(form, Form):
        if form.frozen:
            raise ValueError(f"{name}: frozen: nothing would be drawn; leave the name out")
        if form.sd is None and form.low is None:
            raise ValueError(f"{name}: {form.kind}: expected bounds, or sd, or both")
        return form
    if not isinstance(form, Range):
        raise ValueError(
            f"{name}: expected [lowest, highest] factor, shift(low, high), or linear, log, scale "
            f"or pseudo_inertia of jaxsim.identify, got {form!r}"
        )
    ends_are = [form.low, form.high]
    try:
        right = bool(np.isfinite(np.asarray(ends_are, float)).all()) and form.low <= form.high
    except (TypeError, ValueError):
        right = False
    if not right or (form.kind == "factor" and form.low < 0):
        raise ValueError(f"{name}: expected [lowest, highest] {form.kind}, got {ends_are}")
    return form


# --- from a name to numbers ---


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
        ids = _objects(m, kind, pattern)
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


def _objects(m: Model, kind: str, pattern: str) -> np.ndarray:
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


def _numbers(field: str, width: int, ids: np.ndarray, columns: Any, sign: float = 1.0) -> Numbers:
    columns = np.atleast_1d(columns)
    adr = (ids[:, None] * width + columns).ravel()
    return Numbers(field, adr, np.repeat(np.arange(len(ids)), len(columns)), sign)


def _mass(m: Model, name: str, ids: np.ndarray, exact: bool) -> RangedParameter:
    """Return the mass of bodies; their inertia follows, as for another density."""
    ids = ids if exact else ids[np.asarray(m.body_mass)[ids] > 0]
    own = _numbers("body_mass", 1, ids, 0)
    return RangedParameter(
        name, len(ids), (own,), (_numbers("body_inertia", 3, ids, range(3)),), "_mass"
    )


def _inertia(m: Model, name: str, ids: np.ndarray, exact: bool) -> RangedParameter:
    """Return the moments of inertia of bodies, with one factor for each body."""
    ids = ids if exact else ids[np.asarray(m.body_mass)[ids] > 0]
    own = _numbers("body_inertia", 3, ids, range(3))
    return RangedParameter(name, len(ids), (own,), field="body_inertia")


def _actuator_parameter(
    m: Model, name: str, pattern: str, field: str, component: int | None
) -> RangedParameter:
    """Return a parameter of actuators by its name in MJCF."""
    ids = _objects(m, "actuator", pattern)
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
        name, int(has.sum()), (_numbers("actuator_delay", 1, ids[has], 0),), field="actuator_delay"
    )


def _rotation(m: Model, name: str, kind: str, ids: np.ndarray) -> RangedParameter:
    field = f"{PREFIXES[kind][0]}_quat"
    if field not in Model.fields:
        raise ValueError(f"{name}: a {kind} has no orientation")
    own = Numbers(field, ids, np.arange(len(ids)))
    return RangedParameter(name, len(ids), (own,), turned=True)


_SPECIAL_PARAMETERS: dict[tuple[str, str], Callable[..., RangedParameter]] = {
    ("body", "mass"): _mass,
    ("body", "inertia"): _inertia,
    ("actuator", "delay"): _delay,
}


# --- checks ---


def _check_range(m: Model, p: RangedParameter, form: Form | Range) -> Form | Range:
    """Return a range after checking that the parameter may have it."""
    if not p.objects:
        raise ValueError(f"{p.name}: no object has this parameter")
    for numbers in p.own:
        _check_effect(m, p.name, numbers)
    if p.turned:
        if not isinstance(form, Range) or form.kind != "shift":
            raise ValueError(f"{p.name}: a rotation is drawn by shift(low, high), in rad")
        return form
    fields = [(n.field, _rows_of_numbers(m, n)) for n in (*p.own, *p.followers)]
    scales = form.kind in ("factor", "scale")
    if scales:
        if not any(np.asarray(current_value(m, n.field)).ravel()[n.adr].any() for n in p.own):
            raise ValueError(
                f"{p.name}: the model has 0 there, of which a factor changes nothing; use "
                "shift(low, high) or linear(low, high)"
            )
    elif p.field != "actuator_delay":
        for field, items in fields:
            check_present(m, p.name, field, items)
    if p.field == "body_inertia" and not scales:
        raise ValueError(f"{p.name}: moments change by a factor, or with pseudo_inertia(sd=...)")
    if p.width > 1 and isinstance(form, Form) and not scales:
        raise ValueError(f"{p.name}: an object has {p.width} numbers; choose one: '{p.name}[0]'")
    _check_bounds(m, p, form)
    return form


def _check_effect(m: Model, name: str, n: Numbers) -> None:
    """Raise ValueError for numbers that have no effect in this model."""
    flag = LIMITED.get(n.field)
    if flag is not None and not np.asarray(getattr(m, flag), bool)[_rows_of_numbers(m, n)].any():
        raise ValueError(
            f"{name}: nothing is limited there, so that its range changes nothing; limit it in the "
            "model before it is loaded"
        )
    if n.field in ("body_pos", "body_quat"):
        joint = np.asarray(m.body_jntadr)[
            n.adr if n.field == "body_quat" else _rows_of_numbers(m, n)
        ]
        kinds = np.append(m.jnt_type, -1)  # of no joint, address -1
        if (kinds[joint] == JointType.FREE).all():
            raise ValueError(
                f"{name}: a body with a free joint is placed by qpos; draw the start in Env.start"
            )


def _rows_of_numbers(m: Model, n: Numbers) -> np.ndarray:
    """Return the rows of a field that contain some numbers."""
    array = np.asarray(current_value(m, n.field))
    return n.adr // max(int(np.prod(array.shape[1:], dtype=int)), 1) if array.ndim else n.adr


def _check_bounds(m: Model, p: RangedParameter, form: Form | Range) -> None:
    """Raise ValueError for a range that contains unphysical values."""
    above = p.field.endswith(_POSITIVE_FIELDS)
    if not above and not p.field.endswith(_NONNEGATIVE_FIELDS):
        return
    unit = "above 0" if above else "at least 0"
    if form.low is None:
        if form.kind == "linear":
            raise ValueError(f"{p.name}: is {unit}; give bounds, or use log or scale")
        return
    old = [np.asarray(current_value(m, n.field), np.float64).ravel()[n.adr] * n.sign for n in p.own]
    least = min(float(x.min()) for x in old)
    low = {"factor": form.low, "shift": least + form.low}.get(form.kind, form.low)
    if low < 0 or (above and low == 0):
        raise ValueError(f"{p.name}: expected {unit}, and the least that may be drawn is {low:g}")
    if p.field == "actuator_delay":
        _check_delay(m, p, form, old)


def _check_delay(m: Model, p: RangedParameter, form: Form | Range, old: list[np.ndarray]) -> None:
    """Raise ValueError for a delay that exceeds its history."""
    held = np.asarray(m.actuator_history)[p.own[0].adr, 0] * float(m.opt.timestep)
    most = {"factor": old[0] * form.high, "shift": old[0] + form.high}.get(
        form.kind, np.full_like(old[0], form.high)
    )
    if form.kind != "scale" and (most > held * (1 + 1e-6)).any():
        raise ValueError(
            f"{p.name}: up to {most.max():g} s, and the history holds {held.min():g} s; "
            "write a larger nsample in the model"
        )


# --- drawing ---


def _sample(form: Form | Range, key: jax.Array, old: jax.Array) -> jax.Array:
    """Draw from a range, in the shape of `old`; normal draws are centered on `old`."""
    shape, dtype = (1,) if form.share else old.shape, old.dtype
    if isinstance(form, Range):
        u = jax.random.uniform(key, shape, dtype, form.low, form.high)
        return jnp.broadcast_to(u, old.shape)
    mean = form.nominal if form.mean is None else form.mean
    if form.kind == "scale":
        middle = jnp.full(shape, 1.0 if mean is None else mean, dtype)
    else:
        middle = old if mean is None else jnp.full(shape, mean, dtype)
    middle = jnp.log(middle) if form.logarithmic else middle
    sd = 0.0 if form.sd is None else form.sd
    if form.low is None:
        v = middle + sd * jax.random.normal(key, shape, dtype)
    elif form.sd is None:
        v = jax.random.uniform(key, shape, dtype, *ends(form))
    else:
        low, high = ((e - middle) / sd for e in ends(form))
        v = middle + sd * jax.random.truncated_normal(key, low, high, shape, dtype)
    v = jnp.exp(v) if form.logarithmic else v
    return jnp.broadcast_to(v, old.shape)


def _current_values(m: Model, changed: Mapping[str, Any], field: str) -> jax.Array:
    return changed[field] if field in changed else jnp.asarray(current_value(m, field))


def _sample_leaves(
    m: Model, changed: Mapping[str, Any], key: jax.Array, p: RangedParameter, form: Form | Range
) -> dict[str, Any]:
    """Return the new leaves of a parameter."""
    found = dict(changed)
    dtype = m.qpos0.dtype
    if form.kind in ("factor", "scale"):
        ratio = _sample(form, key, jnp.ones(p.objects, dtype))
        return _multiply_leaves(m, found, (*p.own, *p.followers), ratio)
    # one draw for each object, shared by several fields; or one for each number of a field
    alone = p.width == 1
    old = jnp.zeros(p.objects if alone else len(p.own[0].adr), dtype)
    for n in p.own:
        value = _current_values(m, found, n.field).reshape(-1)[n.adr] * jnp.asarray(n.sign, dtype)
        old = old.at[n.owner].set(value) if alone else value
    drawn = _sample(form, key, old)
    new = old + drawn if form.kind == "shift" else drawn
    for n in p.own:
        array = _current_values(m, found, n.field)
        value = jnp.asarray(n.sign, dtype) * (new[n.owner] if alone else new)
        found[n.field] = array.reshape(-1).at[n.adr].set(value).reshape(array.shape)
    return _multiply_leaves(m, found, p.followers, new / old) if p.followers else found


def _multiply_leaves(
    m: Model, found: dict[str, Any], numbers: tuple[Numbers, ...], ratio: jax.Array
) -> dict[str, Any]:
    """Return leaves with some numbers multiplied by the ratio of their objects, (objects,)."""
    for n in numbers:
        array = _current_values(m, found, n.field)
        flat = array.reshape(-1).at[n.adr].multiply(ratio[n.owner].astype(array.dtype))
        found[n.field] = flat.reshape(array.shape)
    return found


def _rotate_orientations(
    m: Model, changed: Mapping[str, Any], key: jax.Array, p: RangedParameter, form: Form | Range
) -> dict[str, Any]:
    """Return orientations rotated by random rotation vectors, each component in the range."""
    field, ids = p.own[0].field, p.own[0].adr
    quats = _current_values(m, changed, field)
    rotation_vectors = _sample(form, key, jnp.zeros((len(ids), 3), quats.dtype))
    old = Quat(*quats[ids].T)
    new = jnp.stack((old * Quat.from_rotation_vector(Vec(*rotation_vectors.T))).parts, axis=1)
    return {**changed, field: quats.at[ids].set(new)}


_BODY_FIELDS = {
    "body_mass": 1,
    "body_ipos": 3,
    "body_iquat": 4,
    "body_inertia": 3,
}  # numbers of each


@dataclass(frozen=True, eq=False)
class _DrawInertia:
    """All ten inertial parameters of bodies, normal in coordinates in which every body is physical.

    Attributes:
      ids: the bodies, (n,).
      nominal: their coordinates, (n, 10).
      sd: standard deviation of each coordinate, (n, 10).
    """

    ids: np.ndarray
    nominal: np.ndarray
    sd: np.ndarray
    replaces: bool = True

    @property
    def sets(self) -> tuple[Numbers, ...]:
        """Return the numbers that change."""
        return tuple(_numbers(n, w, self.ids, range(w)) for n, w in _BODY_FIELDS.items())

    def leaves(self, m: Model, changed: Mapping[str, Any], key: jax.Array) -> dict[str, Any]:
        """Return new leaves from a model, the leaves changed so far, and a key."""
        dtype = m.body_mass.dtype
        noise = jnp.asarray(self.sd, dtype) * jax.random.normal(key, self.nominal.shape, dtype)
        new = jax.vmap(inertia.to_body)(jnp.asarray(self.nominal, dtype) + noise)
        values = zip(_BODY_FIELDS, new, strict=True)
        return {
            **changed,
            **{n: _current_values(m, changed, n).at[self.ids].set(v) for n, v in values},
        }


def _draw_inertia(m: Model, name: str, form: Form) -> _DrawInertia:
    found = TARGET_PATTERN.fullmatch(name)
    if found is None or (found["kind"], found["field"]) != ("body", "inertia"):
        raise ValueError(f"{name}: pseudo_inertia is for 'body:name/inertia'")
    try:
        bodies = _objects(m, "body", found["name"])
        ids = _mass(m, name, bodies, exact=False).own[0].adr
        if not len(ids):
            raise ValueError("no such body has a mass")
        numbers = zip(*(np.asarray(getattr(m, n))[ids] for n in _BODY_FIELDS), strict=True)
        nominal = np.stack([inertia.from_body(*x) for x in numbers])
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    # the standard deviation of lengths is in radii of gyration, as in identification
    unit = np.where(np.arange(10) < 4, 1.0, np.exp(nominal[:, 1:4].mean(axis=1))[:, None])
    return _DrawInertia(ids, nominal, float(form.sd or 0) * unit)
