"""The collision stage: contacts of the present poses, for `d.contact` and the constraint rows."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import GeomType, WarningType
from jaxsim.math import Vec
from jaxsim.model.data import FAR, Data, no_contacts
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import column
from jaxsim.physics.callback import has, kept_apart
from jaxsim.physics.collision.ahead.found import with_ahead
from jaxsim.physics.collision.candidates.pairs import Kind, Pairs
from jaxsim.physics.collision.candidates.plan import Layout, layout, uncollidable
from jaxsim.physics.collision.driver import candidates, choose, has_free_places
from jaxsim.physics.collision.field.kinds import lacking
from jaxsim.physics.collision.flex.bar import bars
from jaxsim.physics.collision.flex.item import Soft
from jaxsim.physics.collision.flex.sides import with_sides
from jaxsim.physics.collision.listed import listed
from jaxsim.physics.collision.params import ContactParams, contact_params
from jaxsim.physics.collision.shape import Placed, placed
from jaxsim.physics.collision.surface import surface_velocity
from jaxsim.physics.refusal import Refusal, named
from jaxsim.physics.sleep.known import all_sleep
from jaxsim.physics.sleep.touch import rouse
from jaxsim.physics.sleep.trees import sleeps
from jaxsim.physics.stage import stage
from jaxsim.physics.warning import Trouble, count


@stage(
    reads="qpos plastic tree_asleep warning warning_lastinfo qvel xquat subtree_com cdof "
    "geom_xpos geom_xmat flexvert_xpos flexelem_aabb",
    writes="tree_asleep warning warning_lastinfo contact ncon found",
)
def collision(m: Model, d: Data) -> Data:
    """Detect the contacts of the state and count overflow in `d.warning`.

    `d.found` passes them to the constraint rows and the sensors, each contact in the slot of its
    rows; `d.contact` is the public list, without gaps. Corresponds to `mj_collision` in MuJoCo.
    """
    if all_sleep():
        return _without_contacts(d)
    # Poses, tables of the colliders, and contact parameters of all candidate pairs.
    plan = layout(m)
    geoms = placed_geoms(m, d, plan)
    makers = [g.collider.assets for g in plan.groups] + [g.collider.assets for g in plan.soft]
    assets: dict[Callable | None, Any] = {make: make(m) for make in makers if make}
    params = contact_params(m, plan.pairs)
    flexes = (m.structure, placed_flexes(m, d)) if plan.soft else None
    reach = contact_reach(m, d, plan, params)
    # Broad and narrow phase.
    points = candidates(geoms, reach, plan, assets, flexes)
    if points is None:
        return _without_contacts(d)
    # Replace contacts of fast pairs by speculative ones.
    if plan.ahead:
        points = with_ahead(m, d, points[0], geoms, reach, params, plan), points[1]
    # Select contacts up to the capacity; contacts with awake trees wake sleeping ones first.
    if sleeps(m):
        d, found = rouse(m, d, *points, params, plan)
    else:
        found = choose(*points, params, plan, has_free_places(m))
    if plan.soft:
        found = replace(found, contacts=with_sides(m, found.contacts))
    # Count overflow.
    wanted = jnp.minimum(found.ncon, plan.capacity) + found.lost
    d = count(d, WarningType.CONTACTFULL, Trouble(found.lost > 0, wanted))
    moving = surface_velocity(m, d, plan.pairs, found.contacts)
    if moving is not None:
        found = replace(found, contacts=found.contacts._replace(surfacevel=moving))
    return d.replace(
        ncon=jnp.minimum(found.ncon, plan.capacity),
        contact=None if d.contact is None else listed(m, d, found),
        found=found,
    )


def _without_contacts(d: Data) -> Data:
    """Return the data without contacts: the model cannot have any, or all its trees are asleep."""
    none = jnp.zeros((1, *d.qpos.shape[1:]), jnp.int32)
    contact = None if d.contact is None else no_contacts(d.contact)
    return d.replace(ncon=none, contact=contact, found=None)


def contact_reach(m: Model, d: Data, plan: Layout, params: ContactParams) -> Array:
    """Return the distance below which geoms of a pair have contacts, `[npairs, *W]` [m].

    Pairs rejected by the callback `contactfilter` get -FAR. The callback is not called for `<pair>`
    elements and flexes.

    Raises:
      ValueError: the callback is set and some geoms of the model have no collider.
    """
    if not has(m, "contactfilter"):
        return params.reach
    if lacks := refusals(m):
        raise ValueError(f"callback contactfilter: {lacks[0].message}")
    pairs = np.stack([plan.pairs.geom1, plan.pairs.geom2])
    geoms = np.flatnonzero(pairs[1] < m.ngeom)  # the callback is not called for flexes
    if not len(geoms):
        return params.reach
    # The callback gets the geom of the lower body id first.
    of = pairs[:, geoms]
    by_body = np.where(np.diff(m.geom_bodyid[of], axis=0) < 0, of[::-1], of)
    apart = kept_apart(m, d, *by_body)
    apart = apart & column(plan.pairs.predefined[geoms] < 0, apart)
    # Rejected pairs are never within reach.
    reach = jnp.broadcast_to(params.reach, (len(params.reach), *apart.shape[1:]))
    return reach.at[geoms].set(jnp.where(apart, -FAR, reach[geoms]))


def placed_geoms(m: Model, d: Data, plan: Layout) -> Placed:
    """Return all geoms in the world, with bounding boxes if the broad phase needs them."""
    return placed(m, d)._replace(box=placed_boxes(m, d) if plan.boxes else None)


def placed_flexes(m: Model, d: Data) -> Soft:
    """Return all flexes in the world."""
    center, half = (Vec(*(d.flexelem_aabb[:, k + j] for j in range(3))) for k in (0, 3))
    return Soft(d.flexvert_xpos, center, half, m.flex_radius, bars(m, d))


def placed_boxes(m: Model, d: Data) -> tuple[Vec, Vec]:
    """Return bounding boxes: centers in the world, and half sizes along the geoms' axes."""
    middle, half = (Vec(*(m.geom_aabb[:, k + j] for j in range(3))) for k in (0, 3))
    return d.geom_xpos + d.geom_xmat @ middle, half


def refusals(m: Model) -> list[Refusal]:
    """Return a message for each kind of contact that is not simulated."""
    messages = [_lacks(m, kind, pairs) for kind, pairs in uncollidable(m).items()]
    return messages + lacking(m)


def _lacks(m: Model, kind: Kind, pairs: Pairs) -> Refusal:
    """Return the message for pairs of one kind without a collider, which names the first pair."""
    first, second = int(pairs.geom1[0]), int(pairs.geom2[0])
    more = f" (and {len(pairs.dim) - 1} more such pairs)" if len(pairs.dim) > 1 else ""
    what = (
        f"{named(m, 'geom', first)} and {named(m, 'geom', second)}{more}: a {_shape(kind[0])} and "
        f"a {_shape(kind[1])} cannot collide with each other yet; keep them apart with contype and "
        "conaffinity or with <exclude>"
    )
    return Refusal(what, "geom", first)


def _shape(geom_type: int) -> str:
    """Return the name of a geom type as in MJCF."""
    return GeomType(geom_type).name.lower()
