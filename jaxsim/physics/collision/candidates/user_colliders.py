"""Colliders that users registered (extend/registry.py), batched over pairs and worlds."""

from collections.abc import Callable, Mapping

import jax
import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.extend.registry import Collider as UserCollider
from jaxsim.extend.registry import collider_of
from jaxsim.math import Vec
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.candidates.table import COLLIDERS, PairCollider
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms


def user_rows(s: Structure) -> dict[tuple[int, int], UserCollider]:
    """Return the registered colliders that a model was loaded with, by the two geom types.

    Raises:
      ValueError: a collider is no longer registered, or was replaced since.
    """
    rows = {}
    for key in s.collider_keys:
        row = collider_of(key)
        if row is None:
            raise ValueError(
                f"the collider of geom types {key[:2]} is not the one that the model was loaded "
                "with; register it, and load the model again"
            )
        rows[key[:2]] = row
    return rows


@cache_by_structure
def model_colliders(s: Structure) -> Mapping[tuple[int, int], PairCollider]:
    """Return the collider of each two geom types in a model: built-in ones and those of users."""
    own = {
        kind: PairCollider(_batch_collider(row.collide, row.slots), row.slots)
        for kind, row in user_rows(s).items()
    }
    return {**COLLIDERS, **own}


def _batch_collider(
    collide: Callable, slots: int
) -> Callable[[PlacedGeoms, PlacedGeoms], ContactPoints]:
    """Batch a collider of one pair of geoms over all pairs and worlds."""

    def one_pair(*geoms):
        dist, pos, normal = (jnp.asarray(a) for a in collide(*geoms))
        shapes = dist.shape, pos.shape, normal.shape
        if shapes != ((slots,), (slots, 3), (slots, 3)):
            raise ValueError(
                f"the collider returned shapes {shapes}; expected ({slots},), ({slots}, 3) twice"
            )
        return dist, pos, normal

    def all_pairs(a: PlacedGeoms, b: PlacedGeoms) -> ContactPoints:
        # Arguments of the user's function: size, position and orientation of both geoms.
        given = [x for g in (a, b) for x in (g.size.to_array(1), g.pos.to_array(1), _matrix(g))]
        worlds = jnp.broadcast_shapes(*(x.shape[-1:] for x in given)) if a.pos.x.ndim > 1 else ()
        # Batch over pairs first, then over worlds (last axis).
        function: Callable = jax.vmap(one_pair)
        if worlds:
            given = [jnp.broadcast_to(x, (*x.shape[:-1], *worlds)) for x in given]
            function = jax.vmap(function, in_axes=-1, out_axes=-1)
        dist, pos, normal = function(*given)
        return ContactPoints(jnp.moveaxis(dist, 1, 0), _points(pos), _points(normal))

    return all_pairs


def _matrix(g: PlacedGeoms) -> Array:
    """Return the orientations of geoms as matrices, `[n, 3, 3, *W]`."""
    a = g.rot.to_array(1)
    return a.reshape(a.shape[0], 3, 3, *a.shape[2:])


def _points(a: Array) -> Vec:
    """Convert points `[n, slots, 3, *W]` to a vector of `[slots, n, *W]`."""
    a = jnp.moveaxis(a, 1, 0)
    return Vec(a[:, :, 0], a[:, :, 1], a[:, :, 2])
