"""Assembly of all constraint rows of a state, and their counts."""

from dataclasses import replace

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import running_sum
from jaxsim.enums import ConeType, ConstraintType, DisableBit
from jaxsim.model.contact import Contact
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.collision.contact_list import contacts_of
from jaxsim.physics.constraint.contact.rows import contact_rows
from jaxsim.physics.constraint.equality import (
    connect_rows,
    joint_couplings,
    tendon_couplings,
    welds,
)
from jaxsim.physics.constraint.flex import flex_lengths, flex_strains
from jaxsim.physics.constraint.island import row_trees
from jaxsim.physics.constraint.joint import ball_limits, dof_friction, scalar_joint_limits
from jaxsim.physics.constraint.rows import ConstraintBlocks, SingleRows
from jaxsim.physics.constraint.tendon import tendon_friction, tendon_limits
from jaxsim.physics.sleep.trees import can_sleep, tree_awake
from jaxsim.trace_context import trace_context

# Functions that build blocks of rows, in order; None where the model has no such rows.
_ROW_BUILDERS = (
    dof_friction,
    scalar_joint_limits,
    connect_rows,
    welds,
    joint_couplings,
    tendon_couplings,
    flex_lengths,
    flex_strains,
    tendon_friction,
    ball_limits,
    tendon_limits,
)
# Counter in Data of each type of row.
_ROW_COUNT_FIELDS = {
    ConstraintType.EQUALITY: "ne",
    ConstraintType.FRICTION_DOF: "nf",
    ConstraintType.FRICTION_TENDON: "nf",
    ConstraintType.LIMIT_JOINT: "nl",
    ConstraintType.LIMIT_TENDON: "nl",
}


def make_rows(m: Model, d: Data) -> Data:
    """Build the rows of equalities, friction loss, limits and contacts at the present state.

    Requires the motion axes, velocities, tendons and contacts of `d`. Corresponds to
    `mj_makeConstraint` in MuJoCo.
    """
    # No rows at all: constraints disabled, or all trees asleep.
    if m.opt.disableflags & DisableBit.CONSTRAINT or trace_context().fully_asleep:
        return _count(m, d.replace(rows=ConstraintBlocks()))
    # Blocks in the order of _ROW_BUILDERS, with sleeping objects deactivated.
    single = tuple(block for build in _ROW_BUILDERS if (block := build(m, d)) is not None)
    single = tuple(_mask_sleeping_rows(m, d, block) for block in single) if can_sleep(m) else single
    touching = m.nv > 0 and contacts_of(m, d) is not None
    contact = contact_rows(m, d, d.found) if touching else None
    return _count(m, d.replace(rows=ConstraintBlocks(single, contact)))


def _mask_sleeping_rows(m: Model, d: Data, block: SingleRows) -> SingleRows:
    """Deactivate rows of sleeping objects, by a regularization D of 0."""
    awake = row_trees(m, block).awake(tree_awake(d))
    return replace(block, cost=replace(block.cost, D=jnp.where(awake, block.cost.D, 0)))


def _count(m: Model, d: Data) -> Data:
    """Count active rows by type (ne, nf, nl, nefc), and store each contact's first row address."""
    zero = jnp.zeros((1, *d.qpos.shape[1:]), jnp.int32)
    n = dict.fromkeys(_ROW_COUNT_FIELDS.values(), zero)
    for block in d.rows.single:
        n[_ROW_COUNT_FIELDS[block.type]] += block.cost.active()
    contact = d.rows.contact
    if contact is None:
        return d.replace(**n, nefc=sum(n.values(), zero))
    # Contacts follow all other rows.
    before = n["ne"] + n["nf"] + n["nl"]
    if d.contact is not None:
        d = d.replace(contact=_add_row_addresses(m, d.contact, before))
    return d.replace(**n, nefc=before + contact.cost.active())


def _add_row_addresses(m: Model, contact: Contact, before: Array) -> Contact:
    """Store the first row address of each contact; `before` is the number of other rows."""
    # Rows per contact by cone and dimension; the prefix sum gives the addresses.
    rows = contact.dim
    if m.opt.cone == ConeType.PYRAMIDAL:
        rows = jnp.maximum(1, 2 * (rows - 1))
    included = contact.efc_address >= 0
    rows = rows * included.astype(rows.dtype)
    first = before + running_sum(rows) - rows
    return contact.replace(efc_address=jnp.where(included, first, -1))
