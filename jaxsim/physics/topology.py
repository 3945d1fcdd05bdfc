"""Constant matrices and level tables derived from the kinematic tree.

Sums over subtrees and over ancestors are products with constant 0/1 matrices; recursions over the
tree are loops over its levels. All tables are numpy, computed once per structure.
"""

from dataclasses import dataclass

import numpy as np

from jaxsim.enums import JointType
from jaxsim.model.structure import Structure, cache_by_structure


@cache_by_structure
def descendants(s: Structure) -> np.ndarray:
    """Return the table [nbody, nbody]: 1 where the column's body is in the row's subtree."""
    inside = np.eye(s.nbody)
    # Add each body's row to its parent's, children first.
    for body in range(s.nbody - 1, 0, -1):
        inside[s.body_parentid[body]] += inside[body]
    return inside


@cache_by_structure
def ancestors(s: Structure) -> np.ndarray:
    """Return the table [nbody, nv]: 1 where the column's dof moves the row's body."""
    moves = np.zeros((s.nbody, s.nv))
    # A body inherits its parent's dofs.
    for body in range(1, s.nbody):
        moves[body] = moves[s.body_parentid[body]]
        first, count = s.body_dofadr[body], s.body_dofnum[body]
        if count:
            moves[body, first : first + count] = 1
    return moves


@cache_by_structure
def dof_ancestors(s: Structure) -> np.ndarray:
    """Return the mask [nv, nv]: the column's dof is the row's dof or one of its ancestors."""
    mask = np.eye(s.nv, dtype=bool)
    for dof in range(s.nv):
        parent = s.dof_parentid[dof]
        if parent >= 0:
            mask[dof] |= mask[parent]
    return mask


@cache_by_structure
def dofs_before(s: Structure) -> np.ndarray:
    """Return the table [nv, nv]: 1 where the column's dof moves the axis of the row's dof.

    The axes of a ball joint, and the rotations of a free joint, are fixed in the body they move:
    each follows all dofs up to the joint, and none of the others in the joint. The translations of
    a free joint are along world axes, which no dof moves.
    """
    before = np.zeros((s.nv, s.nv))
    for dof in range(s.nv):
        joint = s.dof_jntid[dof]
        first, kind = s.jnt_dofadr[joint], s.jnt_type[joint]
        if kind == JointType.FREE:
            if dof - first < 3:
                continue
            before[dof, first : first + 3] = 1
        else:
            start = first if kind == JointType.BALL else dof
            parent = s.dof_parentid[start]
            if parent >= 0:
                before[dof] = dof_ancestors(s)[parent]
    return before


@cache_by_structure
def dofs_carrying(s: Structure) -> np.ndarray:
    """Return `dofs_before` plus the rotations of the joint that carry the row's axis, [nv, nv].

    The axes of a ball joint, and the rotations of a free joint, rotate with the body itself. Summed
    over the dofs of the joint this makes no difference; for single dofs it does.
    """
    carry = dofs_before(s).copy()
    # Add the rotations of the joint itself.
    for joint in joints_of(s, JointType.BALL, JointType.FREE):
        first = s.jnt_dofadr[joint] + 3 * (s.jnt_type[joint] == JointType.FREE)
        carry[first : first + 3, first : first + 3] = 1
    return carry


@cache_by_structure
def body_forest(s: Structure) -> tuple[int, ...]:
    """Return the parent of each body [nbody]; -1 for the world."""
    return (-1, *s.body_parentid[1:].tolist())


@cache_by_structure
def dof_forest(s: Structure) -> tuple[int, ...]:
    """Return the parent of each dof [nv]; -1: none."""
    return tuple(s.dof_parentid.tolist())


@cache_by_structure
def moving_dof(s: Structure) -> tuple[int, ...]:
    """Return the last dof that moves each body [nbody]; -1: none.

    With its ancestors it is the row of `ancestors`.
    """
    return _last_index(ancestors(s))


@cache_by_structure
def carrying_dof(s: Structure) -> tuple[int, ...]:
    """Return the last dof that moves the axis of each dof [nv], by `dofs_before`; -1: none."""
    return _last_index(dofs_before(s))


def _last_index(table: np.ndarray) -> tuple[int, ...]:
    return tuple(int(np.flatnonzero(row).max(initial=-1)) for row in table)


@dataclass(frozen=True)
class BodyLevels:
    """Bodies by depth, for the recursion of the poses.

    Attributes:
      roots: children of the world.
      body: `[depth, width]` bodies of the deeper levels, padded with the first of the level.
      parent: `[depth, width]` index of each body's parent in the level above (for the first row: in
        `roots`).
      order: `[nbody]` index of each body in the concatenation (world, roots, levels).
    """

    roots: np.ndarray
    body: np.ndarray
    parent: np.ndarray
    order: np.ndarray


@cache_by_structure
def body_levels(s: Structure) -> BodyLevels:
    """Return the bodies of the model by depth."""
    depth = np.zeros(s.nbody, int)
    # Depth of each body, parents first.
    for b in range(1, s.nbody):
        depth[b] = depth[s.body_parentid[b]] + 1
    by_level = [np.flatnonzero(depth == k) for k in range(1, depth.max(initial=0) + 1)]
    roots = by_level[0] if by_level else np.zeros(0, int)
    deeper = by_level[1:]
    # Pad levels to equal width.
    width = max((len(v) for v in deeper), default=0)
    body = np.array([np.r_[v, np.full(width - len(v), v[0])] for v in deeper], int)
    body = body.reshape(len(deeper), width)
    # Index of each body in the padded concatenation.
    place = np.zeros(s.nbody, int)
    order = np.zeros(s.nbody, int)
    for k, level in enumerate(by_level):
        place[level] = np.arange(len(level))
        start = 1 if k == 0 else 1 + len(roots) + (k - 1) * width
        order[level] = start + place[level]
    parent = place[s.body_parentid[body]] if deeper else body
    return BodyLevels(roots, body, parent, order)


@cache_by_structure
def joint_slot(s: Structure) -> np.ndarray:
    """Return the rank of each joint among the joints of its body [njnt]."""
    return np.arange(s.njnt) - s.body_jntadr[s.jnt_bodyid]


@cache_by_structure
def joint_table(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return mask and id [slots, nbody] of the first, second, ... joint of each body.

    Free joints are excluded; where the mask is False the id is arbitrary.
    """
    slot = np.arange(int(s.body_jntnum.max(initial=0)))[:, None]
    is_free = np.zeros(s.nbody, bool)
    is_free[s.jnt_bodyid[joints_of(s, JointType.FREE)]] = True
    has = (s.body_jntnum > slot) & ~is_free
    return has, np.where(has, s.body_jntadr + slot, 0)


@cache_by_structure
def dof_slot(s: Structure) -> np.ndarray:
    """Return the rank of each dof among the dofs of its joint [nv]."""
    return np.arange(s.nv) - s.jnt_dofadr[s.dof_jntid]


def joints_of(s: Structure, *kinds: JointType) -> np.ndarray:
    """Return the ids of the joints of some types."""
    return np.flatnonzero(np.isin(s.jnt_type, kinds))


def group_by_owner(owner: np.ndarray, count: int) -> np.ndarray:
    """Return the items of each owner [count, most], padded with the number of items."""
    # Counting sort by owner.
    order = np.argsort(owner, kind="stable")
    number = np.bincount(owner, minlength=count)
    table = np.full((count, number.max(initial=0) + 1), len(owner))
    place = np.arange(len(owner)) - np.repeat(np.cumsum(number) - number, number)
    table[owner[order], place] = order
    return table
