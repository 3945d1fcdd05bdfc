"""Forces of the constraint rows at the solution, by what they act on.

The solver returns the sum J' f on the dofs. A row's own force follows from its residual at `qacc`,
except for the methods whose forces do not satisfy that relation (PGS, no-slip), which store them in
`d.forces` (`m.lists_row_forces`). Wrenches on bodies correspond to `mj_rnePostConstraint`.
"""

from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.gather import gather_static, weighted_sum
from jaxsim.enums import ConstraintType, EqType
from jaxsim.linalg.dense import Dense
from jaxsim.math import Quat, Spatial, Vec, concat
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.collision.contact_list import gather_listed, order_contact_forces
from jaxsim.physics.collision.flex.contact_bodies import is_geom_contact
from jaxsim.physics.constraint.cone import Elliptic
from jaxsim.physics.constraint.contact.rows import surface_force
from jaxsim.physics.constraint.equality import TORQUE_SCALE, attachments
from jaxsim.physics.constraint.rows import RowBlock
from jaxsim.physics.solver.problem import ConstraintProblem


def row_forces(d: Data) -> list[tuple[RowBlock, Any]]:
    """Return each block of rows with its force: `[n, *W]`, or a list over the contact basis."""
    # Stored forces (PGS, no-slip), else forces from the residual at qacc.
    if d.rows is None or d.rows.empty:
        return []
    if d.forces is not None:
        return list(zip(d.rows.blocks, d.forces.blocks, strict=True))
    problem = ConstraintProblem(Dense(d.M), d.qfrc_smooth, d.rows)
    terms = problem.evaluate(problem.residual(d.qacc))
    return [(block, term.force) for block, term in zip(d.rows.blocks, terms, strict=True)]


def limit_force(d: Data, kind: ConstraintType, ids: np.ndarray) -> Array:
    """Return the force of the limits of joints or tendons `[n, *W]`; zero without a limit."""
    # Rows of a limit know their joint or tendon by id.
    force = jnp.zeros((len(ids), *d.qvel.shape[1:]), d.qvel.dtype)
    for block, f in row_forces(d):
        if block.type == kind:
            force = force + weighted_sum(1.0 * (ids[:, None] == block.ids), f)
    return force


def net_contact_force(d: Data) -> list | None:
    """Compute the force of each contact of `d.found` on its second geom, in the contact basis.

    Returns:
      Arrays `[ncontact, *W]` for normal, two tangents [N], spin and two rolls [N m]; as many as the
      largest contact dimension needs. None for a model without contacts.
    """
    # Contacts are the last block of rows.
    forces = row_forces(d)
    if not forces or d.rows.contact is None:
        return None
    return surface_force(d.found.contacts, forces[-1][1])


def list_contact_forces(d: Data) -> Data:
    """Return `d` with the forces stored in its contact list, if that list has a force field."""
    force = net_contact_force(d)
    if force is None or d.contact is None or d.contact.force is None:
        return d
    return d.replace(contact=d.contact.replace(force=order_contact_forces(d, force)))


def list_cone_hessians(d: Data) -> Data:
    """Write the second derivatives of the costs of elliptic contacts at `qacc`, `contact.H`.

    As in MuJoCo, of contacts in the middle zone of their cone, (dim, dim) in the first entries.
    """
    contact = None if d.rows is None else d.rows.contact
    if d.contact is None or d.contact.H is None or d.found is None or contact is None:
        return d
    if not isinstance(contact.cost, Elliptic):
        return d
    r = ConstraintProblem(Dense(d.M), d.qfrc_smooth, d.rows).residual(d.qacc)[-1]
    free, below = contact.cost.zones(r)
    bends = (contact.cost.D[0] > 0) & ~free & ~below
    curvature, dim = contact.cost.at(r).curvature, d.found.contacts.dim
    none = jnp.zeros_like(r[0])
    parts = [none] * H_SIZE
    for size in (n for n in (3, 4, 6) if n <= len(r)):
        for i, j in np.ndindex(size, size):
            k = i * size + j
            parts[k] = jnp.where(bends & (dim == size), curvature[i][j], parts[k])
    return d.replace(contact=d.contact.replace(H=gather_listed(d, parts)))


