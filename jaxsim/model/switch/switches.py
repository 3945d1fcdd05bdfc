"""Real fields that are compiled out where they are zero.

A model without dry friction has no friction rows in the solver, a model in a vacuum no fluid
forces: what is not there costs nothing. One rule holds for all of these fields: a field that is
zero for every item when the model is made is compiled out, unless `load_model(..., free=...)` names
it; one item that is not zero keeps the field live for all items. So a live field can be traced,
batched and differentiated without regard to which of its items were zero, and `Model.replace`
refuses a field that was compiled out. Functions that know which fields will change (randomization,
identification) free them by themselves (`freeable`). The flags are tables of the structure; this is
the one file that computes them.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal, NamedTuple

import jax
import numpy as np

from jaxsim.model.motor import STATES, ActState, kind_of_states
from jaxsim.model.record.fields import Field
from jaxsim.model.structure import HULLS_MOVED, Structure

Free = Literal["all"] | Iterable[str]


class Switch(NamedTuple):
    """A part of the program that some fields switch on.

    Attributes:
      flag: table of the structure.
      fields: real fields, "opt.density" for one of the options; one that is not zero sets the flag.
      each: the flag is a table with an entry per item; else one bool. All entries are equal, unless
        `adr` decides.
      lacks: what a program without the flag does not have.
      adr: table of addresses; an item with an address (>= 0) has the flag, whatever its numbers
        are.
      positive: only numbers above zero set the flag, as in MuJoCo.
    """

    flag: str
    fields: tuple[str, ...]
    each: bool
    lacks: str
    adr: str = ""
    positive: bool = False


_DAMPING_FIELDS = ("actuator_damping", "actuator_dampingpoly")
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
        ("dof_damping", "dof_dampingpoly", *_DAMPING_FIELDS),
        False,
        "the implicit part of Euler integration",
    ),
    Switch(
        "actuator_reflects",
        (*_DAMPING_FIELDS, "actuator_armature"),
        True,
        "damping and inertia reflected into its joint or tendon",
    ),
    Switch("geom_hasadhesion", ("geom_adhesion",), True, "adhesion of its contacts"),
    Switch("pair_hasadhesion", ("pair_adhesion",), True, "adhesion of its contacts"),
    Switch("geom_hassurfacevel", ("geom_surfacevel",), True, "a moving surface"),
    Switch("geom_hasfluid", ("geom_fluid",), True, "the forces of fluidshape='ellipsoid'"),
)
# Items with a slot in Data: the compiler allocates it, so these are on or off per item, for good.
FIXED_FIELDS = (
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
FREEABLE_FIELDS = frozenset(name for switch in SWITCHES for name in switch.fields)


def flags(value: Callable[[str], Any]) -> dict[str, Any]:
    """Return the flags of a model by name; `value(field)` returns the numbers of a field."""
    return {
        s.flag: value(s.adr) >= 0 if s.adr else _flag(s, [value(name) for name in s.fields])
        for s in (*SWITCHES, *FIXED_FIELDS)
    }


def free_fields(structure: Structure, free: Free) -> Structure:
    """Return a structure in which some fields are live, zero or not.

    Raises:
      ValueError: `free` is no collection of names of fields.
    """
    names = FREEABLE_FIELDS if free == "all" else free
    if isinstance(names, str):
        raise ValueError(f"free: expected 'all' or names of fields, got {free!r}")
    names = frozenset(names)
    on = [s for s in SWITCHES if names.intersection(s.fields)]
    tables: dict[str, Any] = {
        s.flag: np.ones_like(getattr(structure, s.flag)) if s.each else True for s in on
    }
    return structure.replace(**tables) if tables else structure


def freeable(structure: Structure, fields: Iterable[str]) -> tuple[str, ...]:
    """Return those of some fields that were compiled out and that `free_fields` makes live.

    Args:
      structure: of the model.
      fields: names of real fields, "opt.density" for one of the options.
    """
    found = (
        name
        for switch, name in _affected_switches(dict.fromkeys(fields))
        if switch in SWITCHES and not np.all(getattr(structure, switch.flag))
    )
    return tuple(dict.fromkeys(found))


def explain_missing_slot(structure: Structure, field: str, ids: np.ndarray) -> str | None:
    """Return why numbers of a field have no effect and cannot be freed, with the remedy; or None.

    Args:
      structure: of the model.
      field: name of a real field.
      ids: the items that matter.
    """
    for switch, name in _affected_switches({field: None}):
        if (
            switch in FIXED_FIELDS
            and not np.asarray(getattr(structure, switch.flag), bool)[ids].all()
        ):
            return _missing_program_reason(switch, name)
    return None


def differ_in_switches(one: Structure, other: Structure) -> bool:
    """Return whether two structures differ in what can be freed, and in nothing else."""
    own = {s.flag for s in SWITCHES} | {HULLS_MOVED}
    rest = [Structure({n: getattr(s, n) for n in s if n not in own}) for s in (one, other)]
    return one != other and rest[0] == rest[1]


def check_switches(
    structure: Structure, values: Mapping[str, Any], fields: Mapping[str, Field]
) -> None:
    """Refuse numbers that have no effect in the program of a structure.

    The value of a traced field is not known: it is refused where the field was compiled out. A
    traced delay or yield of an item without a slot (`FIXED_FIELDS`) is ignored, as in MuJoCo.

    Args:
      structure: of the model.
      values: new values by the name of their field, "opt.density" for one of the options.
      fields: declarations of the fields of a model.

    Raises:
      ValueError: names the field, the items and the remedy.
    """
    for switch, name in _affected_switches(values):
        flag = np.asarray(getattr(structure, switch.flag), bool)
        value = values[name]
        if flag.all() or not (hasattr(value, "dtype") or isinstance(value, int | float)):
            continue
        if isinstance(value, jax.core.Tracer):
            if not flag.any():
                raise ValueError(f"{name}: {_missing_program_reason(switch, name)}")
            continue
        on = (
            _nonzero_items(value, len(fields[name].shape))
            if switch.each
            else _any_value(switch, value)
        )
        dropped = np.flatnonzero(on & ~flag)
        if dropped.size:
            items = f" of {_list_names(dropped)}" if switch.each else ""
            raise ValueError(
                f"{name}: {_missing_program_reason(switch, name)} (a value{items} is not zero)"
            )


def check_states(structure: Structure, values: Mapping[str, Any]) -> None:
    """Refuse parameters that would add or remove an activation.

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
                continue  # traced, or replaced by an axis of vmap
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


