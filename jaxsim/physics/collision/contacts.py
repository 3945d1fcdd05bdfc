"""The collision stage: contacts of the present poses, for `d.contact` and constraint rows."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import GeomType, WarningType
from jaxsim.math import Vec
from jaxsim.model.data import FAR, Contact, Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.select import column
from jaxsim.physics.collision.compact import first_true
from jaxsim.physics.collision.driver import Found, collide
from jaxsim.physics.collision.field.kinds import lacking
from jaxsim.physics.collision.pairs import Kind, Pairs
from jaxsim.physics.collision.params import contact_params
from jaxsim.physics.collision.plan import layout, uncollidable
from jaxsim.physics.collision.shape import Placed
from jaxsim.physics.refusal import Refusal, named, refuse
from jaxsim.physics.stage import stage
from jaxsim.physics.warning import count


@stage(reads="warning geom_xpos geom_xmat ", writes="warning contact ncon found")
def collision(m: Model, d: Data) -> Data:
    """Finds the contacts; what has no place is counted in `d.warning`.

    `d.found` carries them to the constraint rows and the sensors, each contact in the place of its
    rows; `d.contact` lists them for the reader, those that exist first.
    """
    plan = layout(m)
    size = Vec(*(m.geom_size[:, k] for k in range(3)))
    ids = jnp.asarray(column(np.arange(m.ngeom, dtype=np.int32), d.geom_xpos))
    box = _boxes(m, d) if plan.boxes else None
    geoms = Placed(d.geom_xpos, d.geom_xmat, size, ids, box)
    assets: dict[Callable | None, Any] = {
        g.collider.assets: g.collider.assets(m) for g in plan.groups if g.collider.assets
    }
    found = collide(geoms, contact_params(m, plan.pairs), plan, assets)
    if found is None:
        none = jnp.zeros((1, *d.qpos.shape[1:]), jnp.int32)
        return d.replace(ncon=none, found=None)
    d = count(d, WarningType.CONTACTFULL, found.lost > 0)
    return d.replace(
        ncon=jnp.minimum(found.ncon, plan.capacity),
        contact=None if d.contact is None else _listed(d, found),
        found=found,
    )


def _boxes(m: Model, d: Data) -> tuple[Vec, Vec]:
    """Bounding boxes of the geoms: centers in the world, and half sizes."""
    middle, half = (Vec(*(m.geom_aabb[:, k + j] for j in range(3))) for k in (0, 3))
    return d.geom_xpos + d.geom_xmat @ middle, half


def _listed(d: Data, found: Found) -> Contact:
    """Contacts in the public form: those that exist first, without gaps."""
    c, places = found.contacts, d.contact.dist.shape[0]
    worlds = c.dist.shape[1:]

    def stack(parts):
        return jnp.stack([jnp.broadcast_to(p, c.dist.shape) for p in parts], axis=1)

    contact = d.contact.replace(
        dist=c.dist,
        pos=c.pos,
        frame=c.frame,
        geom=stack(jnp.where(c.exists, c.each(geom), -1) for geom in c.geom),
        dim=jnp.broadcast_to(c.dim, c.dist.shape),
        includemargin=jnp.broadcast_to(c.includemargin, c.dist.shape),
        friction=stack(c.friction),
        solref=stack(c.solref),
        solreffriction=stack(c.solreffriction),
        solimp=stack(c.solimp),
    )
    if found.packed and len(c.dist) == places:
        return contact
    index, number = first_true(c.exists, np.arange(len(c.dist)), places)
    filled = column(np.arange(places, dtype=np.int32), number) < number

    def moved(a):
        inner = a.ndim - 1 - len(worlds)
        at = index.reshape(places, *(1,) * inner, *worlds)
        return jnp.take_along_axis(a, jnp.broadcast_to(at, (places, *a.shape[1:])), axis=0)

    contact = jax.tree.map(moved, contact)
    return contact.replace(
        dist=jnp.where(filled, contact.dist, FAR),
        geom=jnp.where(filled[:, None], contact.geom, -1),
    )


def refusals(m: Model) -> list[Refusal]:
    """What of the contacts is not simulated, named."""
    messages = [_lacks(m, kind, pairs) for kind, pairs in uncollidable(m).items()]
    messages += lacking(m)
    plan = layout(m)
    geoms = np.union1d(plan.pairs.geom1, plan.pairs.geom2).astype(int)
    for field in ("adhesion", "surfacevel"):
        width = 1 if field == "adhesion" else 6
        values = np.asarray(getattr(m, f"geom_{field}")).reshape(m.ngeom, width)
        messages += [
            refuse(m, "geom", g, f"{field} is not supported; remove it")
            for g in geoms
            if values[g].any()
        ]
    messages += [
        refuse(m, "pair", k, "adhesion is not supported; remove it")
        for k in np.flatnonzero(np.asarray(m.pair_adhesion))
    ]
    return messages


def _lacks(m: Model, kind: Kind, pairs: Pairs) -> Refusal:
    """Pairs of one kind that nothing collides, by the name of the first."""
    first, second = int(pairs.geom1[0]), int(pairs.geom2[0])
    more = f" (and {len(pairs.dim) - 1} more such pairs)" if len(pairs.dim) > 1 else ""
    what = (
        f"{named(m, 'geom', first)} and {named(m, 'geom', second)}{more}: a {_shape(kind[0])} and "
        f"a {_shape(kind[1])} cannot collide with each other yet; keep them apart with contype and "
        "conaffinity or with <exclude>"
    )
    return Refusal(what, "geom", first)


def _shape(geom_type: int) -> str:
    return GeomType(geom_type).name.lower()
