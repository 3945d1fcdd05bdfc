"""Default capacities: contacts of a world, and near pairs of geoms that reach the narrow phase.

The estimate counts the contact points of bodies at rest: four for a box, two for a capsule, one for
a sphere; for a free body of several geoms, all points on one side of it
(`io/capacity/resting_contacts.py`). Free bodies are often piled up, so each also carries another.
On a height field every prism that is touched has a contact: all prisms under a geom; under a round
geom, those below a third of its width, which it touches at a penetration of a twentieth of its
radius. Contacts of `sdf` geoms are searched from several starting points, most of which end in a
contact. The capacity is never below the number of candidate contacts in the initial state.
"""

import math

import numpy as np

from jaxsim.enums import GeomType
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.candidates.pairs import GeomPairs, GeomTypePair, unique_ids
from jaxsim.physics.collision.convex.prisms import max_prism_contacts
from jaxsim.transforms.tuning import tuning

REST_POINTS = {GeomType.SPHERE: 1, GeomType.CAPSULE: 2, GeomType.ELLIPSOID: 1}
DEFAULT_REST_POINTS = 4  # contact points at rest of all other types
_ROUND_HFIELD_FRACTION = {GeomType.SPHERE: 9, GeomType.CAPSULE: 3, GeomType.ELLIPSOID: 9}
# Prisms near a corner of a cell; a point at the corner touches six of them.
_PRISMS_AT_CORNER = 8
# Factor for a free body: as many points again with the body that lies on it.
_FREE_BODY_FACTOR = 2
# Contacts per body of a heap: a ball touches six others, and two bodies share a contact.
_MIN_FREE_BODY_CONTACTS = 3
_ROBOT_PART_FACTOR = 1.25  # factor for a link of a robot: some links touch two other geoms
_CAPACITY_MULTIPLE = 8
# Capacity of any model: an object in a hand or a cup touches at many points.
_MIN_CONTACT_CAPACITY = 32


def contact_capacity(s: Structure, pairs: GeomPairs, most: int, starts: int) -> int:
    """Return the default contact capacity of a world, at most `most`.

    Args:
      s: structure of the model.
      pairs: candidate pairs.
      most: number of all candidate points.
      starts: starting points of the contact search of a pair with an `sdf` geom.
    """
    # Contact points at rest of each moving body: those of its geom that has the most.
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
            points = max(points, _hfield_contacts(s, g)) if int(g) in on_field else points
            points = max(points, int(s.body_rest[body]))
            rest[body] = max(rest.get(body, 0), points)
    # Sum over the bodies; free bodies may be piled up, links of robots touch little else.
    capacity = sum(
        max(_FREE_BODY_FACTOR * points, _MIN_FREE_BODY_CONTACTS)
        if is_free(s, body)
        else _ROBOT_PART_FACTOR * points
        for body, points in rest.items()
    )
    # The initial state must fit.
    capacity = max(capacity, s.nstart)
    # Round up, within the number of candidate points.
    return min(
        most,
        max(_MIN_CONTACT_CAPACITY, math.ceil(capacity / _CAPACITY_MULTIPLE) * _CAPACITY_MULTIPLE),
    )


def pair_budget(
    s: Structure, pairs: GeomPairs, kinds: tuple[GeomTypePair, ...], of_kind: np.ndarray
) -> int:
    """Return the number of pairs of a group that the narrow phase tests.

    Groups with a plane test all pairs. Others test the number the user set (`nnear`); by default
    two pairs for each geom and three for each geom of a free body, and at least as many as are
    near in the initial state.
    """
    if any(kind[0] == GeomType.PLANE for kind in kinds):
        return len(of_kind)
    if s.nnear:
        return min(len(of_kind), s.nnear)
    # By default a few neighbors of each geom, and the pairs near in the initial state.
    geoms = unique_ids(pairs.geom1[of_kind], pairs.geom2[of_kind])
    neighbors = sum(3 if is_free(s, s.body_weldid[s.geom_bodyid[g]]) else 2 for g in geoms)
    start = sum(int(s.kind_near[kind]) for kind in kinds)
    return min(len(of_kind), max(tuning().max_untested_pairs, neighbors, start))


def _hfield_contacts(s: Structure, geom: int) -> int:
    """Return the number of contacts of a geom at rest on a height field."""
    prisms = int(s.geom_prismnum[geom])
    return max_prism_contacts(
        max(prisms // _ROUND_HFIELD_FRACTION.get(GeomType(s.geom_type[geom]), 1), _PRISMS_AT_CORNER)
    )


def is_free(s: Structure, body: int) -> bool:
    """Return whether a body is free: at least three dofs, no moving ancestors or descendants."""
    return bool(_free_bodies(s)[body])


@cache_by_structure
def _free_bodies(s: Structure) -> np.ndarray:
    """Compute `is_free` of each body, `[nbody]` bool."""
    alone = np.ones(s.nbody, bool)
    alone[s.body_parentid[s.body_weldid != s.body_parentid]] = False
    return alone & (s.body_rootid == np.arange(s.nbody)) & (s.body_dofnum >= 3)
