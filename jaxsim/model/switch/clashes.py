"""Options that cannot be combined with each other or with features of a model.

Most restrictions are MuJoCo's own, documented at the respective option. Clashes are computed when
they are needed, from the present options and values: a model loaded with a clash can be simulated
as soon as `Model.replace` has resolved it, and `Model.replace` rejects a new clash.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxsim.enums import (
    DisableBit,
    EnableBit,
    EqType,
    IntegratorType,
    JointType,
    SolverType,
)
from jaxsim.model.flex.kinds import asks_passive

STRAIN_EQUALITY = 3  # flex_edgeequality of a flex with strain constraints


class FoundClash(NamedTuple):
    """One clash in a model.

    Attributes:
      message: the clash and its remedy.
      kind: kind of the object concerned, as in `m.names`; "" for options alone.
      number: id of that object.
    """

    message: str
    kind: str
    number: int


class Clash(NamedTuple):
    """A rule: a combination that is not allowed.

    Attributes:
      there: returns whether the options of a model clash, or which of its objects do, [n].
      what: message with the remedy.
      kind: kind of these objects; "" for options alone.
    """

    there: Callable[[Any], bool | np.ndarray]
    what: str
    kind: str = ""


def find_clashes(m: Any) -> tuple[FoundClash, ...]:
    """Return all clashes of a model with its present values."""
    return tuple(found for clash in CLASHES for found in _clash_messages(m, clash))


def check_clashes(before: Any, after: Any, field: str) -> None:
    """Reject a change that introduces a clash.

    Args:
      before, after: the model before and after the change.
      field: the first field that changes.

    Raises:
      ValueError: names the first new clash and its remedy.
    """
    known = find_clashes(before)
    for found in find_clashes(after):
        if found not in known:
            raise ValueError(f"{field}: {found.message.removeprefix(_OPTION_PREFIX)}")


# Fields whose changes are checked for clashes.
DECIDING_FIELDS = frozenset(("opt", "smooth", "flex_edgestiffness", "flex_edgedamping"))
_OPTION_PREFIX = "option: "


def _clash_messages(m: Any, clash: Clash) -> Iterator[FoundClash]:
    there = clash.there(m)
    if not clash.kind:
        return iter([FoundClash(_OPTION_PREFIX + clash.what, "", 0)] if there else [])
    ids = np.flatnonzero(there).tolist()
    return (
        FoundClash(f"{_format_object(m, clash.kind, i)}: {clash.what}", clash.kind, i) for i in ids
    )


def _format_object(m: Any, kind: str, i: int) -> str:
    name = m.names[kind][i] if kind in m.names else ""
    return f"{kind} '{name}'" if name else f"{kind} {i}"


def _integrator_clash(m: Any, *kinds: IntegratorType) -> bool:
    return m.opt.integrator in kinds


def _enables(m: Any, *flags: EnableBit) -> bool:
    return all(m.opt.enableflags & flag for flag in flags)


def _elastic(m: Any) -> np.ndarray:
    """Return which flexes have an elastic energy, rather than constraints."""
    stretches = (m.flex_stiffnessadr >= 0) & (m.flex_edgeequality != STRAIN_EQUALITY)
    return (stretches | (m.flex_bendingadr >= 0)) & ~np.asarray(m.flex_rigid, bool)


def _passive(m: Any) -> np.ndarray:
    """Return which flexes request passive contacts."""
    return asks_passive(m.flex_passive, m.flex_dim, m.flex_rigid)


def _has_edge_springs(m: Any) -> np.ndarray:
    """Return which flexes have springs or dampers along their edges.

    For traced values the answer is that at loading time.
    """
    # not present while the structure is being made
    places = getattr(m.structure, "clash_places", ())
    said = {message for *_, message in places}
    found = np.array(
        [f"{_format_object(m, 'flex', f)}: {_SPRING_FIELDS}" in said for f in range(m.nflex)], bool
    )
    values = (m.flex_edgestiffness, m.flex_edgedamping)
    if not any(isinstance(value, jax.core.Tracer) for value in values):
        numbers = [np.asarray(value) != 0 for value in values if hasattr(value, "dtype")]
        found = sum((n.any(axis=tuple(range(n.ndim - 1))) for n in numbers), np.zeros(m.nflex)) > 0
    return found & ~np.asarray(m.flex_rigid, bool)


def _carried_shells(m: Any) -> np.ndarray:
    """Return which shells are carried by joints that the flag ipc does not support, as in MuJoCo.

    A vertex is free if its body has exactly three slides. A body that carries a free vertex may
    move only if it carries a free vertex itself. All other vertices may have only slides above
    them, or no joint.
    """
    vertices = {f: _bodies(m, f) for f in range(m.nflex) if m.flex_dim[f] == 2}
    slides = np.bincount(m.jnt_bodyid[m.jnt_type == JointType.SLIDE], minlength=m.nbody)
    free = np.zeros(m.nbody, bool)
    for f in vertices:
        free[vertices[f]] = True
    free &= (slides == 3) & (m.body_dofnum == 3)
    odd = slides != m.body_jntnum  # bodies with a joint other than a slide
    out = np.zeros(m.nflex, bool)
    for f, body in vertices.items():
        for b in body.tolist():
            chain = _body_and_ancestors(m, b)
            carriers = [a for a in chain[1:] if m.body_jntnum[a] and not free[a]]
            out[f] |= bool(carriers) if free[b] else odd[chain].any()
    return out


def _bodies(m: Any, f: int) -> np.ndarray:
    """Return the bodies of the vertices of a flex; none if it has nodes."""
    body = np.unique(m.flex_vertbodyid[m.flex_vertadr[f] :][: m.flex_vertnum[f]])
    return body[body >= 0]


def _body_and_ancestors(m: Any, body: int) -> list[int]:
    """Return a body and all its ancestors, without the world."""
    chain = []
    while body:
        chain.append(body)
        body = int(m.body_parentid[body])
    return chain


def _clash_if(condition: bool, which: Callable[[Any], np.ndarray], m: Any) -> np.ndarray | bool:
    return which(m) if condition else False


DISCRETE = IntegratorType.DISCRETE
_SPRING_FIELDS = (
    "edge stiffness and damping cannot be used with the integrator 'discrete', as in MuJoCo; use "
    "elasticity, or edge equality='true'"
)
CLASHES = (
    Clash(
        lambda m: (
            _integrator_clash(m, DISCRETE)
            and _enables(m, EnableBit.SLEEP)
            and bool(m.opt.disableflags & DisableBit.ISLAND)
        ),
        "the integrator 'discrete' cannot be used with sleeping without islands, as MuJoCo "
        "documents: enable the flag island, or remove sleep='enable'",
    ),
    Clash(
        lambda m: _enables(m, EnableBit.IPC) and not _integrator_clash(m, DISCRETE),
        "the flag ipc needs the integrator 'discrete'; use it, or remove ipc='enable'",
    ),
    Clash(
        lambda m: _enables(m, EnableBit.IPC) and m.opt.solver == SolverType.PGS,
        "the flag ipc cannot be used with solver='PGS'; use 'Newton', or remove ipc='enable'",
    ),
    Clash(
        lambda m: _enables(m, EnableBit.IPC, EnableBit.FWDINV),
        "the flag ipc cannot be used with fwdinv='enable'; remove one of the two",
    ),
    Clash(
        lambda m: _enables(m, EnableBit.IPC, EnableBit.SLEEP),
        "the flag ipc cannot be used with sleep='enable'; remove one of the two",
    ),
    Clash(
        lambda m: (
            _integrator_clash(m, IntegratorType.RK4)
            and _enables(m, EnableBit.FWDINV, EnableBit.INVDISCRETE)
        ),
        "the flags fwdinv and invdiscrete cannot be used together with the integrator 'RK4', where "
        "MuJoCo stops at the first constraint; use another integrator, or remove one of the two",
    ),
    Clash(
        lambda m: _enables(m, EnableBit.SPECULATIVE) and m.smooth is not None,
        "the flag speculative cannot be used with smooth contacts; remove one of the two",
    ),
    Clash(
        lambda m: _clash_if(
            _integrator_clash(m, IntegratorType.IMPLICIT, IntegratorType.IMPLICITFAST), _elastic, m
        ),
        "elasticity cannot be used with the integrators 'implicit' and 'implicitfast', as in "
        "MuJoCo; use 'discrete', 'Euler' or 'RK4'",
        "flex",
    ),
    Clash(
        lambda m: _clash_if(_integrator_clash(m, DISCRETE), _has_edge_springs, m),
        _SPRING_FIELDS,
        "flex",
    ),
    Clash(
        lambda m: _clash_if(
            _integrator_clash(m, DISCRETE) and m.opt.solver == SolverType.PGS, _elastic, m
        ),
        "elasticity cannot be used with the integrator 'discrete' and solver='PGS', as in MuJoCo; "
        "use 'Newton' or 'CG'",
        "flex",
    ),
    Clash(
        lambda m: _clash_if(
            _integrator_clash(m, DISCRETE) and m.opt.noslip_iterations > 0, _elastic, m
        ),
        "elasticity cannot be used with the integrator 'discrete' and noslip_iterations, as in "
        "MuJoCo; set them to 0",
        "flex",
    ),
    Clash(
        lambda m: _clash_if(not _integrator_clash(m, DISCRETE), _passive, m),
        "passive contacts need the integrator 'discrete', as in MuJoCo; use it, or remove "
        "passive='true'",
        "flex",
    ),
    Clash(
        lambda m: _clash_if(
            _integrator_clash(m, DISCRETE) and m.opt.solver == SolverType.PGS, _passive, m
        ),
        "passive contacts cannot be used with solver='PGS', as in MuJoCo; use 'Newton' or 'CG', "
        "or remove passive='true'",
        "flex",
    ),
    Clash(
        lambda m: _clash_if(
            _integrator_clash(m, DISCRETE) and m.opt.noslip_iterations > 0, _passive, m
        ),
        "passive contacts cannot be used with noslip_iterations, as in MuJoCo; set them to 0, or "
        "remove passive='true'",
        "flex",
    ),
    Clash(
        lambda m: _clash_if(_enables(m, EnableBit.IPC), _carried_shells, m),
        "under the flag ipc what carries vertices may move by slides only, and not at all where "
        "they have three slides of their own, as in MuJoCo; attach it to what is fixed, or remove "
        "ipc='enable'",
        "flex",
    ),
    Clash(
        lambda m: _clash_if(_enables(m, EnableBit.SLEEP), lambda m: m.eq_type == EqType.TENDON, m),
        "constraints of tendons cannot be used with sleeping, as in MuJoCo; remove it or "
        "sleep='enable'",
        "equality",
    ),
)
