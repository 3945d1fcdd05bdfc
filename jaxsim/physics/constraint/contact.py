"""Rows of contacts: the Jacobian of each contact's basis, regularization and reference."""

import jax.numpy as jnp
import numpy as np

from jaxsim.data import Data
from jaxsim.enums import ConeType
from jaxsim.math import MINVAL, Spatial, Vec
from jaxsim.model import Model
from jaxsim.physics.constraint.impedance import impedance, regularize, stiffness_damping
from jaxsim.physics.constraint.rows import ContactRows
from jaxsim.physics.layout import ancestors
from jaxsim.physics.pin import pin
from jaxsim.physics.products import apply_basis
from jaxsim.physics.tree import column, pick, take
from jaxsim.structure import Structure, derived


def contact_rows(m: Model, d: Data, c, size: int) -> ContactRows:
    """Rows of the contacts `c` (a collision.Contacts), whose largest dimension is `size`.

        velocity along basis vector k = frame[k] . (v2 - v1)   at the contact point, k < 3
                                        frame[k-3] . (w2 - w1)                      k >= 3

    MuJoCo's documentation, Computation: Contact, Friction cones, Constraint space.
    """
    J = pin(_jacobian(m, d, c, size), d.qvel)
    velocity = list(apply_basis(J, d.qvel))
    tran = pick(m.body_invweight0[:, 0], c.body1) + pick(m.body_invweight0[:, 0], c.body2)
    violation = c.dist - c.includemargin
    imp = impedance(c.solimp, violation)
    K, B = stiffness_damping(m, c.solref, c.solimp[1])
    flat = c.dim == 1
    # friction of each basis vector; nothing beyond the contact's own dimension
    mu = [jnp.zeros_like(c.dist)] + [
        jnp.where(c.dim > k, c.friction[k - 1], 0) for k in range(1, size)
    ]
    if m.opt.cone == ConeType.PYRAMIDAL:
        return _pyramid(m, c, J, velocity, tran, imp, K, B, violation, mu, flat)
    return _cone(m, c, J, velocity, tran, imp, K, B, violation, mu, flat)


def _pyramid(m, c, J, velocity, tran, imp, K, B, violation, mu, flat) -> ContactRows:
    """All edges of a pyramid share one regularization, that of the first edge rescaled."""
    slope = c.friction[0]
    edge = 1 / regularize(imp, tran * (1 + slope * slope))
    R = jnp.where(flat, 1 / regularize(imp, tran), 2 * slope * slope / m.opt.impratio * edge)
    D = jnp.where(c.active, 1 / jnp.maximum(MINVAL, R), 0)
    aref = [-B * velocity[0] - K * imp * violation] + [-B * v for v in velocity[1:]]
    return ContactRows(ConeType.PYRAMIDAL, J, D, aref, mu, None, flat)


def _cone(m, c, J, velocity, tran, imp, K, B, violation, mu, flat) -> ContactRows:
    """Friction directions of an elliptic cone have regularizations tied to the normal's."""
    R = 1 / regularize(imp, tran)
    D = jnp.where(c.active, 1 / R, 0)
    Rt = R / m.opt.impratio
    slope = c.friction[0] * jnp.sqrt(1 / m.opt.impratio)
    Dt = [D]
    for k in range(1, len(J)):
        ratio = jnp.where(mu[k] > 0, c.friction[0] / jnp.where(mu[k] > 0, mu[k], 1.0), 0)
        used = c.active & (c.dim > k)
        Dt.append(jnp.where(used, 1 / jnp.maximum(MINVAL, Rt * ratio * ratio), 0))
    # friction rows may have a damping of their own
    own = (c.solreffriction[0] != 0) | (c.solreffriction[1] != 0)
    _, Bf = stiffness_damping(m, c.solreffriction, c.solimp[1])
    Bf = jnp.where(own, Bf, B)
    aref = [-B * velocity[0] - K * imp * violation] + [-Bf * v for v in velocity[1:]]
    return ContactRows(ConeType.ELLIPTIC, J, D, aref, [slope, *mu[1:]], Dt, flat)


def _jacobian(m: Model, d: Data, c, size: int):
    """Basis Jacobians `[size, ncon, nv, *W]`."""
    sign = _sides(m, c)
    cdof = d.cdof
    origin = take(d.subtree_com, m.body_rootid[m.dof_bodyid])
    # velocity of the contact point per unit speed of each dof
    arm = Vec(*(p[:, None] - o[None] for p, o in zip(c.pos.parts, origin.parts, strict=True)))
    point = Spatial(*(a[None] for a in cdof.parts))
    linear = point.at(arm)
    rows = []
    for k in range(size):
        axis = Vec(*(a[:, None] for a in c.frame.rows[k % 3].parts))
        rows.append(sign * axis.dot(linear if k < 3 else point.rot))
    return jnp.stack(pin(rows, d.qvel))


def _sides(m: Model, c):
    """+1 where a dof moves the second body only, -1 the first only, 0 both or none."""
    if isinstance(c.body1, np.ndarray):
        moves = ancestors(m)
        return column(moves[c.body2] - moves[c.body1], c.dist)
    words = _words(m)
    like = jnp.zeros((1, *c.dist.shape[1:]), jnp.uint32)
    second = [pick(column(w, like), c.body2) for w in words]
    first = [pick(column(w, like), c.body1) for w in words]
    dof = np.arange(m.nv)
    shift = column((dof % 32).astype(np.uint32), like)[None]

    def bits(word):
        spread = jnp.concatenate(
            [
                jnp.broadcast_to(w[:, None], (w.shape[0], min(32, m.nv - 32 * k), *w.shape[1:]))
                for k, w in enumerate(word)
            ],
            axis=1,
        )
        return ((spread >> shift) & 1).astype(c.dist.dtype)

    return bits(second) - bits(first)


@derived
def _words(s: Structure) -> list[np.ndarray]:
    """`ancestors` as bits: per 32 dofs one word a body."""
    moves = ancestors(s).astype(np.uint64)
    words = []
    for start in range(0, s.nv, 32):
        block = moves[:, start : start + 32]
        words.append((block << np.arange(block.shape[1], dtype=np.uint64)).sum(1).astype(np.uint32))
    return words
