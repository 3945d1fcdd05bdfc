"""Parameters of actuators by their names in MJCF, as entries of gainprm, biasprm and dynprm.

The compiler expands the shortcuts of `<actuator>`; a parameter of a shortcut is one number, or
several that change together: the `kv` of a velocity servo is its gain and, negated, its bias. A
compiled model does not store the shortcut, so its law is inferred from the types and the inputs of
an actuator, and for `<general>` from the numbers too. MuJoCo's documentation, XML reference,
actuator.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from jaxsim.enums import BiasType, CtrlInput, DynType, GainType
from jaxsim.model.model import Model

GAIN, BIAS, DYN = "actuator_gainprm", "actuator_biasprm", "actuator_dynprm"
_PRM_WIDTH = 10  # length of each of the three fields


class PrmColumn(NamedTuple):
    """A number of an actuator that a parameter sets.

    Attributes:
      field: name of the field of the model.
      slot: index of the number in the row of the actuator.
      sign: sign of the number where the parameter is positive.
    """

    field: str
    slot: int
    sign: float = 1.0


Columns = tuple[PrmColumn, ...]
_DAMPING: Columns = (PrmColumn(BIAS, 2, -1.0),)
_SERVO: dict[str, tuple[Columns, ...]] = {
    "kp": ((PrmColumn(GAIN, 0), PrmColumn(BIAS, 1, -1.0)),),
    "kv": (_DAMPING,),
}
_CURVE = ("force", "scale", "lmin", "lmax", "vmax", "fpmax", "fvmax")

# parameters of each law; a parameter of several components has columns for each of them
_ACTUATOR_LAWS: dict[str, dict[str, tuple[Columns, ...]]] = {
    "motor": {"gain": ((PrmColumn(GAIN, 0),),)},
    "position": _SERVO,
    "orientation": _SERVO,
    "velocity": {"kv": ((PrmColumn(GAIN, 0), PrmColumn(BIAS, 2, -1.0)),)},
    "damper": {"kv": ((PrmColumn(GAIN, 2, -1.0),),)},
    "cylinder": {
        "area": ((PrmColumn(GAIN, 0),),),
        "bias": tuple((PrmColumn(BIAS, k),) for k in range(3)),
    },
    "pid": {
        "kp": ((PrmColumn(BIAS, 1, -1.0),),),
        "ki": ((PrmColumn(GAIN, 0),),),
        "kv": (_DAMPING,),
        "imax": ((PrmColumn(DYN, 0),),),
        "slewmax": ((PrmColumn(DYN, 1),),),
    },
    "muscle": {
        "timeconst": tuple((PrmColumn(DYN, k),) for k in range(2)),
        "tausmooth": ((PrmColumn(DYN, 2),),),
        "range": tuple((PrmColumn(GAIN, k), PrmColumn(BIAS, k)) for k in range(2)),
        **{n: ((PrmColumn(GAIN, k), PrmColumn(BIAS, k)),) for k, n in enumerate(_CURVE, 2)},
    },
}
_FILTER_PARAMETERS: dict[str, tuple[Columns, ...]] = {
    "timeconst": ((PrmColumn(DYN, 0),),)
}  # of the activation, whatever the law
_FILTERED_DYNTYPES = (DynType.FILTER, DynType.FILTEREXACT)
ACTUATOR_PARAMETERS = frozenset(
    name for law in (*_ACTUATOR_LAWS.values(), _FILTER_PARAMETERS) for name in law
)
_LAW_OF_GAIN = {
    GainType.MUSCLE: "muscle",
    GainType.PID: "pid",
    GainType.SO3: "orientation",
}


def parameters_of(m: Model, i: int) -> dict[str, tuple[Columns, ...]]:
    """Return the parameters of an actuator by name: the numbers that each component sets."""
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
      ValueError: an actuator has no such parameter, or several components.
    """
    known = {int(i): parameters_of(m, int(i)) for i in ids}
    having = {i: own[name] for i, own in known.items() if name in own}
    lacking = next((i for i in known if i not in having), None)
    if lacking is not None and (exact or not having):
        actuator, there = m.names["actuator"][lacking] or lacking, known[lacking]
        told = f"it has {' and '.join(map(repr, there))}" if there else (
            "its law is another; use a field such as 'actuator_gainprm'"
        )  # fmt: skip
        raise ValueError(f"{key}: actuator {actuator!r} has no {name!r}; {told}")
    rows: dict[str, list[tuple[int, int, float]]] = {}
    for owner, (i, components) in enumerate(having.items()):
        count = len(components)
        if component is None and count > 1:
            raise ValueError(f"{key}: an actuator has {count} numbers; choose one: '{key}[0]'")
        if component is not None and component >= count:
            raise ValueError(f"{key}: expected an index below {count}, got {component}")
        for field, slot, sign in components[component or 0]:
            rows.setdefault(field, []).append((i * _PRM_WIDTH + slot, owner, sign))
    parts = tuple(Entries(f, *map(np.array, zip(*r, strict=True))) for f, r in rows.items())
    return np.array(list(having)), parts


def has_servos(m: Model) -> bool:
    """Return whether some parameter of an actuator sets both its gain and its bias."""
    laws = (parameters_of(m, i) for i in range(len(m.actuator_gaintype)))
    return any(
        {GAIN, BIAS} <= {column.field for column in columns}
        for law in laws
        for components in law.values()
        for columns in components
    )