H_SIZE = 36  # numbers in `contact.H`


def contact_side(d: Data, body: np.ndarray) -> Array:
    """Return which geom of each contact belongs to given bodies: 1 second, -1 first, 0 none.

    Args:
      d: data with detected contacts.
      body: constant `[n]` body ids.

    Returns:
      `[n, ncontact, *W]`.
    """
    # Compare the bodies of each contact with the requested ones.
    c, dtype = d.found.contacts, d.qpos.dtype
    first, second = (jnp.where(c.exists, c.each(body), -1) for body in c.body)
    body = body.astype(first.dtype).reshape(-1, *(1,) * first.ndim)
    return (body == second[None]).astype(dtype) - (body == first[None]).astype(dtype)


def contact_wrench(m: Model, d: Data, force: list) -> Spatial:
    """Sum the wrenches of contacts on each body `[nbody, *W]`, about the world origin.

    Contacts of flexes are excluded, as in MuJoCo.
    """
    # Rotate forces and torques of each contact to the world, and move them to the origin.
    c = d.found.contacts
    force = [jnp.where(is_geom_contact(c), f, 0) for f in force]
    parts = [*force, *[jnp.zeros_like(force[0])] * (6 - len(force))]
    push, turn = c.frame.T @ Vec(*parts[:3]), c.frame.T @ Vec(*parts[3:])
    wrench = Spatial.of(turn + c.pos.cross(push), push)
    side = contact_side(d, np.arange(m.nbody))
    return wrench.map(lambda a: apply(side, a))


def equality_wrench(m: Model, d: Data) -> Spatial | None:
    """Sum the wrenches of connects and welds on each body, about the world origin.

    The rotational rows of a weld act on half the vector part of q2* q1, so that their torque is
    torquescale / 2 vec(q2 f q1*).
    """
    total = None
    for block, f in row_forces(d):
        if block.type != ConstraintType.EQUALITY:
            continue
        kind = m.eq_type[block.id[0]]
        if kind in (EqType.CONNECT, EqType.WELD):
            wrench = _equality_wrenches(m, d, block.ids, f, kind)
            total = wrench if total is None else total + wrench
    return total


def _equality_wrenches(m: Model, d: Data, rows: np.ndarray, f: Array, kind: EqType) -> Spatial:
    """Compute the wrenches of connects or welds on all bodies.

    `f` holds the first rows of all equalities, then the second rows, and so on.
    """
    # Connects have three rows per constraint, welds six.
    ids = rows[: len(rows) // (3 if kind == EqType.CONNECT else 6)]
    n = len(ids)
    first, second = attachments(m, d, ids)
    # Rows are stored component by component: split them into force and torque.
    parts = [f[k * n : (k + 1) * n] for k in range(len(rows) // n)]
    push = Vec(*parts[:3])
    turn = push.map(jnp.zeros_like)
    if kind == EqType.WELD:
        pure = Quat(jnp.zeros_like(push.x), *parts[3:])
        # Torque of the quaternion residual.
        scale = 0.5 * gather_static(m.eq_data[:, TORQUE_SCALE], ids)
        turn = (second.quat * pure * first.quat.conj).vec.scale(scale)
    # Equal and opposite wrenches about the origin, added up by body.
    on_first = Spatial.of(turn + first.point.cross(push), push)
    on_second = -Spatial.of(turn + second.point.cross(push), push)
    body = np.concatenate([first.body, second.body])
    member = 1.0 * (np.arange(m.nbody)[:, None] == body)
    return weighted_sum(member, concat([on_first, on_second]))
