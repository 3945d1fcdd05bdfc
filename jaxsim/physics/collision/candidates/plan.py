"""Static plan of the collision stage: pairs by collider, broad-phase budgets, contact capacity.

All shapes of the stage follow from this plan, which depends on the structure and the options of the
model only. Pairs are numbered in the order of MuJoCo's contacts: by bodies, then by geoms. Three
lengths bound a program; docs/developer/capacities.md follows an example through them:

    budget      pairs of a group that the narrow phase tests (`PairGroup.budget`)
    points      candidate contacts of all groups, budget times contact points of a pair
    capacity    contacts of a world (`CollisionLayout.capacity`)
"""

from typing import NamedTuple

import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column
from jaxsim.enums import EnableBit, GeomType
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.candidates.broadphase import EXTENT_FUNCTIONS
from jaxsim.physics.collision.candidates.default_capacity import contact_capacity, pair_budget
from jaxsim.physics.collision.candidates.options import Options
from jaxsim.physics.collision.candidates.pairs import GeomPairs, GeomTypePair, known_pairs
from jaxsim.physics.collision.candidates.table import (
    NON_COLLIDING_TYPES,
    SMOOTHED_COLLIDERS,
    PairCollider,
    speculative_collider,
)
from jaxsim.physics.collision.candidates.user_colliders import model_colliders, user_rows
from jaxsim.physics.collision.flex.pairs import flex_pairs
from jaxsim.physics.collision.flex.plan import (
    FlexPairGroup,
    flex_contact_capacity,
    flex_pair_groups,
    rank_contacts,
)
from jaxsim.physics.topology import ancestors


class PairGroup(NamedTuple):
    """Pairs that share a collider.

    Attributes:
      kinds: types of the geoms.
      collider: narrow-phase function.
      pairs: indices among all pairs, ascending.
      budget: number of pairs that the narrow phase tests.
      slots: number of contact points of a pair.
    """

    kinds: tuple[GeomTypePair, ...]
    collider: PairCollider
    pairs: np.ndarray
    budget: int
    slots: int

    @property
    def tests_every_entry(self) -> bool:
        """Return whether the budget covers every pair."""
        return self.budget == len(self.pairs)

    @property
    def has_broad_phase(self) -> bool:
        """Return whether pairs may be rejected before the narrow phase."""
        return not self.tests_every_entry or self.collider.by_lane

    @property
    def tested_types(self) -> GeomTypePair | None:
        """Return the types that the broad phase tests; None: any types, by bounding boxes."""
        if len(self.kinds) == 1 and set(self.kinds[0]) <= {*EXTENT_FUNCTIONS, GeomType.PLANE}:
            return self.kinds[0]
        with_plane = all(kind[0] == GeomType.PLANE for kind in self.kinds)
        return (GeomType.PLANE, GeomType.MESH) if with_plane else None

    @property
    def boxes(self) -> bool:
        """Return whether the broad phase tests bounding boxes rather than the geoms."""
        return self.tested_types is None or self.tested_types[1] not in EXTENT_FUNCTIONS

    @property
    def points(self) -> int:
        """Return the number of candidate contacts."""
        return self.budget * self.slots


