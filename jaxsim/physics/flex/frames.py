"""Frames along rods with hinges for their twist, which are state.

Bergou et al., "Discrete elastic rods", 2008. An edge has a tangent t and, across it, a reference
direction u; its material has turned from u about t by the angle theta of its hinge. From step to
step u is carried along without a turn about t (time-parallel transport), so `d.plastic` has t and u
of each edge as they were when the last step began, and then of each inner vertex the angle m from
the first edge's u, carried to the second edge, to that one's own, which may pass pi.

Frames that are zero have not begun. They start from that before them along the rod, the first
from the rest pose. An edge whose two vertices are on one body is clamped: it has no hinge, and
its u is fixed to the body, as it is in the rest pose.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.math import Quat, Vec, safe_atan2, safe_divide, select
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.start.state import start_state
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.by_kind import join
from jaxsim.physics.arrays.select import column, take
from jaxsim.physics.body.kinematics import kinematics

BEGUN = 0.25  # squared length below which a stored direction has not begun
STEEP = 0.5  # of a tangent's y, from which on z takes the place of y


class Chains(NamedTuple):
    """Edges and inner vertices of all rods with hinges for their twist, rod after rod.

    Attributes:
      vert: ends of each edge, among the vertices of all flexes, `[n, 2]`.
      flex: of each edge `[n]`.
      dof: of its hinge; -1: clamped, `[n]`.
      body: of its first vertex, `[n]`.
      first: whether a rod begins with it `[n]`.
      adr: place of its t and u in the plastic state, `[n]`.
      pair: edges before and after each inner vertex, `[k, 2]`.
      record: place of its numbers in `flex_bending`, `[k]`.
      angle: place of its m in the plastic state, `[k]`.
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


@derived
def chains(s: Structure) -> Chains:
    """The rods of the model with hinges for their twist."""
    none = np.zeros(0, int)
    edges = [(np.zeros((0, 2), int), none, none, none, none > 0, none)]
    vertices = [(np.zeros((0, 2), int), none, none)]
    before = 0
    for f in np.flatnonzero((s.flex_plasticadr >= 0) & (s.flex_dim == 1)):
        row = np.flatnonzero(s.rod_flexid == f)
        n = len(row) + 1
        chain = np.append(s.rod_vert[row, 0], s.rod_vert[row[-1], 1:3]) + s.flex_vertadr[f]
        vert = np.stack([chain[:-1], chain[1:]], axis=1)
        body = s.flex_vertbodyid[vert]
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
    """Directions and angles that are carried along, `[n, *W]` and `[k, *W]`."""

    tangent: Vec
    across: Vec
    angle: Array


class Rest(NamedTuple):
    """Frames of the rest pose, edges there, and orientations of the bodies of `Chains.body`."""

    edge: Vec
    tangent: Vec
    across: Vec
    quat: Quat


def carried(before: Vec, after: Vec, u: Vec) -> Vec:
    """Turns u with the smallest rotation from one unit vector to another."""
    share = safe_divide(after.dot(u), 1 + before.dot(after))  # opposite ones: u is across both
    return u - (before + after).scale(share)


def turned(u: Vec, t: Vec, angle: Array) -> Vec:
    """u, which is across the unit vector t, turned about it."""
    return u.scale(jnp.cos(angle)) + t.cross(u).scale(jnp.sin(angle))


def moved(frames: Frames, tangent: Vec, table: Chains) -> Frames:
    """The frames carried to other tangents."""
    across = carried(frames.tangent, tangent, frames.across)
    across = (across - tangent.scale(tangent.dot(across))).normalize()
    first, second = table.pair.T
    t = take(tangent, second)
    own = turned(carried(take(tangent, first), t, take(across, first)), t, frames.angle)
    other = take(across, second)
    more = safe_atan2(own.cross(other).dot(t), own.dot(other))
    return Frames(tangent, across, frames.angle + more)


