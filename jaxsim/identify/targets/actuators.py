"""Parameters of actuators by their names in MJCF, as entries of gainprm, biasprm and dynprm.

The compiler expands the shortcuts of `<actuator>`; a parameter of a shortcut is one number, or
several that change together: the `kv` of a velocity servo is its gain and, negated, its bias. A
compiled model does not store the shortcut, so its law is inferred from the types and the inputs of
an actuator, and for `<general>` from the numbers too. Parameters from which numbers follow by a
formula (a damping ratio, a diameter, the data sheet of a motor) are entries of fields that the
model does not have; actuator_formulas.py evaluates them. MuJoCo's documentation, XML reference,
actuator.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from jaxsim.cache import bounded_cache
from jaxsim.enums import BiasType, CtrlInput, DynType, GainType
from jaxsim.identify.targets import motors
from jaxsim.mjcf.schema.actuator import GENERAL, SHORTCUTS
from jaxsim.model import motor
from jaxsim.model.model import Model
from jaxsim.model.motor import STATES, ActState, kind_of_states
from jaxsim.physics.actuator.layout import has_state
from jaxsim.spelling import remedy

GAIN, BIAS, DYN = "actuator_gainprm", "actuator_biasprm", "actuator_dynprm"
RATIO_FIELD, DIAMETER_FIELD = "actuator_dampratio", "actuator_diameter"
# Fields that no model has, with the count of numbers of an actuator; formulas evaluate them.
FORMULA_FIELDS = {
    RATIO_FIELD: 1,
    DIAMETER_FIELD: 1,
    **{f"actuator_{name}": count for name, count in motors.MOTOR_PARAMETERS.items()},
}
_WIDTHS = {
    **dict.fromkeys((GAIN, BIAS, DYN), 10),
    "actuator_ctrlrange": 2,
    "actuator_lengthrange": 2,
    "actuator_gear": 6,
    "actuator_damping": 1,
    "actuator_dampingpoly": 2,
    **FORMULA_FIELDS,
}


class PrmColumn(NamedTuple):
    """A number of an actuator that a parameter sets.

    Attributes:
      field: name of the field of the model.
      slot: index of the number in the row of the actuator.
      sign: sign of the number where the parameter is positive.
      row: row of the field, for fields of controls and outputs; None: that of the actuator.
    """

    field: str
    slot: int
    sign: float = 1.0
    row: int | None = None


Columns = tuple[PrmColumn, ...]
_DAMPING: Columns = (PrmColumn(BIAS, 2, -1.0),)
_SERVO: dict[str, tuple[Columns, ...]] = {
    "kp": ((PrmColumn(GAIN, 0), PrmColumn(BIAS, 1, -1.0)),),
    "kv": (_DAMPING,),
    "dampratio": ((PrmColumn(RATIO_FIELD, 0),),),
}
_CURVE = ("force", "scale", "lmin", "lmax", "vmax", "fpmax", "fvmax")
_COGGING = (motor.AMPLITUDE, motor.POLES, motor.PHASE)
_CONTROLLER = (
    *((GAIN, motor.KP), (GAIN, motor.KI), (GAIN, motor.KD)),
    *((DYN, motor.SLEW), (DYN, motor.IMAX), (GAIN, motor.VMAX)),
)
_LUGRE = (
    *((DYN, motor.SIGMA0), (DYN, motor.SIGMA1)),
    *((BIAS, motor.COULOMB), (BIAS, motor.STATIC), (BIAS, motor.STRIBECK)),
)

# parameters of each law; a parameter of several components has columns for each of them
_ACTUATOR_LAWS: dict[str, dict[str, tuple[Columns, ...]]] = {
    "motor": {"gain": ((PrmColumn(GAIN, 0),),)},
    "position": _SERVO,
    "orientation": _SERVO,
    "velocity": {"kv": ((PrmColumn(GAIN, 0), PrmColumn(BIAS, 2, -1.0)),)},
    "damper": {"kv": ((PrmColumn(GAIN, 2, -1.0),),)},
    "cylinder": {
        "area": ((PrmColumn(GAIN, 0),),),
        "diameter": ((PrmColumn(DIAMETER_FIELD, 0),),),
        "bias": tuple((PrmColumn(BIAS, k),) for k in range(3)),
    },
    "pid": {
        "kp": ((PrmColumn(BIAS, 1, -1.0),),),
        "ki": ((PrmColumn(GAIN, 0),),),
        "kv": (_DAMPING,),
        "dampratio": ((PrmColumn(RATIO_FIELD, 0),),),
        "imax": ((PrmColumn(DYN, 0),),),
        "slewmax": ((PrmColumn(DYN, 1),),),
    },
    "muscle": {
        "timeconst": tuple((PrmColumn(DYN, k),) for k in range(2)),
        "tausmooth": ((PrmColumn(DYN, 2),),),
        "range": tuple((PrmColumn(GAIN, k), PrmColumn(BIAS, k)) for k in range(2)),
        **{n: ((PrmColumn(GAIN, k), PrmColumn(BIAS, k)),) for k, n in enumerate(_CURVE, 2)},
    },
    "dcmotor": {
        **{
            name: tuple((PrmColumn(f"actuator_{name}", k),) for k in range(count))
            for name, count in motors.MOTOR_PARAMETERS.items()
        },
        "cogging": tuple((PrmColumn(BIAS, k),) for k in _COGGING),
        "controller": tuple((PrmColumn(field, k),) for field, k in _CONTROLLER),
        "lugre": tuple((PrmColumn(field, k),) for field, k in _LUGRE),
    },
}
_FILTER_PARAMETERS: dict[str, tuple[Columns, ...]] = {
    "timeconst": ((PrmColumn(DYN, 0),),)
}  # of the activation, whatever the law
_FILTERED_DYNTYPES = (DynType.FILTER, DynType.FILTEREXACT)
# ranges of the controls of a pid, by input
_INPUT_RANGES = {
    "posrange": CtrlInput.POS,
    "velrange": CtrlInput.VEL,
    "ffrange": CtrlInput.FF,
}
# parameters of every actuator, and those of them that a name without an index selects as a whole
WHOLE_PARAMETERS = ("ctrlrange", "gear", "lengthrange", *_INPUT_RANGES)
_COMMON_PARAMETERS = (*WHOLE_PARAMETERS, "damping")
_FIRST_PARAMETERS = ("damping", "motorconst")  # without an index: the first number
ACTUATOR_PARAMETERS = frozenset(
    (
        *(name for law in (*_ACTUATOR_LAWS.values(), _FILTER_PARAMETERS) for name in law),
        *_COMMON_PARAMETERS,
    )
)
_LAW_OF_GAIN = {
    GainType.MUSCLE: "muscle",
    GainType.PID: "pid",
    GainType.SO3: "orientation",
    GainType.DCMOTOR: "dcmotor",
}


def parameters_of(m: Model, i: int) -> dict[str, tuple[Columns, ...]]:
    """Return the parameters of an actuator by name: the numbers that each component sets."""
    return {**_law_parameters(m, i), **_common_parameters(m, i)}


def _common_parameters(m: Model, i: int) -> dict[str, tuple[Columns, ...]]:
    """Return the parameters that do not depend on the law."""
    outputs = range(m.actuator_outadr[i], m.actuator_outadr[i] + m.actuator_outnum[i])
    controls = range(m.actuator_ctrladr[i], m.actuator_ctrladr[i] + m.actuator_ctrlnum[i])
    found = {
        "damping": (
            (PrmColumn("actuator_damping", 0),),
            *((PrmColumn("actuator_dampingpoly", k),) for k in range(2)),
        ),
        "gear": _of_rows("actuator_gear", outputs),
        "lengthrange": _of_rows("actuator_lengthrange", outputs),
    }
    if m.actuator_gaintype[i] == GainType.PID:
        given = [name for name, bit in _INPUT_RANGES.items() if m.actuator_ctrlspec[i] & bit]
        ranges = {
            name: _of_rows("actuator_ctrlrange", [row])
            for name, row in zip(given, controls, strict=True)
        }
        same = {"ctrlrange": ranges["posrange"]} if "posrange" in ranges else {}
        return {**found, **ranges, **same}
    ranges = {"ctrlrange": _of_rows("actuator_ctrlrange", controls)} if len(controls) else {}
    return {**found, **ranges}


def _of_rows(field: str, rows: Iterable[int]) -> tuple[Columns, ...]:
    """Return columns of a field of controls or outputs, the same number in each of some rows."""
    rows = tuple(map(int, rows))
    return tuple(tuple(PrmColumn(field, k, row=row) for row in rows) for k in range(_WIDTHS[field]))


def _law_parameters(m: Model, i: int) -> dict[str, tuple[Columns, ...]]:
    """Return the parameters of the law of an actuator."""
    filtered = _FILTER_PARAMETERS if m.actuator_dyntype[i] in _FILTERED_DYNTYPES else {}
    return {**_ACTUATOR_LAWS.get(_actuator_law(m, i), {}), **filtered}


def _actuator_law(m: Model, i: int) -> str:
    """Return the law of an actuator, a key of `_ACTUATOR_LAWS`; "" if it has none of these."""
    gain, bias = (np.asarray(getattr(m, n), np.float64)[i] for n in (GAIN, BIAS))
    kind, spec = m.actuator_gaintype[i], m.actuator_ctrlspec[i]
    if kind in _LAW_OF_GAIN:
        return _LAW_OF_GAIN[GainType(kind)]
    if kind == GainType.AFFINE:
        return "damper" if not gain[:2].any() and not bias[:3].any() else ""
    if kind != GainType.FIXED:
        return ""
    if m.actuator_biastype[i] != BiasType.AFFINE:
        return "motor" if m.actuator_biastype[i] == BiasType.NONE else ""
    if spec == CtrlInput.PRESSURE:
        return "cylinder"
    # infer the law of a servo from its numbers; where these are zero, from its inputs
    integrates = m.actuator_dyntype[i] == DynType.INTEGRATOR
    if spec == CtrlInput.VEL and not integrates and not bias[:2].any() and bias[2] == -gain[0]:
        return "velocity"
    if bias[1] == -gain[0] and (gain[0] or spec in (CtrlInput.POS, CtrlInput.VEL)):
        return "position"
    if gain[0] and not bias[:2].any() and bias[2] == -gain[0]:
        return "velocity"
    return "" if bias[:3].any() else "motor"


class Entries(NamedTuple):
    """Numbers of one field that a parameter of some actuators sets.

    Attributes:
      field: name of the field.
      adr: their flat addresses in it, (n,).
      owner: index of the actuator that each belongs to, (n,).
      sign: sign of each where the parameter is positive, (n,).
    """

    field: str
    adr: np.ndarray
    owner: np.ndarray
    sign: np.ndarray


def entries_of(
    m: Model, key: str, ids: Iterable[int], name: str, component: int | None, exact: bool
) -> tuple[np.ndarray, tuple[Entries, ...]]:
    """Return the actuators that have a parameter, and its numbers.

    Args:
      m: the model.
      key: the name as the user wrote it, for messages.
      ids: the actuators.
      name: name of the parameter, one of `ACTUATOR_PARAMETERS`.
      component: index of a component; None: the parameter is one number.
      exact: whether each actuator must have it; else at least one of them.

    Raises:
      ValueError: an actuator has no such parameter, the parameter has no effect, or it has several
        components.
    """
    having: dict[int, Columns] = {}
    reasons: dict[int, str] = {}
    if component is None and name in _FIRST_PARAMETERS:
        component = 0
    for i in map(int, ids):
        own = parameters_of(m, i)
        if name not in own:
            reasons[i] = f"has no {name!r}; {_others(m, i, name)}"
            continue
        count = len(own[name])
        if component is None and count > 1:
            raise ValueError(f"{key}: an actuator has {count} numbers; choose one: '{key}[0]'")
        if component is not None and component >= count:
            raise ValueError(f"{key}: expected an index below {count}, got {component}")
        columns = own[name][component or 0]
        reason = _no_effect(m, i, name, component or 0, columns)
        if reason is None:
            having[i] = columns
        else:
            reasons[i] = f"cannot have {name!r} as a parameter: {reason}"
    if reasons and (exact or not having):
        lacking, reason = next(iter(reasons.items()))
        raise ValueError(f"{key}: actuator {m.names['actuator'][lacking] or lacking!r} {reason}")
    rows: dict[str, list[tuple[int, int, float]]] = {}
    for owner, (i, columns) in enumerate(having.items()):
        for field, slot, sign, row in columns:
            at = (i if row is None else row) * _WIDTHS[field] + slot
            rows.setdefault(field, []).append((at, owner, sign))
    parts = tuple(Entries(f, *map(np.array, zip(*r, strict=True))) for f, r in rows.items())
    return np.array(list(having)), parts


def count_of(m: Model, ids: Iterable[int], name: str, component: int | None) -> list[int | None]:
    """Return the components of a parameter that a name selects: all of a whole one, or its own."""
    if component is not None or name not in WHOLE_PARAMETERS:
        return [component]
    counts = [len(parameters_of(m, int(i)).get(name, ())) for i in ids]
    return list(range(max(counts, default=0))) or [None]


def _others(m: Model, i: int, name: str) -> str:
    """Return what an actuator has instead of a parameter."""
    there = _law_parameters(m, i)
    if name == "timeconst" and "kp" in there and m.actuator_gaintype[i] == GainType.FIXED:
        return "it has no filter; write timeconst in the model before it is loaded"
    if name in _INPUT_RANGES and m.actuator_gaintype[i] == GainType.PID:
        return "it has no such input; write it in the model before it is loaded"
    if there:
        return f"it has {' and '.join(map(repr, there))}"
    return "its law is another; use a field such as 'actuator_gainprm'"


def _no_effect(m: Model, i: int, name: str, component: int, columns: Columns) -> str | None:
    """Return why a parameter of an actuator changes nothing, with the remedy; or None."""
    if columns and columns[0].field == "actuator_ctrlrange":
        if not all(m.actuator_ctrllimited[[c.row for c in columns]]):
            return "the control is not limited; limit it in the model before it is loaded"
        return None
    if _actuator_law(m, i) == "dcmotor" and name in motors.MOTOR_PARAMETERS:
        return motors.refusal(m, i, name, component)
    return _no_state(m, i, name, component)


# Components of a controller or motor that need an activation.
_STATE_OF: dict[str | tuple[str, int], ActState] = {
    "imax": ActState.INTEGRAL,
    ("controller", 4): ActState.INTEGRAL,
    **{("lugre", k): ActState.BRISTLE for k in range(5)},
}


def _no_state(m: Model, i: int, name: str, component: int) -> str | None:
    """Return why a controller or motor lacks the activation of a parameter; or None."""
    kinds = kind_of_states(m.actuator_dyntype, m.actuator_gaintype)
    kind = DynType.PID if m.actuator_gaintype[i] == GainType.PID else kinds[i]
    law = _law_parameters(m, i)
    columns = law[name][component] if name in law else ()
    adding = {(f, k): state for state, (f, k) in STATES.get(DynType(kind), {}).items()}
    states = [adding[c.field, c.slot] for c in columns if (c.field, c.slot) in adding]
    states += [_STATE_OF[k] for k in (name, (name, component)) if k in _STATE_OF]
    for state in states:
        if not has_state(m, state)[i]:
            return (
                f"it has no activation '{state.name.lower()}', which a positive number in the "
                "model adds; write it in the model before it is loaded"
            )
    controlled = m.actuator_ctrlspec[i] & (CtrlInput.POS | CtrlInput.VEL | CtrlInput.FF)
    if name == "controller" and not controlled:
        return "it has no controller; write input='pos' in the model before it is loaded"
    return None


def unknown_parameter(name: str, fields: Iterable[str]) -> str:
    """Return why an attribute of an actuator is no parameter, with the remedy.

    Args:
      name: the attribute.
      fields: names of the fields of an actuator.
    """
    kind = _attribute_types().get(name)
    if name == "inheritrange":
        return "is evaluated when the model is loaded; use 'ctrlrange' or 'actrange'"
    if kind is not None:
        return (
            f"is {_TYPE_NAMES.get(kind, 'a word')}, which decides the program of the model; write "
            "it in the model before it is loaded"
        )
    return f"is no parameter of an actuator{remedy(name, [*ACTUATOR_PARAMETERS, *fields])}"


_TYPE_NAMES = {"int": "an integer", "ref": "a name", "name": "a name", "string": "a text"}


@bounded_cache(1)
def _attribute_types() -> dict[str, str]:
    """Return the attributes of the elements of `<actuator>` that are no real numbers, with their
    types."""
    rows = (GENERAL, *SHORTCUTS)
    found = {a.name: a.type for row in rows for a in row.attrs.values()}
    return {name: kind for name, kind in found.items() if kind != "real"}


def has_servos(m: Model) -> bool:
    """Return whether some parameter of an actuator sets both its gain and its bias."""
    laws = (parameters_of(m, i) for i in range(len(m.actuator_gaintype)))
    return any(
        {GAIN, BIAS} <= {column.field for column in columns}
        for law in laws
        for components in law.values()
        for columns in components
    )
