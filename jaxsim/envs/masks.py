"""Collision masks that differ between worlds, and with them shapes that do.

`geom_contype` and `geom_conaffinity` of a model are static: they select the pairs of its program.
Masks that differ between worlds are leaves of the callback `contactfilter`, which compares them for
each pair in each state. The program of a model without such masks does not contain it.
"""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.model.callbacks import Callbacks
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.record.check import brief_value
from jaxsim.physics.public.arguments import check_model


def with_masks(m: Model, contype: Any = None, conaffinity: Any = None) -> Model:
    """Return the model with collision masks as leaves, which may differ between worlds.

    Two geoms collide if `contype` of one and `conaffinity` of the other have a common bit, as in
    MJCF. Only pairs are tested whose bodies have a common bit in the masks of the model itself,
    those of all geoms of a body combined: load the model with all bits that some world may set.
    Pairs of a `<pair>` element collide whatever the masks are. If the model has such masks already,
    they are replaced: its leaves stay the same and their values change, so `randomize` takes them.

    Args:
      m: the model, without a `contactfilter` of its own.
      contype, conaffinity: masks of each geom, (ngeom,) integers, with any leading axes of worlds;
        None: those of the model.

    Raises:
      ValueError: a mask has another shape or is no integer, or there is another `contactfilter`.

    Example:
      >>> base = with_masks(m)  # masks as leaves, with the model's own numbers
      >>> def change(m, key):
      ...     on = jax.random.bernoulli(key, 0.5, (m.ngeom,)).astype(jnp.int32)
      ...     return {"callbacks": with_masks(m, contype=on * m.geom_contype).callbacks}
      >>> keys = jax.random.split(jax.random.key(0), 4)
      >>> models, axes = jaxsim.envs.randomize(base, keys, change)
    """
    check_model("with_masks", m)
    own = Callbacks() if m.callbacks is None else m.callbacks
    if (
        own.contactfilter is not None
        and getattr(own.contactfilter, "func", None) is not separate_masks
    ):
        raise ValueError("with_masks: the model has a callback contactfilter; remove it")
    masks = (
        _mask(m, "contype", m.geom_contype if contype is None else contype),
        _mask(m, "conaffinity", m.geom_conaffinity if conaffinity is None else conaffinity),
    )
    return m.replace(
        callbacks=own.replace(contactfilter=jax.tree_util.Partial(separate_masks, *masks))
    )


def _mask(m: Model, name: str, value: Any) -> jax.Array:
    """Return a mask as an array of integers."""
    if not (jnp.issubdtype(jnp.result_type(value), jnp.integer) and _mask_fits(m, value)):
        raise ValueError(
            f"{name}: expected integers of shape ({m.ngeom},), with any leading axes of worlds; "
            f"got {brief_value(value)}"
        )
    return jnp.asarray(value).astype(np.int32)


def _mask_fits(m: Model, value: Any) -> bool:
    return jnp.ndim(value) > 0 and jnp.shape(value)[-1] == m.ngeom


def separate_masks(
    contype: jax.Array, conaffinity: jax.Array, m: Model, d: Data, geom1: Any, geom2: Any
) -> jax.Array:
    """Return a mask of the pairs of geoms without a common bit, (n,) bool: a `contactfilter`."""
    del m, d
    match = (contype[geom1] & conaffinity[geom2]) | (contype[geom2] & conaffinity[geom1])
    return match == 0
