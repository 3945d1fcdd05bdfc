"""Waking of sleeping trees, with all that fell asleep with them.

MuJoCo's documentation, Programming: Sleeping islands, Waking. In the order of a step: user input
(`mj_wake`), tendons (`mj_wakeTendon`), contacts (sleeping_contacts.py, `mj_wakeCollision`),
equality constraints (`mj_wakeEquality`).
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import EqType, IntegratorType, SleepPolicy
from jaxsim.math import Quat, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.constraint.tendon import limit_distance, limited_tendons
from jaxsim.physics.flex.stiffness import implicit_elastic_flexes
from jaxsim.physics.integrate.discrete import is_discrete
from jaxsim.physics.integrate.tree_couplings import implicit_tendons
from jaxsim.physics.sleep.cycle import first_trees, wake_trees, woken_by
from jaxsim.physics.sleep.incidence import equality_incidence, flex_incidence, tendon_incidence
from jaxsim.physics.sleep.trees import qpos_tree, tree_asleep, tree_awake, trees_with_objects

_NEVER_POLICIES = (SleepPolicy.NEVER, SleepPolicy.AUTO_NEVER)
_POSE_ROUNDING_ULPS = 32  # rounding errors (eps) by which poses of two programs may differ


def resting_trees(m: Model, d: Data, tolerance: Array | None = None) -> Array:
    """Return which trees may sleep: nothing is applied to them, and they hardly move.

    As in MuJoCo a force or velocity of -0.0 counts as nonzero: it wakes a tree, and keeps it awake,
    without moving it.

    Args:
      m: model.
      d: data.
      tolerance: velocity below which they hardly move [m/s], angular velocities times
        `dof_length`; None: they must be at rest.

    Returns:
      bool `[ntree, *W]`.
    """
    # Velocity criterion: scaled by dof_length, or exact zero.
    if tolerance is None:
        moves = _is_set(d.qvel)
    else:
        moves = ~(jnp.abs(d.qvel) * m.dof_length < tolerance) & (d.qvel != 0)
    # Forces applied by the user.
    by_dof, by_body = _user_forced(d)
    disturbed = trees_with_objects(m.dof_treeid, moves | by_dof, m.ntree)
    disturbed = disturbed | trees_with_objects(m.body_treeid, by_body, m.ntree)
    return ~disturbed & column(_may_rest(m), d.qvel)


def _user_forced(d: Data) -> tuple[Array, Array]:
    """Return dofs and bodies to which the user applies forces, `[nv, *W]`, `[nbody, *W]` bool."""
    return _is_set(d.qfrc_applied), _is_set(d.xfrc_applied).any(axis=1)


def _may_rest(m: Model) -> np.ndarray:
    """Return which trees may sleep by policy."""
    return ~np.isin(m.tree_sleep_policy, _NEVER_POLICIES) & ~_trees_of_elastic_flexes(m)


def _trees_of_elastic_flexes(m: Model) -> np.ndarray:
    """Return the trees of flexes whose elasticity makes no constraint rows.

    No island couples such trees, so that they cannot be found at rest together.
    """
    if is_discrete(m) or not m.nflex:
        return np.zeros(m.ntree, bool)
    uncoupled = implicit_elastic_flexes(m) & (np.asarray(m.flex_edgeequality) == 0)
    tree = flex_incidence(m).tree[uncoupled]
    return np.isin(np.arange(m.ntree), tree[tree >= 0])


def wake_disturbed(m: Model, before: Data, d: Data) -> Data:
    """Wake trees to which the user gave a velocity, a force or another pose.

    A pose that differs from the one in `before` was changed, by the joints or by the body that
    carries the tree. A pose that was never computed has a zero quaternion; there qpos is compared.
    After a step of RK4 a tree that fell asleep has the pose of the last stage; any difference from
    it counts. Corresponds to `mj_wake` in MuJoCo.
    """
    # Compare poses with those stored, or qpos with qpos0 if none was.
    trees = m.body_treeid
    disturbed = ~resting_trees(m, d)
    if before.xpos is not None and before.xquat is not None:
        moved, unposed = _moved_bodies(m, before, d)
        disturbed = disturbed | trees_with_objects(trees, moved, m.ntree)
        elsewhere = trees_with_objects(qpos_tree(m), d.qpos != m.qpos0, m.ntree)
        disturbed = disturbed | (elsewhere & trees_with_objects(trees, unposed, m.ntree))
    return d.replace(tree_asleep=wake_trees(tree_asleep(d), disturbed))


def may_wake_any(m: Model, before: Data, d: Data) -> Array:
    """Return True if `wake_disturbed` may wake a tree of any world where all sleep.

    The test is conservative: where the pose of some body was never computed, any difference of qpos
    from qpos0 counts, whichever tree it belongs to.
    """
    if not _may_rest(m).all():
        # A policy that forbids sleep counts as disturbance.
        return jnp.ones((), bool)
    by_dof, by_body = _user_forced(d)
    in_tree = column(m.body_treeid >= 0, d.qpos)
    found = jnp.any(_is_set(d.qvel) | by_dof) | jnp.any(by_body & in_tree)
    if before.xpos is not None and before.xquat is not None:
        moved, unposed = _moved_bodies(m, before, d)
        found = found | jnp.any(moved & in_tree)
        found = found | (jnp.any(unposed & in_tree) & jnp.any(d.qpos != m.qpos0))
    return found


def _moved_bodies(m: Model, before: Data, d: Data) -> tuple[Array, Array]:
    """Return bodies with joints whose pose was changed, and bodies without a computed pose."""
    # A zero quaternion marks a pose that was never computed.
    unposed = before.xquat.dot(before.xquat) == 0
    slack = 0 if m.opt.integrator == IntegratorType.RK4 else _POSE_ROUNDING_ULPS
    moved = _differs(before.xpos, d.xpos, slack) | _differs(before.xquat, d.xquat, slack)
    return moved & ~unposed & column(m.body_jntnum > 0, d.qpos), unposed


def wake_by_tendons(m: Model, d: Data) -> Data:
    """Wake trees that a tendon with a row couples to awake ones.

    Under the discrete integrator springs and dampers of the tendon couple trees as well.
    Corresponds to `mj_wakeTendon` in MuJoCo.
    """
    two = (m.tendon_treenum == 2) & (tendon_incidence(m).tree[:, 1] >= 0)
    # Tendons with an active limit, with dry friction, or with implicit forces.
    parts = []
    tendon = limited_tendons(m)[0]
    if two[tendon].any():
        dist, _ = limit_distance(m, d)
        parts.append((tendon, dist < gather_static(m.tendon_margin, tendon)))
    with_friction = np.flatnonzero(two & m.tendon_hasfriction)
    if len(with_friction):
        has_row = gather_static(m.tendon_frictionloss, with_friction) > 0
        parts.append(
            (with_friction, jnp.broadcast_to(has_row, (len(with_friction), *d.qpos.shape[1:])))
        )
    if is_discrete(m) and two.any():
        parts.append((np.flatnonzero(two), implicit_tendons(m, d.qpos)[two]))
    if not parts:
        return d
    # MuJoCo's order: by tendon.
    tendon = np.concatenate([ids for ids, _ in parts])
    couplings = jnp.concatenate([on for _, on in parts]) & column(two[tendon], d.qpos)
    order = np.argsort(tendon, kind="stable")
    ends = tendon_incidence(m).tree[tendon[order], :2].astype(np.int32).T
    first, second = (jnp.asarray(column(tree, d.qpos)) for tree in ends)
    couplings = gather_static(couplings, order)
    return d.replace(tree_asleep=woken_by(d.tree_asleep, first, second, couplings))


def wake_by_equalities(m: Model, d: Data) -> Data:
    """Wake trees that a constraint couples to awake ones, or to trees of another sleeping cycle.

    Corresponds to `mj_wakeEquality` in MuJoCo.
    """
    ends = equality_incidence(m)
    of_flex = np.isin(m.eq_type, (EqType.FLEX, EqType.FLEXSTRAIN))
    # Constraints between two trees, or a tree and an always-awake object.
    second = (ends.tree[:, 1] >= 0) | ends.always
    couplings = np.flatnonzero((ends.tree[:, 0] >= 0) & second & ~of_flex)
    d = _wake_by_pairs(m, d, couplings) if len(couplings) else d
    flex = np.flatnonzero(second & of_flex)
    return _wake_by_flexes(m, d, flex) if len(flex) else d


def _wake_by_flexes(m: Model, d: Data, ids: np.ndarray) -> Data:
    """Wake the first sleeping tree of each flex constraint by its first awake tree."""
    order = equality_incidence(m).tree[ids].T
    # First awake and first sleeping tree of each constraint.
    awake = tree_awake(d)
    ends = []
    for wanted in (awake, ~awake):
        first = jnp.full((len(ids), *d.qpos.shape[1:]), -1, jnp.int32)
        for tree in order[::-1]:
            here = gather_static(wanted, np.maximum(tree, 0)) & column(tree >= 0, d.qpos)
            first = jnp.where(here, column(tree.astype(np.int32), d.qpos), first)
        ends.append(first)
    couplings = gather_static(d.eq_active, ids) & (ends[0] >= 0) & (ends[1] >= 0)
    return d.replace(tree_asleep=woken_by(d.tree_asleep, ends[0], ends[1], couplings))


def _wake_by_pairs(m: Model, d: Data, couplings: np.ndarray) -> Data:
    """Wake the trees of constraints between two trees, or a tree and an always-awake object."""
    ends = equality_incidence(m).rows(couplings)
    # Different sleeping cycles that a constraint couples wake each other.
    cycle = first_trees(d.tree_asleep)
    first, second = (np.maximum(tree, 0) for tree in ends.tree[:, :2].T)
    single = column(ends.tree[:, 1] < 0, d.qpos)
    differ = (gather_static(cycle, first) != gather_static(cycle, second)) & ~single
    wakes = gather_static(d.eq_active, couplings) & (ends.awake(tree_awake(d)) | differ)
    disturbed = trees_with_objects(ends.tree[:, 0], wakes, m.ntree) | trees_with_objects(
        ends.tree[:, 1], wakes, m.ntree
    )
    return d.replace(tree_asleep=wake_trees(d.tree_asleep, disturbed))


def _is_set(a: Array) -> Array:
    """Return which numbers are not the bit pattern of 0.0; -0.0 counts."""
    return (a != 0) | jnp.signbit(a)


def _differs(a: Vec | Quat, b: Vec | Quat, slack: int) -> Array:
    """Return where two values differ by more than `slack` times eps, `[n, *W]`."""
    eps = slack * jnp.finfo(a.parts[0].dtype).eps
    out = jnp.zeros(a.shape, bool)
    for x, y in zip(a.parts, b.parts, strict=True):
        out = out | (jnp.abs(x - y) > eps * (1 + jnp.abs(y)))
    return out
