"""Actuators: `actuator_*`, with the sizes `nu`, `nactuator`, `nout` and `na`.

An actuator has a block of controls (most one, a pid up to three, an orientation three or four), force
outputs (one, an orientation three) and activations; `ctrlrange` counts controls, `gear` and
`lengthrange` outputs, the rest actuators.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxsim.compile import dcmotor
from jaxsim.compile.actuator_types import ActuatorType, actuator_type
from jaxsim.compile.columns import Column, copy_columns, user_data
from jaxsim.compile.context import Compilation
from jaxsim.compile.joints import higher
from jaxsim.compile.tendons import wraps_geom
from jaxsim.enums import BiasType, CtrlChart, CtrlInput, DynType, GainType, JointType, TrnType
from jaxsim.spec import SpecElement

_COLUMNS = (
    Column("actuator_group", "group", dtype=np.int32),
    Column("actuator_delay", "delay"),
    Column("actuator_cranklength", "cranklength"),
    Column("actuator_damping", "damping"),
    Column("actuator_armature", "armature"),
    Column("actuator_actrange", "actrange", 2),
)

INTERPOLATION = {"zoh": 0, "linear": 1, "cubic": 2}

# These cannot do without their control range, and it must not be negative.
_ONE_SIDED = ("damper", "adhesion")

_DEFAULT_GEAR = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class Transmission(NamedTuple):
    """What an actuator acts on: the type, and the ids of the object and of a second one, or -1."""

    kind: TrnType
    first: int
    second: int = -1


class Controls(NamedTuple):
    """The block of controls of one actuator: (n, 2) ranges and whether each is imposed (n,)."""

    ranges: np.ndarray
    limited: np.ndarray


def actuators(c: Compilation) -> None:
    """All fields of actuators that do not need the reference pose."""
    elements = c.spec.section("actuator")
    c.register("actuator", elements, [actuator.name for actuator in elements])
    types = [actuator_type(c, e) for e in elements]
    c.problems.raise_if_any()  # what follows takes the types as they are
    transmissions = [_transmission(c, e, t) for e, t in zip(elements, types, strict=True)]
    pairs = list(zip(elements, types, strict=True))
    for (e, t), trn in zip(pairs, transmissions, strict=True):
        _check(c, e, t)
        _inherit_range(c, e, t, trn)
    specs = [_ctrlspec(c, e, t) for e, t in pairs]
    controls = [_controls(c, e, t, spec) for (e, t), spec in zip(pairs, specs, strict=True)]
    actnum = np.array([_activations(c, e, t) for e, t in pairs], np.int32)
    ctrlnum = np.array([len(block.limited) for block in controls], np.int32)
    outnum = np.array([3 if trn.kind == TrnType.SO3 else 1 for trn in transmissions], np.int32)
    c.fields.update(
        nactuator=len(elements),
        nu=int(ctrlnum.sum()),
        nout=int(outnum.sum()),
        na=int(actnum.sum()),
        actuator_trntype=np.array([trn.kind for trn in transmissions], np.int32),
        actuator_trnid=np.array([trn[1:] for trn in transmissions], np.int32).reshape(-1, 2),
        actuator_ctrladr=(np.cumsum(ctrlnum) - ctrlnum).astype(np.int32),
        actuator_ctrlnum=ctrlnum,
        actuator_ctrlspec=np.array(specs, np.int32),
        actuator_outadr=(np.cumsum(outnum) - outnum).astype(np.int32),
        actuator_outnum=outnum,
        actuator_actadr=np.where(actnum > 0, np.cumsum(actnum) - actnum, -1).astype(np.int32),
        actuator_actnum=actnum,
        actuator_plugin=np.full(len(elements), -1, np.int32),
        actuator_ctrlrange=np.concatenate([*[b.ranges for b in controls], np.zeros((0, 2))]),
        actuator_ctrllimited=np.concatenate([*[b.limited for b in controls], np.zeros(0, bool)]),
    )
    copy_columns(c, elements, _COLUMNS)
    _parameters(c, types)
    _limits(c, pairs)
    _outputs(c, elements, outnum)
    _history(c, elements, ctrlnum)
    _reflected(c)
    user_data(c, "actuator", "actuator", elements)


def _parameters(c: Compilation, types: list[ActuatorType]) -> None:
    """What the shortcuts have made of the types."""
    for name in ("dyntype", "gaintype", "biastype"):
        c.fields[f"actuator_{name}"] = np.array([getattr(t, name) for t in types], np.int32)
    for name in ("dynprm", "gainprm", "biasprm"):
        rows = np.array([getattr(t, name) for t in types], np.float64)
        c.fields[f"actuator_{name}"] = rows.reshape(len(types), 10)
    c.fields["actuator_actearly"] = np.array([t.actearly for t in types], bool)


def _transmission(c: Compilation, e: SpecElement, t: ActuatorType) -> Transmission:
    """What the actuator acts on; exactly one attribute must say so."""
    given = [attr for attr in _TARGETS if e.own(attr)]
    if len(given) != 1:
        has = f"it has {' and '.join(given)}" if given else "it has none"
        c.fault(e, f"one of {', '.join(_TARGETS)} must say what it acts on, but {has}")
        return Transmission(TrnType.UNDEFINED, -1)
    (attr,) = given
    kind, what = _TARGETS[attr]
    first, second = c.find_own(what, e, attr), -1
    if kind == TrnType.SLIDERCRANK:
        second = _slider(c, e)
    elif e.own("slidersite") or e.own("cranklength") is not None:
        c.fault(e, "slidersite and cranklength need cranksite; remove them")
    if kind == TrnType.SITE:
        second = c.find_own("site", e, "refsite")
    elif e.own("refsite"):
        c.fault(e, "refsite needs site; remove it")
    if t.gaintype == GainType.SO3:
        _check_orientation(c, e, kind, first, second)
        kind = TrnType.SO3
    for attr in ("damping", "armature"):
        if np.any(e.get(attr)) and kind not in _REFLECTING:
            c.fault(e, f"{attr} needs a joint or a tendon to act on; remove it")
    if kind == TrnType.TENDON and first >= 0 and e.get("armature") and wraps_geom(c.fields, first):
        c.fault(e, "a tendon that wraps around geoms cannot have armature; remove it")
    return Transmission(kind, first, second)


_TARGETS = {
    "joint": (TrnType.JOINT, "joint"),
    "jointinparent": (TrnType.JOINTINPARENT, "joint"),
    "tendon": (TrnType.TENDON, "tendon"),
    "cranksite": (TrnType.SLIDERCRANK, "site"),
    "site": (TrnType.SITE, "site"),
    "body": (TrnType.BODY, "body"),
}
_REFLECTING = (TrnType.JOINT, TrnType.JOINTINPARENT, TrnType.TENDON, TrnType.SO3, TrnType.UNDEFINED)


def _slider(c: Compilation, e: SpecElement) -> int:
    """The slider's site of a slider-crank."""
    if not e.own("slidersite"):
        c.fault(e, "a slider-crank needs slidersite, the site of the slider")
    if not e.get("cranklength") > 0:
        c.fault(e, f"cranklength='{e.get('cranklength'):g}' must be positive")
    return c.find_own("site", e, "slidersite")


