"""Bending and torsion of rods with twist hinges.

Discrete elastic rods: Bergou et al., *Discrete elastic rods*, 2008, with the frames of frames.py.
With f_j and g_j = t_j x f_j the material axes of edge j, a vertex between edges 1 and 2 has the
curvature binormal kb (rod.py), its components in the material frames of both edges, and a twist:

    kappa_j = (kb . f_j, kb . g_j),   tau = theta_2 - theta_1 + m
    E = sum over vertices of 1/2 sum_j (kappa_j - kappa0)' K (kappa_j - kappa0) + k tau^2

with kappa0 that of the rest pose. Forces are the gradient of E, by automatic differentiation
through the transport from the fixed frames of the last step:

    x, theta -> t_j -> u_j, m (transport_frames) -> f_j, g_j -> kappa_j, tau (_rod_strains) -> E

Torques act on the hinges theta, on clamped edges on the body. Dampers, in proportion to the
stiffness, resist the rates of tau and of |kb|; for |kb| the weak axis of a box section counts with
sqrt(k1 k2).
"""

from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static, sum_groups
from jaxsim.arrays.linear import group_table
from jaxsim.enums import MINVAL
from jaxsim.math import Vec, concat, safe_divide, safe_sqrt
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.applied_force import wrench_force
from jaxsim.physics.flex.frames import (
    Chains,
    Frames,
    Rest,
    edge_tangents,
    reference_frames,
    rod_chains,
    rotate_about,
    stored_frames,
    transport_frames,
)
from jaxsim.physics.flex.point_forces import (
    FlexPointState,
    HingeBlock,
    PointForces,
    StiffnessBlock,
    StrainRow,
    directional_parts,
    dissipation_slope,
    element_points,
    spring_force,
    stiffness_products,
    value_and_derivatives,
)
from jaxsim.physics.flex.rod import curvature_binormal


class RodForces(NamedTuple):
    """Result: forces on the vertices, generalized torques `[nv, *W]` each, and current frames."""

    on_vertices: PointForces
    spring: Array
    damper: Array
    frames: Frames


class Material(NamedTuple):
    """Coefficients of the inner vertices, `[k, *W]` each.

    Attributes:
      weak, strong: bending stiffness K along both axes of the cross-section.
      twist: torsional stiffness k.
      kappa0: rest curvature along both axes.
    """

    weak: Array
    strong: Array
    twist: Array
    kappa0: tuple[Array, Array]


class RodStrains(NamedTuple):
    """Strains of each inner vertex: kb, kappa_j of both edges, and tau."""

    binormal: Vec
    kappa: list[tuple[Array, Array]]
    twist: Array


class _RodState(NamedTuple):
    """State of all rods.

    Attributes:
      tangent: current t of each edge, `[n, *W]`.
      stored: frames of the last step.
      theta: hinge angles, `[n, *W]`.
      material: coefficients.
    """

    tangent: Vec
    stored: Frames
    theta: Array
    material: Material


def _rod_state(m: Model, d: Data, xpos: Vec) -> _RodState:
    table = rod_chains(m)
    tangent = edge_tangents(xpos, table)
    rest = reference_frames(m, d)
    stored = stored_frames(m, d, tangent, rest)
    return _RodState(tangent, stored, _hinge_angles(m, d, table), _material(m, rest, table))


def twist_forces(m: Model, d: Data, state: FlexPointState) -> RodForces | None:
    """Compute spring and damper forces of bending and torsion; None: no such rods."""
    table = rod_chains(m)
    if not len(table.flex):
        return None
    ends = element_points(state.xpos, table.vert)
    tangent, stored, theta, material = _rod_state(m, d, state.xpos)

    # Springs: gradient of the energy by vertices and hinge angles.
    def energy(ends: list[Vec], theta: Array) -> Array:
        return jnp.sum(_energy(material, _rod_strains(stored, ends, theta, table)))

    dE_dx, dE_dtheta = jax.grad(energy, (0, 1))(ends, theta)
    # Dampers: Rayleigh dissipation of the strain rates.
    now = transport_frames(stored, tangent, table)
    theta_dot = _hinge_rates(m, d, tangent, table)
    drag, drag_theta = _damping(m, material, now, (ends, theta), (state, theta_dot), table)
    on_vertices = spring_force(table.vert, [-g for g in dE_dx], [-g for g in drag])
    return RodForces(
        on_vertices,
        _generalized(m, d, table, tangent, -dE_dtheta),
        _generalized(m, d, table, tangent, -drag_theta),
        now,
    )


