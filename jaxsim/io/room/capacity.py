"""How many contacts and near pairs of geoms a world has room for, from the call or from the file.

MuJoCo's documentation, MuJoCo XLA: the custom numbers `max_contact_points`, the most contacts of
each condim, and `max_geom_pairs`, the most pairs of geoms of each two types, bound what a world
holds. Here there is one number for the contacts of all condims, and one for each group of types
that one function collides: both are taken so many times that nothing is lost which they allow.
"""

from collections.abc import Mapping

import numpy as np

from jaxsim.io.room.near import near_at_start
from jaxsim.io.room.rest import points_at_rest
from jaxsim.io.room.start import boxes_at_start
from jaxsim.model.model import Model
from jaxsim.physics.collision.candidates.plan import default_capacity, layout_without_room

CONTACTS, PAIRS = "max_contact_points", "max_geom_pairs"


def with_room(m: Model, contacts: int | None, pairs: int | None) -> Model:
    """Return a model with room for these numbers; None: what its file asks for, or as its pairs
    have it.

    Args:
      m: a model that is complete but for its room.
      contacts: contacts of a world.
      pairs: near pairs of each group that one function collides.
    """
    boxes = boxes_at_start(m)
    known = near_at_start(m, boxes) | {"body_rest": points_at_rest(m, boxes)}
    chosen = m.extended(nnear=0, **known)
    if pairs is None and (custom := _custom(m, PAIRS)):
        groups = layout_without_room(chosen).groups
        pairs = custom * max((len(g.kinds) for g in groups), default=1)
    m = m.extended(nnear=pairs, **known) if pairs else chosen
    if contacts is None:
        contacts = _condims(m) * _custom(m, CONTACTS) or default_capacity(m)
    # at least one place, so that `d.contact` has the same form in every model
    return m.extended(ncontact=max(1, contacts))


def _custom(m: Model, name: str) -> int:
    """Return a custom number of the file; 0 if it has none, or one that stands for none."""
    s = m.structure
    names: Mapping[str, tuple[str, ...]] = dict(s.names)
    known = names.get("numeric", ())
    if name not in known:
        return 0
    value = float(np.asarray(m.numeric_data)[s.numeric_adr[known.index(name)]])
    return max(0, round(value)) if np.isfinite(value) else 0


def _condims(m: Model) -> int:
    """How many condims there are among the geoms and pairs that can touch."""
    s = m.structure
    touching = (s.geom_contype != 0) | (s.geom_conaffinity != 0)
    return max(1, len(np.union1d(s.geom_condim[touching], s.pair_dim)))
