"""Reference frames along rods with twist hinges, which are state.

Discrete elastic rods: Bergou et al., *Discrete elastic rods*, 2008. An edge has a tangent t and,
perpendicular to it, a reference director u; the material frame is u rotated about t by the angle
theta of the edge's hinge. For a rod of three edges, with `Chains` in brackets:

    x0 ---e0---> x1 ---e1---> x2 ---e2---> x3      edges: ends `vert`, hinge `dof` (theta)
       t0, u0       t1, u1       t2, u2            frames: t and u at `frame_adr`
                 m1           m2                   inner vertices: edges `pair`, m at `twist_adr`

From step to step u is transported by the smallest rotation from the old tangent to the new one
(time-parallel transport, `parallel_transport`), which does not rotate about t. Therefore
`d.plastic` stores t and u of each edge at the start of the last step, and for each inner vertex the
reference twist m: the angle from the first edge's u, space-parallel transported to the second edge,
to the second edge's own u. It may exceed pi.

Stored frames that are zero are uninitialized. They are transported from the previous edge of the
rod, and on its first edge from the rest pose. An edge with both vertices on one body is clamped: it
has no hinge, and its u is fixed to the body, as in the rest pose.
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
      frame_adr: address of its t and u in the plastic state, `[n]`.
      pair: edges before and after each inner vertex, `[k, 2]`.
      bending_adr: address of its numbers in `flex_bending`, `[k]`.
      twist_adr: address of its reference twist m in the plastic state, `[k]`.
    """

    vert: np.ndarray
    flex: np.ndarray
    dof: np.ndarray
    body: np.ndarray
    first: np.ndarray
    frame_adr: np.ndarray
    pair: np.ndarray
    bending_adr: np.ndarray
    twist_adr: np.ndarray


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
    """Reference frames.

    Attributes:
      tangent, director: t and u of each edge, `[n, *W]`.
      reference_twist: m of each inner vertex, `[k, *W]`.
    """

    tangent: Vec
    director: Vec
    reference_twist: Array


class Rest(NamedTuple):
    """Rest pose: vector, t and u of each edge, and orientations of the bodies `Chains.body`."""

    edge: Vec
    tangent: Vec
    director: Vec
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
    u = parallel_transport(frames.tangent, tangent, frames.director)
    u = (u - tangent.scale(tangent.dot(u))).normalize()
    # Space-parallel transport of the first edge's u to the second edge, rotated by the old m.
    first, second = table.pair.T
    t2 = gather_static(tangent, second)
    transported = parallel_transport(gather_static(tangent, first), t2, gather_static(u, first))
    expected = rotate_about(transported, t2, frames.reference_twist)
    # Change of the reference twist: signed angle from there to the second edge's own u.
    u2 = gather_static(u, second)
    change = safe_atan2(expected.cross(u2).dot(t2), expected.dot(u2))
    return Frames(tangent, u, frames.reference_twist + change)


def stored_frames(m: Model, d: Data, tangent: Vec, rest: Rest) -> Frames:
    """Return the frames of the last step; uninitialized ones start at these tangents."""
    table = rod_chains(m)
    t, u = (
        Vec(*(gather_static(d.plastic, table.frame_adr + k + i) for i in range(3))) for k in (0, 3)
    )
    # Clamped edges follow their body; others are transported from the stored frame.
    stored = (t.dot(t) > _MIN_STORED_NORM2) & (u.dot(u) > _MIN_STORED_NORM2)
    clamped = column(table.dof < 0, stored)
    rotation = gather_static(d.xquat, table.body) * rest.quat.conj
    with_body = rotation.rotate(rest.director)
    from_rest = parallel_transport(rest.tangent, tangent, rest.director)
    begin = select_where(clamped, with_body, from_rest)
    own = select_where(clamped, with_body, parallel_transport(t, tangent, u))
    # Uninitialized frames are propagated from the edge before.
    known = stored | clamped | column(table.first, stored)
    start = select_where(stored | clamped, own, begin)
    along = propagate_directors(start, tangent, known)
    return Frames(
        select_where(stored & ~clamped, t, tangent),
        select_where(stored & ~clamped, u, along),
        gather_static(d.plastic, table.twist_adr),
    )


def propagate_directors(start: Vec, tangent: Vec, known: Array) -> Vec:
    """Return the directors of all edges: known ones, others transported from the previous edge."""

    # Sequential along the chain: each edge uses the frame of its predecessor.
    def step(last: tuple[Vec, Vec], edge: tuple) -> tuple:
        own, t, is_known = edge
        u = select_where(is_known, own, parallel_transport(last[0], t, last[1]))
        return (t, u), u

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
    at_rest = kinematics(m, d.replace(**given))
    # Edge vectors and tangents at the reference configuration.
    body = np.maximum(m.flex_vertbodyid, 0)
    pos, quat = gather_static((at_rest.xpos, at_rest.xquat), body)
    x = pos + quat.rotate(m.flex_vert)
    edge = gather_static(x, table.vert[:, 1]) - gather_static(x, table.vert[:, 0])
    # Frame of each rod's first edge, transported along the rod.
    tangent = edge.normalize()
    of_body = gather_static(at_rest.xquat, table.body)
    start = of_body.rotate(_orthogonal_unit(of_body.conj.rotate(tangent)))
    # A box section whose first side is the shorter starts with the other axis.
    side = jnp.broadcast_to(gather_static(m.flex_bending, first_record(m) + 9), start.x.shape)
    start = select_where(side < 0, tangent.cross(start), start)
    director = propagate_directors(
        start, tangent, jnp.broadcast_to(column(table.first, side), side.shape)
    )
    return Rest(edge, tangent, director, of_body)


def _orthogonal_unit(t: Vec) -> Vec:
    """Return a unit vector perpendicular to t: along y, or along z where t is close to y."""
    zero, one = jnp.zeros_like(t.x), jnp.ones_like(t.x)
    axis = select_where(jnp.abs(t.y) < _MAX_TANGENT_Y, Vec(zero, one, zero), Vec(zero, zero, one))
    return (axis - t.scale(axis.dot(t))).normalize()


@cache_by_structure
def first_record(s: Structure) -> np.ndarray:
    """Return one record address of each edge's rod, [n]."""
    table = rod_chains(s)
    of_rod = dict(zip(table.flex[table.pair[:, 0]], table.bending_adr, strict=True))
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
    adr = np.concatenate([*(table.frame_adr + k for k in range(6)), table.twist_adr])
    order[adr] = m.nplastic + np.arange(len(adr))
    return gather_static(
        concatenate_kinds(
            [d.plastic, *new.tangent.parts, *new.director.parts, new.reference_twist]
        ),
        order,
    )


def edge_tangents(xpos: Vec, table: Chains) -> Vec:
    """Return unit vectors along the edges, from the vertices of all flexes `[nflexvert, *W]`."""
    return (
        gather_static(xpos, table.vert[:, 1]) - gather_static(xpos, table.vert[:, 0])
    ).normalize()
