"""Ray hits on flexes and skins, for selection of a point and its body with the mouse.

As in MuJoCo's `mjv_select`, flexes are those that its viewers show by default: rods along edges,
and faces, for solids the outer ones. The selected point is not the hit point but the nearest vertex
or, for an interpolated flex, the node nearest to that vertex; for a skin the body is the bone with
the largest weight there.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather, gather_static
from jaxsim.math import Vec, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.flex.flex import node_positions
from jaxsim.physics.flex.lattice import lattice_shape
from jaxsim.physics.ray.cast import Rays
from jaxsim.physics.ray.flex import Shown, cast_soft, visible_flex_items
from jaxsim.view.flex.surface import skin_points, skin_tables

_DEFAULT_SHOWN = Shown(layer=0, vert=False, edge=True, face=False, skin=True)
_NO_HIT = -1


class SoftHit(NamedTuple):
    """First hits of rays, `[n, *W]`.

    Attributes:
      dist: distance in lengths of the ray vectors; -1: no hit.
      id: id of the flex or skin, or -1.
      body: the selected body.
      point: the selected point, in the world.
    """

    dist: jax.Array
    id: jax.Array
    body: jax.Array
    point: Vec


def flex_hit(m: Model, d: Data, rays: Rays) -> SoftHit:
    """Return the hits of rays on the flexes of a model; `d` has their vertices."""
    tables, flex = _flex_tables(m.structure)
    hits = cast_soft(d.flexvert_xpos, gather_static(m.flex_radius, flex), tables, rays)
    met, vert = hits.vert >= 0, jnp.maximum(hits.vert, 0)
    of = jnp.asarray(flex.astype(np.int32))[vert]
    body = jnp.asarray(m.flex_vertbodyid.astype(np.int32))[vert]
    point = gather(d.flexvert_xpos, vert)
    if np.any(m.flex_interp):
        node = _nearest_node(m, vert, of)
        by_node = jnp.asarray(m.flex_interp != 0)[of]
        body = jnp.where(by_node, jnp.asarray(m.flex_nodebodyid.astype(np.int32))[node], body)
        point = select_where(by_node, gather(node_positions(m, d), node), point)
    return SoftHit(hits.dist, jnp.where(met, of, _NO_HIT), jnp.where(met, body, _NO_HIT), point)


def skin_hit(m: Model, d: Data, rays: Rays) -> SoftHit:
    """Return the hits of rays on the skins of a model; `d` has the poses of bodies."""
    bone, _, skin, around, corner, _ = skin_tables(m.structure)
    pos = skin_points(m, d).pos
    hits = cast_soft(pos, jnp.zeros_like(pos.x), [corner.T.astype(np.int32)], rays)
    met, vert = hits.vert >= 0, jnp.maximum(hits.vert, 0)
    of = jnp.asarray(skin.astype(np.int32))[vert]
    none = jnp.full_like(m.skin_bonevertweight[:1], _NO_HIT)
    weights = jnp.concatenate([m.skin_bonevertweight, none])
    places = jnp.moveaxis(jnp.asarray(around.astype(np.int32))[vert], -1, 0)
    heaviest = jnp.argmax(jnp.stack([gather(weights, one) for one in places]), axis=0)
    place = jnp.take_along_axis(places, heaviest[None], axis=0)[0]
    body = jnp.asarray(m.skin_bonebodyid.astype(np.int32))[
        jnp.asarray(bone.astype(np.int32))[place]
    ]
    none, point = jnp.full_like(of, _NO_HIT), gather(pos, vert)
    return SoftHit(hits.dist, jnp.where(met, of, none), jnp.where(met, body, none), point)


def _nearest_node(m: Model, vert: Array, flex: Array) -> Array:
    """Return the node of its flex that is nearest to a vertex at qpos0; of two, the lower."""
    sizes = np.array([lattice_shape(m.structure, f)[1] for f in range(m.nflex)], np.int32)
    size = jnp.moveaxis(jnp.asarray(sizes)[flex], -1, 0)
    place = gather(m.flex_vert0, vert)
    x, y, z = (
        jnp.ceil(s * (n - 1).astype(s.dtype) - 0.5).astype(jnp.int32)
        for s, n in zip(place.parts, size, strict=True)
    )
    node = (x * size[1] + y) * size[2] + z
    return jnp.asarray(m.flex_nodeadr.astype(np.int32))[flex] + jnp.maximum(node, 0)


@cache_by_structure
def _flex_tables(s: Structure) -> tuple[list, np.ndarray]:
    """Return the visible elements of all flexes, by vertices of the model, and the flex of each
    vertex."""
    parts: dict[int, list] = {}
    for f in range(s.nflex):
        for table in visible_flex_items(s, f, _DEFAULT_SHOWN):
            parts.setdefault(table.shape[1], []).append(table + np.int32(s.flex_vertadr[f]))
    tables = [np.concatenate(some) for some in parts.values()]
    return tables, np.repeat(np.arange(s.nflex), s.flex_vertnum)
