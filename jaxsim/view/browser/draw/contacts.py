"""Contacts for drawing: positions, and forces in the world."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.support import contact_forces

_NEEDED_FIELDS: frozenset[str] = vars(contact_forces)["carries"]


class Touch(NamedTuple):
    """Contacts of some worlds.

    Attributes:
      world: index of the world of each, (n,).
      pos: position, (n, 3) [m].
      force: force on the second geom, in the world, (n, 3) [N]; None: unknown.
    """

    world: np.ndarray
    pos: np.ndarray
    force: np.ndarray | None


class Touching:
    """Program that lists the contacts of worlds, with their forces where these follow from the
    state.

    Attributes:
      m: the model; one with other options may be set.
    """

    def __init__(self, m: Model):
        self.m = m
        self._listed = jax.jit(jax.vmap(_contact_list))
        self._forces = jax.jit(jax.vmap(_forces, (None, 0)))

    def find(self, d: Data) -> dict[str, jax.Array] | None:
        """Start the computation of contacts of one or many worlds, and return at once.

        None if they carry no contacts.
        """
        if d.contact is None:
            return None
        if d.qpos.ndim == 1:
            d = jax.tree.map(lambda x: x[None], d)
        if all(getattr(d, name) is not None for name in _NEEDED_FIELDS):
            return self._forces(self.m, d)
        return self._listed(d)

    def touch(self, found: dict[str, jax.Array] | None) -> Touch | None:
        """Return the contacts that `find` computes, when they are ready."""
        if found is None:
            return None
        world, index = np.nonzero(np.asarray(found["there"]))
        force = found.get("force")
        return Touch(
            world,
            np.asarray(found["pos"])[world, index],
            None if force is None else np.asarray(force)[world, index],
        )


def _contact_list(d: Data) -> dict[str, jax.Array]:
    # copied, because the memory of `d` may be donated to its next step
    return {"there": d.contact.exists, "pos": 1 * d.contact.pos}


def _forces(m: Model, d: Data) -> dict[str, jax.Array]:
    in_frame = contact_forces(m, d)[:, :3]
    return {**_contact_list(d), "force": jnp.einsum("nij,ni->nj", d.contact.frame, in_frame)}
