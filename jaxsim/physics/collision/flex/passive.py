"""Which contacts of flexes push as passive forces (passive/contact.py), and so have no rows.

MuJoCo's documentation, XML reference: flex/contact/passive. Shells and solids may ask for it; of
rods and of what is rigid the attribute says nothing. It holds of a flex with itself, with any other
flex, and with geoms of the world and of what is welded to it. Contacts with what may move keep
their rows, a mocap body among it, and so do all under the flag `ipc`.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.enums import EnableBit
from jaxsim.model.model import Model
from jaxsim.model.soft import asks_passive, bits_in_common
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.driver import Contacts
from jaxsim.physics.collision.flex.item import item_flex


@cache_by_structure
def passive_flexes(s: Structure) -> np.ndarray:
    """[nflex] bool: flexes that ask for passive contacts."""
    return asks_passive(s.flex_passive, s.flex_dim, s.flex_rigid)


@cache_by_structure
def flexes_with_passive_contacts(s: Structure) -> np.ndarray:
    """[n, 2]: two flexes whose contacts with each other are passive."""
    asks = passive_flexes(s)
    some = bits_in_common(s, "flex", "flex") & (asks[:, None] | asks)
    return np.argwhere(np.triu(some, 1))


def passive_contacts(m: Model, c: Contacts) -> Array | None:
    """Which contacts are passive, `[ncontact, *W]` bool; None: no contact of the model can be."""
    asks = passive_flexes(m.structure)
    if c.item is None or not asks.any() or m.opt.enableflags & EnableBit.IPC:
        return None
    of_item = np.append(asks[item_flex(m)], False)
    is_soft = np.append(np.ones(len(item_flex(m)), bool), False)
    asked = jnp.zeros_like(c.exists)
    fixed = jnp.ones_like(c.exists)
    for geom, body, item in zip(c.geom, c.body, c.item, strict=True):
        soft = item.values(is_soft, c.dist)
        still = (c.each(geom) >= 0) & body.values(m.body_weldid == 0, c.dist)
        asked = asked | item.values(of_item, c.dist)
        fixed = fixed & (soft | still)
    return c.exists & asked & fixed
