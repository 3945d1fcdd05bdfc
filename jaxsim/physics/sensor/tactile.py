"""Tactile sensors: penetration and slip at the vertices (taxels) of a mesh.

MuJoCo's documentation, XML reference: sensor/tactile. The mesh is in the frame of the sensor's
geom, whatever shape that has. Another geom is pressing if a contact, even one without force, joins
it to the sensor's body or to a body welded to that. A taxel reports

    depth  = max(0, -distance(x)) over these geoms, by their signed distances
    slip_k = sum |t_k . (v - u)| over those that contain it,   k = 1, 2

with its position x and velocity v, the velocity u of the geom at x, and the tangents t_k of the
mesh at the vertex; without tangents there is no slip. Depths come first, then both slips.

The taxels of all sensors are computed together, for one geom of each sensor at a time, as long as
some sensor of some world has one: memory is proportional to taxels, time to the geoms in contact.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather, gather_static
from jaxsim.math import Spatial, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.collision.compact import compact_true
from jaxsim.physics.collision.contact_list import contacts_of
from jaxsim.physics.collision.field.distance import signed_distance
from jaxsim.physics.collision.field.fields import fields_of
from jaxsim.physics.collision.flex.contact_bodies import is_geom_contact
from jaxsim.physics.collision.shape import add_slot_axis, place_geoms
from jaxsim.physics.sensor.group import SensorGroup
from jaxsim.physics.sensor.tactile_plan import TactilePlan, tactile_plan
from jaxsim.transforms.platform import platform


class _Taxels(NamedTuple):
    """Taxels in the world, `[taxels of a patch, patches, *W]`.

    Attributes:
      pos, vel: position [m] and velocity [m/s].
      tangents: two; zero where the mesh has none.
    """

    pos: Vec
    vel: Vec
    tangents: tuple[Vec, Vec]


class _Felt(NamedTuple):
    """Outputs of the taxels: depth [m] and both slips [m/s]."""

    depth: jax.Array
    slip1: jax.Array
    slip2: jax.Array


class _Pressing(NamedTuple):
    """One geom of each sensor, or several with a leading axis, `[n, *W]`.

    Attributes:
      geom: its id.
      is_one: mask; where False the id is arbitrary.
    """

    geom: jax.Array
    is_one: jax.Array


def tactile_sensors(m: Model, d: Data, g: SensorGroup) -> tuple[Array]:
    """Compute the outputs of all tactile sensors, concatenated in one array."""
    plan, worlds = tactile_plan(m.structure, m.pair_flags), d.qpos.shape[1:]
    if not plan.other.size or contacts_of(m, d) is None:
        return (jnp.zeros((len(plan.rows), *worlds), d.qpos.dtype),)
    # Taxels in the world, and the geoms that may press on them.
    taxels = _taxels(m, d, plan)
    geoms, fields = place_geoms(m, d), fields_of(m, plan.kinds, plan.names)

    def add(felt: _Felt, pressing: _Pressing) -> _Felt:
        """Add the effect of one more geom per sensor."""
        geom, is_one = gather_static(pressing, plan.sensor)
        # Signed distance of each taxel from the geom.
        other = gather(geoms, geom)
        pos, rot = add_slot_axis((other.pos, other.rot))
        dist = signed_distance(rot.T @ (taxels.pos - pos), fields.solid(other, plan.names))
        inside = add_slot_axis(is_one) & (dist < 0)
        # Sliding speed along the two tangents, relative to the geom's velocity at the taxel.
        apart = taxels.vel - _velocity(m, d, geom, taxels.pos)
        first, second = (jnp.where(inside, jnp.abs(t.dot(apart)), 0) for t in taxels.tangents)
        # Depth is the maximum over the geoms, slip their sum.
        depth = jnp.where(inside & (-dist > felt.depth), -dist, felt.depth)
        return _Felt(depth, felt.slip1 + first, felt.slip2 + second)

    def iterate(felt: _Felt, pressing: _Pressing) -> tuple[_Felt, None]:
        # Where data-dependent branches are costly, compute always.
        if not platform().branches:
            return add(felt, pressing), None
        some = jnp.any(pressing.is_one)
        return lax.cond(some, add, lambda felt, _: felt, felt, pressing), None

    # Accumulate over the pressing geoms, one of each sensor at a time.
    zero = jnp.zeros((*plan.vertex.shape, *worlds), d.qpos.dtype)
    felt, _ = lax.scan(iterate, _Felt(zero, zero, zero), _pressing_geoms(m, d, plan))
    numbers = [a.reshape(-1, *worlds) for a in felt]
    return (gather_static(jnp.concatenate(numbers), plan.rows),)


def _taxels(m: Model, d: Data, plan: TactilePlan) -> _Taxels:
    """Return the vertices of the meshes in the world, with velocities and tangents."""
    geom = plan.geom[plan.sensor]
    turn, origin = add_slot_axis(
        (gather_static(d.geom_xmat, geom), gather_static(d.geom_xpos, geom))
    )

    def of_mesh(table: Vec, index: np.ndarray) -> Vec:
        return gather_static(table, index.ravel()).map(
            lambda a: a.reshape(*index.shape, *a.shape[1:])
        )

    # Positions and velocities of the vertices, which move with the sensor's geom.
    pos = turn @ of_mesh(m.mesh_vert, plan.vertex) + origin
    body = m.geom_bodyid[geom]
    vel = _point_velocities(
        gather_static(d.cvel, body), gather_static(d.subtree_com, m.body_rootid[body]), pos
    )
    # A mesh without tangents has no slip.
    slides = column(1.0 * plan.slides[plan.sensor][None], d.geom_xpos)
    first, second = (turn @ of_mesh(m.mesh_normal, t).scale(slides) for t in plan.tangents)
    return _Taxels(pos, vel, (first, second))


def _velocity(m: Model, d: Data, geom: Array, point: Vec) -> Vec:
    """Return the velocity of each geom's body `[n, *W]` at points `[k, n, *W]`."""
    body = gather(jnp.asarray(column(m.geom_bodyid.astype(np.int32), geom)), geom)
    return _point_velocities(
        gather(d.cvel, body), gather(gather_static(d.subtree_com, m.body_rootid), body), point
    )


