"""Default capacities: contacts of a world, and near pairs of geoms that reach the narrow phase.

The estimate counts the contact points of bodies at rest: four for a box, two for a capsule, one for
a sphere; for a free body of several geoms, all points on one side of it (`io/room/rest.py`). Free
bodies are often piled up, so each also carries another. On a height field every prism that is
touched has a contact: all prisms under a geom; under a round geom, those below a third of its
width, which it touches at a penetration of a twentieth of its radius. Contacts of `sdf` geoms are
searched from several starting points, most of which end in a contact. The capacity is never below
the number of candidate contacts in the initial state.
"""

import math

import numpy as np

from jaxsim.enums import GeomType
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.collision.candidates.pairs import Kind, Pairs, occurring
from jaxsim.physics.collision.convex.prisms import most_contacts

REST_POINTS = {GeomType.SPHERE: 1, GeomType.CAPSULE: 2, GeomType.ELLIPSOID: 1}
MANY = 4  # contact points at rest of all other types
PART = {GeomType.SPHERE: 9, GeomType.CAPSULE: 3, GeomType.ELLIPSOID: 9}
CORNER = 8  # prisms near a corner of a cell; a point at the corner touches six of them
CARRIED = 2  # factor for a free body: as many points again with the body that lies on it
PACKED = 3  # contacts per body of a heap: a ball touches six others, and two bodies share a contact
SPARE = 1.25  # factor for a link of a robot: some links touch two other geoms
ROUND_TO = 8
LEAST = 32  # capacity of any model: an object in a hand or a cup touches at many points
FEW = 16  # pairs of a group below which a broad phase costs more than it saves


def contact_capacity(s: Structure, pairs: Pairs, most: int, starts: int) -> int:
    """Return the default contact capacity of a world, at most `most`.

    Args:
      s: structure of the model.
      pairs: candidate pairs.
      most: number of all candidate points.
      starts: starting points of the contact search of a pair with an `sdf` geom.
    """
    # Contact points at rest of each moving body: those of its geom that has the most.
    geoms = occurring(pairs.geom1, pairs.geom2)
    on_field = set(pairs.geom2[s.geom_type[pairs.geom1] == GeomType.HFIELD].tolist())
    found = pairs.searched(s.geom_type)
    searched = np.isin(geoms, np.concatenate([found.geom1, found.geom2]))
    rest: dict[int, int] = {}
    for g, many in zip(geoms, searched, strict=True):
        body = int(s.body_weldid[s.geom_bodyid[g]])
        if body:
            points = starts if many else REST_POINTS.get(GeomType(s.geom_type[g]), MANY)
            points = max(points, _on_field(s, g)) if int(g) in on_field else points
            points = max(points, int(s.body_rest[body]))
            rest[body] = max(rest.get(body, 0), points)
    # Sum over the bodies; free bodies may be piled up, links of robots touch little else.
    room = sum(
        max(CARRIED * points, PACKED) if is_free(s, body) else SPARE * points
        for body, points in rest.items()
    )
    # The initial state must fit.
    room = max(room, s.nstart)
    # Round up, within the number of candidate points.
    return min(most, max(LEAST, math.ceil(room / ROUND_TO) * ROUND_TO))


def pair_budget(s: Structure, pairs: Pairs, kinds: tuple[Kind, ...], of_kind: np.ndarray) -> int:
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
    geoms = occurring(pairs.geom1[of_kind], pairs.geom2[of_kind])
    neighbors = sum(3 if is_free(s, s.body_weldid[s.geom_bodyid[g]]) else 2 for g in geoms)
    start = sum(int(s.kind_near[kind]) for kind in kinds)
    return min(len(of_kind), max(FEW, neighbors, start))


def _on_field(s: Structure, geom: int) -> int:
    """Return the number of contacts of a geom at rest on a height field."""
    prisms = int(s.geom_prismnum[geom])
    return most_contacts(max(prisms // PART.get(GeomType(s.geom_type[geom]), 1), CORNER))


def is_free(s: Structure, body: int) -> bool:
    """Return whether a body is free: at least three dofs, no moving ancestors or descendants."""
    return bool(_free_bodies(s)[body])


@derived
def _free_bodies(s: Structure) -> np.ndarray:
    """Compute `is_free` of each body, `[nbody]` bool."""
    alone = np.ones(s.nbody, bool)
    alone[s.body_parentid[s.body_weldid != s.body_parentid]] = False
    return alone & (s.body_rootid == np.arange(s.nbody)) & (s.body_dofnum >= 3)
