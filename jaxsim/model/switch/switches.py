"""Real numbers whose being zero or not decides which parts a program has.

A dof without dry friction has no row in the solver, a model in a vacuum no fluid forces: what is
not there costs nothing. So a number that is zero when the model is made cannot have an effect
later, unless its user says that it may: `load_model(..., free=...)`. This table is the one place
that knows these numbers; the flags they set are part of the structure, and `Model.replace` refuses
a number that the structure cannot honor.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from jaxsim.model.fields import Field
from jaxsim.model.motor import STATES, ActState, kind_of_states
from jaxsim.model.structure import Structure

Free = Literal["all"] | Iterable[str]


class Switch(NamedTuple):
    """What some numbers switch on.

    Attributes:
      flag: table of the structure.
      fields: real fields, "opt.density" for one of the options; one that is not zero sets the flag.
      each: every item has a flag of its own; else the model has one.
      lacks: what a program without the flag does not have.
      place: table of addresses; an item that has one, at least 0, has the flag, whatever its
        numbers are.
      positive: only numbers above zero set the flag, as in MuJoCo.
    """

    flag: str
    fields: tuple[str, ...]
    each: bool
    lacks: str
    place: str = ""
    positive: bool = False


DAMPING = ("actuator_damping", "actuator_dampingpoly")
SWITCHES = (
    Switch("dof_hasfriction", ("dof_frictionloss",), True, "dry friction of the dof"),
    Switch("tendon_hasfriction", ("tendon_frictionloss",), True, "dry friction of the tendon"),
    Switch("jnt_hasmargin", ("jnt_margin",), True, "a row for each side of the limit"),
    Switch("tendon_hasmargin", ("tendon_margin",), True, "a row for each side of the limit"),
    Switch("tendon_hasarmature", ("tendon_armature",), True, "the tendon's bias force"),
    Switch("flg_gravcomp", ("body_gravcomp",), False, "gravity compensation", positive=True),
    Switch("flg_fluid", ("opt.density", "opt.viscosity"), False, "forces of a medium"),
    Switch(
        "flg_damping",
        ("dof_damping", "dof_dampingpoly", *DAMPING),
        False,
        "the implicit part of Euler integration",
    ),
    Switch(
        "actuator_reflects",
        (*DAMPING, "actuator_armature"),
        True,
        "damping and inertia reflected into its joint or tendon",
    ),
    Switch("geom_hasadhesion", ("geom_adhesion",), True, "adhesion of its contacts"),
    Switch("pair_hasadhesion", ("pair_adhesion",), True, "adhesion of its contacts"),
    Switch("geom_hassurfacevel", ("geom_surfacevel",), True, "a moving surface"),
)
# What is a matter of kind, or not simulated at all: on or off when the model is made.
FIXED = (
    Switch("geom_hasfluid", ("geom_fluid",), True, "the forces of fluidshape='ellipsoid'"),
    Switch("jnt_isplastic", ("jnt_springyield",), True, "a spring that yields", "jnt_plasticadr"),
    Switch(
        "tendon_isplastic",
        ("tendon_springyield",),
        True,
        "a spring that yields",
        "tendon_plasticadr",
    ),
    Switch(
        "actuator_hashistory",
        ("actuator_delay",),
        True,
        "a history (nsample)",
        "actuator_historyadr",
    ),
    Switch(
        "sensor_hashistory",
        ("sensor_delay", "sensor_interval"),
        True,
        "a history (nsample)",
        "sensor_historyadr",
    ),
)
FREE = frozenset(name for switch in SWITCHES for name in switch.fields)


def flags(value: Callable[[str], Any]) -> dict[str, Any]:
    """The flags of a model; `value(field)` gives its numbers."""
    return {
        s.flag: value(s.place) >= 0 if s.place else _flag(s, [value(name) for name in s.fields])
        for s in (*SWITCHES, *FIXED)
    }


def freed(structure: Structure, free: Free) -> Structure:
    """A structure for which some numbers are free: zero now, and anything later.

    Raises:
      ValueError: `free` is no collection of names of fields.
    """
    names = FREE if free == "all" else free
    if isinstance(names, str):
        raise ValueError(f"free: expected 'all' or names of fields, got {free!r}")
    names = frozenset(names)
    on = [s for s in SWITCHES if names.intersection(s.fields)]
    tables: dict[str, Any] = {
        s.flag: np.ones_like(getattr(structure, s.flag)) if s.each else True for s in on
    }
    return structure.replace(**tables) if tables else structure


def check_switches(
    structure: Structure, values: Mapping[str, Any], fields: Mapping[str, Field]
) -> None:
    """Refuses numbers that have no effect in the program of a structure.

    A value that is traced is refused only where no item has a place for it: that some items which
    were zero stay zero cannot be seen then.

    Args:
      structure: of the model.
      values: new values by the name of their field, "opt.density" for one of the options.
      fields: declarations of the fields of a model.

    Raises:
      ValueError: names the field, the items and the remedy.
    """
    for switch, name in _concerned(values):
        flag = np.asarray(getattr(structure, switch.flag), bool)
        value = values[name]
        if flag.all() or not (hasattr(value, "dtype") or isinstance(value, int | float)):
            continue
        if isinstance(value, jax.core.Tracer):
            if not flag.any():
                raise ValueError(f"{name}: {_lack(switch, name)}")
            continue
        on = _by_item(value, len(fields[name].shape)) if switch.each else _any(switch, value)
        lost = np.flatnonzero(on & ~flag)
        if lost.size:
            items = f" of item {', '.join(map(str, lost[:5]))}" if switch.each else ""
            more = f" and {lost.size - 5} more" if lost.size > 5 else ""
            raise ValueError(f"{name}: {_lack(switch, name)} (a value{items}{more} is not zero)")


def check_states(structure: Structure, values: Mapping[str, Any]) -> None:
    """Refuses parameters that would add or remove an activation.

    Args:
      structure: of the model.
      values: new values by the name of their field; those that are traced are taken as they are.

    Raises:
      ValueError: names the field, the actuator and the remedy.
    """
    if not values.keys() & {"actuator_dynprm", "actuator_gainprm"}:
        return
    kinds = kind_of_states(structure.actuator_dyntype, structure.actuator_gaintype)
    for kind, table in STATES.items():
        for state, (field, column) in table.items():
            given = values.get(field)
            if not hasattr(given, "dtype") or isinstance(given, jax.core.Tracer):
                continue  # traced, or an axis of vmap that stands for it
            on = np.asarray(given)[..., column].reshape(-1, len(kinds)) > 0
            has = structure.actuator_states[:, state - ActState.SLEW]
            for i in np.flatnonzero((kinds == kind) & (on != has).any(axis=0))[:1]:
                raise ValueError(
                    f"{field}: number {column} of actuator {i} must {_must(has[i])}, as it decides "
                    f"whether the actuator has the activation '{state.name.lower()}'; write it in "
                    "the model before it is loaded"
                )


def _must(present: bool) -> str:
    return "stay positive" if present else "not become positive"


def _concerned(values: Mapping[str, Any]) -> Iterator[tuple[Switch, str]]:
    return (
        (switch, name) for switch in (*SWITCHES, *FIXED) for name in switch.fields if name in values
    )


def _lack(switch: Switch, name: str) -> str:
    remedy = (
        f"load it with free=({name!r},)"
        if switch in SWITCHES
        else "write it in the model before it is loaded"
    )
    return (
        f"was 0 when the model was made, so that its program has no place for {switch.lacks}; "
        f"{remedy}"
    )


def _flag(switch: Switch, values: list) -> Any:
    if not switch.each:
        return any(_any(switch, value) for value in values)
    return np.logical_or.reduce([_by_item(v, np.ndim(v)) for v in values])


def _any(switch: Switch, value) -> bool:
    return bool(np.any(np.asarray(value) > 0 if switch.positive else value))


def _by_item(value, rank: int) -> np.ndarray:
    """[items] bool: an item has a number that is not zero, in some world of a batch.

    Args:
      value: the numbers, with any leading axes of a batch.
      rank: number of axes without those of a batch; the first is that of the items.
    """
    some = np.asarray(value) != 0
    of_items = some.ndim - rank
    return some.any(axis=tuple(k for k in range(some.ndim) if k != of_items))
