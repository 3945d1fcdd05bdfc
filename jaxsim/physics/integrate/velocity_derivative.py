"""Velocity derivatives of the smooth forces, for the implicit integrators.

MuJoCo's documentation, Computation: Numerical integration; corresponds to `mjd_smooth_vel`.
Matrices are `[row, column, *W]` with the derivative of force `row` by velocity `column`. They are
zero between dofs that are not on one chain of the tree, as the mass matrix is: coupling by a tendon
or actuator across two chains stays explicit.
"""

from functools import reduce
from operator import add

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static, weighted_sum
from jaxsim.arrays.pattern import SparsityPattern
from jaxsim.arrays.products import gram
from jaxsim.enums import DisableBit
from jaxsim.math import Inertia, Spatial, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.actuator.force_slope import force_slope
from jaxsim.physics.actuator.transmission import moment_pattern
from jaxsim.physics.passive.damper import dof_damping_rate, tendon_damping_rate
from jaxsim.physics.passive.fluid import fluid_wrench
from jaxsim.physics.tendon.path import tendon_pattern
from jaxsim.physics.topology import ancestors, descendants, dof_ancestors, dofs_before


def smooth_derivative(m: Model, d: Data) -> Array:
    """Compute d (qfrc_passive + qfrc_actuator) / d qvel, `[nv, nv, *W]`."""
    out = jnp.zeros_like(d.M)
    # Actuators: J' (d force / d velocity) J.
    if m.nout and not m.opt.disableflags & DisableBit.ACTUATION:
        out = out + weighted_gram(moment_pattern(m), d.actuator_moment, force_slope(m, d))
    # Dampers of tendons and dofs.
    if not m.opt.disableflags & DisableBit.DAMPER:
        if m.ntendon:
            out = out - weighted_gram(tendon_pattern(m), d.ten_J, tendon_damping_rate(m, d))
        out = out - diagonal_matrix(damping_rate(m, d))
    # Entries off the kinematic chain are explicit; the fluid term has only chain entries.
    out = jnp.where(column(_moves_other_dof(m), d.qvel), out, 0)
    return out + fluid_derivative(m, d) if has_fluid(m) else out


def is_diagonal(m: Model) -> bool:
    """Return True if `smooth_derivative` only contains dof dampers."""
    driven = m.nout and not m.opt.disableflags & DisableBit.ACTUATION
    tied = m.ntendon and not m.opt.disableflags & DisableBit.DAMPER
    return not (driven or tied or has_fluid(m))


def damping_rate(m: Model, d: Data) -> Array:
    """Return minus the derivative of the dof damper forces, `[nv, *W]`."""
    if m.opt.disableflags & DisableBit.DAMPER:
        return jnp.zeros_like(d.qvel)
    return dof_damping_rate(m, d)


def has_fluid(m: Model) -> bool:
    """Return True if fluid forces act; disabled springs and dampers disable all passive forces."""
    off = DisableBit.SPRING | DisableBit.DAMPER
    return bool(m.flg_fluid) and m.opt.disableflags & off != off


def fluid_derivative(m: Model, d: Data, drag_only: bool = False) -> Array:
    """Compute d qfrc_fluid / d qvel, or of its drag only, `[nv, nv, *W]`."""
    return _project_wrenches(m, d, np.arange(m.nv), _fluid_response(m, d, drag_only))


def bias_derivative(m: Model, d: Data, dofs: np.ndarray) -> Array:
    """Compute d qfrc_bias / d qvel among some dofs: Coriolis, centrifugal and gyroscopic terms.

    Derivative of the equations of `rne` by the velocity of a dof j that moves body b; s is cdof,
    v[b] the velocity of the body and w[j] that of the dofs whose axes j does not rotate:

        dv[b] = s[j]
        da[b] = s_dot[j] + s[j] x (v[b] - w[j])
        df[b] = I da[b] + s[j] x* (I v[b]) + v[b] x* (I s[j])
              = I (s_dot[j] + w[j] x s[j]) + B[b] s[j],   B as in `_gyroscopic`

    Args:
      m: model.
      d: data with cinert, crb, cdof, cdof_dot, cvel.
      dofs: constant `[k, *sets]`: independent sets of k dofs.

    Returns:
      `[k, k, *sets, *W]`.
    """
    # Velocity of the dofs whose axes j does not rotate.
    beside = weighted_sum(_moves_without_rotating(m), d.cdof.scale(d.qvel))
    rate = d.cdof_dot + beside.cross_motion(d.cdof)
    return _project_wrenches(m, d, dofs, _gyroscopic(d.cinert, d.cvel), rate)


def diagonal_matrix(values: Array) -> Array:
    """Return the matrix `[n, n, *W]` of a diagonal `[n, *W]`."""
    return jnp.asarray(column(np.eye(values.shape[0]), values)) * values[:, None]


def weighted_gram(pattern: SparsityPattern, matrix: Array, weight: Array) -> Array:
    """Compute A' diag(weight) A of a matrix A `[rows, nv, *W]`."""
    # Rows with one nonzero contribute to the diagonal only.
    entries = pattern.entries(matrix)
    alone = np.bincount(pattern.row, minlength=pattern.shape[0]) == 1
    place = np.flatnonzero(alone[pattern.row])
    member = 1.0 * (np.arange(pattern.shape[1])[:, None] == pattern.col[place])
    single = gather_static(entries, place)
    out = diagonal_matrix(
        weighted_sum(member, single * single * gather_static(weight, pattern.row[place]))
    )
    # Rows with several nonzeros: dense products.
    several = np.unique(pattern.row[~alone[pattern.row]])
    if len(several):
        rows = gather_static(matrix, several)
        out = out + gram(rows, gather_static(weight, several)[:, None] * rows)
    return out


