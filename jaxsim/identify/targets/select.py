"""Resolve the name of a parameter to numbers of a model, or of a signal.

body:link3/mass             kind:name/field; names may have shell wildcards: leg*_knee
joint:elbow/damping         of a joint, or of its dofs
geom:foot*/friction[0]      one of several numbers
geom:arm/size[1], /density  the inertia of the body follows (geometry.py)
actuator:hip/kp, /lugre[1]  attributes of an actuator as MJCF names them (actuators.py)
body:link3/inertia          with pseudo_inertia(): mass, center of mass and inertia
site:imu/rotation           a rotation vector; also of a geom, body or camera
dof_frictionloss            a field of every object that has it
opt.gravity[2]              an option
sensor:gyro/offset          of a signal: offset, gain, delay; also qpos:, qvel: and ctrl:
"""

import re
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from jaxsim.identify.targets import actuator_formulas, actuators, geometry
from jaxsim.model.model import Model
from jaxsim.model.switch.switches import explain_missing_slot
from jaxsim.spelling import remedy

SIGNAL_FIELDS = ("sensor", "qpos", "qvel", "ctrl")
_SIGNAL_PARAMETERS = {"offset": 0.0, "gain": 1.0, "delay": 0.0}
PREFIXES = {
    "body": ("body",),
    "joint": ("jnt", "dof"),
    "geom": ("geom",),
    "site": ("site",),
    "camera": ("cam",),
    "light": ("light",),
    "actuator": ("actuator",),
    "tendon": ("tendon",),
    "equality": ("eq",),
    "pair": ("pair",),
    "hfield": ("hfield",),
    "sensor": ("sensor",),
}
WILDCARDS = "*?["
# ranges, and the flags that enable them
LIMITED = {
    "jnt_range": "jnt_limited",
    "jnt_actfrcrange": "jnt_actfrclimited",
    "tendon_range": "tendon_limited",
    "tendon_actfrcrange": "tendon_actfrclimited",
    "actuator_ctrlrange": "actuator_ctrllimited",
    "actuator_forcerange": "actuator_forcelimited",
    "actuator_actrange": "actuator_actlimited",
}
# recomputed by `set_const`, which would overwrite other numbers
DERIVED_FIELDS = frozenset(
    "body_subtreemass body_margin body_invweight0 dof_invweight0 dof_M0 dof_length geom_rbound "
    "geom_aabb geom_fluid tendon_length0 tendon_invweight0 actuator_length0 actuator_acc0 "
    "cam_poscom0 cam_pos0 cam_mat0 light_poscom0 light_pos0 light_dir0 flexedge_length0 "
    "flexedge_invweight0".split()
)
TARGET_PATTERN = re.compile(
    r"(?:(?P<kind>\w+):)?(?P<name>[^/]+?)(?:/(?P<field>\w+))?(?:\[(?P<k>\d+)\])?"
)


class Write(NamedTuple):
    """Numbers of a field that a parameter sets.

    Attributes:
      field: "body_mass", "opt.gravity"; "inertia" and "body_quat+" (a rotation) are not set by
        number.
      addresses: flat addresses in the field, (n,); ids of the objects where it is not set by
        number.
      sign: factor of the parameter, () or (n,).
      owner: index in the target's numbers of each, (n,); None: one for each, in order.
    """

    field: str
    addresses: np.ndarray
    sign: float | np.ndarray = 1.0
    owner: np.ndarray | None = None


class ParameterTarget(NamedTuple):
    """Numbers that the name of a parameter selects.

    Attributes:
      kind: "field", "inertia", "rotation" or "signal".
      labels: name of each number, (n,).
      nominal: values of the model, (n,); zeros for "inertia".
      writes: numbers of fields that are set.
      signals: name of each signal of a "signal", and "offset", "gain" or "delay".
    """

    kind: str
    labels: tuple[str, ...]
    nominal: np.ndarray
    writes: tuple[Write, ...] = ()
    signals: tuple[tuple[str, str], ...] = ()