def _affected_switches(values: Mapping[str, Any]) -> Iterator[tuple[Switch, str]]:
    return (
        (switch, name)
        for switch in (*SWITCHES, *FIXED_FIELDS)
        for name in switch.fields
        if name in values
    )


def _missing_program_reason(switch: Switch, name: str) -> str:
    remedy = (
        f"load it with free=({name!r},)"
        if switch in SWITCHES
        else "write it in the model before it is loaded"
    )
    return f"was 0 when the model was made, which compiled out {switch.lacks}; {remedy}"


def _list_names(items: np.ndarray) -> str:
    more = f" and {items.size - 5} more" if items.size > 5 else ""
    return f"item {', '.join(map(str, items[:5]))}{more}"


def _flag(switch: Switch, values: list) -> Any:
    on = any(_any_value(switch, value) for value in values)
    return np.full(len(values[0]), on) if switch.each else on


def _any_value(switch: Switch, value) -> bool:
    value = np.asarray(value)  # of an array that is known no program becomes part
    return bool(np.any(value > 0 if switch.positive else value))


def _nonzero_items(value, rank: int) -> np.ndarray:
    """Return which items have a number that is not zero in some world of a batch, bool [items].

    Args:
      value: the numbers, with any leading axes of a batch.
      rank: number of axes without those of a batch; the first is that of the items.
    """
    some = np.asarray(value) != 0
    of_items = some.ndim - rank
    return some.any(axis=tuple(k for k in range(some.ndim) if k != of_items))
