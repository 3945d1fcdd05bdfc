"""Checks of a range: the parameter has an effect, and no value is unphysical."""

import numpy as np

from jaxsim.enums import JointType
from jaxsim.envs.ranges.draw import Range
from jaxsim.envs.ranges.parameter import Numbers, RangedParameter
from jaxsim.identify.forms import Form
from jaxsim.identify.targets.select import LIMITED, check_present, current_value
from jaxsim.model.model import Model

# lower bounds, by the ends of the names of fields; "above" excludes the bound itself
_POSITIVE_FIELDS = ("_mass", "_inertia", "timestep", "_resistance")
_NONNEGATIVE_FIELDS = (
    *("_damping", "_frictionloss", "_armature", "_friction", "_margin", "_delay"),
    *("density", "viscosity", "_kp", "_kv", "_dampratio", "_diameter", "_timeconst"),
    *("_motorconst", "_nominal", "_inductance", "_saturation", "_controller"),
)


def check_range(m: Model, p: RangedParameter, form: Form | Range) -> Form | Range:
    """Return a range after checking that the parameter may have it.

    Raises:
      ValueError: the parameter has no effect in this model, its kind does not allow the form of the
        range, or the range contains unphysical values.
    """
    # The parameter exists and has an effect.
    if not p.objects:
        raise ValueError(f"{p.name}: no object has this parameter; name one that the model has")
    for numbers in p.own:
        _check_effect(m, p.name, numbers)
    # The form of the range fits the parameter: rotations, factors of 0, inertias, several numbers.
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
        kinds = np.append(m.jnt_type, -1)  # the last entry: a body without joints, address -1
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
    expected = "above 0" if above else "at least 0"
    if form.low is None:
        if form.kind == "linear":
            raise ValueError(f"{p.name}: is {expected}; give bounds, or use log or scale")
        return
    old = [np.asarray(current_value(m, n.field), np.float64).ravel()[n.adr] * n.sign for n in p.own]
    # An offset is added to the least number; a factor and a value have the sign of the result.
    low = form.low + min(float(x.min()) for x in old) if form.kind == "shift" else form.low
    if low < 0 or (above and low == 0):
        raise ValueError(
            f"{p.name}: expected {expected}, and the least that may be drawn is {low:g}"
        )
    if p.field == "actuator_delay":
        _check_delay(m, p, form, old)


def _check_delay(m: Model, p: RangedParameter, form: Form | Range, old: list[np.ndarray]) -> None:
    """Raise ValueError for a delay that exceeds its history."""
    # Length of the history, and the largest delay that may be drawn [s].
    held = np.asarray(m.actuator_history)[p.own[0].adr, 0] * float(m.opt.timestep)
    most = {"factor": old[0] * form.high, "shift": old[0] + form.high}.get(
        form.kind, np.full_like(old[0], form.high)
    )
    if form.kind != "scale" and (most > held * (1 + 1e-6)).any():
        raise ValueError(
            f"{p.name}: up to {most.max():g} s, and the history holds {held.min():g} s; "
            "write a larger nsample in the model"
        )
