"""Which contacts of flexes have rows."""

import numpy as np

from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.collision.driver import Contacts
from jaxsim.physics.collision.flex.item import item_corners, item_flex
from jaxsim.physics.topology import ancestors


@derived
def item_moves(s: Structure) -> np.ndarray:
    """[nflexelem + nflexvert] bool: some dof moves some of the bodies of an item."""
    moving = ancestors(s).astype(bool).any(axis=1)
    body = np.asarray(s.flex_vertbodyid)
    of_vertex = np.where(body < 0, False, moving[np.maximum(body, 0)])
    found = of_vertex[item_corners(s)].any(axis=1)
    for f in np.flatnonzero(s.flex_interp):
        node = s.flex_nodeadr[f] + np.arange(s.flex_nodenum[f])
        found[item_flex(s) == f] = moving[np.asarray(s.flex_nodebodyid)[node]].any()
    return found


def with_rows(m: Model, c: Contacts) -> Contacts:
    """Contacts that are active only where some dof moves one of both sides."""
    assert c.item is not None
    moving = np.append(item_moves(m.structure), False)  # the last: no item
    body_moves = ancestors(m).astype(bool).any(axis=1)
    acts = [body.values(body_moves, c.dist) for body in c.body]
    acts += [item.values(moving, c.dist) for item in c.item]
    return c._replace(active=c.active & (acts[0] | acts[1] | acts[2] | acts[3]))
