"""Select the object under a pixel; MuJoCo's `mjv_select`, by the rays of the physics."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.math import Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.inertia import com_pos
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.flex.flex import flex
from jaxsim.physics.query.ray import ray
from jaxsim.physics.ray.cast import Rays
from jaxsim.transforms.layout import batched
from jaxsim.transforms.program_cache import ProgramCache
from jaxsim.view.body import in_body
from jaxsim.view.camera import Camera
from jaxsim.view.flex.hit import flex_hit, skin_hit
from jaxsim.view.frame import pixel_ray

DEFAULT_GROUPS = (
    True,
    True,
    True,
    False,
    False,
    False,
)  # groups that MuJoCo's viewers show by default
_NO_HIT = -1


class Selection(NamedTuple):
    """The object under a pixel.

    Attributes:
      body: id of the body, 0 for the world; -1: nothing.
      geom: id of the geom, or -1.
      flex, skin: id of the flex or of the skin, or -1; at most one of the three is set.
      point: the hit point on a geom, or the nearest point of a flex or skin, in the world, (3,)
        [m];
        zero for nothing.
      localpos: that point in the frame of the body, for `init_perturb`.
    """

    body: jax.Array
    geom: jax.Array
    flex: jax.Array
    skin: jax.Array
    point: jax.Array
    localpos: jax.Array


def select(
    m: Model,
    d: Data,
    camera: Camera,
    aspect: Array | float,
    relx: Array | float,
    rely: Array | float,
    geomgroup: Sequence[bool] = DEFAULT_GROUPS,
    flg_static: bool = True,
) -> Selection:
    """Return the geom, flex or skin under a pixel, its body, and the point there.

    Corresponds to `mjv_select` in MuJoCo. Flexes are hit as MuJoCo's viewers draw them by default,
    edges and faces, for every group; the body of a flex or skin is that of the nearest vertex (for
    an interpolated flex that of its node, for a skin the bone with the largest weight).

    Args:
      m: the model.
      d: data, of which qpos (and the poses of mocap bodies) are used.
      camera: the camera.
      aspect: width of the window divided by its height.
      relx, rely: the pixel, from 0 to 1, from the left and from the bottom.
      geomgroup: six values, visibility of the groups of geoms. Known when traced.
      flg_static: whether geoms fixed to the world are hit. Known when traced.

    Raises:
      ValueError: `jaxsim.support.ray` does not support a geom.
    """
    begin, way = pixel_ray(m, d, camera, aspect, relx, rely)
    hit = ray(m, d, begin, way, tuple(geomgroup), flg_static)
    bodies = jnp.asarray(m.geom_bodyid.astype(np.int32)) if m.ngeom else jnp.zeros(1, jnp.int32)
    body = jnp.where(hit.geomid >= 0, bodies[jnp.maximum(hit.geomid, 0)], _NO_HIT)
    of_geom = _Taken(hit.dist, body, begin + hit.dist * way, hit.geomid)
    found = {"geom": of_geom} | _deformable_hits(m, d, begin, way)
    dist = jnp.stack([jnp.where(t.dist < 0, jnp.inf, t.dist) for t in found.values()])
    best, met = jnp.argmin(dist), jnp.min(dist) < jnp.inf
    taken = jax.tree.map(lambda *each: jnp.stack(each)[best], *found.values())
    nothing = jnp.full_like(hit.geomid, _NO_HIT)
    ids = dict.fromkeys(("geom", "flex", "skin"), nothing)
    ids |= {kind: jnp.where(best == k, t.id, nothing) for k, (kind, t) in enumerate(found.items())}
    localpos = in_body(m, d, jnp.maximum(taken.body, 0), taken.point)
    return Selection(
        body=taken.body,
        **ids,
        point=jnp.where(met, taken.point, 0),
        localpos=jnp.where(met, localpos, 0),
    )


class _Taken(NamedTuple):
    """Hit of a ray on one kind of object: distance, body, point (3,), and id."""

    dist: jax.Array
    body: jax.Array
    point: jax.Array
    id: jax.Array


def _deformable_hits(m: Model, d: Data, begin: Array, way: Array) -> dict[str, _Taken]:
    """Return the hits of a ray on flexes and on skins, where the model has some."""
    found = _hits(m, d, begin, way) if m.nflex or m.nskin else {}
    return {kind: _Taken(t.dist[0], t.body[0], t.point, t.id[0]) for kind, t in found.items()}


def _native(m: Model, d: Data, begin: Array, way: Array) -> dict[str, _Taken]:
    d = flex(m, com_pos(m, kinematics(m, d)))
    pos, vec = (Vec(*(v[k : k + 1] for k in range(3))) for v in (begin, way))
    rays = Rays(pos, vec, unseen=())
    found = {"flex": flex_hit(m, d, rays)} if m.nflex else {}
    found |= {"skin": skin_hit(m, d, rays)} if m.nskin else {}
    return {
        kind: _Taken(hit.dist, hit.body, jnp.concatenate(hit.point.parts), hit.id)
        for kind, hit in found.items()
    }


_hits = ProgramCache(batched(_native), inline=True)
