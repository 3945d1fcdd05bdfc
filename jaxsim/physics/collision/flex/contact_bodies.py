"""Bodies and trees of the two sides of a contact, where some are of flexes.

An item (item.py) may move with several bodies; sensors and sleeping read one body for each side.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.contact_ids import IdArray, TracedIds
from jaxsim.physics.collision.driver import Contacts
from jaxsim.physics.collision.flex.item import item_corners, item_flex
from jaxsim.physics.collision.flex.passive import passive_contacts
from jaxsim.physics.collision.flex.rod_jacobian import item_edge
from jaxsim.physics.flex.frames import rod_chains
from jaxsim.physics.topology import ancestors


@cache_by_structure
def item_moves(s: Structure) -> np.ndarray:
    """Return whether some dof moves an item, `[nflexelem + nflexvert + 1]` bool; false for none."""
    moving = ancestors(s).astype(bool).any(axis=1)
    body = np.asarray(s.flex_vertbodyid)
    of_vertex = np.where(body < 0, False, moving[np.maximum(body, 0)])
    found = of_vertex[item_corners(s)].any(axis=1)
    for f in np.flatnonzero(s.flex_interp):
        node = s.flex_nodeadr[f] + np.arange(s.flex_nodenum[f])
        found[item_flex(s) == f] = moving[np.asarray(s.flex_nodebodyid)[node]].any()
    return np.append(found, False) | (item_edge(s) >= 0)


@cache_by_structure
def item_body(s: Structure) -> np.ndarray:
    """Return the body that represents an item to sensors, `[nflexelem + nflexvert + 1]`.

    It is the first moving body of its vertices, or of the nodes of its flex; the world for no item.
    """
    moving = ancestors(s).astype(bool).any(axis=1)
    body = np.asarray(s.flex_vertbodyid)[item_corners(s)]
    # The first vertex on a body that moves represents the item.
    first = np.argmax((body >= 0) & moving[np.maximum(body, 0)], axis=1)
    found = body[np.arange(len(body)), first]
    for f in np.flatnonzero(s.flex_interp):
        node = s.flex_nodeadr[f] + np.arange(s.flex_nodenum[f])
        of_node = np.asarray(s.flex_nodebodyid)[node]
        found = np.where(item_flex(s) == f, of_node[np.argmax(moving[of_node])], found)
    return np.append(found, 0).astype(np.int32)


@cache_by_structure
def item_trees(s: Structure) -> np.ndarray:
    """Return the trees that move an item, `[nflexelem + nflexvert + 1, ntree]` of 0 and 1.

    These are the trees of its vertices, of its hinge, and of the nodes of its flex; none for no
    item.
    """
    body = np.asarray(s.flex_vertbodyid)
    tree = np.where(body < 0, -1, s.body_treeid[np.maximum(body, 0)])
    every = np.arange(s.ntree)
    found = (tree[item_corners(s)][:, :, None] == every).any(axis=1)
    for f in np.flatnonzero(s.flex_interp):
        node = s.flex_nodeadr[f] + np.arange(s.flex_nodenum[f])
        of_node = s.body_treeid[np.asarray(s.flex_nodebodyid)[node]]
        found[item_flex(s) == f] = np.isin(every, of_node)
    # Edges with a hinge also move with the tree of the hinge.
    found = np.append(1.0 * found, np.zeros((1, s.ntree)), axis=0)
    turns = np.flatnonzero(item_edge(s) >= 0)
    found[turns, s.dof_treeid[rod_chains(s).dof[item_edge(s)[turns]]]] = 1
    return found


def set_contact_bodies(m: Model, c: Contacts) -> Contacts:
    """Set the bodies of flex contacts; deactivate contacts that no dof moves, and passive ones."""
    assert c.item is not None
    moves = np.append(ancestors(m).astype(bool).any(axis=1), False)
    body: list[IdArray] = []
    moved = jnp.zeros_like(c.active)
    for geom, own, item in zip(c.geom, c.body, c.item, strict=True):
        # Take the body of the geom, or the body that represents the item.
        is_geom = c.each(geom) >= 0
        number = jnp.where(is_geom, own.array(c.dist), item.values(item_body(m.structure), c.dist))
        body.append(TracedIds(number))
        of_geom = is_geom & own.values(moves, c.dist)
        moved = moved | of_geom | item.values(item_moves(m.structure), c.dist)
    c = c._replace(active=c.active & moved, body=(body[0], body[1]))
    passive = passive_contacts(m, c)
    return c if passive is None else c._replace(active=c.active & ~passive)


def is_geom_contact(c: Contacts) -> Array | bool:
    """Return a mask of the contacts between two geoms."""
    if c.item is None:
        return True
    return (c.each(c.geom[0]) >= 0) & (c.each(c.geom[1]) >= 0)
