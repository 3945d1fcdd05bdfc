"""Groups of dofs that a contact can move: those of its bodies' trees.

Rows of contacts are stored for these dofs only; all other entries are zero.
"""

from typing import NamedTuple

import numpy as np

from jaxsim.model.model import Model
from jaxsim.physics.collision.candidates.plan import collision_layout
from jaxsim.physics.partition import Parts, solver_blocks, touching_trees
from jaxsim.physics.topology import ancestors
from jaxsim.transforms.tuning import tuning


class Groups(NamedTuple):
    """Dof groups, of which a contact touches one or two.

    Attributes:
      dofs: the dofs of each group, constant `[number, k]`; smaller groups repeat their first dof.
      slots: largest number of groups that a contact can touch.
      of_body: the group of each body, -1 for none, `[nbody]`.
      moves: 1 where a dof of its group moves a body, `[nbody, k]`; 0 for repeated dofs.
    """

    dofs: np.ndarray
    slots: int
    of_body: np.ndarray
    moves: np.ndarray

    @property
    def number(self) -> int:
        """Return the number of groups."""
        return len(self.dofs)

    @property
    def width(self) -> int:
        """Return the number of entries of a row."""
        return self.slots * self.dofs.shape[1]


def contact_groups(m: Model) -> Groups | None:
    """Return the groups with the shortest rows; None where full rows are hardly longer.

    Candidates are kinematic trees, of which a contact touches up to two, and the blocks of the
    Hessian, which are built so that a contact touches one.
    """
    # Flexes use full rows.
    s, plan = m.structure, collision_layout(m)
    if plan.flex_groups:
        return None
    trees = tuple(tuple(np.flatnonzero(s.dof_treeid == t).tolist()) for t in range(s.ntree))
    # A contact touches two trees only if pairs between moving trees exist.
    pairs = touching_trees(s, plan)
    both = bool(np.any((pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])))
    choices = [_groups(m, trees, 2 if both else 1), _groups(m, solver_blocks(m), 1)]
    best = min(choices, key=lambda groups: groups.width)
    # Gathering the dofs of groups has a cost.
    return best if tuning().min_group_reduction * best.width <= s.nv else None


def _groups(m: Model, parts: Parts, slots: int) -> Groups:
    # Pad groups to equal width with their first dof.
    s, most = m.structure, max(map(len, parts))
    dofs = np.array([[*part, *[part[0]] * (most - len(part))] for part in parts])
    real = np.arange(most) < np.array([len(part) for part in parts])[:, None]
    of_dof = np.zeros(s.nv, int)
    of_dof[dofs[real]] = np.nonzero(real)[0]
    # The group of a body is that of any dof that moves it.
    moved = ancestors(s) > 0
    of_body = np.where(moved.any(axis=1), of_dof[moved.argmax(axis=1)], -1)
    own = dofs[np.maximum(of_body, 0)]
    moves = np.take_along_axis(moved, own, axis=1) & real[np.maximum(of_body, 0)]
    return Groups(dofs, slots, of_body, 1.0 * moves)
