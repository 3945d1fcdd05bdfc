"""Expand the shortcuts of `<actuator>` to dynamics, gain and bias.

A default class holds one actuator, which the entries of the class edit one by one. `<general>` sets
parameters directly; a shortcut such as `<position>` replaces them. It starts from those of the
nearest enclosing class whose actuator it can read, that is, one last set by the same shortcut, or
by `<general>` with the same gain type; without any it starts from its own defaults.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from jaxsim.compile.actuator import dcmotor
from jaxsim.compile.actuator.actuator_type import GENERAL, PLUGIN, ActuatorType, parameter_vector
from jaxsim.compile.context import Compilation
from jaxsim.enums import BiasType, CtrlChart, CtrlInput, DynType, GainType
from jaxsim.spec import SpecElement
from jaxsim.spec.defaults import ACTUATOR_TAGS, MAIN_CLASS, class_elements

CONTROL_INPUTS = {
    "pos": CtrlInput.POS,
    "vel": CtrlInput.VEL,
    "ff": CtrlInput.FF,
    "voltage": CtrlInput.VOLTAGE,
    "pressure": CtrlInput.PRESSURE,
}
CHART_BY_NAME = {"expmap": CtrlChart.EXPMAP, "quat": CtrlChart.QUAT}


# Actuators of each default class and its enclosing classes, outermost first.
Classes = dict[str, list[ActuatorType]]


def actuator_types(c: Compilation, elements: Sequence[SpecElement]) -> list[ActuatorType]:
    """Return the types of actuators, with the values of their default classes.

    Unused classes are read too, so that their faults are reported.
    """
    known: Classes = {}
    for section in c.spec.sections("default"):
        for element in section.walk():
            if element.tag == "default" and any(e.tag in ACTUATOR_TAGS for e in element.children):
                _class_types(c, element.own("class") or MAIN_CLASS, known)
    types = []
    for element in elements:
        around = _class_types(c, element.own("class") or MAIN_CLASS, known)
        types.append(_read(c, element, around[-1], around))
    return types


def _class_types(c: Compilation, name: str, known: Classes) -> list[ActuatorType]:
    """Return the types of one class, added to the cache `known`."""
    if name in known:
        return known[name]
    types = [ActuatorType()]
    for part in class_elements(c.spec.root, name):
        if part.parent is not None and part.parent.tag == "default":
            types.append(types[-1].copy())
        for entry in part.children:
            if entry.tag in ACTUATOR_TAGS:
                types[-1] = _read(c, entry, types[-1], types)
    known[name] = types
    return types


def _read(
    c: Compilation, element: SpecElement, own: ActuatorType, around: list[ActuatorType]
) -> ActuatorType:
    """Return a copy of an actuator, edited as one element specifies."""
    shortcut = _ACTUATOR_SHORTCUTS[element.tag]
    if element.tag in (GENERAL, PLUGIN):
        result = own.copy()
    else:
        start = next(
            (t for t in [own, *reversed(around)] if _can_read_shortcut(t, element.tag, shortcut)),
            None,
        )
        result = shortcut.fresh() if start is None else start.copy()
        result.gaintype, result.biastype = shortcut.gaintype, shortcut.biastype
        result.actearly = False
    result.written = element.tag
    result.motor = result.motor if element.tag == "dcmotor" else None
    result.forcerange = (
        own.forcerange if element.own("forcerange") is None else element.own("forcerange")
    )
    shortcut.read(c, element, result)
    return result


def _can_read_shortcut(t: ActuatorType, tag: str, shortcut: Shortcut) -> bool:
    return t.written == tag or (t.written == GENERAL and t.gaintype == shortcut.gaintype)


@dataclass(frozen=True)
class Shortcut:
    """One shortcut of `<actuator>`: its types, its defaults, and the function that reads it."""

    read: Callable[[Compilation, SpecElement, ActuatorType], None]
    gaintype: int = GainType.FIXED
    biastype: int = BiasType.NONE
    dynprm: tuple[float, ...] = (1.0,)
    gainprm: tuple[float, ...] = (1.0,)
    biasprm: tuple[float, ...] = ()

    def fresh(self) -> ActuatorType:
        """Return the actuator that the shortcut starts from if there is none to inherit from."""
        return ActuatorType(
            dynprm=parameter_vector(*self.dynprm),
            gainprm=parameter_vector(*self.gainprm),
            biasprm=parameter_vector(*self.biasprm),
        )


DYNTYPES = {t.name.lower(): t for t in DynType}
GAINTYPES = {t.name.lower(): t for t in GainType}
BIASTYPES = {t.name.lower(): t for t in BiasType}


def _general(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    t.dyntype = DYNTYPES[e.own("dyntype")] if e.own("dyntype") else t.dyntype
    t.biastype = BIASTYPES[e.own("biastype")] if e.own("biastype") else t.biastype
    if e.own("gaintype"):
        # the names of inputs depend on the gain type
        t.ctrlspec = t.ctrlspec if GAINTYPES[e.own("gaintype")] == t.gaintype else 0
        t.gaintype = GAINTYPES[e.own("gaintype")]
    for name in ("dynprm", "gainprm", "biasprm", "velrange", "ffrange"):
        values = e.own(name)
        if values is not None:
            getattr(t, name)[: len(values)] = values
    t.actearly = e.own("actearly") == "true" if e.own("actearly") else t.actearly
    t.inheritrange = float(_value(e, "inheritrange", t.inheritrange))
    _input(c, e, t)


def _motor(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    t.__dict__.update(ActuatorType(written=e.tag, forcerange=t.forcerange).__dict__)


def _servo(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    """Read `position` and `intvelocity`: force = kp (setpoint - length) - kv velocity."""
    timeconst = e.own("timeconst")
    if timeconst is None and t.dyntype == DynType.FILTEREXACT:
        timeconst = t.dynprm[0]
    t.dynprm = parameter_vector(1.0 if timeconst is None else timeconst)
    t.dyntype = DynType.FILTEREXACT if timeconst else DynType.NONE
    t.ctrlspec, limit = CtrlInput.POS, "ctrlrange"
    if e.tag == "intvelocity":
        t.dyntype, t.ctrlspec, limit = DynType.INTEGRATOR, CtrlInput.VEL, "actrange"
    _not_negative(c, e, "timeconst")
    kp = _value(e, "kp", t.gainprm[0])
    t.gainprm, t.biasprm = parameter_vector(kp), parameter_vector(0.0, -kp, _damping(c, e, t))
    _read_inheritrange(c, e, t, limit)


def _velocity(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    kv = _value(e, "kv", t.gainprm[0])
    t.dyntype, t.dynprm, t.ctrlspec = DynType.NONE, parameter_vector(1.0), CtrlInput.VEL
    t.gainprm, t.biasprm, t.inheritrange = (
        parameter_vector(kv),
        parameter_vector(0.0, 0.0, -kv),
        0.0,
    )


def _pid(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    _not_negative(c, e, "slewmax")
    kp, ki = _value(e, "kp", -t.biasprm[1]), _value(e, "ki", t.gainprm[0])
    imax, slewmax = _value(e, "imax", t.dynprm[0]), _value(e, "slewmax", t.dynprm[1])
    stateful = ki != 0 or slewmax > 0
    t.dyntype = DynType.PID if stateful else DynType.NONE
    t.dynprm = parameter_vector(imax, slewmax) if stateful else parameter_vector()
    t.gainprm, t.biasprm = parameter_vector(ki), parameter_vector(0.0, -kp, _damping(c, e, t))
    for name in ("velrange", "ffrange"):
        if e.own(name) is not None:
            setattr(t, name, np.array(e.own(name), np.float64))
    _read_inheritrange(c, e, t, "posrange")
    _input(c, e, t)


def _orientation(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    kp = _value(e, "kp", t.gainprm[0])
    t.dyntype, t.dynprm = DynType.NONE, parameter_vector(1.0)
    t.gainprm, t.biasprm = parameter_vector(kp), parameter_vector(0.0, -kp, _damping(c, e, t))
    _input(c, e, t)


def _damper(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    kv = _value(e, "kv", -t.gainprm[2])
    if kv < 0:
        c.fault(e, f"kv='{kv:g}' must not be negative")
    t.dyntype, t.dynprm, t.ctrlspec = DynType.NONE, parameter_vector(1.0), 0
    t.gainprm, t.biasprm = parameter_vector(0.0, 0.0, -kv), parameter_vector()


def _cylinder(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    area = _value(e, "area", t.gainprm[0])
    if e.own("diameter") is not None:
        area = np.pi / 4.0 * np.square(e.own("diameter"))
    bias = t.biasprm[:3] if e.own("bias") is None else e.own("bias")
    t.dyntype, t.dynprm = DynType.FILTER, parameter_vector(_value(e, "timeconst", t.dynprm[0]))
    t.gainprm, t.biasprm, t.ctrlspec = (
        parameter_vector(area),
        parameter_vector(*bias),
        CtrlInput.PRESSURE,
    )


def _muscle(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    t.dyntype, t.ctrlspec = DynType.MUSCLE, 0
    _not_negative(c, e, "tausmooth")
    t.dynprm[2] = _value(e, "tausmooth", t.dynprm[2])
    gains = "force scale lmin lmax vmax fpmax fvmax".split()
    entries = [(t.dynprm, 0, "timeconst"), (t.gainprm, 0, "range")]
    fresh = _ACTUATOR_SHORTCUTS["muscle"].fresh()
    for prm, start, attr in entries + [(t.gainprm, k, name) for k, name in enumerate(gains, 2)]:
        given, initial = e.own(attr), fresh.dynprm if prm is t.dynprm else fresh.gainprm
        for k, value in enumerate(np.atleast_1d([] if given is None else given), start):
            # a negative number selects the default of a muscle
            prm[k] = initial[k] if value < 0 else value
    t.biasprm = t.gainprm.copy()


def _adhesion(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    gain = _value(e, "gain", t.gainprm[0])
    if gain < 0:
        c.fault(e, f"gain='{gain:g}' must not be negative")
    t.dyntype, t.dynprm, t.ctrlspec = DynType.NONE, parameter_vector(1.0), 0
    t.gainprm, t.biasprm = parameter_vector(gain), parameter_vector()


def _dcmotor(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    t.dyntype, t.actearly = DynType.DCMOTOR, True
    _input(c, e, t)
    dcmotor.read_dcmotor(c, e, t)


def _value(e: SpecElement, attr: str, otherwise: float) -> float:
    """Return a number set on the element itself, else the given one."""
    value = e.own(attr)
    return otherwise if value is None else float(np.atleast_1d(value)[0])


def _not_negative(c: Compilation, e: SpecElement, attr: str) -> None:
    if _value(e, attr, 0.0) < 0:
        c.fault(e, f"{attr}='{_value(e, attr, 0.0):g}' must not be negative")


def _damping(c: Compilation, e: SpecElement, t: ActuatorType) -> float:
    """Return the number for `biasprm[2]`: minus kv, or the damping ratio."""
    for attr in ("kv", "dampratio"):
        _not_negative(c, e, attr)
    if e.own("kv") is not None and e.own("dampratio") is not None:
        c.fault(e, "kv and dampratio both set the damping; remove one of them")
    if e.own("kv") is not None:
        return -_value(e, "kv", 0.0)
    return _value(e, "dampratio", t.biasprm[2])


def _read_inheritrange(c: Compilation, e: SpecElement, t: ActuatorType, limit: str) -> None:
    """Read `inheritrange`; an explicit range on the element overrides it."""
    t.inheritrange = _value(e, "inheritrange", t.inheritrange)
    explicit = e.own(limit) is not None
    if explicit and e.own("inheritrange") is not None and t.inheritrange > 0:
        c.fault(e, f"inheritrange sets {limit}, which is given too; remove one of them")
    if explicit:
        t.inheritrange = 0.0


def _input(c: Compilation, e: SpecElement, t: ActuatorType) -> None:
    """Read `input`, a list of inputs in their order or the chart of an orientation."""
    text = e.own("input")
    if text is None:
        return
    words = text.split()
    if len(words) == 1 and words[0] in CHART_BY_NAME:
        t.ctrlspec = CHART_BY_NAME[words[0]]
    elif words == ["none"]:
        t.ctrlspec = CtrlInput.NONE
    elif all(word in CONTROL_INPUTS for word in words):
        spec = [CONTROL_INPUTS[word] for word in words]
        if spec != sorted(set(spec)):
            c.fault(
                e, f"input='{text}': give each input once, in the order {' '.join(CONTROL_INPUTS)}"
            )
        t.ctrlspec = sum(set(spec))
    else:
        known = ", ".join([*CONTROL_INPUTS, "none", *CHART_BY_NAME])
        c.fault(e, f"input='{text}' must be made of the words {known}")


_MUSCLE = (0.75, 1.05, -1.0, 200.0, 0.5, 1.6, 1.5, 1.3, 1.2)

_ACTUATOR_SHORTCUTS: dict[str, Shortcut] = {
    "general": Shortcut(_general),
    "plugin": Shortcut(_general),
    "motor": Shortcut(_motor),
    "position": Shortcut(_servo, biastype=BiasType.AFFINE),
    "velocity": Shortcut(_velocity, biastype=BiasType.AFFINE),
    "intvelocity": Shortcut(_servo, biastype=BiasType.AFFINE),
    "damper": Shortcut(_damper, GainType.AFFINE, gainprm=()),
    "cylinder": Shortcut(_cylinder, biastype=BiasType.AFFINE),
    "muscle": Shortcut(_muscle, GainType.MUSCLE, BiasType.MUSCLE, (0.01, 0.04), _MUSCLE, _MUSCLE),
    "adhesion": Shortcut(_adhesion),
    "orientation": Shortcut(_orientation, GainType.SO3, BiasType.SO3),
    "pid": Shortcut(_pid, GainType.PID, BiasType.AFFINE, (), (), (0.0, -1.0)),
    "dcmotor": Shortcut(_dcmotor, GainType.DCMOTOR, BiasType.DCMOTOR, (), ()),
}