def stored(m: Model, d: Data, tangent: Vec, pose: Rest) -> Frames:
    """The frames of the last step; where there are none, those that begin at these tangents."""
    table = chains(m)
    old, across = (Vec(*(take(d.plastic, table.adr + k + i) for i in range(3))) for k in (0, 3))
    begun = (old.dot(old) > BEGUN) & (across.dot(across) > BEGUN)
    fixed = column(table.dof < 0, begun)
    here = take(d.xquat, table.body) * pose.quat.conj
    with_body = here.rotate(pose.across)
    begin = select(fixed, with_body, carried(pose.tangent, tangent, pose.across))
    own = select(fixed, with_body, carried(old, tangent, across))
    known = begun | fixed | column(table.first, begun)
    start = select(begun | fixed, own, begin)
    along = propagated(start, tangent, known)
    return Frames(
        select(begun & ~fixed, old, tangent),
        select(begun & ~fixed, across, along),
        take(d.plastic, table.angle),
    )


def propagated(start: Vec, tangent: Vec, known: Array) -> Vec:
    """Directions across the edges: those that are known, others from the edge before."""

    def step(last: tuple[Vec, Vec], edge: tuple) -> tuple:
        own, t, here = edge
        across = select(here, own, carried(last[0], t, last[1]))
        return (t, across), across

    first = (tangent[0], start[0])
    return lax.scan(step, first, (start, tangent, known))[1]


def rest(m: Model, d: Data) -> Rest:
    """The frames with which the rods were made: those of qpos0.

    `[n, 1]` where all worlds have one model.
    """
    table = chains(m)
    start = start_state(m)
    given = {n: start[n] for n in ("qpos", "mocap_pos", "mocap_quat") if n in start}
    worlds = d.qpos.shape[1:]
    if worlds and all(a.shape[-1] == 1 for a in jax.tree.leaves(m)):
        worlds = (1,)
    given = jax.tree.map(lambda a: jnp.broadcast_to(a, (len(a), *worlds)), given)
    pose = kinematics(m, d.replace(**given))
    body = np.maximum(m.flex_vertbodyid, 0)
    pos, quat = take((pose.xpos, pose.xquat), body)
    x = pos + quat.rotate(m.flex_vert)
    edge = take(x, table.vert[:, 1]) - take(x, table.vert[:, 0])
    tangent = edge.normalize()
    of_body = take(pose.xquat, table.body)
    start = of_body.rotate(_across(of_body.conj.rotate(tangent)))
    # a box whose first side is the short one begins with the other axis
    side = jnp.broadcast_to(take(m.flex_bending, first_record(m) + 9), start.x.shape)
    start = select(side < 0, tangent.cross(start), start)
    across = propagated(start, tangent, jnp.broadcast_to(column(table.first, side), side.shape))
    return Rest(edge, tangent, across, of_body)


def _across(t: Vec) -> Vec:
    """A unit vector across t: along y, or along z where t is steep."""
    zero, one = jnp.zeros_like(t.x), jnp.ones_like(t.x)
    axis = select(jnp.abs(t.y) < STEEP, Vec(zero, one, zero), Vec(zero, zero, one))
    return (axis - t.scale(axis.dot(t))).normalize()


@derived
def first_record(s: Structure) -> np.ndarray:
    """[n]: a record of the rod that each edge is of."""
    table = chains(s)
    of_rod = dict(zip(table.flex[table.pair[:, 0]], table.record, strict=True))
    return np.array([of_rod[f] for f in table.flex], int)


def next_frames(m: Model, d: Data) -> Array:
    """The plastic state with the frames of where a step began, `[nplastic, *W]`.

    The forces of the rods have found these; they are found here if there were no forces.
    """
    table = chains(m)
    if not len(table.flex):
        return d.plastic
    new = d.frames
    if new is None:
        tangent = tangents(d.flexvert_xpos, table)
        new = moved(stored(m, d, tangent, rest(m, d)), tangent, table)
    order = np.arange(m.nplastic)
    adr = np.concatenate([*(table.adr + k for k in range(6)), table.angle])
    order[adr] = m.nplastic + np.arange(len(adr))
    return take(join([d.plastic, *new.tangent.parts, *new.across.parts, new.angle]), order)


def tangents(xpos: Vec, table: Chains) -> Vec:
    """Unit vectors along the edges, of vertices of all flexes `[nflexvert, *W]`."""
    return (take(xpos, table.vert[:, 1]) - take(xpos, table.vert[:, 0])).normalize()
