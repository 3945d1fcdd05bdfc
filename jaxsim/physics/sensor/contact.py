"""Contact sensors: a fixed number of the contacts that match, and what they report.

MuJoCo's documentation, XML reference: sensor/contact. Contacts are matched by what they are
between, reduced to the sensor's slots, and their fields extracted into the slots.
"""

from collections.abc import Callable
from enum import IntEnum
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.data import Data
from jaxsim.enums import ConDataField, ObjType
from jaxsim.math import Spatial, Vec
from jaxsim.model import Model
from jaxsim.physics.constraint_force import contact_force
from jaxsim.physics.kinds import by_kind
from jaxsim.physics.layout import descendants
from jaxsim.physics.sensor.group import SensorGroup
from jaxsim.physics.sensor.shape_query import INSIDE, inside
from jaxsim.physics.tree import column, pick, take


class Reduce(IntEnum):
    """Which of the matching contacts get a slot."""

    NONE = 0
    MINDIST = 1
    MAXFORCE = 2
    NETFORCE = 3


class _Contacts(NamedTuple):
    """Contacts `[ncontact, *W]` with the bodies of their geoms and their force and torque."""

    exists: jax.Array
    geom: tuple
    body: tuple
    force: Vec
    torque: Vec


class _Slot(NamedTuple):
    """What a sensor reports of one contact, `[n, *W]`; `sign` is -1 for a reversed contact."""

    found: jax.Array
    force: Vec
    torque: Vec
    dist: jax.Array
    pos: Vec
    normal: Vec
    tangent: Vec
    linvel: Vec
    angvel: Vec


def contact_sensor(m: Model, d: Data, g: SensorGroup):
    """Outputs of sensors with the same fields, reduction and number of slots."""
    fields, reduce, count = (int(x) for x in m.sensor_intprm[g.ids[0]])
    wanted = [f for f in ConDataField if fields & 1 << f]
    if not d.contact.dist.shape[0]:
        none = jnp.zeros((len(g.ids), *d.qpos.shape[1:]), d.qpos.dtype)
        return (none,) * int(m.sensor_dim[g.ids[0]])
    contacts = _contacts(m, d)
    match, sign = _match(m, d, contacts, g)
    total = jnp.sum(match, axis=1, dtype=d.qpos.dtype)
    if reduce == Reduce.NETFORCE:
        slots = [_net(d, contacts, match, sign, total)]
    else:
        slots = _chosen(m, d, contacts, match, sign, total, reduce, count)
    return tuple(number for slot in slots for f in wanted for number in EXTRACT[f](slot))


def _contacts(m: Model, d: Data) -> _Contacts:
    geom = d.contact.geom
    like = jnp.zeros((1, *geom.shape[2:]), geom.dtype)
    table = jnp.asarray(column(m.geom_bodyid.astype(geom.dtype), like))
    geoms = geom[:, 0], geom[:, 1]
    zero = jnp.zeros_like(d.contact.dist)
    force = contact_force(d) or []
    parts = [*force, *[zero] * (6 - len(force))]
    return _Contacts(
        geoms[0] >= 0,
        geoms,
        tuple(pick(table, jnp.maximum(x, 0)) for x in geoms),
        Vec(*parts[:3]),
        Vec(*parts[3:]),
    )


# matching


def _match(m: Model, d: Data, c: _Contacts, g: SensorGroup):
    """Which contacts each sensor sees, and -1 for those it sees reversed; `[n, ncontact, *W]`.

    The normal is to point from what matches the first criterion to what matches the second.
    """
    forward, backward = (
        _is_on(m, d, c, g.objtype, g.objid, k) & _is_on(m, d, c, g.reftype, g.refid, 1 - k)
        for k in range(2)
    )
    match = (forward | backward) & c.exists[None]
    sign = jnp.where(forward, 1.0, -1.0).astype(d.qpos.dtype)
    return match, sign


def _is_on(m: Model, d: Data, c: _Contacts, kind: ObjType | None, ids: np.ndarray, end: int):
    """Whether one end of each contact, 0 or 1, meets a criterion, `[n, ncontact, *W]` bool."""
    like = c.geom[end]
    if kind in (None, ObjType.UNKNOWN):
        return jnp.ones((len(ids), *like.shape), bool)
    if kind == ObjType.SITE:
        return _in_site(m, d, ids)
    wanted = ids.astype(like.dtype).reshape(-1, *(1,) * like.ndim)
    if kind == ObjType.GEOM:
        return wanted == like[None]
    if kind == ObjType.BODY:
        return wanted == c.body[end][None]
    within = column(descendants(m)[ids].T.astype(bool), like[:1])  # [nbody, n]
    return jnp.stack([pick(jnp.asarray(within[:, i]), c.body[end]) for i in range(len(ids))])


