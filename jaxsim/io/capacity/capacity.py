"""Capacities for contacts and near pairs, from the arguments, the model file or an estimate.

MuJoCo's documentation, MuJoCo XLA: the custom number `max_contact_points` limits the contacts of
each condim, and `max_geom_pairs` the geom pairs of each two types. Here one capacity holds for the
contacts of all condims, and one for each group of types that share a collision function; both
limits are multiplied so that everything they allow fits.
"""

from collections.abc import Mapping

import numpy as np

from jaxsim.io.capacity.initial_poses import boxes_at_start
from jaxsim.io.capacity.near_pairs import near_at_start
from jaxsim.io.capacity.resting_contacts import points_at_rest
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure
from jaxsim.physics.collision.candidates.plan import default_capacity, layout_without_capacity

CONTACTS, PAIRS = "max_contact_points", "max_geom_pairs"


def with_capacity(m: Model, contacts: int | None, pairs: int | None) -> Model:
    """Return a model with these capacities; None: as specified in its file, or estimated from its
    pairs.

    Args:
      m: a model that is complete except for its capacities.
      contacts: contact capacity of a world.
      pairs: capacity of near pairs in each group with one collision function.
    """
    boxes = boxes_at_start(m)
    known = near_at_start(m, boxes) | {"body_rest": points_at_rest(m, boxes)}
    chosen = m.with_tables(nnear=0, **known)
    if pairs is None and (custom := _custom_capacity(m, PAIRS)):
        groups = layout_without_capacity(chosen).groups
        pairs = custom * max((len(g.kinds) for g in groups), default=1)
    m = m.with_tables(nnear=pairs, **known) if pairs else chosen
    if contacts is None:
        contacts = _condims(m) * _custom_capacity(m, CONTACTS) or default_capacity(m)
    # At least one slot, so that `d.contact` has the same form in every model.
    return m.with_tables(ncontact=max(1, contacts))


def with_new_capacity(m: Model, contacts: int | None) -> Model:
    """Return a finished model with the capacities of its changed pairs.

    Args:
      m: the model, with its former capacities.
      contacts: contact capacity of a world; None: estimated, at least the former one.
    """
    own = {*near_at_start(m, boxes_at_start(m)), "nnear", "body_rest", "ncontact"}
    rest = Structure({n: getattr(m.structure, n) for n in m.structure if n not in own})
    bare = m.replace_unchecked({"structure": rest}, native=False)
    found = with_capacity(bare, contacts, m.nnear or None)
    if contacts is None and found.ncontact < m.ncontact:
        found = with_capacity(bare, m.ncontact, m.nnear or None)
    return found


def _custom_capacity(m: Model, name: str) -> int:
    """Return a custom number of the file; 0 if it is absent or not positive."""
    s = m.structure
    names: Mapping[str, tuple[str, ...]] = dict(s.names)
    known = names.get("numeric", ())
    if name not in known:
        return 0
    value = float(np.asarray(m.numeric_data)[s.numeric_adr[known.index(name)]])
    return max(0, round(value)) if np.isfinite(value) else 0


def _condims(m: Model) -> int:
    """Return the number of distinct condims among the geoms and pairs that can collide."""
    s = m.structure
    touching = (s.geom_contype != 0) | (s.geom_conaffinity != 0)
    return max(1, len(np.union1d(s.geom_condim[touching], s.pair_dim)))