class CollisionLayout(NamedTuple):
    """Plan of the collision stage of a model.

    Attributes:
      pairs: candidate pairs in MuJoCo's order, without those that have no collider. Flexes are
        numbered after the geoms.
      groups: pairs by collider.
      speculative: groups of speculative contacts, only with the flag `speculative`.
      moved: `[npairs]` bool: some dof moves the geoms of a pair relative to each other. A `<pair>`
        may name two for which none does; its contacts have no constraint rows. For flexes see
        flex/contact_bodies.py.
      capacity: maximal number of contacts of a world.
      geom_bodyid: body of each geom; the world for flexes, which have several.
      surfaces: numbers of geoms and of flexes.
      flex_groups: groups of pairs with a flex, see flex/plan.py.
      rank_of_pair: rank of the first contact of each pair of geoms, `[npairs]`; only with flexes.
    """

    pairs: GeomPairs
    groups: tuple[PairGroup, ...]
    speculative: tuple[PairGroup, ...]
    moved: np.ndarray
    capacity: int
    geom_bodyid: np.ndarray
    surfaces: tuple[int, int]
    flex_groups: tuple[FlexPairGroup, ...] = ()
    rank_of_pair: np.ndarray = np.zeros(0, int)

    @property
    def all_groups(self) -> tuple[PairGroup, ...]:
        """Return all groups, in the order of their candidate contacts."""
        return self.groups + self.speculative

    @property
    def boxes(self) -> bool:
        """Return whether the broad phase tests bounding boxes of some pairs."""
        return any(g.boxes for g in self.groups if g.has_broad_phase) or any(
            not g.tests_every_entry and not g.sizes[0] for g in self.flex_groups
        )

    @property
    def empty(self) -> bool:
        """Return whether the model cannot have contacts."""
        return not (self.all_groups or self.flex_groups) or not self.capacity

    @property
    def points(self) -> int:
        """Return the number of candidate contacts."""
        return sum(g.points for g in self.all_groups) + sum(g.points for g in self.flex_groups)

    @property
    def geom_of_surface(self) -> np.ndarray:
        """Return the geom id of each surface, `[ngeom + nflex]`; -1 for flexes."""
        ngeom, nflex = self.surfaces
        return np.append(np.arange(ngeom), np.full(nflex, -1))

    @property
    def fits_all_points(self) -> bool:
        """Return whether every candidate contact has a slot of its own."""
        if self.interleaves or self.flex_groups:
            return False
        return self.capacity >= self.points

    @property
    def interleaves(self) -> bool:
        """Return whether pairs that the broad phase selects interleave with those of other groups.

        Then MuJoCo's order of contacts depends on the state: with the pairs 0 and 2 in a group with
        a budget of one, and pair 1 in another group, the order is 0, 1 in one state and 1, 2 in
        another.
        """
        chosen = [g for g in self.groups if not g.tests_every_entry]
        return any(
            g is not other and np.any((other.pairs > g.pairs[0]) & (other.pairs < g.pairs[-1]))
            for g in chosen
            for other in self.all_groups
        )

    def order(self) -> np.ndarray:
        """Return candidate contacts in MuJoCo's order: by pair, then by point.

        The pairs in the slots of a group with a budget depend on the state; they are sorted as the
        first pair of the group. Where that is not their position, `interleaves` is true.
        """
        pair = [
            _per_point(g, g.pairs if g.tests_every_entry else np.full(g.budget, g.pairs[0]))
            for g in self.all_groups
        ]
        place = [_per_point(g, np.arange(g.budget)) for g in self.all_groups]
        return np.lexsort((*(np.concatenate(a) for a in (place, pair)),))

    def rank(self, pair: Array) -> Array:
        """Return sort keys in MuJoCo's order, from the pairs of candidate contacts `[n, *W]`."""
        slot = np.concatenate([np.repeat(np.arange(g.slots), g.budget) for g in self.all_groups])
        return pair * max(g.slots for g in self.all_groups) + column(slot.astype(np.int32), pair)


def _per_point(group: PairGroup, per_pair: np.ndarray) -> np.ndarray:
    """Repeat values of pairs for each candidate contact: all first points, then all second."""
    return np.tile(per_pair, group.slots)


def collision_layout(m: Model) -> CollisionLayout:
    """Return the collision plan of a model; it is computed once for a structure."""
    return layout_without_capacity(m)._replace(capacity=m.ncontact)


def default_capacity(m: Model) -> int:
    """Return the contact capacity of a world that applies if the user sets none."""
    plan, s = layout_without_capacity(m), m.structure
    most = sum(g.points for g in plan.all_groups)
    pairs = plan.pairs.without(np.flatnonzero(plan.pairs.geom2 >= s.ngeom))
    of_geoms = contact_capacity(s, pairs, most, int(m.opt.sdf_initpoints)) if most else 0
    return of_geoms + flex_contact_capacity(s, plan.flex_groups)


def layout_without_capacity(m: Model) -> CollisionLayout:
    """Return the collision plan of a model without its contact capacity."""
    user_rows(m.structure)  # checked each time: users may have unregistered a collider
    return _layout(m.structure, Options.of(m))


@cache_by_structure
def _layout(s: Structure, options: Options) -> CollisionLayout:
    # Candidate pairs; speculative contacts need them in the order of bodies.
    pairs = known_pairs(s, options.pair_flags)
    if options.enableflags & EnableBit.SPECULATIVE:
        pairs = pairs.by_body(s.geom_bodyid)
    # Group the pairs of geoms by collider; drop kinds that have none.
    known, kinds = model_colliders(s), pairs.by_kind(s.geom_type)
    missing = [of_kind for kind, of_kind in kinds.items() if kind not in known]
    if missing:
        pairs = pairs.without(np.concatenate(missing))
        kinds = pairs.by_kind(s.geom_type)
    together: dict[PairCollider, list[GeomTypePair]] = {}
    for kind in kinds:
        collider = (
            SMOOTHED_COLLIDERS.get(known[kind], known[kind]) if options.smooth else known[kind]
        )
        together.setdefault(collider, []).append(kind)
    groups = tuple(
        _group(s, pairs, collider, options, {kind: kinds[kind] for kind in of_one})
        for collider, of_one in together.items()
        if collider.points(options)  # a search without starting points has no contacts
    )
    # Merge the pairs of flexes into MuJoCo's order, and renumber the groups of geoms.
    speculative = (
        _speculative_groups(s, pairs, options)
        if options.enableflags & EnableBit.SPECULATIVE
        else ()
    )
    by_mode = bool(options.enableflags & EnableBit.IPC)
    pairs, place = _merge_flex_pairs(s, pairs, flex_pairs(s, options.pair_flags, by_mode))
    groups, speculative = (
        tuple(g._replace(pairs=place[g.pairs]) for g in of) for of in (groups, speculative)
    )
    flex_groups = flex_pair_groups(s, pairs)
    body = np.append(s.geom_bodyid, np.zeros(s.nflex, int))
    sizes = s.ngeom, s.nflex
    layout = CollisionLayout(
        pairs, groups, speculative, _has_relative_motion(s, pairs, body), 0, body, sizes
    )
    if not flex_groups:
        return layout
    # Ranks of contact points: with flexes the order by pair and point is not enough.
    slots = np.zeros(len(pairs.dim), int)
    for g in groups + speculative:
        slots[g.pairs] = np.maximum(slots[g.pairs], g.slots)
    rank, flex_groups = rank_contacts(s, slots, flex_groups)
    return layout._replace(flex_groups=flex_groups, rank_of_pair=rank)