def _in_site(m: Model, d: Data, site: np.ndarray):
    """Whether contact points are inside the volumes of sites."""

    def at(i: np.ndarray, kind):
        one = site[i]
        R, place = take(d.site_xmat, one), take(d.site_xpos, one)
        pairs = zip(d.contact.pos.parts, place.parts, strict=True)
        offset = Vec(*(p[None] - x[:, None] for p, x in pairs))
        local = R.T.map(lambda a: a[:, None]) @ offset
        return inside(kind, take(m.site_size, one)[:, :, None], local)

    table = {kind: lambda i, kind=kind: at(i, kind) for kind in INSIDE}
    return by_kind(m.site_type[site], table, d.qpos)


# reduction


def _chosen(m: Model, d: Data, c: _Contacts, match, sign, total, reduce: int, count: int):
    """The first contacts by the reduction's order, one slot each."""
    n = match.shape[1]
    order = np.arange(n).reshape(1, n, *(1,) * (match.ndim - 2))
    if reduce == Reduce.MINDIST:
        key = jnp.broadcast_to(d.contact.dist[None], match.shape)
    elif reduce == Reduce.MAXFORCE:
        key = jnp.broadcast_to(-c.force.dot(c.force)[None], match.shape)
    else:
        key = jnp.broadcast_to(order.astype(d.qpos.dtype), match.shape)
    key = jax.lax.stop_gradient(key)
    slots, free = [], match
    for _ in range(count):
        index = jnp.argmin(jnp.where(free, key, jnp.inf), axis=1)
        found = free.any(axis=1)
        picked = order == index[:, None]
        turned = jnp.sum(jnp.where(picked, sign, 0), axis=1)
        slots.append(_slot(m, d, c, index.astype(c.geom[0].dtype), found, turned, total))
        free = free & ~picked
    return slots


def _slot(m: Model, d: Data, c: _Contacts, index, found, sign, total) -> _Slot:
    """One contact of each sensor. Reversed, the frame keeps its second tangent."""
    there = found.astype(sign.dtype)

    def at(x):
        return jax.tree.map(lambda a: pick(a, index), x)

    def reversed_frame(v: Vec) -> Vec:
        return Vec(v.x * there, v.y * there, v.z * there * sign)

    frame, pos = at(d.contact.frame), at(d.contact.pos)
    first, second = (_velocity(m, d, at(body), pos) for body in c.body)
    apart = second - first
    normal, tangent, _ = frame.rows
    return _Slot(
        total * there,
        reversed_frame(at(c.force)),
        reversed_frame(at(c.torque)),
        at(d.contact.dist) * there,
        pos.scale(there),
        normal.scale(there * sign),
        tangent.scale(there * sign),
        reversed_frame(frame @ apart.lin),
        reversed_frame(frame @ apart.rot),
    )


def _velocity(m: Model, d: Data, body, point: Vec) -> Spatial:
    """Velocity of a point of a body that each world chooses."""
    v, root = pick(d.cvel, body), take(d.subtree_com, m.body_rootid)
    return Spatial.of(v.rot, v.at(point - pick(root, body)))


def _net(d: Data, c: _Contacts, match, sign, total) -> _Slot:
    """All matching contacts as one, at their centroid weighted by force, in the world's frame."""

    def whole(x):
        return jax.tree.map(lambda a: jnp.sum(a, axis=1), x)

    frame, pos = d.contact.frame, d.contact.pos.map(lambda a: a[None])
    turned = jnp.where(match, sign, 0)
    force = (frame.T @ c.force).map(lambda a: a[None]).scale(turned)
    torque = (frame.T @ c.torque).map(lambda a: a[None]).scale(turned)
    weight = jnp.where(match, c.force.norm()[None], 0)
    heavy = whole(weight)
    centre = whole(pos.scale(weight)).scale(1 / jnp.where(heavy > 0, heavy, 1.0))
    arm = pos - centre.map(lambda a: a[:, None])
    one = (total > 0).astype(total.dtype)
    zero = jnp.zeros_like(one)
    nowhere = Vec(zero, zero, zero)
    return _Slot(
        total,
        whole(force),
        whole(torque + arm.cross(force)),
        zero,
        centre,
        Vec(one, zero, zero),
        Vec(zero, one, zero),
        nowhere,
        nowhere,
    )


EXTRACT: dict[ConDataField, Callable] = {
    ConDataField.FOUND: lambda slot: (slot.found,),
    ConDataField.FORCE: lambda slot: slot.force.parts,
    ConDataField.TORQUE: lambda slot: slot.torque.parts,
    ConDataField.DIST: lambda slot: (slot.dist,),
    ConDataField.POS: lambda slot: slot.pos.parts,
    ConDataField.NORMAL: lambda slot: slot.normal.parts,
    ConDataField.TANGENT: lambda slot: slot.tangent.parts,
    ConDataField.LINVEL: lambda slot: slot.linvel.parts,
    ConDataField.ANGVEL: lambda slot: slot.angvel.parts,
}