def select_target(m: Model, key: str, inertia: bool = False) -> ParameterTarget:
    """Return the target of a name; see the module's documentation.

    Args:
      m: the model.
      key: the name.
      inertia: "body:.../inertia" selects all ten inertial parameters of the body.

    Raises:
      ValueError: the name selects nothing, or the number needs a slot that the model does not have.
    """
    found = TARGET_PATTERN.fullmatch(key) if isinstance(key, str) else None
    if found is None:
        raise ValueError(
            f"parameter: expected 'kind:name/field', a field or an option, got {key!r}"
        )
    kind, name, field, k = found["kind"], found["name"], found["field"], found["k"]
    component = None if k is None else int(k)
    if kind is None:
        return _whole_field(m, key, name, component)
    if kind in SIGNAL_FIELDS and (field in _SIGNAL_PARAMETERS or kind != "sensor"):
        return _signals(m, key, kind, name, field)
    if kind not in PREFIXES:
        raise ValueError(f"{key}: no kind {kind!r}{remedy(kind, [*PREFIXES, *SIGNAL_FIELDS])}")
    try:
        ids = matching_ids(m, kind, name)
    except ValueError as error:
        raise ValueError(f"{key}: {error}") from None
    if inertia:
        if (kind, field) != ("body", "inertia"):
            raise ValueError(f"{key}: pseudo_inertia is for 'body:name/inertia'")
        if len(ids) != 1:
            raise ValueError(f"{key}: pseudo_inertia is for one body, {len(ids)} have such a name")
        return ParameterTarget("inertia", (key,), np.zeros(10), (Write("inertia", ids),))
    if field == "rotation":
        return _orientation_target(m, key, kind, ids)
    if kind == "actuator" and field in actuators.ACTUATOR_PARAMETERS:
        return _select_actuator_parameter(m, key, name, str(field), component)
    if kind == "geom" and field in ("size", "density"):
        geometry.check_geoms(m, key, f"geom_{field}", ids)
        return _numbers(m, key, f"geom_{field}", ids, component, kind)
    prefix = next((p for p in PREFIXES[kind] if f"{p}_{field}" in Model.fields), None)
    if prefix is None:
        raise unknown_field(key, kind, str(field))
    if prefix == "dof":
        ids = np.flatnonzero(np.isin(m.dof_jntid, ids))
    return _numbers(m, key, f"{prefix}_{field}", ids, component, kind)


def unknown_field(key: str, kind: str, field: str) -> ValueError:
    """Return the error for a field that objects of a kind do not have."""
    known = [n.partition("_")[2] for n in Model.fields if n.split("_")[0] in PREFIXES[kind]]
    if kind == "actuator":
        return ValueError(f"{key}: {field!r} {actuators.unknown_parameter(field, known)}")
    return ValueError(f"{key}: no field {field!r} of a {kind}{remedy(field, known)}")


def matching_ids(m: Model, kind: str, pattern: str) -> np.ndarray:
    """Return the ids of the objects whose names match.

    Raises:
      ValueError: no name matches.
    """
    names = m.names[kind]
    ids = [i for i, n in enumerate(names) if n and fnmatchcase(n, pattern)]
    if not ids:
        known = [n for n in names if n]
        there = ", ".join(known[:20]) or "none"
        raise ValueError(
            f"no {kind} is named {pattern!r}{remedy(pattern, known, f'; there are: {there}')}"
        )
    return np.array(ids)


def _whole_field(m: Model, key: str, name: str, component: int | None) -> ParameterTarget:
    """Return a field of all objects, or an option."""
    if name.startswith("opt."):
        known = [f"opt.{n}" for n, f in m.opt.fields.items() if not f.static]
    else:
        known = [n for n, f in Model.fields.items() if not f.static and f.nested is None]
    if name not in known:
        raise ValueError(f"{key}: the model has no real field {name!r}{remedy(name, known)}")
    if name == geometry.SIZE_FIELD:
        geometry.check_geoms(m, key, name, np.arange(m.ngeom))
    shape = np.shape(current_value(m, name))
    items = np.arange(shape[0] if shape and not name.startswith("opt.") else 1)
    if not items.size:
        raise ValueError(f"{key}: the model has no object with this field")
    kind = {p: k for k, ps in PREFIXES.items() for p in ps}.get(name.split("_")[0], "")
    return _numbers(m, key, name, items, component, kind)


def _select_actuator_parameter(
    m: Model, key: str, pattern: str, name: str, component: int | None
) -> ParameterTarget:
    """Return a parameter of actuators; the first number of each gives its present value."""
    exact = not any(c in pattern for c in WILDCARDS)
    everything = matching_ids(m, "actuator", pattern)
    components = actuators.count_of(m, everything, name, component)
    labels: list[str] = []
    nominals, writes = [np.zeros(0)], []
    for k in components:
        ids, parts = actuators.entries_of(m, key, everything, name, k, exact)
        nominal = np.zeros(len(ids))
        for part in reversed(parts):
            nominal[part.owner] = part.sign * np.ravel(current_value(m, part.field))[part.adr]
        end = "" if k is None else f"[{k}]"
        writes += [Write(p.field, p.adr, p.sign, p.owner + len(labels)) for p in parts]
        labels += [f"actuator:{m.names['actuator'][i]}/{name}{end}" for i in ids]
        nominals.append(nominal)
    labels = [key] if len(labels) == 1 else labels
    return ParameterTarget("field", tuple(labels), np.concatenate(nominals), tuple(writes))


