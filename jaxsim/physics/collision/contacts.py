"""The collision stage: contacts of the present poses, for `d.contact` and the constraint rows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column
from jaxsim.enums import GeomType, WarningType
from jaxsim.math import Vec
from jaxsim.model.contact import NO_CONTACT_DISTANCE, no_contacts
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.callback import call_contact_filter, has_callback
from jaxsim.physics.collision.candidates.pairs import GeomPairs, GeomTypePair
from jaxsim.physics.collision.candidates.plan import (
    CollisionLayout,
    collision_layout,
    pairs_without_collider,
)
from jaxsim.physics.collision.contact_list import list_contacts
from jaxsim.physics.collision.driver import choose_contacts, detect_candidates, has_free_slots
from jaxsim.physics.collision.field.kinds import unknown_sdf_messages
from jaxsim.physics.collision.flex.contact_bodies import set_contact_bodies
from jaxsim.physics.collision.flex.item import FlexItems
from jaxsim.physics.collision.flex.rod_box import rod_edges
from jaxsim.physics.collision.params import ContactParams, contact_params
from jaxsim.physics.collision.shape import PlacedGeoms, place_geoms
from jaxsim.physics.collision.speculative.contacts import add_speculative_contacts
from jaxsim.physics.collision.surface import surface_velocity
from jaxsim.physics.sleep.sleeping_contacts import wake_by_contacts
from jaxsim.physics.sleep.trees import can_sleep
from jaxsim.physics.unsupported import Refusal, describe_object
from jaxsim.physics.warning import Trouble, count_warning
from jaxsim.trace_context import trace_context


def collision(m: Model, d: Data) -> Data:
    """Detect the contacts of the state and count overflow in `d.warning`.

    `d.found` passes them to the constraint rows and the sensors, each contact in the slot of its
    rows; `d.contact` is the public list, without gaps. Corresponds to `mj_collision` in MuJoCo.
    """
    if trace_context().fully_asleep:
        return _clear_contacts(d)
    # Poses, tables of the colliders, and contact parameters of all candidate pairs.
    plan = collision_layout(m)
    geoms = place_collision_geoms(m, d, plan)
    makers = [g.collider.assets for g in plan.groups]
    makers += [g.collider.assets for g in plan.flex_groups]
    assets: dict[Callable | None, Any] = {make: make(m) for make in makers if make}
    params = contact_params(m, plan.pairs)
    flexes = (m.structure, place_flexes(m, d)) if plan.flex_groups else None
    reach = contact_reach(m, d, plan, params)
    # Broad and narrow phase.
    points = detect_candidates(geoms, reach, plan, assets, flexes)
    if points is None:
        return _clear_contacts(d)
    # Replace contacts of fast pairs by speculative ones.
    if plan.speculative:
        points = add_speculative_contacts(m, d, points[0], geoms, reach, params, plan), points[1]
    # Select contacts up to the capacity; contacts with awake trees wake sleeping ones first.
    if can_sleep(m):
        d, found = wake_by_contacts(m, d, *points, params, plan)
    else:
        found = choose_contacts(*points, params, plan, has_free_slots(m))
    if plan.flex_groups:
        found = replace(found, contacts=set_contact_bodies(m, found.contacts))
    # Count overflow.
    wanted = jnp.minimum(found.ncon, plan.capacity) + found.dropped
    d = count_warning(d, WarningType.CONTACTFULL, Trouble(found.dropped > 0, wanted))
    moving = surface_velocity(m, d, plan.pairs, found.contacts)
    if moving is not None:
        found = replace(found, contacts=found.contacts._replace(surfacevel=moving))
    return d.replace(
        ncon=jnp.minimum(found.ncon, plan.capacity),
        contact=None if d.contact is None else list_contacts(m, d, found),
        found=found,
    )


def _clear_contacts(d: Data) -> Data:
    """Return the data without contacts: the model cannot have any, or all its trees are asleep."""
    none = jnp.zeros((1, *d.qpos.shape[1:]), jnp.int32)
    contact = None if d.contact is None else no_contacts(d.contact)
    return d.replace(ncon=none, contact=contact, found=None)


def contact_reach(m: Model, d: Data, plan: CollisionLayout, params: ContactParams) -> Array:
    """Return the distance below which geoms of a pair have contacts, `[npairs, *W]` [m].

    Pairs rejected by the callback `contactfilter` get -NO_CONTACT_DISTANCE. The callback is not
    called for `<pair>` elements and flexes.

    Raises:
      ValueError: the callback is set and some geoms of the model have no collider.
    """
    if not has_callback(m, "contactfilter"):
        return params.reach
    if lacks := unsupported_contacts(m):
        raise ValueError(f"callback contactfilter: {lacks[0].message}")
    pairs = np.stack([plan.pairs.geom1, plan.pairs.geom2])
    geoms = np.flatnonzero(pairs[1] < m.ngeom)  # the callback is not called for flexes
    if not len(geoms):
        return params.reach
    # The callback gets the geom of the lower body id first.
    of = pairs[:, geoms]
    by_body = np.where(np.diff(m.geom_bodyid[of], axis=0) < 0, of[::-1], of)
    apart = call_contact_filter(m, d, *by_body)
    apart = apart & column(plan.pairs.predefined[geoms] < 0, apart)
    # Rejected pairs are never within reach.
    reach = jnp.broadcast_to(params.reach, (len(params.reach), *apart.shape[1:]))
    return reach.at[geoms].set(jnp.where(apart, -NO_CONTACT_DISTANCE, reach[geoms]))


def place_collision_geoms(m: Model, d: Data, plan: CollisionLayout) -> PlacedGeoms:
    """Return all geoms in the world, with bounding boxes if the broad phase needs them."""
    return place_geoms(m, d)._replace(box=place_bounding_boxes(m, d) if plan.boxes else None)


def place_flexes(m: Model, d: Data) -> FlexItems:
    """Return all flexes in the world."""
    center, half = (Vec(*(d.flexelem_aabb[:, k + j] for j in range(3))) for k in (0, 3))
    return FlexItems(d.flexvert_xpos, center, half, m.flex_radius, rod_edges(m, d))


def place_bounding_boxes(m: Model, d: Data) -> tuple[Vec, Vec]:
    """Return bounding boxes: centers in the world, and half sizes along the geoms' axes."""
    middle, half = (Vec(*(m.geom_aabb[:, k + j] for j in range(3))) for k in (0, 3))
    return d.geom_xpos + d.geom_xmat @ middle, half


def unsupported_contacts(m: Model) -> list[Refusal]:
    """Return a message for each kind of contact that is not simulated."""
    messages = [
        _missing_collider_message(m, kind, pairs)
        for kind, pairs in pairs_without_collider(m).items()
    ]
    return messages + unknown_sdf_messages(m)


def _missing_collider_message(m: Model, kind: GeomTypePair, pairs: GeomPairs) -> Refusal:
    """Return the message for pairs of one kind without a collider, which names the first pair."""
    first, second = int(pairs.geom1[0]), int(pairs.geom2[0])
    more = f" (and {len(pairs.dim) - 1} more such pairs)" if len(pairs.dim) > 1 else ""
    what = (
        f"{describe_object(m, 'geom', first)} and {describe_object(m, 'geom', second)}{more}: a "
        f"{_shape(kind[0])} and "
        f"a {_shape(kind[1])} cannot collide with each other yet; keep them apart with contype and "
        "conaffinity or with <exclude>"
    )
    return Refusal(what, "geom", first)


def _shape(geom_type: int) -> str:
    """Return the name of a geom type as in MJCF."""
    return GeomType(geom_type).name.lower()
