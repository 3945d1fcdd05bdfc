"""Block structure of the mass matrix and of the solver Hessian, known at compile time.

Both matrices are block-diagonal up to a permutation of the dofs. A block ("part") is the set of
dofs of one connected component of kinematic trees. M couples trees only through tendons that span
several of them. The Hessian of the solver also couples trees that may touch, and those that an
equality or a tendon couples; under the discrete integrator actuators and flexes as well. Parts
depend on the structure of the model alone, not on the state. Each block size compiles to a
factorization of its own, so that the blocks are used only where they reduce the work by
`min_block_speedup`. Three partitions of the same dofs, from fine to coarse; of six boxes on a
floor, of which two are welded together:

    M              {0} {1} {2} {3} {4} {5}     inertia_blocks: what no state couples
    H, no contact  {0} {1} {2} {3} {4 5}       coupled_blocks: the weld couples two trees
    H, any         {0 1 2 3 4 5}               solver_blocks: any two boxes may touch
"""

from collections.abc import Iterable

import numpy as np

from jaxsim.enums import EqType
from jaxsim.linalg.block_diagonal import Parts
from jaxsim.linalg.choose import Choice, Form, InertiaFacts, choose_operator
from jaxsim.linalg.tree_sparse import pairs_of
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.actuator.transmission import moment_pattern
from jaxsim.physics.collision.candidates.plan import CollisionLayout, collision_layout
from jaxsim.physics.flex.stiffness import passive_contact_trees, trees_of_flexes
from jaxsim.physics.integrate.discrete import is_discrete
from jaxsim.physics.sleep.incidence import equality_incidence, tendon_incidence
from jaxsim.physics.topology import dof_forest
from jaxsim.transforms.tuning import tuning

NO_PAIRS = np.zeros((0, 2), np.int32)
# equalities that couple two objects
_COUPLING_EQUALITIES = (EqType.CONNECT, EqType.WELD, EqType.JOINT, EqType.TENDON)


@cache_by_structure
def inertia_blocks(s: Structure) -> Parts:
    """Return the diagonal blocks of the joint-space inertia."""
    return _parts(s, tendon_incidence(s).tree)


def inertia_choice(m: Model) -> Choice[Form]:
    """Return the form in which M is stored besides the dense one, and why (linalg/choose.py)."""
    return choose_operator(_inertia_facts(m))


@cache_by_structure
def _inertia_facts(s: Structure) -> InertiaFacts:
    pairs = pairs_of(dof_forest(s))
    sizes = tuple(len(part) for part in inertia_blocks(s))
    # One row update per entry.
    return InertiaFacts(sizes, bool(s.ntendon), len(pairs.item) * pairs.width)


@cache_by_structure
def metric_blocks(s: Structure) -> Parts:
    """Return the diagonal blocks of the inertia of a discrete step (integrate/metric.py)."""
    return _parts(
        s,
        [
            *tendon_incidence(s).tree,
            *_actuated_trees(s),
            *trees_of_flexes(s),
            *passive_contact_trees(s),
        ],
    )


def solver_blocks(m: Model) -> Parts:
    """Return the diagonal blocks of the solver Hessian, for any contacts."""
    s, plan = m.structure, collision_layout(m)
    # Flexes, and equalities of other types, couple all dofs.
    if plan.flex_groups or not np.isin(s.eq_type, _COUPLING_EQUALITIES).all():
        return _undivided_parts(s)
    return _parts(s, _coupled_trees(m), touching_trees(s, plan))


def coupled_blocks(m: Model) -> Parts:
    """Return the diagonal blocks of the solver Hessian without contacts; empty: not known."""
    s = m.structure
    if collision_layout(m).flex_groups or not np.isin(s.eq_type, _COUPLING_EQUALITIES).all():
        return ()
    return _parts(s, _coupled_trees(m), gain=0)


def _coupled_trees(m: Model) -> list[np.ndarray]:
    """Return groups of trees that are coupled in the solver other than by contacts."""
    s = m.structure
    more = [*_actuated_trees(s), *trees_of_flexes(s)] if is_discrete(m) else []
    return [*tendon_incidence(s).tree, *equality_incidence(s).tree, *more]


def _actuated_trees(s: Structure) -> list[np.ndarray]:
    """Return the trees that each actuator moves."""
    pattern = moment_pattern(s)
    return [s.dof_treeid[pattern.col[pattern.row == row]] for row in range(pattern.shape[0])]


def touching_trees(s: Structure, plan: CollisionLayout) -> np.ndarray:
    """Return the pairs of trees that may touch, `[n, 2]`; -1: a fixed body."""
    geoms = np.stack([plan.pairs.geom1, plan.pairs.geom2], axis=1)
    return np.unique(s.body_treeid[s.geom_bodyid[geoms]], axis=0)


def _parts(
    s: Structure,
    ties: Iterable[np.ndarray],
    pairs: np.ndarray = NO_PAIRS,
    gain: float | None = None,
) -> Parts:
    """Group the dofs of coupled trees.

    Args:
      s: structure of the model.
      ties: groups of coupled trees, -1 for none.
      pairs: further coupled pairs of trees, `[n, 2]`.
      gain: factor by which the blocks must reduce the work, else one block is returned; each block
        size is a program of its own. None: `min_block_speedup` of the tuning.
    """
    gain = tuning().min_block_speedup if gain is None else gain
    # Edges of the coupling graph: a chain through each group, and the pairs.
    own = [tie[tie >= 0] for tie in ties]
    chained = [np.stack([tie[:-1], tie[1:]], axis=1) for tie in own]
    link = np.concatenate([*chained, pairs[(pairs >= 0).all(axis=1)]])
    # Connected components of the trees, then of their dofs.
    label = _component_labels(s.ntree, link)
    of_dof = label[s.dof_treeid]
    parts = [np.flatnonzero(of_dof == k) for k in np.unique(of_dof)]
    # Factorization work grows with the cube of the block size.
    if gain * sum(len(p) ** 3 for p in parts) > s.nv**3:
        return _undivided_parts(s)
    return tuple(tuple(p.tolist()) for p in parts)


def _component_labels(n: int, link: np.ndarray) -> np.ndarray:
    """Return connected-component labels, shape (n,), of an edge list `[k, 2]`.

    Each label is the smallest node id of its component. The method is label propagation with
    pointer jumping.
    """
    label, before = np.arange(n), np.full(n, -1)
    while not np.array_equal(label, before):
        # Propagate the smaller label across each edge, then jump to the label's label.
        before, label = label, label.copy()
        for one, other in (link.T, link.T[::-1]):
            np.minimum.at(label, one, before[other])
        label = label[label]
    return label


def _undivided_parts(s: Structure) -> Parts:
    return (tuple(range(s.nv)),)
