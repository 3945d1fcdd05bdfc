"""Which dofs have to do with each other: systems of equations fall apart into these parts.

Trees have no inertia in common but by a tendon along several of them. In the solver those hang
together that may touch each other, or that an equality or a tendon ties. All of it is known from
the model: parts do not depend on the state.
"""

from collections.abc import Iterable

import numpy as np

from jaxsim.enums import EqType
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.actuator.transmission import moment_pattern
from jaxsim.physics.arrays.platform import platform
from jaxsim.physics.arrays.system.apart import Parts
from jaxsim.physics.arrays.system.factor import WRITE_OUT
from jaxsim.physics.arrays.system.tree import pairs_of
from jaxsim.physics.collision.candidates.plan import Layout, layout
from jaxsim.physics.discrete import is_discrete
from jaxsim.physics.flex.stiffness import trees_of_flexes, trees_that_push
from jaxsim.physics.sleep.incidence import equalities, tendons
from jaxsim.physics.topology import dof_forest

GAIN = 4  # times less work that dividing has to bring: each size of parts is a program of its own
NO_PAIRS = np.zeros((0, 2), np.int32)
HOLD = (EqType.CONNECT, EqType.WELD, EqType.JOINT, EqType.TENDON)  # equalities of two things


@derived
def inertia_parts(s: Structure) -> Parts:
    """The parts into which the joint-space inertia falls."""
    return _parts(s, tendons(s).tree)


def is_sparse(m: Model) -> bool:
    """Whether the joint-space inertia is solved by the entries between dofs and their ancestors.

    It is where loops are cheap, the parts too large to be written out, and these entries, each of
    which changes a row of them, few beside those of the parts.
    """
    return platform().in_kernels and _is_sparse(m)


@derived
def _is_sparse(s: Structure) -> bool:
    sizes = np.array([len(part) for part in inertia_parts(s)])
    if s.ntendon or sizes.max(initial=0) <= WRITE_OUT:
        return False
    pairs = pairs_of(dof_forest(s))
    return 4 * len(pairs.item) * pairs.width < int(np.sum(sizes**3)) / 6


@derived
def falls_apart(s: Structure) -> bool:
    """Whether the joint-space inertia is kept by its parts."""
    return not s.ntendon and len(inertia_parts(s)) > 1  # tendons may have inertia


@derived
def metric_parts(s: Structure) -> Parts:
    """The parts into which the inertia of a discrete step falls (integrate/metric.py)."""
    return _parts(s, [*tendons(s).tree, *_driven(s), *trees_of_flexes(s), *trees_that_push(s)])


def solver_parts(m: Model) -> Parts:
    """The parts into which the Hessian of the solver falls."""
    s, plan = m.structure, layout(m)
    if plan.soft or not np.isin(s.eq_type, HOLD).all():
        return _whole(s)
    return _parts(s, _ties(m), touching(s, plan))


def tied_parts(m: Model) -> Parts:
    """The parts of the Hessian of the solver where nothing touches; empty: not known."""
    s = m.structure
    if layout(m).soft or not np.isin(s.eq_type, HOLD).all():
        return ()
    return _parts(s, _ties(m), gain=0)


def _ties(m: Model) -> list[np.ndarray]:
    """The trees that something else than contacts ties, for the solver."""
    s = m.structure
    more = [*_driven(s), *trees_of_flexes(s)] if is_discrete(m) else []
    return [*tendons(s).tree, *equalities(s).tree, *more]


def _driven(s: Structure) -> list[np.ndarray]:
    """The trees that each actuator moves."""
    pattern = moment_pattern(s)
    return [s.dof_treeid[pattern.col[pattern.row == row]] for row in range(pattern.shape[0])]


def touching(s: Structure, plan: Layout) -> np.ndarray:
    """The pairs of trees that may touch, `[n, 2]`; -1: what is fixed."""
    geoms = np.stack([plan.pairs.geom1, plan.pairs.geom2], axis=1)
    return np.unique(s.body_treeid[s.geom_bodyid[geoms]], axis=0)


def _parts(
    s: Structure, ties: Iterable[np.ndarray], pairs: np.ndarray = NO_PAIRS, gain: int = GAIN
) -> Parts:
    """The dofs of trees that are tied together.

    Args:
      s: tables of the model.
      ties: the trees of each tie, -1 for none.
      pairs: the trees of more ties, two of each, `[n, 2]`.
      gain: how many times less work the parts have to bring.
    """
    own = [tie[tie >= 0] for tie in ties]
    chained = [np.stack([tie[:-1], tie[1:]], axis=1) for tie in own]
    link = np.concatenate([*chained, pairs[(pairs >= 0).all(axis=1)]])
    label = _lowest(s.ntree, link)
    of_dof = label[s.dof_treeid]
    parts = [np.flatnonzero(of_dof == k) for k in np.unique(of_dof)]
    if gain * sum(len(p) ** 3 for p in parts) > s.nv**3:
        return _whole(s)
    return tuple(tuple(p.tolist()) for p in parts)


def _lowest(n: int, link: np.ndarray) -> np.ndarray:
    """[n]: the lowest of the things that each of n hangs together with, by links `[k, 2]`."""
    label, before = np.arange(n), np.full(n, -1)
    while not np.array_equal(label, before):
        before, label = label, label.copy()
        for one, other in (link.T, link.T[::-1]):
            np.minimum.at(label, one, before[other])
        label = label[label]
    return label


def _whole(s: Structure) -> Parts:
    return (tuple(range(s.nv)),)