def _merge_flex_pairs(
    s: Structure, pairs: GeomPairs, more: GeomPairs
) -> tuple[GeomPairs, np.ndarray]:
    """Merge pairs of geoms and of flexes in MuJoCo's order; return the new indices of the former.

    Flexes count as bodies after all others; self-collisions come last.
    """
    if not len(more.dim):
        return pairs, np.arange(len(pairs.dim))
    both = GeomPairs(*(np.concatenate(a) for a in zip(pairs, more, strict=True)))
    body = np.append(s.geom_bodyid, s.nbody + np.arange(s.nflex))
    one, other = body[both.geom1], body[both.geom2]
    order = np.lexsort((np.maximum(one, other), np.minimum(one, other), both.geom1 == both.geom2))
    # Inverse permutation: new index of each old pair.
    place = np.empty(len(order), int)
    place[order] = np.arange(len(order))
    return GeomPairs(*(a[order] for a in both)), place[: len(pairs.dim)]


def _has_relative_motion(s: Structure, pairs: GeomPairs, body: np.ndarray) -> np.ndarray:
    """Compute `CollisionLayout.moved`; pairs that no `<pair>` names have passed this filter."""
    # Two geoms move relative to each other if different dofs move their bodies.
    moved, named = np.ones(len(pairs.dim), bool), pairs.predefined >= 0
    first, second = (ancestors(s)[body[geom[named]]] for geom in (pairs.geom1, pairs.geom2))
    moved[named] = (first != second).any(axis=1)
    return moved


def _group(
    s: Structure,
    pairs: GeomPairs,
    collider: PairCollider,
    options: Options,
    by_kind: dict[GeomTypePair, np.ndarray],
) -> PairGroup:
    """Return the group of a collider."""
    of_group = np.sort(np.concatenate(list(by_kind.values())))
    budget = pair_budget(s, pairs, tuple(by_kind), of_group)
    return PairGroup(tuple(by_kind), collider, of_group, budget, collider.points(options))


def _speculative_groups(s: Structure, pairs: GeomPairs, options: Options) -> tuple[PairGroup, ...]:
    """Return the groups of pairs that may have speculative contacts."""
    # PairGroup by collider; pairs with planes form groups of their own.
    together: dict[tuple[PairCollider, bool], dict[GeomTypePair, np.ndarray]] = {}
    for kind, of_kind in pairs.by_kind(s.geom_type).items():
        collider = speculative_collider(kind, options)
        # The extent of geoms with a user's collider is not known.
        if collider is not None and kind not in user_rows(s):
            plane = kind[0] == GeomType.PLANE
            together.setdefault((collider, plane), {})[kind] = of_kind
    return tuple(
        _group_without_broad_phase(collider, of_one, options)
        for (collider, _), of_one in together.items()
    )


def _group_without_broad_phase(
    collider: PairCollider, by_kind: dict[GeomTypePair, np.ndarray], options: Options
) -> PairGroup:
    """Return a group in which the narrow phase tests every pair."""
    of_group = np.sort(np.concatenate(list(by_kind.values())))
    return PairGroup(tuple(by_kind), collider, of_group, len(of_group), collider.points(options))


def pairs_without_collider(m: Model) -> dict[GeomTypePair, GeomPairs]:
    """Return the candidate pairs, by kind, that MuJoCo can collide and this package cannot."""
    s = m.structure
    pairs = known_pairs(s, m.pair_flags)
    return {
        kind: GeomPairs(*(field[of_kind] for field in pairs))
        for kind, of_kind in pairs.by_kind(s.geom_type).items()
        if kind not in model_colliders(s)
        and (GeomType(kind[0]), GeomType(kind[1])) not in NON_COLLIDING_TYPES
    }
