"""How many contacts a world has room for, if its user does not say; and how many near pairs.

A body at rest touches with a few points: a box with four, a capsule with two, a sphere with one; a
free body of several geoms with all that are on one side of it (io/room/rest.py). Free bodies are
often piled up, so that each also carries another. On a height field there is a
contact for each prism that is touched: all that are under a geom; if it is round, those under a
third of its width, with which it touches when it has sunk in by a twentieth of its radius. Where
contacts are searched from many starting points, as those of `sdf` geoms, most of these end in a
contact. What may touch where the model starts has room in any case.
"""

import math

import numpy as np

from jaxsim.enums import GeomType
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.collision.candidates.pairs import Kind, Pairs, occurring
from jaxsim.physics.collision.convex.prisms import most_contacts

REST_POINTS = {GeomType.SPHERE: 1, GeomType.CAPSULE: 2, GeomType.ELLIPSOID: 1}
MANY = 4  # that of all others
PART = {GeomType.SPHERE: 9, GeomType.CAPSULE: 3, GeomType.ELLIPSOID: 9}
CORNER = 8  # prisms under a point that is near a corner of a cell; at the corner it touches six
CARRIED = 2  # as many points again with what lies on a free body
PACKED = 3  # of a body among its like: a ball in a heap touches six, and each contact is of two
SPARE = 1.25  # of a part of a robot: some of them touch two things
ROUND_TO = 8
LEAST = 32  # room in any model: what is held in a hand or a cup touches in many points
FEW = 16  # pairs of one kind for which a test would cost more than it saves


def contact_capacity(s: Structure, pairs: Pairs, most: int, starts: int) -> int:
    """A bounded number of contacts, at most that of all candidate points.

    Args:
      s: tables under MuJoCo's names.
      pairs: candidate pairs.
      most: number of all candidate points.
      starts: points from which the contacts of a pair with an `sdf` geom are searched.
    """
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
    room = sum(
        max(CARRIED * points, PACKED) if is_free(s, body) else SPARE * points
        for body, points in rest.items()
    )
    room = max(room, s.nstart)
    return min(most, max(LEAST, math.ceil(room / ROUND_TO) * ROUND_TO))


def pair_budget(s: Structure, pairs: Pairs, kinds: tuple[Kind, ...], of_kind: np.ndarray) -> int:
    """How many pairs of a group go through the narrow phase: few, or with planes all; else as many
    as were asked for, or two for each geom, and three for that of a body on its own; but not fewer
    than are near where the model starts."""
    if any(kind[0] == GeomType.PLANE for kind in kinds):
        return len(of_kind)
    if s.nnear:
        return min(len(of_kind), s.nnear)
    geoms = occurring(pairs.geom1[of_kind], pairs.geom2[of_kind])
    neighbors = sum(3 if is_free(s, s.body_weldid[s.geom_bodyid[g]]) else 2 for g in geoms)
    start = sum(int(s.kind_near[kind]) for kind in kinds)
    return min(len(of_kind), max(FEW, neighbors, start))


def _on_field(s: Structure, geom: int) -> int:
    """Contacts of a geom that lies on a height field."""
    prisms = int(s.geom_prismnum[geom])
    return most_contacts(max(prisms // PART.get(GeomType(s.geom_type[geom]), 1), CORNER))


def is_free(s: Structure, body: int) -> bool:
    """A body on its own, which can go anywhere: no moving ancestors or descendants."""
    return bool(_free_bodies(s)[body])


@derived
def _free_bodies(s: Structure) -> np.ndarray:
    """`is_free` of each body, `[nbody]` bool."""
    alone = np.ones(s.nbody, bool)
    alone[s.body_parentid[s.body_weldid != s.body_parentid]] = False
    return alone & (s.body_rootid == np.arange(s.nbody)) & (s.body_dofnum >= 3)