def _gyroscopic(inertia: Inertia, v: Spatial) -> list[Spatial]:
    """Return columns of B s = I (s x v) + s x* (I v) + v x* (I s), a wrench per part of s.

    With inertia J, first moment h and momentum p about the reference point, v = (omega, u) and a
    rotational part a of s, Jacobi's identity gives

        torque = omega x (2 J a - tr(J) a) + 2 (h.u) a - 2 (h.a) u
        force = 2 a x p

    and zero for the linear part of s.
    """
    # Components of the inertia and the momentum.
    xx, yy, zz, xy, xz, yz, hx, hy, hz, _ = inertia.parts
    omega, u, p = v.rot, v.lin, (inertia @ v).lin
    along = 2 * Vec(hx, hy, hz).dot(u)
    none = jnp.zeros_like(along)
    # Rotational columns: 2 J a - tr(J) a for unit vectors a.
    turns = (
        Vec(xx - yy - zz, 2 * xy, 2 * xz),
        Vec(2 * xy, yy - xx - zz, 2 * yz),
        Vec(2 * xz, 2 * yz, zz - xx - yy),
    )
    diagonals = Vec(along, none, none), Vec(none, along, none), Vec(none, none, along)
    forces = Vec(none, -p.z, p.y), Vec(p.z, none, -p.x), Vec(-p.y, p.x, none)
    return [
        Spatial.of(omega.cross(turn) + own - u.scale(2 * h), force + force)
        for turn, own, h, force in zip(turns, diagonals, (hx, hy, hz), forces, strict=True)
    ]


def _fluid_response(m: Model, d: Data, drag_only: bool) -> list[Spatial]:
    """Compute the derivative of the fluid wrench on each body by each velocity component."""

    def wrench(cvel: Spatial) -> Spatial:
        force, torque = fluid_wrench(m, d.replace(cvel=cvel), drag_only)
        arm = d.xipos - gather_static(d.subtree_com, m.body_rootid)
        return Spatial.of(torque + arm.cross(force), force)

    # Linearize the fluid model in the body velocity; six unit tangents.
    _, change = jax.linearize(wrench, d.cvel)
    units = jax.tree.map(lambda *a: jnp.stack(a), *_unit_velocities(d.cvel))
    every = jax.vmap(change)(units)
    return [every[k] for k in range(6)]


def _project_wrenches(
    m: Model, d: Data, dofs: np.ndarray, columns: list[Spatial], rate: Spatial | None = None
) -> Array:
    """Map derivatives of the bodies' wrenches by their velocities to dofs.

        out[i, j] = s[i] . sum(B[b] s[j] + I[b] rate[j]),   i and j move b

    Args:
      m, d: model and data.
      dofs: constant `[k, *sets]`.
      columns: columns of B, wrenches `[nbody, *W]` about the center of mass of the tree, for the
        first parts of s; zero for the others.
      rate: change of the acceleration of what j moves per unit velocity of j, `[nv, *W]`; None:
        none.

    Returns:
      `[k, k, *sets, *W]`, zero where no body is moved by both.
    """

    def of_dofs(x):
        return jax.tree.map(
            lambda a: gather_static(a, dofs.ravel()).reshape(*dofs.shape, *a.shape[1:]), x
        )

    def of_subtrees(x):
        body, place = np.unique(m.dof_bodyid[dofs].ravel(), return_inverse=True)
        whole = gather_static(weighted_sum(descendants(m)[body], x), place.ravel())
        return jax.tree.map(lambda a: a.reshape(*dofs.shape, *a.shape[1:]), whole)

    # Both dofs of a pair move the bodies in the subtree of the deeper dof.
    axis = of_dofs(d.cdof)
    response = [of_subtrees(c) for c in columns]
    parts = axis.parts[: len(columns)]
    # Lower triangle: the deeper dof is the row.
    below = sum(axis.dot(c)[:, None] * part[None] for c, part in zip(response, parts, strict=True))
    force = reduce(add, (c.scale(part) for c, part in zip(response, parts, strict=True)))
    # Rate term: inertia times the change of acceleration.
    if rate is not None:
        inertia, own = of_subtrees(d.cinert), of_dofs(rate)
        below = below + (inertia @ axis)[:, None].dot(own[None])
        force = force + inertia @ own
    # Upper triangle: the deeper dof is the column.
    above = axis[:, None].dot(force[None])
    deeper = dof_ancestors(m)[dofs[:, None], dofs[None]]
    lower, upper = (column(a, d.qvel) for a in (deeper, deeper.swapaxes(0, 1)))
    return jnp.where(lower, below, jnp.where(upper, above, 0))


def _unit_velocities(like: Spatial) -> list[Spatial]:
    """Return the six unit velocities, for every body."""
    one, zero = jnp.ones_like(like.rx), jnp.zeros_like(like.rx)
    return [Spatial(*(one if i == k else zero for i in range(6))) for k in range(6)]


@cache_by_structure
def _moves_other_dof(s: Structure) -> np.ndarray:
    """Return [nv, nv] bool: one of the dofs moves the other."""
    below = dof_ancestors(s)
    return below | below.T


@cache_by_structure
def _moves_without_rotating(s: Structure) -> np.ndarray:
    """Return [nv, nv]: 1 where the column's dof moves the row's body, but the row not its axis."""
    moves = ancestors(s)[s.dof_bodyid].astype(bool)
    return 1.0 * (moves & ~dofs_before(s).T.astype(bool))
