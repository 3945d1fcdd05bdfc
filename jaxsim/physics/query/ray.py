"""Rays from the configuration alone; MuJoCo's `mj_ray` and `mj_multiRay`."""

import functools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.math import Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.native import worlds
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.ray.cast import Rays, cast
from jaxsim.physics.ray.surfaces import seen, unknown
from jaxsim.physics.refusal import named

GROUPS = 6  # of geoms, that rays may see or not


class RayHit(NamedTuple):
    """What a ray meets first, or each of several.

    Attributes:
      dist: how far it goes, in lengths of its vector; -1: it meets nothing.
      geomid: the geom that it meets; -1: none.
      normal: of the surface there, outwards, in the world; zero if it meets nothing.
    """

    dist: jax.Array
    geomid: jax.Array
    normal: jax.Array


def ray_hits(
    m: Model,
    d: Data,
    pnt: Array,
    vec: Array,
    geomgroup: tuple[bool, ...] | None,
    flg_static: bool,
    bodyexclude: Array,
) -> RayHit:
    """What rays meet, with `pnt` and `vec` `(n, 3)` and one body, of one world."""
    return _hits(geomgroup, flg_static)(m, d, pnt, vec, bodyexclude)


@functools.cache
def _hits(geomgroup: tuple[bool, ...] | None, flg_static: bool) -> Callable[..., RayHit]:
    def rays(m: Model, d: Data, pnt: Array, vec: Array, body: Array) -> RayHit:
        d = kinematics(m, d)
        pos, way = (Vec(*(x[:, k] for k in range(3))) for x in (pnt, vec))
        hits = cast(m, d, Rays(pos, way, body), geoms_seen(m.structure, geomgroup, flg_static))
        return RayHit(hits.dist, hits.geom, jnp.stack(hits.normal.parts, axis=1))

    return worlds(rays)


def geoms_seen(
    s: Structure, geomgroup: tuple[bool, ...] | None = None, flg_static: bool = True
) -> np.ndarray:
    """Geoms that rays can meet, of some groups, with those that are fixed to the world or without.

    A group beyond the last counts as that.
    """
    ids = seen(s)
    if geomgroup is not None:
        group = np.clip(s.geom_group, 0, GROUPS - 1)
        ids = ids[np.array(geomgroup)[group[ids]]]
    return ids if flg_static else ids[s.body_weldid[s.geom_bodyid[ids]] != 0]


def check_seen(m: Model, geoms: np.ndarray) -> None:
    """Raises ValueError if rays cannot be asked about one of some geoms."""
    for geom in np.intersect1d(geoms, unknown(m.structure)):
        raise ValueError(
            f"ray: {named(m, 'geom', geom)}: the signed distance of its plugin is not known; leave "
            "it out by its group"
        )


def given_groups(geomgroup: Sequence[bool] | Array | None) -> tuple[bool, ...] | None:
    """Which groups are seen, as bools; ValueError if these are not six that are known."""
    if geomgroup is None:
        return None
    if isinstance(geomgroup, jax.core.Tracer) or np.shape(geomgroup) != (GROUPS,):
        raise ValueError(
            f"ray: geomgroup: expected None or {GROUPS} numbers that are known when it is traced, "
            f"got {geomgroup!r}"
        )
    return tuple(bool(g) for g in np.asarray(geomgroup))
