"""The points of each tendon's path, one after another, as mjData lists them.

A string that touches its geom has two points more, so that the number of points, and where those
of the next tendon begin, follow from the configuration.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import WrapType
from jaxsim.math import Vec, concat
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.arrays.select import column, pick, running_sum, take, weighted_sum
from jaxsim.physics.collision.compact import first_true
from jaxsim.physics.tendon.path import Legs, leg_groups, legs, tendon_of_wrap
from jaxsim.physics.tendon.wrap import Wrap

SITE, PULLEY = -1, -2  # of `wrap_obj`, where it is no geom


class Places(NamedTuple):
    """Every point that the paths can have, `[n]`, in order.

    Attributes:
      tendon: its tendon.
      obj: geom that it is on; or SITE or PULLEY.
      source: where it is found: a pulley (0), sites (from 1 on), then the points at which wrapping
        legs first and last touch their geoms.
      leg: number of the wrapping leg it is of; -1: it is always there.
    """

    tendon: np.ndarray
    obj: np.ndarray
    source: np.ndarray
    leg: np.ndarray


def wrap_points(m: Model, d: Data, touch: Wrap | None) -> Data:
    """Writes ten_wrapadr, ten_wrapnum, wrap_obj and wrap_xpos, if `d` keeps one of them.

    Two points a row, as in MuJoCo; places past the last point are zero.

    Args:
      m: model.
      d: data with `site_xpos`.
      touch: where legs meet the geoms in their way, in the order of `leg_groups`; None: there are
        no such legs.
    """
    if all(getattr(d, name) is None for name in FIELDS):
        return d
    places, room, worlds = _places(m), 2 * m.nwrap, d.qpos.shape[1:]
    there = jnp.ones((len(places.obj), *worlds), bool)
    zero = jnp.zeros((1, *worlds), d.qpos.dtype)
    known = concat([Vec(zero, zero, zero), d.site_xpos])
    if touch is not None:
        always = column(places.leg < 0, there)
        there = take(touch.touches, np.maximum(places.leg, 0)) | always
        known = concat([known, touch.first, touch.last])
    index, number = first_true(there, np.arange(len(there)), room)
    filled = column(np.arange(room, dtype=np.int32), number) < number
    obj = jnp.where(filled, pick(column(places.obj, there), index), 0)
    point = pick(take(known, places.source), index).map(lambda x: jnp.where(filled, x, 0))
    owner = 1.0 * (np.arange(m.ntendon)[:, None] == places.tendon)
    num = weighted_sum(owner, there.astype(zero.dtype)).astype(jnp.int32)
    return d.replace(
        ten_wrapnum=num,
        ten_wrapadr=running_sum(num) - num,
        wrap_obj=obj.reshape(m.nwrap, 2, *worlds),
        wrap_xpos=point.to_array().reshape(m.nwrap, 6, *worlds),
    )


FIELDS = ("ten_wrapadr", "ten_wrapnum", "wrap_obj", "wrap_xpos")


@derived
def _places(s: Structure) -> Places:
    """Every point that the paths can have, in the order of the paths.

    A site is listed if a leg ends there, a pulley if something follows it.
    """
    every, wrapping = legs(s), _wrapping(s)
    number = np.arange(len(wrapping))
    last = s.tendon_adr + s.tendon_num - 1
    pulley = np.setdiff1d(np.flatnonzero(s.wrap_type == WrapType.PULLEY), last)
    site = np.union1d(every.start, every.end)
    geom = wrapping.end - 1  # stands before the site behind it
    groups = [  # place in the wrap tables, wrap_obj, source, leg
        (pulley, np.full(len(pulley), PULLEY), 0 * pulley, -1 + 0 * pulley),
        (site, np.full(len(site), SITE), 1 + s.wrap_objid[site], -1 + 0 * site),
        (geom, wrapping.geom, 1 + s.nsite + number, number),
        (geom, wrapping.geom, 1 + s.nsite + len(number) + number, number),
    ]
    wrap, obj, source, leg = (
        np.concatenate(part).astype(np.int32) for part in zip(*groups, strict=True)
    )
    order = np.argsort(wrap, kind="stable")  # first touch before last
    return Places(tendon_of_wrap(s)[wrap[order]], obj[order], source[order], leg[order])


def _wrapping(s: Structure) -> Legs:
    """The legs that may wrap, in the order of `leg_groups`."""
    groups = [group for kind, _, group in leg_groups(s) if kind != WrapType.NONE]
    none = legs(s).where(np.zeros(len(legs(s)), bool))
    return Legs.join([none, *groups])
