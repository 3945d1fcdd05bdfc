"""How many contacts a world has room for, if its user does not say; and how many near pairs.

A body at rest touches with a few points: a box with four, a capsule with two, a sphere with one; a
free body of several geoms with all that are on one side of it (io/capacity/rest.py). Free bodies
are often piled up, so that each also carries another. On a height field there is a
contact for each prism that is touched: all that are under a geom; if it is round, those under a
third of its width, with which it touches when it has sunk in by a twentieth of its radius. Where
contacts are searched from many starting points, as those of `sdf` geoms, most of these end in a
contact. What may touch where the model starts has room in any case.
"""

import math

import numpy as np

from jaxsim.enums import GeomType
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.candidates.pairs import GeomPairs, GeomTypePair, unique_ids
from jaxsim.physics.collision.convex.prisms import max_prism_contacts

REST_POINTS = {GeomType.SPHERE: 1, GeomType.CAPSULE: 2, GeomType.ELLIPSOID: 1}
DEFAULT_REST_POINTS = 4  # that of all others
_ROUND_HFIELD_FRACTION = {GeomType.SPHERE: 9, GeomType.CAPSULE: 3, GeomType.ELLIPSOID: 9}
_PRISMS_AT_CORNER = (
    8  # prisms under a point that is near a corner of a cell; at the corner it touches six
)
_FREE_BODY_FACTOR = 2  # as many points again with what lies on a free body
_MIN_FREE_BODY_CONTACTS = (
    3  # of a body among its like: a ball in a heap touches six, and each contact is of two
)
_ROBOT_PART_FACTOR = 1.25  # of a part of a robot: some of them touch two things
_CAPACITY_MULTIPLE = 8
_MIN_CONTACT_CAPACITY = (
    32  # room in any model: what is held in a hand or a cup touches in many points
)
_MAX_UNTESTED_PAIRS = 16  # pairs of one kind for which a test would cost more than it saves


def contact_capacity(s: Structure, pairs: GeomPairs, most: int, starts: int) -> int:
    """A bounded number of contacts, at most that of all candidate points.

    Args:
      s: tables under MuJoCo's names.
      pairs: candidate pairs.
      most: number of all candidate points.
      starts: points from which the contacts of a pair with an `sdf` geom are searched.
    """
    geoms = unique_ids(pairs.geom1, pairs.geom2)
    on_field = set(pairs.geom2[s.geom_type[pairs.geom1] == GeomType.HFIELD].tolist())
    found = pairs.searched(s.geom_type)
    searched = np.isin(geoms, np.concatenate([found.geom1, found.geom2]))
    rest: dict[int, int] = {}
    for g, many in zip(geoms, searched, strict=True):
        body = int(s.body_weldid[s.geom_bodyid[g]])
        if body:
            points = (
                starts if many else REST_POINTS.get(GeomType(s.geom_type[g]), DEFAULT_REST_POINTS)
            )
            points = max(points, _on_field(s, g)) if int(g) in on_field else points
            points = max(points, int(s.body_rest[body]))
            rest[body] = max(rest.get(body, 0), points)
    room = sum(
        max(_FREE_BODY_FACTOR * points, _MIN_FREE_BODY_CONTACTS)
        if is_free(s, body)
        else _ROBOT_PART_FACTOR * points
        for body, points in rest.items()
    )
    room = max(room, s.nstart)
    return min(
        most, max(_MIN_CONTACT_CAPACITY, math.ceil(room / _CAPACITY_MULTIPLE) * _CAPACITY_MULTIPLE)
    )


def pair_budget(
    s: Structure, pairs: GeomPairs, kinds: tuple[GeomTypePair, ...], of_kind: np.ndarray
) -> int:
    """How many pairs of a group go through the narrow phase: few, or with planes all; else as many
    as were asked for, or two for each geom, and three for that of a body on its own; but not fewer
    than are near where the model starts."""
    if any(kind[0] == GeomType.PLANE for kind in kinds):
        return len(of_kind)
    if s.nnear:
        return min(len(of_kind), s.nnear)
    geoms = unique_ids(pairs.geom1[of_kind], pairs.geom2[of_kind])
    neighbors = sum(3 if is_free(s, s.body_weldid[s.geom_bodyid[g]]) else 2 for g in geoms)
    start = sum(int(s.kind_near[kind]) for kind in kinds)
    return min(len(of_kind), max(_MAX_UNTESTED_PAIRS, neighbors, start))


def _on_field(s: Structure, geom: int) -> int:
    """Contacts of a geom that lies on a height field."""
    prisms = int(s.geom_prismnum[geom])
    return max_prism_contacts(
        max(prisms // _ROUND_HFIELD_FRACTION.get(GeomType(s.geom_type[geom]), 1), _PRISMS_AT_CORNER)
    )


def is_free(s: Structure, body: int) -> bool:
    """A body on its own, which can go anywhere: no moving ancestors or descendants."""
    return bool(_free_bodies(s)[body])


@cache_by_structure
def _free_bodies(s: Structure) -> np.ndarray:
    """`is_free` of each body, `[nbody]` bool."""
    alone = np.ones(s.nbody, bool)
    alone[s.body_parentid[s.body_weldid != s.body_parentid]] = False
    return alone & (s.body_rootid == np.arange(s.nbody)) & (s.body_dofnum >= 3)
