"""Smooth contacts for a finished model: their points, height-field prisms and capacity."""

from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from jaxsim.io.capacity.capacity import with_new_capacity
from jaxsim.io.capacity.prisms import prisms_under, prisms_under_elements
from jaxsim.io.unsupported import unsupported_features
from jaxsim.model.model import Model
from jaxsim.model.structure import STRAIGHT_THROUGH
from jaxsim.physics.collision.smooth import SMOOTHING_CUTOFF
from jaxsim.physics.public.arguments import check_smooth


def smooth_contacts(
    m: Model, smooth: float, *, straight_through: bool = False, contacts: int | None = None
) -> Model:
    """Return a model whose contacts act from a distance, as `load_model(..., smooth=h)` does.

    Args:
      m: the model, outside of jit.
      smooth: smoothing length of contacts [m]; 0 removes it.
      straight_through: contacts are smooth in derivatives alone; the motion is that of hard
        contacts.
      contacts: contact capacity of a world; None: what loading would choose, at least the present
        capacity.

    Raises:
      ValueError: the length is invalid, or 0 with `straight_through`.

    Example:
      >>> felt = jaxsim.smooth_contacts(m, 1e-3, straight_through=True)
      >>> felt.nv == m.nv
      True
    """
    length = check_smooth(smooth)
    if not length:
        return set_straight_through(m.replace(smooth=None), straight_through)
    # Detection reaches farther, so more prisms, pairs and contacts are possible.
    fields, reach = _Fields(m), SMOOTHING_CUTOFF * length
    tables: dict[str, Any] = {
        "geom_prismnum": prisms_under(fields, reach),
        "flex_prismnum": prisms_under_elements(fields, reach),
    }
    new = {"structure": m.structure.replace(**tables), "smooth": jnp.asarray(length, m.qpos0.dtype)}
    found = with_new_capacity(m.replace_unchecked(new, native=False), contacts)
    # Some options exclude smooth contacts, as when a model is loaded.
    refused = unsupported_features(found, {}, None)
    found = found.replace_unchecked({"structure": found.structure.replace(**refused)}, native=False)
    return set_straight_through(found, straight_through)


def set_straight_through(m: Model, straight_through: bool) -> Model:
    """Return the model with contacts that are smooth in derivatives alone, or in the motion too.

    Raises:
      ValueError: the model has no smoothing length.
    """
    if straight_through and m.smooth is None:
        raise ValueError("straight_through: the model has no smoothing length; give smooth=h")
    if straight_through == m.straight_through:
        return m
    return m.replace(structure=m.structure.replace(**{STRAIGHT_THROUGH: straight_through}))


class _Fields(Mapping[str, Any]):
    """The fields of a model by name."""

    def __init__(self, m: Model):
        self._m = m

    def __getitem__(self, name: str) -> Any:
        return getattr(self._m, name)

    def __iter__(self):
        return iter((*self._m.fields, *self._m.structure))

    def __len__(self) -> int:
        return len(self._m.fields) + len(tuple(self._m.structure))
