"""Reference frames along rods with twist hinges, which are state.

Discrete elastic rods: Bergou et al., *Discrete elastic rods*, 2008. An edge has a tangent t and,
perpendicular to it, a reference direction u; the material frame is u rotated about t by the angle
theta of the edge's hinge. From step to step u is parallel-transported without rotation about t
(time-parallel transport). Therefore `d.plastic` stores t and u of each edge at the start of the
last step, and for each inner vertex the reference twist m: the angle from the first edge's u,
space-parallel transported to the second edge, to the second edge's own u. It may exceed pi.

Stored frames that are zero are uninitialized. They are transported from the previous edge of the
rod, and on its first edge from the rest pose. An edge with both vertices on one body is clamped: it
has no hinge, and its u is fixed to the body, as in the rest pose.

Names: `parallel_transport` is parallel transport, `rotate_about` a rotation about t, `across` the
direction u.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.kind_dispatch import concatenate_kinds
from jaxsim.math import Quat, Vec, safe_atan2, safe_divide, select_where
from jaxsim.model.data import Data
from jaxsim.model.initial.state import start_state
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.body.kinematics import kinematics

_MIN_STORED_NORM2 = 0.25  # squared length below which a stored direction counts as uninitialized
_MAX_TANGENT_Y = 0.5  # |t.y| from which the z axis is used instead of y


class Chains(NamedTuple):
    """Edges and inner vertices of all rods with twist hinges, rod after rod.

    Attributes:
      vert: vertex ids of the ends of each edge, `[n, 2]`.
      flex: flex of each edge, `[n]`.
      dof: dof of its hinge; -1: clamped, `[n]`.
      body: body of its first vertex, `[n]`.
      first: True for the first edge of a rod, `[n]`.
      adr: address of its t and u in the plastic state, `[n]`.
      pair: edges before and after each inner vertex, `[k, 2]`.
      record: address of its numbers in `flex_bending`, `[k]`.
      angle: address of its m in the plastic state, `[k]`.
    """

    vert: np.ndarray
    flex: np.ndarray
    dof: np.ndarray
    body: np.ndarray
    first: np.ndarray
    adr: np.ndarray
    pair: np.ndarray
    record: np.ndarray
    angle: np.ndarray


@cache_by_structure
def rod_chains(s: Structure) -> Chains:
    """Return the rods of the model with twist hinges."""
    none = np.zeros(0, int)
    # Concatenate the edges and inner vertices of all rods.
    edges = [(np.zeros((0, 2), int), none, none, none, none > 0, none)]
    vertices = [(np.zeros((0, 2), int), none, none)]
    before = 0
    for f in np.flatnonzero((s.flex_plasticadr >= 0) & (s.flex_dim == 1)):
        # Rows of rod_vert are inner vertices; the chain has one vertex more at each end.
        row = np.flatnonzero(s.rod_flexid == f)
        n = len(row) + 1
        chain = np.append(s.rod_vert[row, 0], s.rod_vert[row[-1], 1:3]) + s.flex_vertadr[f]
        vert = np.stack([chain[:-1], chain[1:]], axis=1)
        body = s.flex_vertbodyid[vert]
        # The first edge has a hinge if its vertices are on different bodies.
        free = body[0, 0] != body[0, 1]
        dof = np.append(s.rod_dof[row[0]] - 1 if free else -1, s.rod_dof[row])
        start, edge = s.flex_plasticadr[f], np.arange(n)
        edges.append((vert, np.full(n, f), dof, body[:, 0], edge == 0, start + 6 * edge))
        pair = before + np.stack([edge[:-1], edge[1:]], axis=1)
        vertices.append((pair, s.rod_adr[row], start + 6 * n + edge[:-1]))
        before += n
    parts = [np.concatenate(p) for group in (edges, vertices) for p in zip(*group, strict=True)]
    return Chains(*parts)


class Frames(NamedTuple):
    """Reference frames: t and u of each edge `[n, *W]`, and m of each inner vertex `[k, *W]`."""

    tangent: Vec
    across: Vec
    angle: Array


class Rest(NamedTuple):
    """Rest pose: edge vectors, frames, and orientations of the bodies `Chains.body`."""

    edge: Vec
    tangent: Vec
    across: Vec
    quat: Quat


def parallel_transport(before: Vec, after: Vec, u: Vec) -> Vec:
    """Parallel-transport u by the smallest rotation from one unit vector to another."""
    # for opposite vectors u is perpendicular to both
    share = safe_divide(after.dot(u), 1 + before.dot(after))
    return u - (before + after).scale(share)


def rotate_about(u: Vec, t: Vec, angle: Array) -> Vec:
    """Rotate u, which is perpendicular to the unit vector t, about t."""
    return u.scale(jnp.cos(angle)) + t.cross(u).scale(jnp.sin(angle))


def transport_frames(frames: Frames, tangent: Vec, table: Chains) -> Frames:
    """Transport the frames to other tangents."""
    # Time-parallel transport, orthonormalized.
    across = parallel_transport(frames.tangent, tangent, frames.across)
    across = (across - tangent.scale(tangent.dot(across))).normalize()
    # Reference twist: change of the angle between the transported frame and the edge's own.
    first, second = table.pair.T
    t = gather_static(tangent, second)
    own = rotate_about(
        parallel_transport(gather_static(tangent, first), t, gather_static(across, first)),
        t,
        frames.angle,
    )
    other = gather_static(across, second)
    # Signed angle between both frames about the tangent.
    more = safe_atan2(own.cross(other).dot(t), own.dot(other))
    return Frames(tangent, across, frames.angle + more)


def stored_frames(m: Model, d: Data, tangent: Vec, pose: Rest) -> Frames:
    """Return the frames of the last step; uninitialized ones start at these tangents."""
    table = rod_chains(m)
    old, across = (
        Vec(*(gather_static(d.plastic, table.adr + k + i) for i in range(3))) for k in (0, 3)
    )
    # Clamped edges follow their body; others are transported from the stored frame.
    begun = (old.dot(old) > _MIN_STORED_NORM2) & (across.dot(across) > _MIN_STORED_NORM2)
    fixed = column(table.dof < 0, begun)
    here = gather_static(d.xquat, table.body) * pose.quat.conj
    with_body = here.rotate(pose.across)
    begin = select_where(fixed, with_body, parallel_transport(pose.tangent, tangent, pose.across))
    own = select_where(fixed, with_body, parallel_transport(old, tangent, across))
    # Uninitialized frames are propagated from the edge before.
    known = begun | fixed | column(table.first, begun)
    start = select_where(begun | fixed, own, begin)
    along = propagate_directions(start, tangent, known)
    return Frames(
        select_where(begun & ~fixed, old, tangent),
        select_where(begun & ~fixed, across, along),
        gather_static(d.plastic, table.angle),
    )


def propagate_directions(start: Vec, tangent: Vec, known: Array) -> Vec:
    """Return directions u of all edges: known ones, others transported from the previous edge."""

    # Sequential along the chain: each edge uses the frame of its predecessor.
    def step(last: tuple[Vec, Vec], edge: tuple) -> tuple:
        own, t, here = edge
        across = select_where(here, own, parallel_transport(last[0], t, last[1]))
        return (t, across), across

    first = (tangent[0], start[0])
    return lax.scan(step, first, (start, tangent, known))[1]


def reference_frames(m: Model, d: Data) -> Rest:
    """Return the frames of the rest pose: those of qpos0.

    Shape `[n, 1]` where all worlds share one model.
    """
    table = rod_chains(m)
    # Kinematics at the reference configuration.
    start = start_state(m)
    given = {n: start[n] for n in ("qpos", "mocap_pos", "mocap_quat") if n in start}
    worlds = d.qpos.shape[1:]
    if worlds and all(a.shape[-1] == 1 for a in jax.tree.leaves(m)):
        worlds = (1,)
    given = jax.tree.map(lambda a: jnp.broadcast_to(a, (len(a), *worlds)), given)
    pose = kinematics(m, d.replace(**given))
    # Edge vectors and tangents at the reference configuration.
    body = np.maximum(m.flex_vertbodyid, 0)
    pos, quat = gather_static((pose.xpos, pose.xquat), body)
    x = pos + quat.rotate(m.flex_vert)
    edge = gather_static(x, table.vert[:, 1]) - gather_static(x, table.vert[:, 0])
    # Frame of each rod's first edge, transported along the rod.
    tangent = edge.normalize()
    of_body = gather_static(pose.xquat, table.body)
    start = of_body.rotate(_orthogonal_unit(of_body.conj.rotate(tangent)))
    # A box section whose first side is the shorter starts with the other axis.
    side = jnp.broadcast_to(gather_static(m.flex_bending, first_record(m) + 9), start.x.shape)
    start = select_where(side < 0, tangent.cross(start), start)
    across = propagate_directions(
        start, tangent, jnp.broadcast_to(column(table.first, side), side.shape)
    )
    return Rest(edge, tangent, across, of_body)


def _orthogonal_unit(t: Vec) -> Vec:
    """Return a unit vector perpendicular to t: along y, or along z where t is close to y."""
    zero, one = jnp.zeros_like(t.x), jnp.ones_like(t.x)
    axis = select_where(jnp.abs(t.y) < _MAX_TANGENT_Y, Vec(zero, one, zero), Vec(zero, zero, one))
    return (axis - t.scale(axis.dot(t))).normalize()


@cache_by_structure
def first_record(s: Structure) -> np.ndarray:
    """Return one record address of each edge's rod, [n]."""
    table = rod_chains(s)
    of_rod = dict(zip(table.flex[table.pair[:, 0]], table.record, strict=True))
    return np.array([of_rod[f] for f in table.flex], int)


def next_frames(m: Model, d: Data) -> Array:
    """Return the plastic state with the frames of the step's start, `[nplastic, *W]`.

    They are those computed with the forces of the rods, or are recomputed if there were none.
    """
    table = rod_chains(m)
    if not len(table.flex):
        return d.plastic
    new = d.frames
    if new is None:
        tangent = edge_tangents(d.flexvert_xpos, table)
        new = transport_frames(stored_frames(m, d, tangent, reference_frames(m, d)), tangent, table)
    # Overwrite the frames in the plastic state.
    order = np.arange(m.nplastic)
    adr = np.concatenate([*(table.adr + k for k in range(6)), table.angle])
    order[adr] = m.nplastic + np.arange(len(adr))
    return gather_static(
        concatenate_kinds([d.plastic, *new.tangent.parts, *new.across.parts, new.angle]), order
    )


def edge_tangents(xpos: Vec, table: Chains) -> Vec:
    """Return unit vectors along the edges, from the vertices of all flexes `[nflexvert, *W]`."""
    return (
        gather_static(xpos, table.vert[:, 1]) - gather_static(xpos, table.vert[:, 0])
    ).normalize()
