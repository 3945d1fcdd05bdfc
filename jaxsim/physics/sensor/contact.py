"""Contact sensors: a fixed number of matching contacts, and their reported fields.

MuJoCo's documentation, XML reference: sensor/contact. Contacts are matched by the objects they are
between, reduced to the sensor's slots, and their fields are extracted. All sensors with the same
number of slots are computed together (contact_plan.py).
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather, gather_static
from jaxsim.arrays.kind_dispatch import compute_by_kind, concatenate_kinds
from jaxsim.enums import GeomType, Reduce
from jaxsim.math import Rot, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.point_motion import chosen_velocity
from jaxsim.physics.body.site_volume import VOLUME_TYPES, points_inside_site
from jaxsim.physics.collision.contact_list import contacts_of
from jaxsim.physics.sensor.contact_plan import (
    ContactSensorPlan,
    Criterion,
    contact_plans,
    output_rows,
)
from jaxsim.physics.sensor.group import SensorGroup
from jaxsim.physics.solver.constraint_force import net_contact_force


class _Contacts(NamedTuple):
    """Contacts `[ncontact, *W]` with the bodies of their geoms and their force and torque."""

    exists: jax.Array
    dist: jax.Array
    pos: Vec
    frame: Rot
    geom: tuple
    body: tuple
    force: Vec
    torque: Vec


class _Match(NamedTuple):
    """Matching of contacts and sensors, `[n, ncontact, *W]`."""

    matches: jax.Array
    sign: jax.Array  # -1 for a contact in reverse order
    total: jax.Array  # number of matches, `[n, *W]`


class _Slots(NamedTuple):
    """Reported fields of one contact per sensor, `[n, *W]`, in the order of ConDataField."""

    found: jax.Array
    force: Vec
    torque: Vec
    dist: jax.Array
    pos: Vec
    normal: Vec
    tangent: Vec
    linvel: Vec
    angvel: Vec


def contact_sensors(m: Model, d: Data, g: SensorGroup) -> tuple[Array]:
    """Compute the outputs of all contact sensors, concatenated in one array."""
    rows = output_rows(m)
    if contacts_of(m, d) is None:
        return (jnp.zeros((len(rows), *d.qpos.shape[1:]), d.qpos.dtype),)
    # Evaluate each plan and select the numbers of every sensor.
    contacts = _contacts(d)
    numbers = [number for plan in contact_plans(m) for number in _numbers(m, d, contacts, plan)]
    return (gather_static(concatenate_kinds(numbers), rows),)


def _contacts(d: Data) -> _Contacts:
    c = d.found.contacts
    zero = jnp.zeros_like(c.dist)
    # Force components that the contact model does not have are zero.
    force = net_contact_force(d) or []
    parts = [*force, *[zero] * (6 - len(force))]
    return _Contacts(
        exists=c.exists,
        dist=c.dist,
        pos=c.pos,
        frame=c.frame,
        geom=(c.each(c.geom[0]), c.each(c.geom[1])),
        body=(c.each(c.body[0]), c.each(c.body[1])),
        force=Vec(*parts[:3]),
        torque=Vec(*parts[3:]),
    )


def _numbers(m: Model, d: Data, c: _Contacts, plan: ContactSensorPlan) -> list:
    """Compute all fields of the slots of a plan, `[slots * n, *W]` each."""
    match = _match(m, d, c, plan)
    if not plan.net:
        return jax.tree.leaves(_select_contacts(m, d, c, match, plan))
    # With reduction "netforce" only the first slot is filled; pad the others with zeros.
    empty = ((0, (plan.count - 1) * len(plan)), *((0, 0),) * (c.dist.ndim - 1))
    return [jnp.pad(a, empty) for a in jax.tree.leaves(_net_contact(c, match))]


# Matching.


def _match(m: Model, d: Data, c: _Contacts, plan: ContactSensorPlan) -> _Match:
    """Match contacts; the normal points from the first criterion's object to the second's."""
    first, second = plan.ends
    # A contact matches in either order of its two ends.
    forward = _is_on(c, first, 0) & _is_on(c, second, 1)
    backward = _is_on(c, first, 1) & _is_on(c, second, 0)
    matches = (forward | backward) & c.exists[None]
    # Additional criterion: the contact point is inside the site.
    if (first.site >= 0).any():
        matches = matches & _is_in_site(m, d, c, first.site)
    sign = jnp.where(forward, 1.0, -1.0).astype(c.dist.dtype)
    return _Match(matches, sign, jnp.sum(matches, axis=1, dtype=c.dist.dtype))


def _is_on(c: _Contacts, want: Criterion, end: int) -> Array:
    """Return where one end (0 or 1) of each contact meets a criterion, `[n, ncontact, *W]` bool."""
    geom, body = c.geom[end][None], c.body[end][None]

    def each(table: np.ndarray) -> np.ndarray:
        return column(table.astype(geom.dtype)[:, None], geom[0])

    # Compare geom or body ids with the criterion's range.
    ids = jnp.where(each(want.of_geom) > 0, geom, body)
    return (ids >= each(want.first)) & (ids <= each(want.last))


def _is_in_site(m: Model, d: Data, c: _Contacts, site: np.ndarray) -> Array:
    """Return where contact points are inside the volumes of sites; True without a site."""

    def at(i: np.ndarray, kind: GeomType) -> Array:
        one = site[i]
        # Contact points in the frame of each site.
        R, place = gather_static(d.site_xmat, one), gather_static(d.site_xpos, one)
        pairs = zip(c.pos.parts, place.parts, strict=True)
        offset = Vec(*(p[None] - x[:, None] for p, x in pairs))
        local = R.T.map(lambda a: a[:, None]) @ offset
        return points_inside_site(m, kind, one, local)

    def at_all(i: np.ndarray) -> Array:
        return jnp.ones((len(i), *c.dist.shape), bool)

    # Group the sites by type; -1 means "no site criterion".
    table: dict[int, Callable] = {kind: lambda i, kind=kind: at(i, kind) for kind in VOLUME_TYPES}
    table[_NO_SITE_TYPE] = at_all
    return compute_by_kind(np.where(site < 0, _NO_SITE_TYPE, m.site_type[site]), table, d.qpos)


_NO_SITE_TYPE = -1  # key for no site


# Reduction.


def _select_contacts(
    m: Model, d: Data, c: _Contacts, match: _Match, plan: ContactSensorPlan
) -> _Slots:
    """Select the first contacts in the order of the reduction, one per slot."""
    shape = match.matches.shape
    order = np.arange(shape[1]).reshape(1, shape[1], *(1,) * (len(shape) - 2))
    # Sort keys of each reduction: contact order, distance, negative squared force.
    keys = {
        Reduce.NONE: jnp.asarray(order[0], c.dist.dtype),
        Reduce.MINDIST: c.dist,
        Reduce.MAXFORCE: -c.force.dot(c.force),
    }
    table = {
        kind: lambda i, key=key: jnp.broadcast_to(key[None], (len(i), *c.dist.shape))
        for kind, key in keys.items()
    }
    # The choice has no derivative.
    key = lax.stop_gradient(compute_by_kind(plan.reduce, table, c.dist))

    # Selection sort: repeatedly take the contact with the smallest key.
    def next_one(free, _):
        # Select the free contact with the smallest key and remove it from the candidates.
        index = jnp.argmin(jnp.where(free, key, jnp.inf), axis=1)
        picked = order == index[:, None]
        sign = jnp.sum(jnp.where(picked, match.sign, 0), axis=1)
        slot = index.astype(jnp.int32), free.any(axis=1).astype(sign.dtype), sign
        return free & ~picked, slot

    # One iteration per slot.
    _, slots = lax.scan(next_one, match.matches, length=plan.count)
    index, there, sign = (a.reshape(-1, *a.shape[2:]) for a in slots)
    # `found` is the number of matches in every occupied slot, else zero.
    found = jnp.concatenate([match.total] * plan.count) * there
    return _gather_contact_slots(m, d, c, index, found, there, sign)


def _gather_contact_slots(
    m: Model, d: Data, c: _Contacts, index: Array, found: Array, there: Array, sign: Array
) -> _Slots:
    """Gather the fields of contacts; reversed, the frame keeps its second tangent."""

    def at(x):
        return jax.tree.map(lambda a: gather(a, index), x)

    def reversed_frame(v: Vec) -> Vec:
        return Vec(v.x * there, v.y * there, v.z * there * sign)

    # Gather frames and points of the chosen contacts, and the relative velocity there.
    frame, pos = at(c.frame), at(c.pos)
    first, second = (chosen_velocity(m, d, at(body), pos) for body in c.body)
    apart = second - first
    normal, tangent, _ = frame.rows
    # Empty slots are multiplied by zero; reversed contacts flip the sign.
    return _Slots(
        found,
        reversed_frame(at(c.force)),
        reversed_frame(at(c.torque)),
        at(c.dist) * there,
        pos.scale(there),
        normal.scale(there * sign),
        tangent.scale(there * sign),
        reversed_frame(frame @ apart.lin),
        reversed_frame(frame @ apart.rot),
    )


def _net_contact(c: _Contacts, match: _Match) -> _Slots:
    """Sum all matching contacts at their force-weighted centroid, in the world frame."""

    def sum_matching(x):
        return jax.tree.map(lambda a: jnp.sum(a, axis=1), x)

    frame, pos = c.frame, c.pos.map(lambda a: a[None])
    # Sign of the force as the sensor sees it; zero for contacts that do not match.
    turned = jnp.where(match.matches, match.sign, 0)
    force = (frame.T @ c.force).map(lambda a: a[None]).scale(turned)
    torque = (frame.T @ c.torque).map(lambda a: a[None]).scale(turned)
    # Centroid of the matching contacts, weighted by force.
    weight = jnp.where(match.matches, c.force.norm()[None], 0)
    heavy = sum_matching(weight)
    center = sum_matching(pos.scale(weight)).scale(1 / jnp.where(heavy > 0, heavy, 1.0))
    # Total wrench about the centroid.
    arm = pos - center.map(lambda a: a[:, None])
    one = (match.total > 0).astype(match.total.dtype)
    zero = jnp.zeros_like(one)
    nowhere = Vec(zero, zero, zero)
    return _Slots(
        match.total,
        sum_matching(force),
        sum_matching(torque + arm.cross(force)),
        zero,
        center,
        Vec(one, zero, zero),
        Vec(zero, one, zero),
        nowhere,
        nowhere,
    )