def twist_stiffness(
    m: Model, d: Data, state: FlexPointState
) -> tuple[StiffnessBlock, HingeBlock] | None:
    """Return the stiffness of vertices, and of hinges, with MuJoCo's approximation.

    Coupling between the two is omitted. Vertices: Gauss-Newton products of the derivatives of
    curvatures and twists; those of twists count as inertia, but not in the force h K qvel. Hinges:
    products for the twist, and the second derivative of each end's curvature energy where it is
    positive.
    """
    table = rod_chains(m)
    if not len(table.flex):
        return None
    _, stored, theta, material = _rod_state(m, d, state.xpos)
    # Treat each inner vertex as a rod of its own: k first edges, then k second ones.
    k = len(table.pair)
    both = table.pair.T.ravel()
    separate = table._replace(pair=np.arange(2 * k).reshape(2, k).T)
    frames = Frames(
        gather_static(stored.tangent, both),
        gather_static(stored.director, both),
        stored.reference_twist,
    )
    angle = gather_static(theta, both)
    vert = np.stack([*table.vert[table.pair[:, 0]].T, table.vert[table.pair[:, 1], 1]], axis=1)

    # Differentiate the strains of each inner vertex by its three points.
    def strains(p: list[Vec]) -> RodStrains:
        return _rod_strains(frames, [concat(p[:2]), concat(p[1:])], angle, separate)

    now, slope = value_and_derivatives(strains, element_points(state.xpos, vert))
    flex = table.flex[table.pair[:, 0]]
    points = StiffnessBlock(
        flex,
        vert,
        stiffness_products(_bending(material, slope)),
        stiffness_products(_dampers(material, now, slope)),
        stiffness_products([(2 * material.twist, slope.twist)]),
    )
    return points, _hinge_stiffness(material, now, flex, table)


def _bending(k: Material, slope: RodStrains) -> list[StrainRow]:
    pairs = (
        (weight, a)
        for kappa in slope.kappa
        for weight, a in zip((k.weak, k.strong), kappa, strict=True)
    )
    return list(pairs)


def _dampers(k: Material, now: RodStrains, change: RodStrains) -> list[StrainRow]:
    """Return what the dampers resist in a change of the strains, with weights.

    At a straight vertex the direction of the curvature is undefined: it resists along both axes.
    """
    # Curvature: along its direction; straight vertices along both axes.
    unit, stiff, bent, equal = _curvature_derivative(k, now)
    rows = [(jnp.where(bent, stiff, 0), directional_parts(unit, change.binormal))]
    for f, g in change.kappa:
        rows += [(jnp.where(bent, 0, equal), f), (jnp.where(bent, 0, k.strong), g)]
    return [*rows, (2 * k.twist, change.twist)]


def _hinge_stiffness(k: Material, now: RodStrains, flex: np.ndarray, table: Chains) -> HingeBlock:
    own = []
    # Second derivative of each edge's curvature energy by its angle, projected to >= 0.
    for f, g in now.kappa:
        weak = k.weak * (g * g - (f - k.kappa0[0]) * f)
        strong = k.strong * (f * f - (g - k.kappa0[1]) * g)
        own.append(jnp.maximum(weak + strong, 0))
    # Twist couples both hinges.
    twist = jnp.broadcast_to(2 * k.twist, now.twist.shape)
    rows = [[twist, -twist], [-twist, twist]]
    damper = jnp.stack([jnp.stack(row, axis=1) for row in rows], axis=1)
    rows = [[twist + own[0], -twist], [-twist, twist + own[1]]]
    spring = jnp.stack([jnp.stack(row, axis=1) for row in rows], axis=1)
    return HingeBlock(flex, table.dof[table.pair], spring, damper)


def _rod_strains(frames: Frames, ends: list[Vec], theta: Array, table: Chains) -> RodStrains:
    # Transport the frames to the current tangents, and rotate them by theta.
    edge = ends[1] - ends[0]
    tangent = edge.normalize()
    here = transport_frames(frames, tangent, table)
    f = rotate_about(here.director, tangent, theta)
    g = tangent.cross(f)
    # Curvature in both material frames, and twist.
    first, second = table.pair.T
    kb = curvature_binormal(gather_static(edge, first), gather_static(edge, second))
    kappa = [(kb.dot(gather_static(f, j)), kb.dot(gather_static(g, j))) for j in (first, second)]
    return RodStrains(
        kb, kappa, gather_static(theta, second) - gather_static(theta, first) + here.reference_twist
    )