def _point_velocities(twist: Spatial, com: Vec, point: Vec) -> Vec:
    """Return velocities at points `[k, n, *W]`, by the twists of bodies `[n, *W]` about `com`."""
    twist, com = add_slot_axis((twist, com))
    return twist.at(point - com)


def _pressing_geoms(m: Model, d: Data, plan: TactilePlan) -> _Pressing:
    """Return the distinct geoms that press on each sensor, `[most, n, *W]`."""
    c = d.found.contacts
    # Geoms and weld groups of the contacts.
    geom = [c.each(ids) for ids in c.geom]
    weld = [c.each(body.look_up(m.body_weldid)) for body in c.body]

    def each(table: np.ndarray) -> np.ndarray:
        return column(table.astype(np.int32)[..., None], c.dist)

    def touches(own: int, other: int) -> Array:
        # A contact of the sensor's weld group with the candidate geom.
        here = (c.exists & is_geom_contact(c))[None] & (weld[own][None] == each(plan.weld))
        return jnp.any(here[None] & (geom[other][None, None] == each(plan.other)), axis=2)

    # Mask of the geoms in contact with each sensor, compacted to the front.
    mask = touches(0, 1) | touches(1, 0)
    number, sensors, *worlds = mask.shape
    most = min(number, 2 * len(c.dist))
    index, count = compact_true(mask.reshape(number, -1), np.arange(number), most)
    index = index.reshape(most * sensors, *worlds)
    column_of = column(np.tile(np.arange(sensors, dtype=np.int32), most), index)
    table = column(np.maximum(plan.other, 0).astype(np.int32).ravel(), index)
    found = gather(jnp.asarray(table), sensors * index + column_of)
    # Entries beyond the count are invalid.
    place = column(np.arange(most, dtype=np.int32), mask)
    is_one = jnp.asarray(place < count.reshape(1, sensors, *worlds))
    return _Pressing(found.reshape(most, sensors, *worlds), is_one)
