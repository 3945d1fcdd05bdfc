"""Selection of the flex contacts that are passive forces (passive/contact.py) without rows.

MuJoCo's documentation, XML reference: flex/contact/passive. The attribute applies to shells and
solids; rods and rigid flexes ignore it. Passive are contacts of such a flex with itself, with any
other flex, and with geoms of the world and of bodies welded to it. Contacts with bodies that may
move, mocap bodies included, keep their constraint rows; with the flag `ipc` all contacts do.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.enums import EnableBit
from jaxsim.model.flex.kinds import asks_passive, bits_in_common
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.driver import Contacts
from jaxsim.physics.collision.flex.item import item_flex


@cache_by_structure
def passive_flexes(s: Structure) -> np.ndarray:
    """Return a mask of the flexes with passive contacts, `[nflex]` bool."""
    return asks_passive(s.flex_passive, s.flex_dim, s.flex_rigid)


@cache_by_structure
def flexes_with_passive_contacts(s: Structure) -> np.ndarray:
    """Return the pairs of flexes whose contacts with each other are passive, `[n, 2]`."""
    asks = passive_flexes(s)
    some = bits_in_common(s, "flex", "flex") & (asks[:, None] | asks)
    return np.argwhere(np.triu(some, 1))


def passive_contacts(m: Model, c: Contacts) -> Array | None:
    """Return a mask of passive contacts, `[ncontact, *W]` bool; None: the model can have none."""
    asks = passive_flexes(m.structure)
    if c.item is None or not asks.any() or m.opt.enableflags & EnableBit.IPC:
        return None
    of_item = np.append(asks[item_flex(m)], False)
    is_soft = np.append(np.ones(len(item_flex(m)), bool), False)
    asked = jnp.zeros_like(c.exists)
    fixed = jnp.ones_like(c.exists)
    # Passive: some side is a flex that asks for it, and both sides are flexes or static.
    for geom, body, item in zip(c.geom, c.body, c.item, strict=True):
        soft = item.values(is_soft, c.dist)
        still = (c.each(geom) >= 0) & body.values(m.body_weldid == 0, c.dist)
        asked = asked | item.values(of_item, c.dist)
        fixed = fixed & (soft | still)
    return c.exists & asked & fixed
