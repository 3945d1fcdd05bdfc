"""Compile actuators: `actuator_*`, with the sizes `nu`, `nactuator`, `nout` and `na`.

An actuator has a block of controls (usually one, a pid up to three, an orientation three or four),
force outputs (one, an orientation three) and activations; `ctrlrange` is per control, `gear` and
`lengthrange` per output, all other fields per actuator.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.actuator.actuator_type import GENERAL, PLUGIN, ActuatorType
from jaxsim.compile.actuator.inputs import controls_of, ctrlspec, needs_range
from jaxsim.compile.actuator.targets import actuator_target, inherited_range
from jaxsim.compile.actuator.types import actuator_types
from jaxsim.compile.columns import Column, copy_columns, polynomial_coefficients, user_data
from jaxsim.compile.context import Compilation
from jaxsim.compile.limit_flags import is_limited
from jaxsim.compile.options.bounds import fits_bounds
from jaxsim.compile.options.history import history
from jaxsim.compile.options.plugins import check_activations, plugin_ids
from jaxsim.compile.step import declare_pass
from jaxsim.enums import BiasType, DynType, GainType, TrnType
from jaxsim.model.motor import STATES, states_of
from jaxsim.spec import SpecElement

_COLUMNS = (
    Column("actuator_group", "group", dtype=np.int32),
    Column("actuator_delay", "delay"),
    Column("actuator_cranklength", "cranklength"),
    Column("actuator_damping", "damping"),
    Column("actuator_armature", "armature"),
    Column("actuator_actrange", "actrange", 2),
)

_DEFAULT_GEAR = (1.0, 0.0, 0.0, 0.0, 0.0, 0.0)


@declare_pass(
    needs="read_settings plugin_fields bodies joints sites tendons",
    gives="actuator jnt motors tendon",
)
def actuators(c: Compilation) -> None:
    """Add all fields of actuators that do not need the reference pose."""
    elements = c.spec.section("actuator")
    c.register("actuator", elements, [actuator.name for actuator in elements])
    types = actuator_types(c, elements)
    c.problems.raise_if_any()  # the code below assumes valid types
    transmissions = [actuator_target(c, e, t) for e, t in zip(elements, types, strict=True)]
    pairs = list(zip(elements, types, strict=True))
    for (e, t), trn in zip(pairs, transmissions, strict=True):
        _check(c, e, t)
        t.inherited = inherited_range(c, e, t, trn)
    specs = [ctrlspec(c, e, t) for e, t in pairs]
    controls = [controls_of(c, e, t, spec) for (e, t), spec in zip(pairs, specs, strict=True)]
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
        actuator_plugin=plugin_ids(c, elements),
        actuator_ctrlrange=np.concatenate([*[b.ranges for b in controls], np.zeros((0, 2))]),
        actuator_ctrllimited=np.concatenate([*[b.limited for b in controls], np.zeros(0, bool)]),
    )
    copy_columns(c, elements, _COLUMNS)
    _parameters(c, types)
    _limits(c, pairs)
    _outputs(c, elements, outnum)
    c.fields["nhistory"] = history(c, "actuator", elements, ctrlnum, 0)
    _reflecting_actuators(c)
    user_data(c, "actuator", elements)


def _parameters(c: Compilation, types: list[ActuatorType]) -> None:
    """Add the type and parameter fields of the actuators."""
    for name in ("dyntype", "gaintype", "biastype"):
        c.fields[f"actuator_{name}"] = np.array([getattr(t, name) for t in types], np.int32)
    for name in ("dynprm", "gainprm", "biasprm"):
        rows = np.array([getattr(t, name) for t in types], np.float64)
        c.fields[f"actuator_{name}"] = rows.reshape(len(types), 10)
    c.fields["actuator_actearly"] = np.array([t.actearly for t in types], bool)
    c.motors = tuple(t.motor or () for t in types)


def _check(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    """Check that the types are a combination that MuJoCo allows."""
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


_FILTERS = (DynType.INTEGRATOR, DynType.FILTER, DynType.FILTEREXACT)


def _activations(c: Compilation, e: SpecElement, t: ActuatorType) -> int:
    """Return the number of activations."""
    states = 0 if t.dyntype == DynType.NONE else 1
    given = e.get("actdim") if e.tag in (GENERAL, PLUGIN) else None
    given = None if given is None or given < 0 else int(given)
    if given is not None and not fits_bounds(c, e, "actdim", given):
        given = None
    if e.tag == PLUGIN:
        states = states if given is None else given
        check_activations(c, e, int(t.dyntype in _FILTERS), states)
        return states
    if t.dyntype == DynType.USER and given is not None:
        states = given
    elif t.dyntype in STATES:
        states = _controller_states(t, t.dyntype)
    elif t.gaintype == GainType.SO3 and t.dyntype == DynType.INTEGRATOR:
        states = 3
    if states == 0 and t.dyntype == DynType.PID:
        c.fault(
            e, "dyntype='pid' without a positive ki or slewmax has no state; use dyntype='none'"
        )
    elif states == 0 and t.dyntype == DynType.USER:
        c.fault(e, "actdim='0': dyntype='user' has a state; use dyntype='none'")
    if t.gaintype == GainType.DCMOTOR and states != _controller_states(t, DynType.DCMOTOR):
        c.fault(e, "the states that dynprm asks for need dyntype='dcmotor'")
    if given not in (None, states):
        c.fault(e, f"actdim='{given}', but this dyntype has {states} activations; remove actdim")
    return states


def _controller_states(t: ActuatorType, kind: int) -> int:
    """Return the number of activations that the parameters of a pid or a DC motor imply."""
    parameters = {"actuator_dynprm": t.dynprm, "actuator_gainprm": t.gainprm}
    return len(states_of(kind, parameters.__getitem__))


def _limits(c: Compilation, pairs: list[tuple[SpecElement, ActuatorType]]) -> None:
    """Add `actuator_forcerange`, `actuator_actrange` and their limited flags."""
    count = len(pairs)
    forcerange, actrange = np.zeros((count, 2)), c.fields["actuator_actrange"]
    forcelimited, actlimited = np.zeros(count, bool), np.zeros(count, bool)
    for i, (e, t) in enumerate(pairs):
        if t.forcerange is not None:
            forcerange[i] = t.forcerange
        if e.own("saturation") is not None:
            forcelimited[i] = forcerange[i, 0] < forcerange[i, 1]
        else:
            forcelimited[i] = is_limited(
                c, e, "forcelimited", "forcerange", forcerange[i], decided=needs_range(e)
            )
        if t.gaintype == GainType.SO3 and forcelimited[i] and forcerange[i, 0] != 0:
            c.fault(
                e,
                "forcerange of an orientation bounds the norm of its torque: it must begin with 0",
            )
        if t.inherited is not None and t.dyntype == DynType.INTEGRATOR:
            actrange[i] = t.inherited
        actlimited[i] = is_limited(
            c, e, "actlimited", "actrange", actrange[i], decided=needs_range(e)
        )
        if actlimited[i] and t.dyntype == DynType.NONE:
            c.fault(e, "actrange needs an activation; remove it, or give a dyntype")
    c.fields.update(
        actuator_forcerange=forcerange,
        actuator_forcelimited=forcelimited,
        actuator_actrange=actrange,
        actuator_actlimited=actlimited,
    )


def _outputs(c: Compilation, elements: list[SpecElement], outnum: np.ndarray) -> None:
    """Add the fields with one row per force output."""
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
        actuator_dampingpoly=polynomial_coefficients(elements, "damping"),
    )


def _reflecting_actuators(c: Compilation) -> None:
    """Add `jnt_actuatorid`, `tendon_actuatorid`: the actuator that adds damping or armature; -2 for
    several."""
    f = c.fields
    active = (f["actuator_armature"] != 0) | (f["actuator_damping"] != 0)
    active |= (f["actuator_dampingpoly"] != 0).any(axis=1)
    for field, kinds in (
        ("jnt_actuatorid", (TrnType.JOINT, TrnType.JOINTINPARENT)),
        ("tendon_actuatorid", (TrnType.TENDON,)),
    ):
        for actuator in np.flatnonzero(active & np.isin(f["actuator_trntype"], kinds)):
            target = f["actuator_trnid"][actuator, 0]
            if target >= 0:  # otherwise the target is undefined, which is reported
                f[field][target] = actuator if f[field][target] == -1 else -2