def _check_orientation(
    c: Compilation, e: SpecElement, kind: TrnType, first: int, refsite: int
) -> None:
    """An orientation needs a ball joint, or a site and the site it is seen from."""
    if kind == TrnType.SITE and refsite < 0:
        c.fault(e, "an orientation of a site needs refsite, the site it is measured from")
    elif kind not in (TrnType.SITE, TrnType.JOINT):
        c.fault(e, "an orientation actuator acts on a ball joint, or on a site with a refsite")
    elif kind == TrnType.JOINT and first >= 0 and c.fields["jnt_type"][first] != JointType.BALL:
        c.fault(e, f"joint='{e.own('joint')}' must be a ball joint for an orientation actuator")


def _check(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    """The combinations of types that MuJoCo allows."""
    gain, bias, dyn = t.gaintype, t.biastype, t.dyntype
    if dyn == DynType.PID and gain != GainType.PID:
        c.fault(e, "dyntype='pid' needs gaintype='pid'")
    if gain == GainType.PID:
        if bias != BiasType.AFFINE:
            c.fault(e, "gaintype='pid' needs biastype='affine'")
        if dyn not in (DynType.NONE, DynType.PID):
            c.fault(e, "gaintype='pid' needs dyntype 'none' or 'pid'")
        if dyn == DynType.NONE and t.gainprm[0] != 0:
            c.fault(e, "an integral gain (gainprm[0]) needs dyntype='pid'")
    if dyn == DynType.DCMOTOR and not t.actearly:
        c.fault(e, "a DC motor needs actearly='true'")
    if (gain == GainType.SO3) != (bias == BiasType.SO3):
        c.fault(e, "gaintype and biastype must both be 'so3', or neither")
    elif gain == GainType.SO3:
        if t.gainprm[0] != -t.biasprm[1]:
            c.fault(e, "so3 needs gainprm[0] equal to -biasprm[1]")
        if dyn not in (DynType.NONE, DynType.INTEGRATOR):
            c.fault(e, "so3 needs dyntype 'none' or 'integrator'")
    for muscle, prm in ((gain == GainType.MUSCLE, t.gainprm), (bias == BiasType.MUSCLE, t.biasprm)):
        if muscle:
            _check_muscle(c, e, prm)


def _check_muscle(c: Compilation, e: SpecElement, prm: np.ndarray) -> None:
    low, high, _, scale, lmin, lmax, vmax, fpmax, fvmax = prm[:9]
    if not low < high:
        c.fault(e, f"the muscle's range must rise, got '{low:g} {high:g}'")
    if not lmin < 1 < lmax:
        c.fault(e, f"a muscle needs lmin < 1 < lmax, got {lmin:g} and {lmax:g}")
    if min(scale, vmax, fpmax, fvmax) <= 0:
        c.fault(e, "a muscle needs positive scale, vmax, fpmax and fvmax")


def _inherit_range(c: Compilation, e: SpecElement, t: ActuatorType, trn: Transmission) -> None:
    """Turns `inheritrange` of a position servo into the range it asks for, kept in `t.inherited`."""
    servo = t.gaintype == GainType.PID or (
        t.gaintype == GainType.FIXED and t.gainprm[0] == -t.biasprm[1]
    )
    if not t.inheritrange > 0 or not servo or t.biastype != BiasType.AFFINE:
        return
    ranges = {
        TrnType.JOINT: "jnt_range",
        TrnType.JOINTINPARENT: "jnt_range",
        TrnType.TENDON: "tendon_range",
    }
    if trn.kind not in ranges:
        c.fault(e, "inheritrange needs a joint or a tendon with a range; give the range itself")
        return
    if trn.first < 0:
        return
    scalar = trn.kind == TrnType.TENDON or c.fields["jnt_type"][trn.first] in (
        JointType.SLIDE,
        JointType.HINGE,
    )
    if not scalar:
        c.fault(e, "inheritrange needs a hinge or slide joint; give the range itself")
        return
    low, high = c.fields[ranges[trn.kind]][trn.first]
    if low == high:
        c.fault(e, "inheritrange needs a target with a range, and it has none")
    middle, half = 0.5 * (low + high), 0.5 * (high - low) * t.inheritrange
    t.inherited = np.array([middle - half, middle + half])


def _range(e: SpecElement, attr: str, *aliases: str) -> np.ndarray:
    """A range under one of several names, the last one written counts."""
    value = np.zeros(2)
    for layer in e.layers():
        for name in (attr, *aliases):
            given = layer.own(name)
            value = value if given is None else np.array(given, np.float64)
    return value


def _ctrlspec(c: Compilation, e: SpecElement, t: ActuatorType) -> int:
    """The inputs of the actuator: what it says, checked, else what its type of gain has."""
    pid = CtrlInput.POS | CtrlInput.VEL | CtrlInput.FF
    spec = CtrlInput(t.ctrlspec) if t.gaintype != GainType.SO3 else t.ctrlspec
    match t.gaintype:
        case GainType.PID:
            spec = spec or CtrlInput.POS | CtrlInput.VEL
            if spec & ~pid:
                c.fault(e, "the inputs of a pid are among pos, vel and ff")
            states = t.dyntype == DynType.PID and (t.gainprm[0] != 0 or t.dynprm[1] > 0)
            if states and not spec & CtrlInput.POS:
                c.fault(e, "ki and slewmax need the input pos")
        case GainType.DCMOTOR:
            spec = spec or CtrlInput.VOLTAGE
            if spec & ~(pid | CtrlInput.VOLTAGE) and spec != CtrlInput.NONE:
                c.fault(e, "the inputs of a dcmotor are 'none', or among pos, vel, ff and voltage")
            _check_controller(c, e, t, spec & pid, spec)
        case GainType.SO3:
            spec = spec or CtrlChart.EXPMAP
            if spec not in (CtrlChart.EXPMAP, CtrlChart.QUAT):
                c.fault(e, "the input of an orientation is 'expmap' or 'quat'")
            elif spec == CtrlChart.QUAT and t.dyntype != DynType.NONE:
                c.fault(e, "input='quat' needs dyntype='none'")
        case GainType.FIXED | GainType.AFFINE:
            if spec not in (0, CtrlInput.POS, CtrlInput.VEL, CtrlInput.PRESSURE):
                c.fault(e, "input must be one of pos, vel and pressure, or absent")
        case _:
            if spec:
                c.fault(e, "input has no meaning for this gaintype; remove it")
    return int(spec)


def _check_controller(
    c: Compilation, e: SpecElement, t: ActuatorType, setpoints: int, spec: int
) -> None:
    """The controller of a DC motor needs an input to follow."""
    gains = t.gainprm[[dcmotor.KP, dcmotor.KI, dcmotor.KD]]
    if (gains.any() or t.dynprm[dcmotor.SLEW] > 0) and not setpoints:
        c.fault(e, "the controller needs one of the inputs pos, vel and ff")
    elif t.gainprm[dcmotor.KI] != 0 and not spec & CtrlInput.POS:
        c.fault(e, "the controller's integral gain needs the input pos")


def _controls(c: Compilation, e: SpecElement, t: ActuatorType, spec: int) -> Controls:
    """Ranges of the block of controls."""
    first = _range(e, "ctrlrange", "posrange")
    to_act = t.dyntype == DynType.INTEGRATOR
    if t.inherited is not None and not to_act:
        first = t.inherited
    limited = _is_on(c, e, "ctrllimited", "ctrlrange", first)
    if _written(e, *_ONE_SIDED):
        if not first[0] < first[1]:
            c.fault(e, f"it needs a ctrlrange that rises, got '{first[0]:g} {first[1]:g}'")
        if (first < 0).any() and e.tag in _ONE_SIDED:
            c.fault(e, f"ctrlrange='{first[0]:g} {first[1]:g}' must not be negative")
        limited = True
    if t.gaintype == GainType.PID:
        blocks = []
        for bit, values, on in (
            (CtrlInput.POS, first, limited),
            (CtrlInput.VEL, t.velrange, t.velrange[0] < t.velrange[1]),
            (CtrlInput.FF, t.ffrange, t.ffrange[0] < t.ffrange[1]),
        ):
            if spec & bit:
                blocks.append((values, on))
        ranges = np.array([values for values, _ in blocks], np.float64).reshape(-1, 2)
        return Controls(ranges, np.array([on for _, on in blocks], bool))
    count = 1
    if t.gaintype == GainType.SO3:
        count = 4 if spec == CtrlChart.QUAT else 3
    elif t.gaintype == GainType.DCMOTOR:
        count = 0 if spec == CtrlInput.NONE else int(spec).bit_count()
    return Controls(np.tile(first, (count, 1)).reshape(-1, 2), np.full(count, limited, bool))


def _written(e: SpecElement, *tags: str) -> bool:
    """Whether one of these shortcuts is behind the actuator; they turn the control limit on."""
    return any(layer.tag in tags for layer in e.layers())


def _is_on(c: Compilation, e: SpecElement, flag: str, attr: str, value: np.ndarray) -> bool:
    """Whether a limit is imposed, by its flag or, where that is 'auto', because its range rises."""
    keyword = e.get(flag) or "auto"
    low, high = value
    if keyword == "auto" and not c.settings.autolimits and (low, high) != (0.0, 0.0):
        if not _written(e, *_ONE_SIDED):
            c.fault(
                e,
                f"it has {attr} but not {flag}, and autolimits is off; write {flag}='true' or 'false'",
            )
    on = keyword == "true" or (keyword == "auto" and low < high)
    if on and not low < high:
        c.fault(e, f"{attr}='{low:g} {high:g}' must rise, because {flag} is on")
    return bool(on)


def _activations(c: Compilation, e: SpecElement, t: ActuatorType) -> int:
    """Number of activations."""
    states = 0 if t.dyntype == DynType.NONE else 1
    given = e.get("actdim") if e.tag == "general" else None
    given = None if given is None or given < 0 else int(given)
    if t.dyntype == DynType.USER and given is not None:
        states = given
    elif t.dyntype == DynType.PID:
        states = int(t.gainprm[0] > 0) + int(t.dynprm[1] > 0)
    elif t.dyntype == DynType.DCMOTOR:
        states = dcmotor.activations(t)
    elif t.gaintype == GainType.SO3 and t.dyntype == DynType.INTEGRATOR:
        states = 3
    if states == 0 and t.dyntype == DynType.PID:
        c.fault(
            e, "dyntype='pid' without a positive ki or slewmax has no state; use dyntype='none'"
        )
    elif states == 0 and t.dyntype == DynType.USER:
        c.fault(e, "actdim='0': dyntype='user' has a state; use dyntype='none'")
    if t.gaintype == GainType.DCMOTOR and states != dcmotor.activations(t):
        c.fault(e, "the states that dynprm asks for need dyntype='dcmotor'")
    if given not in (None, states):
        c.fault(e, f"actdim='{given}', but this dyntype has {states} activations; remove actdim")
    return states


def _limits(c: Compilation, pairs: list[tuple[SpecElement, ActuatorType]]) -> None:
    """`actuator_forcerange`, `actuator_actrange` and whether they are imposed."""
    count = len(pairs)
    forcerange, actrange = np.zeros((count, 2)), c.fields["actuator_actrange"]
    forcelimited, actlimited = np.zeros(count, bool), np.zeros(count, bool)
    for i, (e, t) in enumerate(pairs):
        if t.forcerange is not None:
            forcerange[i] = t.forcerange
        if e.own("saturation") is not None:
            forcelimited[i] = forcerange[i, 0] < forcerange[i, 1]
        else:
            forcelimited[i] = _is_on(c, e, "forcelimited", "forcerange", forcerange[i])
        if t.gaintype == GainType.SO3 and forcerange[i, 0] != 0:
            c.fault(
                e,
                "forcerange of an orientation bounds the norm of its torque: it must begin with 0",
            )
        if t.inherited is not None and t.dyntype == DynType.INTEGRATOR:
            actrange[i] = t.inherited
        actlimited[i] = _is_on(c, e, "actlimited", "actrange", actrange[i])
        if actrange[i].any() and t.dyntype == DynType.NONE:
            c.fault(e, "actrange needs an activation; remove it, or give a dyntype")
    c.fields.update(
        actuator_forcerange=forcerange,
        actuator_forcelimited=forcelimited,
        actuator_actrange=actrange,
        actuator_actlimited=actlimited,
    )


def _outputs(c: Compilation, elements: list[SpecElement], outnum: np.ndarray) -> None:
    """What there is one row of for each force output."""
    gear = np.tile(_DEFAULT_GEAR, (len(elements), 1))
    lengthrange = np.zeros((len(elements), 2))
    for i, e in enumerate(elements):
        if e.get("gear") is not None:
            gear[i] = e.get("gear")
        if e.get("lengthrange") is not None:
            lengthrange[i] = e.get("lengthrange")
    c.fields.update(
        actuator_gear=np.repeat(gear, outnum, axis=0),
        actuator_lengthrange=np.repeat(lengthrange, outnum, axis=0),
        actuator_dampingpoly=higher(elements, "damping"),
    )


def history(
    c: Compilation, kind: str, elements: list[SpecElement], width: np.ndarray, start: int
) -> int:
    """`<kind>_history` and its addresses; a buffer has two numbers, and a time and values per sample.

    Returns:
      The end of the last buffer in `history`.
    """
    samples = np.array([e.get("nsample") or 0 for e in elements], np.int32)
    order = np.array([INTERPOLATION[e.get("interp") or "zoh"] for e in elements], np.int32)
    for e, count in zip(elements, samples, strict=True):
        if (e.get("delay") or 0) > 0 and count <= 0:
            c.fault(e, "a delay needs a history; give nsample")
    size = np.where(samples > 0, 2 + samples * (1 + width), 0)
    adr = start + np.cumsum(size) - size
    c.fields[f"{kind}_history"] = np.stack([samples, order], axis=1).reshape(-1, 2)
    c.fields[f"{kind}_historyadr"] = np.where(size > 0, adr, -1).astype(np.int32)
    return start + int(size.sum())


def _history(c: Compilation, elements: list[SpecElement], ctrlnum: np.ndarray) -> None:
    c.fields["nhistory"] = history(c, "actuator", elements, ctrlnum, 0)


def _reflected(c: Compilation) -> None:
    """`jnt_actuatorid`, `tendon_actuatorid`: who adds damping or armature to them; -2 for several."""
    f = c.fields
    active = (f["actuator_armature"] != 0) | (f["actuator_damping"] != 0)
    active |= (f["actuator_dampingpoly"] != 0).any(axis=1)
    for field, kinds in (
        ("jnt_actuatorid", (TrnType.JOINT, TrnType.JOINTINPARENT)),
        ("tendon_actuatorid", (TrnType.TENDON,)),
    ):
        for actuator in np.flatnonzero(active & np.isin(f["actuator_trntype"], kinds)):
            target = f["actuator_trnid"][actuator, 0]
            f[field][target] = actuator if f[field][target] == -1 else -2
