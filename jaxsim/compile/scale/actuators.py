"""Scale actuators of joints, tendons and sites inside a `<frame>` with a scale.

They are scaled as compiled fields, because a shortcut such as `<motor>` has gains that are no
attributes.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.scale.dimension import Scale
from jaxsim.compile.scale.factors import transmission_scale
from jaxsim.compile.scale.scales import UNIT_SCALE, KeyScales
from jaxsim.compile.step import declare_pass
from jaxsim.enums import BiasType, DynType, GainType, TrnType
from jaxsim.spec import SpecElement

# Units of the parameters, by type.
_GAINS = {
    GainType.FIXED: "F",
    GainType.AFFINE: "F, F/Q, F s/Q",
    GainType.MUSCLE: "1, 1, F",
    GainType.PID: "F/Q",
    GainType.SO3: "F/Q",
}
_BIASES = {
    BiasType.NONE: "1",
    BiasType.AFFINE: "F, F/Q, F s/Q",
    BiasType.MUSCLE: "1, 1, F",
    BiasType.SO3: "F, F/Q, F s/Q",
}
_DYNAMICS = {DynType.PID: "Q s, Q/s"}

# Shortcuts whose control has a unit: that unit, and the unit of the gain.
_CONTROLS = {
    "position": ("Q", "F/Q"),
    "velocity": ("Q/s", "F s/Q"),
    "intvelocity": ("Q", "F/Q"),
    "cylinder": ("F/m^2", "F m^2/F"),
}
_INPUTS = {"pos": "Q", "vel": "Q/s", "ff": "F"}

_FIELDS = {
    "actuator_forcerange": "F",
    "actuator_damping": "F s/Q",
    "actuator_dampingpoly": "F s^2/Q^2, F s^3/Q^3",
    "actuator_armature": "F s^2/Q",
    "actuator_cranklength": "m",
}


@declare_pass(needs="scale_frames tendons actuators", gives="actuator key_scales tendon")
def scale_actuators(c: Compilation) -> None:
    """Multiply the fields of actuators by the factors of the units of their targets."""
    c.key_scales, scales, f = None, c.scales, c.fields
    if scales is None:
        return
    for i, tendon in enumerate(c.elements["tendon"]):
        # the default width of a fixed tendon is drawn, although the file does not set it
        if tendon.tag == "fixed":
            f["tendon_width"][i] *= scales.tendon(tendon)[0].length
    c.key_scales = KeyScales(np.ones(f["nu"]), np.ones(len(c.elements["actuator"])))
    for i, element in enumerate(c.elements["actuator"]):
        scale, angular = transmission_scale(c, element, scales)
        if scale != UNIT_SCALE:
            _scale(c, i, element, scale, angular, c.key_scales)


@declare_pass(needs="scale_actuators keyframes", gives="key")
def scale_controls(c: Compilation) -> None:
    """Multiply the controls and activations of keyframes."""
    scales, f = c.key_scales, c.fields
    if scales is None:
        return
    for k, key in enumerate(c.elements["key"]):
        if key is not None and key.own("ctrl") is not None:
            f["key_ctrl"][k] *= scales.control
        if key is not None and key.own("act") is not None:
            for i, factor in enumerate(scales.activation):
                start, count = f["actuator_actadr"][i], f["actuator_actnum"][i]
                f["key_act"][k, start : start + count] *= factor


def _scale(
    c: Compilation, i: int, element: SpecElement, scale: Scale, angular: bool, of_keys: KeyScales
) -> None:
    """Scale one actuator, and record the factors of its numbers in keyframes."""
    f = c.fields
    gain, bias = GainType(f["actuator_gaintype"][i]), BiasType(f["actuator_biastype"][i])
    gains = f["actuator_gainprm"][i], _CONTROLS.get(element.tag, ("", _GAINS.get(gain, "")))[1]
    biases = f["actuator_biasprm"][i], _BIASES.get(bias, "")
    dynamics = f["actuator_dynprm"][i], _DYNAMICS.get(DynType(f["actuator_dyntype"][i]), "1")
    forces = (scale.force_length, scale.force_mass) != (1.0, 1.0)
    if forces and (element.tag == "plugin" or not (gains[1] and biases[1])):
        c.fault(element, "it cannot be scaled with what it drives; use <frame scaling='geometry'>")
        return
    # Scale all entries, then restore the dimensionless ones.
    pure = _dimensionless_entries(gains[0], biases[0], gain, bias)
    for row, units in (gains, biases, dynamics):
        _multiply(row, units or "1", scale, angular)
    for row, column, value in pure:
        row[column] = value
    for name, units in _FIELDS.items():
        _multiply(np.atleast_2d(f[name].T).T[i], units, scale, angular)

    outputs = slice(f["actuator_outadr"][i], f["actuator_outadr"][i] + f["actuator_outnum"][i])
    f["actuator_lengthrange"][outputs] *= scale.factor("Q", angular=angular)
    if f["actuator_trntype"][i] == TrnType.SITE:
        f["actuator_gear"][outputs, 3:] *= scale.length
    _scale_controls(c, i, element, scale, angular, of_keys)


def _scale_controls(
    c: Compilation, i: int, element: SpecElement, scale: Scale, angular: bool, of_keys: KeyScales
) -> None:
    """Scale the ranges of controls and activations; inherited ones are scaled with their joint."""
    f = c.fields
    unit = _CONTROLS.get(element.tag, ("1",))[0]
    start, count = f["actuator_ctrladr"][i], f["actuator_ctrlnum"][i]
    words = str(element.get("input") or "").split()
    units = [_INPUTS.get(word, unit) for word in words] if len(words) == count else [unit] * count
    factors = np.array([scale.factor(each, angular=angular) for each in units])
    of_keys.control[start : start + count] = factors
    of_keys.activation[i] = scale.factor(unit, angular=angular)
    inherited = bool(element.get("inheritrange"))
    if not inherited:
        f["actuator_actrange"][i] *= of_keys.activation[i]
    if not inherited or element.tag == "intvelocity":
        f["actuator_ctrlrange"][start : start + count] *= factors[:, None]


def _dimensionless_entries(
    gainprm: np.ndarray, biasprm: np.ndarray, gain: GainType, bias: BiasType
) -> list[tuple[np.ndarray, int, float]]:
    """Return (row, column, value) of the parameters whose sign makes them dimensionless, to be
    restored after the rows are scaled.

    A positive third bias is a damping ratio; a negative peak force of a muscle selects a default.
    """
    found = []
    if bias == BiasType.AFFINE and biasprm[2] > 0:
        found.append((biasprm, 2, float(biasprm[2])))
    if gain == GainType.MUSCLE and gainprm[2] < 0:
        found.append((gainprm, 2, float(gainprm[2])))
    if bias == BiasType.MUSCLE and biasprm[2] < 0:
        found.append((biasprm, 2, float(biasprm[2])))
    return found


def _multiply(row: np.ndarray, units: str, scale: Scale, angular: bool) -> None:
    """Multiply entries of a row, which changes, by the scale factors of their units.

    Of several units, separated by commas, each belongs to one of the leading numbers. A single unit
    belongs to all numbers of a row of one or two, and to the first of a longer row (`gainprm`,
    `biasprm`, `dynprm`).
    """
    count = len(units.split(",")) if "," in units else (1 if len(row) > 2 else len(row))
    row[:count] *= scale.factors(units, count, angular=angular)
