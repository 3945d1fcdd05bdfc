"""Tendons: length, Jacobian and velocity.

A fixed tendon is a weighted sum of joint positions. A spatial tendon is a string through sites,
around geoms and over pulleys; each leg of it pulls on the bodies at its ends, and the Jacobian is
the generalized force of a unit tension, with the sign of a push (virtual work).
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.data import Data
from jaxsim.enums import WrapType
from jaxsim.math import Spatial, Vec, concat, select
from jaxsim.model import Model
from jaxsim.physics.layout import ancestors
from jaxsim.physics.pin import pin
from jaxsim.physics.refusal import Refusal, refuse
from jaxsim.physics.tendon_path import (
    Legs,
    fixed_terms,
    leg_groups,
    legs,
    tendon_pattern,
)
from jaxsim.physics.tree import take, weighted_sum
from jaxsim.physics.wrap import wrap
from jaxsim.structure import Structure, derived


def tendon(m: Model, d: Data) -> Data:
    """Lengths and Jacobians of all tendons.

    fixed:    ten_length = sum(coef qpos),           ten_J = coef
    spatial:  ten_length = sum(leg length / divisor)
              ten_J[i] = sum(force . velocity of its point per unit speed of dof i)
    """
    if not m.ntendon:
        none = d.qpos[:0]
        return d.replace(ten_length=none, ten_J=tendon_pattern(m).dense(none))
    length, entries = _fixed(m, d)
    if len(legs(m)):
        more, pull = _spatial(m, d)
        length, entries = length + more, entries + pull
    return d.replace(ten_length=length, ten_J=tendon_pattern(m).dense(entries))


def tendon_velocity(m: Model, d: Data) -> Data:
    """ten_velocity = ten_J qvel."""
    if not m.ntendon:
        return d.replace(ten_velocity=d.qvel[:0])
    pattern = tendon_pattern(m)
    return d.replace(ten_velocity=pattern.apply(pattern.entries(d.ten_J), d.qvel))


def _fixed(m: Model, d: Data):
    """Lengths `[ntendon, *W]` and Jacobian entries `[nnz, *W]` of the fixed tendons."""
    terms, pattern = fixed_terms(m), tendon_pattern(m)
    coef = take(m.wrap_prm, terms.wrap)
    owner = 1.0 * (np.arange(m.ntendon)[:, None] == terms.tendon)
    length = weighted_sum(owner, coef * take(d.qpos, terms.qpos))
    here = (pattern.row[:, None] == terms.tendon) & (pattern.col[:, None] == terms.dof)
    return length, weighted_sum(1.0 * here, coef)


class _Pull(NamedTuple):
    """Forces of unit tension on points of bodies; `tendon` and `body` are constant tables."""

    tendon: np.ndarray
    body: np.ndarray
    point: Vec
    force: Vec


def _spatial(m: Model, d: Data):
    """Lengths `[ntendon, *W]` and Jacobian entries `[nnz, *W]` of the spatial tendons."""
    lengths, pulls = [], []
    for kind, sided, group in leg_groups(m):
        length, pull = _leg(m, d, kind, sided, group)
        lengths.append(length)
        pulls += pull
    order = np.concatenate([group.tendon for _, _, group in leg_groups(m)])
    owner = 1.0 * (np.arange(m.ntendon)[:, None] == order)
    body = np.concatenate([p.body for p in pulls])
    force = concat(p.force for p in pulls)
    arm = concat(p.point for p in pulls) - take(d.subtree_com, m.body_rootid[body])
    wrench = weighted_sum(_pull_members(m), Spatial.of(arm.cross(force), force))
    entries = take(d.cdof, tendon_pattern(m).col).dot(wrench)
    return weighted_sum(owner, concat(lengths)), entries


@derived
def _pull_members(s: Structure) -> np.ndarray:
    """[nnz, npull]: 1 where a force is of the entry's tendon, on a body that its dof moves."""
    tendon: list[np.ndarray] = []
    body: list[np.ndarray] = []
    for kind, _, group in leg_groups(s):
        ends = [s.site_bodyid[group.site0], s.site_bodyid[group.site1]]
        if kind != WrapType.NONE:
            ends += [s.geom_bodyid[group.geom]] * 2
        tendon += [group.tendon] * len(ends)
        body += ends
    pattern, moves = tendon_pattern(s), ancestors(s)
    own = pattern.row[:, None] == np.concatenate(tendon)
    return own * moves.T[pattern.col][:, np.concatenate(body)]


def _leg(m: Model, d: Data, kind: WrapType, sided: bool, group: Legs):
    """Lengths of legs of one kind, and the forces on their ends and on the geoms."""
    x0, x1 = take(d.site_xpos, group.site0), take(d.site_xpos, group.site1)
    body0, body1 = m.site_bodyid[group.site0], m.site_bodyid[group.site1]
    part = _inverse_divisor(m, group)
    line = x1 - x0
    if kind == WrapType.NONE:
        push = line.normalize().scale(part)
        length = line.norm() * part
        return length, [
            _Pull(group.tendon, body0, x0, -push),
            _Pull(group.tendon, body1, x1, push),
        ]

    centre, R = take(d.geom_xpos, group.geom), take(d.geom_xmat, group.geom)
    radius = take(m.geom_size[:, 0], group.geom)
    side = take(d.site_xpos, group.side) if sided else None
    touch = wrap(kind, x0, x1, centre, R, radius, side)
    to, fro = touch.first - x0, x1 - touch.last
    bent = to.norm() + touch.surface + fro.norm()
    length = jnp.where(touch.touches, bent, line.norm()) * part
    # a leg that does not touch pulls both ways on the geom's centre: nothing
    push0 = select(touch.touches, to, line).normalize().scale(part)
    push1 = select(touch.touches, fro, line).normalize().scale(part)
    body = m.geom_bodyid[group.geom]
    length, push0, push1 = pin((length, push0, push1), length)
    return length, [
        _Pull(group.tendon, body0, x0, -push0),
        _Pull(group.tendon, body1, x1, push1),
        _Pull(group.tendon, body, touch.first, push0),
        _Pull(group.tendon, body, touch.last, -push1),
    ]


def _inverse_divisor(m: Model, group: Legs):
    """What a leg contributes to the length: 1 / divisor of the pulley before it, or 1."""
    if (group.pulley < 0).all():
        return jnp.ones((len(group), *m.wrap_prm.shape[1:]), m.wrap_prm.dtype)
    padded = jnp.concatenate([m.wrap_prm, jnp.ones_like(m.wrap_prm[:1])])
    return 1 / take(padded, np.where(group.pulley < 0, m.nwrap, group.pulley))


def refusals(m: Model) -> list[Refusal]:
    """What of the tendons is not simulated, named."""
    return [
        refuse(m, "tendon", t, "springyield (a plastic spring) is not supported; remove it")
        for t in np.flatnonzero(m.tendon_plasticadr >= 0)
    ]
