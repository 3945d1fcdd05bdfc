"""The public contact list `d.contact`: conversion from the internal contacts, and back.

The physics keeps each contact in the slot of its constraint rows (driver.py); the public list has
the existing contacts first, without gaps. In a step the list is an output only. Standalone stages
and queries convert it back, because their Data has no working values.
"""

from collections.abc import Callable, Iterable

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.gather import column
from jaxsim.model.contact import NO_CONTACT_DISTANCE, Contact
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.collision.candidates.plan import collision_layout
from jaxsim.physics.collision.compact import compact_true
from jaxsim.physics.collision.contact_ids import TracedIds
from jaxsim.physics.collision.driver import CollisionResult, Contacts
from jaxsim.physics.collision.flex.contact_bodies import set_contact_bodies
from jaxsim.physics.collision.flex.item import item_ids, no_item
from jaxsim.physics.collision.flex.passive import passive_contacts
from jaxsim.physics.collision.params import has_adhesion
from jaxsim.physics.collision.smooth import smoothing_lengths
from jaxsim.trace_context import trace_context


def list_contacts(m: Model, d: Data, found: CollisionResult) -> Contact:
    """Return the contacts in the public form: existing ones first, without gaps.

    `efc_address` is 0 for contacts with rows, else -1; the row addresses are set later
    (constraint/make.py).
    """
    c, capacity = found.contacts, d.contact.dist.shape[0]

    def broadcast(a):
        return jnp.broadcast_to(a, c.dist.shape)

    def stack(parts):
        return jnp.stack([broadcast(p) for p in parts], axis=1)

    # Public fields of all contacts, by slot.
    values = {
        "dist": c.dist,
        "pos": c.pos,
        "frame": c.frame,
        "geom": jnp.where(c.exists[:, None], stack(c.each(geom) for geom in c.geom), -1),
        "dim": broadcast(c.dim),
        "includemargin": broadcast(c.includemargin),
        "friction": stack(c.friction),
        "solref": stack(c.solref),
        "solreffriction": stack(c.solreffriction),
        "solimp": stack(c.solimp),
        "efc_address": c.active.astype(np.int32) - 1,
    }
    if c.item is not None or d.contact.flex is not None:
        values |= _flex_ids(m, c, stack)
    if d.contact.passive is not None:
        passive = passive_contacts(m, c)
        none = jnp.zeros_like(c.dist, jnp.int32)
        values["passive"] = none if passive is None else passive.astype(np.int32)
    if c.adhesion is not None:
        values["adhesion"] = broadcast(c.adhesion)
    if c.surfacevel is not None:
        values["surfacevel"] = stack(c.surfacevel)
    if d.contact.mu is not None:
        slope = c.friction[0] / jnp.sqrt(m.opt.impratio)
        values["mu"] = broadcast(jnp.where(c.active & (c.dim > 1), slope, 0))
    # Compact the existing contacts to the front.
    if not found.packed or len(c.dist) != capacity:
        values = _compact_existing(values, c.exists, capacity)
    for name in ("force", "H"):  # zero until the solver sets them
        if (old := getattr(d.contact, name)) is not None:
            values[name] = jnp.zeros_like(old)
    return d.contact.replace(**values)


def _flex_ids(m: Model, c: Contacts, stack: Callable[[Iterable[Array]], Array]) -> dict:
    """Return flex ids of both sides of contacts, and element and vertex ids within them."""
    tables = dict(zip(("flex", "elem", "vert"), item_ids(m.structure), strict=True))
    if c.item is None:
        nothing = jnp.full_like(c.dist, -1, jnp.int32)
        return dict.fromkeys(tables, stack([nothing, nothing]))
    return {
        name: jnp.where(c.exists[:, None], stack(i.values(table, c.dist) for i in c.item), -1)
        for name, table in tables.items()
    }


def order_contact_forces(d: Data, force: list) -> Array:
    """Return the contact forces in the order of the list, zero past its end, `[ncontact, 6, *W]`.

    Args:
      d: data with the list, and the contacts from which it was made.
      force: components over the basis, `[n, *W]` each.
    """
    return gather_listed(d, [*force, *[jnp.zeros_like(force[0])] * (6 - len(force))])


def gather_listed(d: Data, parts: list) -> Array:
    """Return values of contacts in the order of the list, zero past its end, `[ncontact, k, *W]`.

    Args:
      d: data with the list, and the contacts from which it was made.
      parts: the k values of each contact, `[n, *W]` each.
    """
    c, capacity = d.found.contacts, d.contact.dist.shape[0]
    values = jnp.stack([jnp.where(c.exists, a, 0) for a in parts], axis=1)
    if d.found.packed and len(c.dist) == capacity:
        return values
    # The compaction of `list_contacts`.
    index, number = compact_true(c.exists, np.arange(len(c.exists)), capacity)
    filled = column(np.arange(capacity, dtype=np.int32), number) < number
    return jnp.where(filled[:, None], gather_world_items(values, index), 0)


def _compact_existing(values: dict, exists: Array, capacity: int) -> dict:
    """Compact the values of existing contacts to the capacity."""
    index, number = compact_true(exists, np.arange(len(exists)), capacity)
    filled = column(np.arange(capacity, dtype=np.int32), number) < number
    moved = gather_world_items(values, index)
    ids = {name: moved[name] for name in ("geom", "flex", "elem", "vert") if name in moved}
    return moved | {
        "dist": jnp.where(filled, moved["dist"], NO_CONTACT_DISTANCE),
        **{name: jnp.where(filled[:, None], a, -1) for name, a in ids.items()},
        "efc_address": jnp.where(filled, moved["efc_address"], -1),
        **{n: jnp.where(filled, moved[n], 0) for n in ("passive", "mu") if n in moved},
    }


