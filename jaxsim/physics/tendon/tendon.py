"""Tendons: length, Jacobian and velocity.

A fixed tendon is a weighted sum of joint positions. A spatial tendon is a string through sites,
around geoms and over pulleys. Its Jacobian is the generalized force, by virtual work, of unit
forces that lengthen each leg. Corresponds to `mj_tendon` in MuJoCo.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static, weighted_sum
from jaxsim.enums import WrapType
from jaxsim.math import Spatial, Vec, concat, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.sleep.incidence import tendon_path_incidence
from jaxsim.physics.sleep.trees import can_sleep, tree_awake
from jaxsim.physics.tendon.path import (
    Legs,
    fixed_terms,
    inverse_divisor,
    leg_groups,
    tendon_legs,
    tendon_pattern,
)
from jaxsim.physics.tendon.points import wrap_points
from jaxsim.physics.tendon.wrap import WrapResult, wrap_legs
from jaxsim.physics.topology import ancestors
from jaxsim.transforms.materialize import materialize


def tendon(m: Model, d: Data) -> Data:
    """Compute lengths and Jacobians of all tendons; corresponds to `mj_tendon` in MuJoCo.

    fixed:    ten_length = sum(coef qpos),           ten_J = coef spatial:  ten_length = sum(leg
    length / divisor)
              ten_J[i] = sum(force . velocity of its point per unit velocity of dof i)

    As in MuJoCo a sleeping tendon has length 0. A Data that keeps `wrap_xpos` or related fields
    also receives the points of the paths.
    """
    if not m.ntendon:
        none = d.qpos[:0]
        return d.replace(ten_length=none, ten_J=tendon_pattern(m).dense(none))
    # Fixed tendons, then spatial ones.
    length, entries = _fixed(m, d)
    if len(tendon_legs(m)):
        found = _legs(m, d)
        more, pull = _spatial(m, d, found)
        length, entries = length + more, entries + pull
        d = wrap_points(m, d, found.touch)
    if can_sleep(m):
        awake = tendon_path_incidence(m).awake(tree_awake(d))
        length = jnp.where(awake, length, 0)
        entries = jnp.where(gather_static(awake, tendon_pattern(m).row), entries, 0)
    return d.replace(ten_length=length, ten_J=tendon_pattern(m).dense(entries))


def tendon_velocity(m: Model, d: Data) -> Data:
    """Compute ten_velocity = ten_J qvel."""
    if not m.ntendon:
        return d.replace(ten_velocity=d.qvel[:0])
    pattern = tendon_pattern(m)
    return d.replace(ten_velocity=pattern.apply(pattern.entries(d.ten_J), d.qvel))


def _fixed(m: Model, d: Data) -> tuple[Array, Array]:
    """Compute lengths `[ntendon, *W]` and Jacobian nonzeros `[nnz, *W]` of the fixed tendons."""
    terms, pattern = fixed_terms(m), tendon_pattern(m)
    # Sum of coefficient times joint position.
    coef = gather_static(m.wrap_prm, terms.wrap)
    owner = 1.0 * (np.arange(m.ntendon)[:, None] == terms.tendon)
    length = weighted_sum(owner, coef * gather_static(d.qpos, terms.qpos))
    here = (pattern.row[:, None] == terms.tendon) & (pattern.col[:, None] == terms.dof)
    return length, weighted_sum(1.0 * here, coef)


class Pull(NamedTuple):
    """Unit forces on points of bodies that lengthen a tendon; `tendon` and `body` are constant."""

    tendon: np.ndarray
    body: np.ndarray
    point: Vec
    force: Vec


class Strung(NamedTuple):
    """Legs of spatial tendons, in the order of `leg_groups`.

    Attributes:
      length: length of each, divided by its pulley, `[n, *W]`.
      pull: forces on their ends and geoms.
      touch: contacts with the geoms of wrapping legs; None: no such legs.
    """

    length: Array
    pull: Pull
    touch: WrapResult | None


def _spatial(m: Model, d: Data, found: Strung) -> tuple[Array, Array]:
    """Compute lengths `[ntendon, *W]` and Jacobian nonzeros `[nnz, *W]` of the spatial tendons."""
    pull = found.pull
    # Lengths: sum over legs.
    order = np.concatenate([group.tendon for _, _, group in leg_groups(m)])
    owner = 1.0 * (np.arange(m.ntendon)[:, None] == order)
    # Jacobian: wrench of all pulls projected on each dof.
    arm = pull.point - gather_static(d.subtree_com, m.body_rootid[pull.body])
    wrench = weighted_sum(_pull_members(m), Spatial.of(arm.cross(pull.force), pull.force))
    entries = gather_static(d.cdof, tendon_pattern(m).col).dot(wrench)
    return weighted_sum(owner, found.length), entries


def tendon_wrenches(m: Model, d: Data) -> Pull:
    """Return the forces of the spatial tendons on bodies."""
    return _legs(m, d).pull


def _legs(m: Model, d: Data) -> Strung:
    """Compute all legs of spatial tendons, group by group."""
    lengths, parts, touches = zip(
        *(_wrap_legs_of_kind(m, d, *group) for group in leg_groups(m)), strict=True
    )
    every = [pull for part in parts for pull in part]
    pull = Pull(
        np.concatenate([p.tendon for p in every]),
        np.concatenate([p.body for p in every]),
        concat(p.point for p in every),
        concat(p.force for p in every),
    )
    met = [touch for touch in touches if touch is not None]
    return Strung(concat(lengths), pull, concat(met) if met else None)


@cache_by_structure
def _pull_members(s: Structure) -> np.ndarray:
    """Return the table [nnz, npull]: 1 where a force belongs to the nonzero's tendon and dof."""
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


