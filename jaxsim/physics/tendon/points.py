"""Points of each tendon's path, as mjData lists them (`wrap_xpos`).

A leg that touches its geom has two more points, so that the number of points, and the address of
the next tendon's, depend on the configuration: all possible points are computed, then compacted.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.gather import column, gather, gather_static, running_sum, weighted_sum
from jaxsim.enums import WrapType
from jaxsim.math import Vec, concat
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.compact import compact_true
from jaxsim.physics.tendon.path import Legs, leg_groups, tendon_legs, tendon_of_wrap
from jaxsim.physics.tendon.wrap import WrapResult

SITE, PULLEY = -1, -2  # values of `wrap_obj` for other than geoms


class TendonPathPoints(NamedTuple):
    """All points that the paths can have, `[n]`, in order.

    Attributes:
      tendon: tendon of each point.
      obj: geom that it is on; or SITE or PULLEY.
      source: index into the concatenation of: a zero for pulleys, all sites, then first and last
        touching points of the wrapping legs.
      leg: index of its wrapping leg; -1: the point always exists.
    """

    tendon: np.ndarray
    obj: np.ndarray
    source: np.ndarray
    leg: np.ndarray


def wrap_points(m: Model, d: Data, touch: WrapResult | None) -> Data:
    """Fill ten_wrapadr, ten_wrapnum, wrap_obj and wrap_xpos, if `d` keeps one of them.

    Two points per row, as in MuJoCo; entries past the last point are zero.

    Args:
      m: model.
      d: data with `site_xpos`.
      touch: contacts of the legs with their geoms, in the order of `leg_groups`; None: no such
        legs.
    """
    if all(getattr(d, name) is None for name in _WRAP_FIELDS):
        return d
    places, capacity, worlds = _places(m), 2 * m.nwrap, d.qpos.shape[1:]
    there = jnp.ones((len(places.obj), *worlds), bool)
    # Known points: a zero, sites, touching points.
    zero = jnp.zeros((1, *worlds), d.qpos.dtype)
    known = concat([Vec(zero, zero, zero), d.site_xpos])
    if touch is not None:
        always = column(places.leg < 0, there)
        there = gather_static(touch.touches, np.maximum(places.leg, 0)) | always
        known = concat([known, touch.first, touch.last])
    # Compact the existing points to the front.
    index, number = compact_true(there, np.arange(len(there)), capacity)
    filled = column(np.arange(capacity, dtype=np.int32), number) < number
    obj = jnp.where(filled, gather(column(places.obj, there), index), 0)
    point = gather(gather_static(known, places.source), index).map(
        lambda x: jnp.where(filled, x, 0)
    )
    # Number of points per tendon.
    owner = 1.0 * (np.arange(m.ntendon)[:, None] == places.tendon)
    num = weighted_sum(owner, there.astype(zero.dtype)).astype(jnp.int32)
    return d.replace(
        ten_wrapnum=num,
        ten_wrapadr=running_sum(num) - num,
        wrap_obj=obj.reshape(m.nwrap, 2, *worlds),
        wrap_xpos=point.to_array().reshape(m.nwrap, 6, *worlds),
    )


_WRAP_FIELDS = ("ten_wrapadr", "ten_wrapnum", "wrap_obj", "wrap_xpos")


@cache_by_structure
def _places(s: Structure) -> TendonPathPoints:
    """Return all points that the paths can have, in the order of the paths.

    A site is listed if a leg ends there, a pulley if something follows it.
    """
    # Sources of points: pulleys, sites, first and last touching points.
    every, wrapping = tendon_legs(s), _wrapping_legs(s)
    number = np.arange(len(wrapping))
    last = s.tendon_adr + s.tendon_num - 1
    pulley = np.setdiff1d(np.flatnonzero(s.wrap_type == WrapType.PULLEY), last)
    site = np.union1d(every.start, every.end)
    geom = wrapping.end - 1  # a geom precedes its second site in the tables
    groups = [  # index in the wrap tables, wrap_obj, source, leg
        (pulley, np.full(len(pulley), PULLEY), 0 * pulley, -1 + 0 * pulley),
        (site, np.full(len(site), SITE), 1 + s.wrap_objid[site], -1 + 0 * site),
        (geom, wrapping.geom, 1 + s.nsite + number, number),
        (geom, wrapping.geom, 1 + s.nsite + len(number) + number, number),
    ]
    wrap, obj, source, leg = (
        np.concatenate(part).astype(np.int32) for part in zip(*groups, strict=True)
    )
    # stable: the first touching point comes before the last
    order = np.argsort(wrap, kind="stable")
    return TendonPathPoints(tendon_of_wrap(s)[wrap[order]], obj[order], source[order], leg[order])


def _wrapping_legs(s: Structure) -> Legs:
    """Return the legs that may wrap, in the order of `leg_groups`."""
    groups = [group for kind, _, group in leg_groups(s) if kind != WrapType.NONE]
    none = tendon_legs(s).where(np.zeros(len(tendon_legs(s)), bool))
    return Legs.join([none, *groups])