def _energy(k: Material, strains: RodStrains) -> Array:
    energy = k.twist * strains.twist * strains.twist
    for along in strains.kappa:
        for stiff, now, rest0 in zip((k.weak, k.strong), along, k.kappa0, strict=True):
            energy = energy + 0.5 * stiff * (now - rest0) ** 2
    return energy


def _material(m: Model, rest: Rest, table: Chains) -> Material:
    weak, more, size, twist = (
        gather_static(m.flex_bending, table.bending_adr + i) for i in (4, 5, 6, 8)
    )
    first, second = table.pair.T
    # Rest curvature in the frame of the second edge; straight rods have none.
    kb = curvature_binormal(gather_static(rest.edge, first), gather_static(rest.edge, second))
    f = gather_static(rest.director, second)
    g = gather_static(rest.tangent, second).cross(f)
    bent = size > 0
    return Material(
        weak,
        weak + more,
        twist,
        (jnp.where(bent, kb.dot(f), 0), jnp.where(bent, kb.dot(g), 0)),
    )


def _hinge_angles(m: Model, d: Data, table: Chains) -> Array:
    """Return theta of each edge: its hinge angle relative to the rest pose."""
    dof = np.maximum(table.dof, 0)
    adr = m.jnt_qposadr[m.dof_jntid[dof]]
    angle = gather_static(d.qpos - m.qpos0, adr)
    return jnp.where(column(table.dof >= 0, angle), angle, 0)


def material_axis(m: Model, d: Data) -> Vec:
    """Return the material axis f of each edge in the world."""
    table = rod_chains(m)
    tangent = edge_tangents(d.flexvert_xpos, table)
    here = transport_frames(stored_frames(m, d, tangent, reference_frames(m, d)), tangent, table)
    return rotate_about(here.director, tangent, _hinge_angles(m, d, table))


def _hinge_rates(m: Model, d: Data, tangent: Vec, table: Chains) -> Array:
    """Return the rate of theta; a clamped edge rotates with its body."""
    hinge = gather_static(d.qvel, np.maximum(table.dof, 0))
    body = gather_static(d.cvel, table.body).rot.dot(tangent)
    return jnp.where(column(table.dof >= 0, hinge), hinge, body)


def _damping(
    m: Model, k: Material, frames: Frames, at: tuple, rates: tuple, table: Chains
) -> tuple[list[Vec], Array]:
    """Return minus the damper forces on the ends of the edges, and on theta."""
    # Velocities of the edges' ends.
    state, theta_dot = rates
    speed = element_points(state.velocity, table.vert)

    def strains(ends: list[Vec], theta: Array) -> RodStrains:
        return _rod_strains(frames, ends, theta, table)

    # Strain rates by a JVP, resisted, and mapped back by the VJP.
    now, back = jax.vjp(strains, *at)
    rate = jax.jvp(strains, at, (speed, theta_dot))[1]
    resist = gather_static(m.flex_damping, table.flex[table.pair[:, 0]])
    against = dissipation_slope(partial(_dampers, k, now), rate)
    return back(jax.tree.map(lambda a: a * resist, against))


def _curvature_derivative(k: Material, now: RodStrains) -> tuple[Vec, Array, Array, Array]:
    """Return direction, damping weight and existence of the curvature, and sqrt(k1 k2)."""
    # Direction and stiffness against a growth of the curvature.
    size = now.binormal.norm()
    unit = now.binormal.scale(safe_divide(jnp.ones_like(size), size))
    equal = safe_sqrt(k.weak * k.strong)
    stiff = jnp.zeros_like(size)
    for f, g in now.kappa:
        share = safe_divide(f * f, f * f + g * g)
        stiff = stiff + equal * share + k.strong * (1 - share)
    return unit, stiff, size > MINVAL, equal


def _generalized(m: Model, d: Data, table: Chains, tangent: Vec, torque: Array) -> Array:
    """Map torques about the edges `[n, *W]` to hinges, or to the bodies of clamped edges."""
    on_hinges: Array = sum_groups(torque, group_table(table.dof, m.nv))
    clamped = np.where((table.dof < 0) & (m.body_weldid[table.body] > 0), table.body, -1)
    if (clamped < 0).all():
        return on_hinges
    on_bodies = sum_groups(tangent.scale(torque), group_table(clamped, m.nbody))
    none = on_bodies.map(jnp.zeros_like)
    return on_hinges + wrench_force(m, d, none, on_bodies, d.xpos)