def _wrap_legs_of_kind(
    m: Model, d: Data, kind: WrapType, sided: bool, group: Legs
) -> tuple[Array, list[Pull], WrapResult | None]:
    """Compute lengths of legs of one kind, forces on their ends and geoms, and touching points."""
    # Ends of the legs, and the pulley weight.
    x0, x1 = gather_static(d.site_xpos, group.site0), gather_static(d.site_xpos, group.site1)
    body0, body1 = m.site_bodyid[group.site0], m.site_bodyid[group.site1]
    part = inverse_divisor(m, group)
    line = x1 - x0
    # Straight leg: unit forces along the line.
    if kind == WrapType.NONE:
        push = line.normalize().scale(part)
        length = line.norm() * part
        ends = [Pull(group.tendon, body0, x0, -push), Pull(group.tendon, body1, x1, push)]
        return length, ends, None

    # Wrapping leg: tangents to the geom, and the arc on its surface.
    center, R = gather_static(d.geom_xpos, group.geom), gather_static(d.geom_xmat, group.geom)
    radius = gather_static(m.geom_size[:, 0], group.geom)
    # Side site, and contact with the geom.
    side = gather_static(d.site_xpos, group.side) if sided else None
    touch = wrap_legs(kind, x0, x1, center, R, radius, side)
    # Free segments and arc.
    to, fro = touch.first - x0, x1 - touch.last
    bent = to.norm() + touch.surface + fro.norm()
    length = jnp.where(touch.touches, bent, line.norm()) * part
    # Without contact both forces act on the geom's center and cancel.
    push0 = select_where(touch.touches, to, line).normalize().scale(part)
    push1 = select_where(touch.touches, fro, line).normalize().scale(part)
    body = m.geom_bodyid[group.geom]
    length, push0, push1 = materialize((length, push0, push1), length)
    ends = [
        Pull(group.tendon, body0, x0, -push0),
        Pull(group.tendon, body1, x1, push1),
        Pull(group.tendon, body, touch.first, push0),
        Pull(group.tendon, body, touch.last, -push1),
    ]
    return length, ends, touch
