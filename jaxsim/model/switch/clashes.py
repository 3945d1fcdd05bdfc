"""Options that cannot be used together, or with what a model has.

Most are MuJoCo's own, which its documentation names where it describes the option. A model that is
made so is refused with file and line; one that has been made refuses the option that would clash.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from jaxsim.enums import DisableBit, EnableBit, EqType, IntegratorType, SolverType
from jaxsim.model.structure import Structure

STRAIN = 3  # flex_edgeequality of a flex whose strain a constraint keeps


class Clash(NamedTuple):
    """What cannot be: whether options `opt` of a model with a structure are so, and a sentence."""

    there: Callable[[Structure, Any], bool]
    what: str


def clashes(s: Structure, opt: Any, table: Sequence[Clash]) -> Iterator[str]:
    """What of a table is so, in sentences with a remedy."""
    return (clash.what for clash in table if clash.there(s, opt))


def check_clashes(s: Structure, opt: Any, smooth: bool) -> None:
    """Refuses options that a model cannot have.

    Args:
      s: structure of the model.
      opt: its new options.
      smooth: whether it was made with smooth contacts.

    Raises:
      ValueError: the first clash, and its remedy.
    """
    for what in clashes(s, opt, SETTINGS + OF_MODELS):
        raise ValueError(f"opt: {what}")
    if smooth and _enables(opt, EnableBit.SPECULATIVE):
        raise ValueError("opt: the flag speculative cannot be used with smooth contacts")


def _integrates(opt: Any, *kinds: IntegratorType) -> bool:
    return opt.integrator in kinds


def _enables(opt: Any, *flags: EnableBit) -> bool:
    return all(opt.enableflags & flag for flag in flags)


def _elastic(s: Structure) -> bool:
    stretches = (s.flex_stiffnessadr >= 0) & (s.flex_edgeequality != STRAIN)
    return bool(np.any((stretches | (s.flex_bendingadr >= 0)) & ~np.asarray(s.flex_rigid, bool)))


def _soft_contacts(s: Structure, opt: Any) -> bool:
    off = DisableBit.CONTACT | DisableBit.CONSTRAINT
    return bool(np.any(s.flex_touches)) and not opt.disableflags & off


SETTINGS = (
    Clash(
        lambda s, o: _integrates(o, IntegratorType.RK4) and _enables(o, EnableBit.SLEEP),
        "the integrator 'RK4' cannot be used with sleeping, as MuJoCo documents: its stages would "
        "wake what sleeps; use another integrator or remove sleep='enable'",
    ),
    Clash(
        lambda s, o: (
            _integrates(o, IntegratorType.DISCRETE)
            and _enables(o, EnableBit.SLEEP)
            and bool(o.disableflags & DisableBit.ISLAND)
        ),
        "the integrator 'discrete' cannot be used with sleeping without islands, as MuJoCo "
        "documents: enable the flag island, or remove sleep='enable'",
    ),
    Clash(
        lambda s, o: _enables(o, EnableBit.IPC) and not _integrates(o, IntegratorType.DISCRETE),
        "the flag ipc needs the integrator 'discrete'; use it, or remove ipc='enable'",
    ),
    Clash(
        lambda s, o: _enables(o, EnableBit.IPC) and o.solver == SolverType.PGS,
        "the flag ipc cannot be used with solver='PGS'; use 'Newton', or remove ipc='enable'",
    ),
    Clash(
        lambda s, o: _enables(o, EnableBit.IPC, EnableBit.FWDINV),
        "the flag ipc cannot be used with fwdinv='enable'; remove one of the two",
    ),
    Clash(
        lambda s, o: _enables(o, EnableBit.IPC, EnableBit.SLEEP),
        "the flag ipc cannot be used with sleep='enable'; remove one of the two",
    ),
)
# what is said with names where a model is made (the functions `refusals` of the physics)
OF_MODELS = (
    Clash(
        lambda s, o: (
            _integrates(o, IntegratorType.IMPLICIT, IntegratorType.IMPLICITFAST) and _elastic(s)
        ),
        "elasticity of flexes cannot be used with the integrators 'implicit' and 'implicitfast'; "
        "use 'discrete', 'Euler' or 'RK4'",
    ),
    Clash(
        lambda s, o: (
            _integrates(o, IntegratorType.DISCRETE)
            and _elastic(s)
            and (o.solver == SolverType.PGS or o.noslip_iterations > 0)
        ),
        "elasticity of flexes cannot be used with the integrator 'discrete' and solver='PGS' or "
        "noslip_iterations; use 'Newton' or 'CG' without them",
    ),
    Clash(
        lambda s, o: _enables(o, EnableBit.SLEEP) and bool(np.any(s.eq_type == EqType.TENDON)),
        "equality constraints of tendons cannot be used with sleeping; remove sleep='enable'",
    ),
    Clash(
        lambda s, o: (
            _enables(o, EnableBit.IPC) and _soft_contacts(s, o) and bool(np.any(s.flex_dim == 2))
        ),
        "contacts of flexes are not supported with the flag ipc in a model with shells; remove it",
    ),
    Clash(
        lambda s, o: (
            _enables(o, EnableBit.SPECULATIVE)
            and (_enables(o, EnableBit.SLEEP) or _soft_contacts(s, o))
        ),
        "the flag speculative is not supported with sleep='enable' and flexes that may touch; "
        "remove one of these",
    ),
)
