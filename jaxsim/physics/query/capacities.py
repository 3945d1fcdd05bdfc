"""Capacities for contacts and near pairs, measured on given states."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.inertia import com_pos
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.collision.candidates.plan import collision_layout
from jaxsim.physics.collision.contacts import (
    collision,
    contact_reach,
    place_collision_geoms,
    place_flexes,
)
from jaxsim.physics.collision.driver import count_near_pairs
from jaxsim.physics.collision.flex.plan import FlexPairGroup
from jaxsim.physics.collision.params import contact_params
from jaxsim.physics.flex.flex import flex
from jaxsim.transforms.layout import unpack_record

# Initial capacity for pairs of a group with clusters, relative to the larger of its two budgets.
_CLUSTER_PAIR_FACTOR = 2


class Capacities(NamedTuple):
    """Capacities of a model: `load_model(path, **capacities._asdict())`.

    Attributes:
      contacts: contacts per world.
      pairs: near pairs of each group that one collision function handles.
    """

    contacts: int
    pairs: int


def suggest_capacities(m: Model, states: Data, *, spare: float = 1.25) -> Capacities:
    """Measure the capacities that some states need, with capacity for all candidates.

    Args:
      m: the model.
      states: worlds with a leading axis, such as those of a rollout; only `qpos` and the mocap
        poses are read. They are processed one at a time, so there may be many.
      spare: factor on the measured numbers, for states that are not among these.

    Returns:
      The largest number of contacts, and of near pairs of one group, each times `spare`.

    Raises:
      ValueError: `states` is one world, or `spare` is below 1.
    """
    if states.qpos.ndim != 2:
        raise ValueError(f"states: expected worlds with qpos (n, {m.nq}), got {states.qpos.shape}")
    if spare < 1:
        raise ValueError(f"spare: expected a factor of at least 1, got {spare}")
    # A copy of the model in which no pair and no contact is dropped.
    plan = collision_layout(m)
    pairs = max([1, *(len(g.pairs) for g in plan.groups), *map(_max_pairs, plan.flex_groups)])
    while True:
        contacts, near = _largest_counts(m, states, pairs)
        if near <= pairs:
            break
        pairs = 2 * near  # clusters were dropped, so the pairs of their elements were not counted
    return Capacities(*(max(1, int(np.ceil(spare * n))) for n in (contacts, near)))


def _max_pairs(group: FlexPairGroup) -> int:
    """Return the initial capacity for pairs of a group: all pairs, except for clusters."""
    if group.clusters is None:
        return len(group.entries.pair)
    return _CLUSTER_PAIR_FACTOR * max(group.budget, group.cluster_budget)


def _largest_counts(m: Model, states: Data, pairs: int) -> tuple[int, int]:
    """Return the largest numbers of contacts and of near pairs of a group in some states.

    At most `pairs` pairs of a group are tested.
    """
    plan = collision_layout(m)
    wide = m.replace(structure=m.structure.replace(nnear=pairs, ncontact=1))
    points = max(1, collision_layout(wide).points)
    wide = wide.replace(structure=wide.structure.replace(ncontact=points))
    clusters = (
        g if g.clusters else own
        for g, own in zip(collision_layout(wide).flex_groups, plan.flex_groups, strict=True)
    )
    plan = plan._replace(flex_groups=tuple(clusters))

    # Run the collision stage alone, and count.
    def counts(d: Data) -> Array:
        native = unpack_record(wide, 0)
        # Bring one state to the stage that collision needs.
        posed = kinematics(native, unpack_record(d, 0))
        if plan.flex_groups or plan.speculative:
            posed = com_pos(native, posed)
        if plan.flex_groups:
            posed = flex(native, posed)
        found = collision(native, posed.replace(contact=None))
        # Count the near pairs of each group with the same broad phase.
        reach = contact_reach(native, posed, plan, contact_params(native, plan.pairs))
        flexes = (m.structure, place_flexes(native, posed)) if plan.flex_groups else None
        near = count_near_pairs(place_collision_geoms(native, posed, plan), reach, plan, flexes)
        largest = jnp.max(jnp.concatenate(near)) if near else jnp.int32(0)
        return jnp.stack([found.ncon[0], largest])

    # One state after another, so that memory does not depend on their number.
    numbers = np.asarray(jax.jit(lambda d: lax.map(counts, d))(states)).max(axis=0)
    return int(numbers[0]), int(numbers[1])