def gather_world_items(x: PyTree, index: Array) -> PyTree:
    """Return items `x[index]` of arrays `[n, ..., *W]`, for an index `[k, *W]`."""

    def one(a: Array) -> Array:
        at = index.reshape(len(index), *(1,) * (a.ndim - index.ndim), *index.shape[1:])
        at = jnp.broadcast_to(at, (len(index), *a.shape[1:]))
        return jnp.take_along_axis(a, at, axis=0, mode="promise_in_bounds")

    return jax.tree.map(one, x)


def contacts_of(m: Model, d: Data) -> Contacts | None:
    """Return the contacts that belong to the results in `d`: of this step, or of the list.

    Returns:
      The contacts; None for a model that cannot have any, and if all trees are asleep.

    Raises:
      ValueError: a standalone stage or query got a Data that does not carry the list.
    """
    if d.found is not None:
        return d.found.contacts
    if trace_context().fully_asleep or not _may_touch(m):
        return None
    if d.contact is None:
        raise ValueError(
            "the result depends on the contacts of this model, and this Data does not carry "
            "'contact'; keep it: make_data(m, keep=[..., 'contact'])"
        )
    return contacts_from_list(m, d.contact)


def rebuild_collision_result(m: Model, d: Data) -> Data:
    """Rebuild the result of the collision stage from the contact list in `d`.

    The caller may have changed the list: `efc_address` determines which contacts have rows. Without
    a list there is no result; functions that need contacts call `contacts_of`.
    """
    if d.contact is None or not _may_touch(m):
        return d.replace(found=None)
    none = jnp.zeros((1, *d.qpos.shape[1:]), jnp.int32)
    contacts = contacts_from_list(m, d.contact)
    count = jnp.sum(contacts.exists, axis=0, keepdims=True, dtype=jnp.int32)
    return d.replace(found=CollisionResult(contacts, count, none, packed=True))


def contacts_from_list(m: Model, contact: Contact) -> Contacts:
    """Return the contacts of a list, for the rows and forces that follow from them.

    Raises:
      ValueError: the list was made for a model without adhesion or moving surfaces.
    """
    sticky, moving = has_adhesion(m), m.geom_hassurfacevel.any()
    if (sticky and contact.adhesion is None) or (moving and contact.surfacevel is None):
        raise ValueError(
            "d.contact: made for a model without adhesion or moving surfaces; use make_data(m)"
        )
    first, second = (TracedIds(jnp.maximum(contact.geom[:, k], 0)) for k in range(2))
    body = first.look_up(m.geom_bodyid), second.look_up(m.geom_bodyid)
    exists, item = contact.geom[:, 0] >= 0, None
    if collision_layout(m).flex_groups:
        exists, item, (first, second), body = _flex_sides(m, contact)
    adhesion = contact.adhesion if sticky else None
    contacts = Contacts(
        dist=contact.dist,
        pos=contact.pos,
        frame=contact.frame,
        geom=(first, second),
        body=body,
        dim=contact.dim,
        includemargin=contact.includemargin,
        friction=_columns(contact.friction),
        solref=_columns(contact.solref),
        solreffriction=_columns(contact.solreffriction),
        solimp=_columns(contact.solimp),
        exists=exists,
        active=exists & (contact.efc_address >= 0),
        adhesion=adhesion,
        surfacevel=_columns(contact.surfacevel) if moving else None,
        smooth=smoothing_lengths(m, contact.dist, adhesion, _is_self_collision(contact)),
        item=item,
    )
    return contacts if item is None else set_contact_bodies(m, contacts)


def _flex_sides(m: Model, contact: Contact) -> tuple:
    """Return existence, items, geoms and bodies of both sides of contacts with flexes.

    An item is an element or a vertex of a flex (flex/item.py).
    """
    if contact.flex is None:
        raise ValueError("d.contact: made for a model without contacts of flexes; use make_data(m)")
    item, geom, body = [], [], []
    none = no_item(m.structure)
    first_elem, first_vert = np.append(m.flex_elemadr, 0), np.append(m.flex_vertadr, 0)
    body_of_geom = np.append(m.geom_bodyid, 0)
    for k in range(2):
        flex, elem, vert, own = (
            a[:, k] for a in (contact.flex, contact.elem, contact.vert, contact.geom)
        )
        # Global element or vertex id from the flex and the id within it.
        which = TracedIds(jnp.where(flex < 0, m.nflex, flex))
        as_elem = which.values(first_elem.astype(np.int32), flex) + elem
        as_vert = m.nflexelem + which.values(first_vert.astype(np.int32), flex) + vert
        number = jnp.where(elem >= 0, as_elem, as_vert)
        item.append(TracedIds(jnp.where(flex < 0, none, number)))
        geom.append(TracedIds(own))
        body.append(TracedIds(jnp.where(own < 0, m.ngeom, own)).look_up(body_of_geom))
    exists = (contact.geom[:, 0] >= 0) | (contact.flex[:, 0] >= 0)
    return exists, tuple(item), tuple(geom), tuple(body)


def _may_touch(m: Model) -> bool:
    """Return whether a model can have contacts."""
    return not collision_layout(m).empty


def _columns(a: Array) -> tuple[Array, ...]:
    """Split `[n, k, *W]` into k arrays `[n, *W]`."""
    return tuple(a[:, k] for k in range(a.shape[1]))


def _is_self_collision(contact: Contact) -> Array | np.ndarray:
    """Return which contacts are self-collisions of a flex, `[n, *W]` bool; `[n]` without flexes."""
    if contact.flex is None:
        return np.zeros(len(contact.dist), bool)
    one, other = contact.flex[:, 0], contact.flex[:, 1]
    return (one == other) & (one >= 0)