def _numbers(
    m: Model, key: str, field: str, ids: np.ndarray, component: int | None, kind: str
) -> ParameterTarget:
    """Return numbers of a field."""
    check_present(m, key, field, ids)
    array = np.asarray(current_value(m, field), np.float64)
    width = array.size if field.startswith("opt.") else int(np.prod(array.shape[1:], dtype=int))
    if component is not None and component >= width:
        raise ValueError(f"{key}: expected an index below {width}, got {component}")
    if component is None and Model.fields.get(field) and Model.fields[field].kind == "quat":
        raise ValueError(f"{key}: four numbers of a quaternion are not free; use '/rotation'")
    columns = np.arange(width) if component is None else np.array([component])
    addresses = (ids[:, None] * width + columns).ravel()
    names = [_label(m, field, kind, int(i)) for i in ids]
    ends = [f"[{c}]" for c in columns] if width > 1 and component is None else [""]
    head = key if len(names) == len(ends) == 1 else key.split(":")[0]
    labels = (
        [key]
        if len(addresses) == 1
        else [_number_names(key, kind, head, n, e) for n in names for e in ends]
    )
    return ParameterTarget(
        "field", tuple(labels), array.ravel()[addresses], (Write(field, addresses),)
    )


def _number_names(key: str, kind: str, head: str, name: str, end: str) -> str:
    """Return the name of one of several numbers: dof_damping[elbow], .../friction[0]."""
    if ":" in key and name:
        return f"{kind}:{name}/{key.split('/')[1]}{end}"
    return f"{head}[{name}]{end}" if name else f"{head}{end}"


def _label(m: Model, field: str, kind: str, i: int) -> str:
    """Return the name of an object; a dof has that of its joint."""
    if field.startswith("opt."):
        return ""
    if field.startswith("dof_"):
        joint = int(m.dof_jntid[i])
        name = m.names["joint"][joint] or str(joint)
        several = int((m.dof_jntid == joint).sum()) > 1
        return f"{name}.{i - int(m.jnt_dofadr[joint])}" if several else name
    names = m.names.get(kind, [])
    return (names[i] if i < len(names) else "") or str(i)


def _orientation_target(m: Model, key: str, kind: str, ids: np.ndarray) -> ParameterTarget:
    field = f"{PREFIXES[kind][0]}_quat"
    if field not in Model.fields:
        raise ValueError(f"{key}: a {kind} has no orientation")
    if len(ids) != 1:
        raise ValueError(f"{key}: a rotation is of one {kind}, {len(ids)} have such a name")
    labels = tuple(f"{key}[{k}]" for k in range(3))
    return ParameterTarget("rotation", labels, np.zeros(3), (Write(field, ids),))


def _signals(m: Model, key: str, kind: str, pattern: str, field: str | None) -> ParameterTarget:
    """Return offset, gain or delay of signals."""
    if field not in _SIGNAL_PARAMETERS:
        raise ValueError(
            f"{key}: of a signal there are offset, gain and delay, got {field!r}"
            f"{remedy(str(field), _SIGNAL_PARAMETERS)}"
        )
    objects = {"ctrl": "actuator", "sensor": "sensor"}.get(kind, "joint")
    names = [m.names[objects][i] for i in matching_ids(m, objects, pattern)]
    labels = tuple(f"{kind}:{n}/{field}" for n in names)
    nominal = np.full(len(names), _SIGNAL_PARAMETERS[field])
    return ParameterTarget(
        "signal", labels, nominal, (), tuple((f"{kind}:{n}", field) for n in names)
    )


def current_value(m: Model, field: str):
    """Return the numbers of a field, of an option "opt.gravity", the densities of geoms, or those
    of a formula of actuators."""
    if field == geometry.DENSITY_FIELD:
        return geometry.densities(m)
    if field in actuators.FORMULA_FIELDS:
        return actuator_formulas.formula_values(m, field)
    owner, _, option = field.partition(".")
    return getattr(m.opt, option) if owner == "opt" and option else getattr(m, field)


def check_present(m: Model, key: str, field: str, ids: np.ndarray) -> None:
    """Raise ValueError for a number that has no effect in any program of the model."""
    if field == "actuator_delay":
        raise ValueError(f"{key}: identify the delay of a control as 'ctrl:name/delay'")
    flag = LIMITED.get(field)
    if flag is not None and not np.asarray(getattr(m, flag), bool)[ids].any():
        raise ValueError(
            f"{key}: nothing is limited there, so that its range changes nothing; limit it in the "
            "model before it is loaded"
        )
    if field in DERIVED_FIELDS:
        raise ValueError(f"{key}: {field} follows from other numbers; name those")
    reason = explain_missing_slot(m.structure, field, ids)
    if reason is not None:
        raise ValueError(f"{key}: {field} {reason}")
