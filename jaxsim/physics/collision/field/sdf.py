"""Contacts of two geoms with signed distance functions, one of which is an `sdf` geom.

Each initial point of the descent may end in a contact; among those that end in the same point the
first counts. Corresponds to `mjc_SDF` in MuJoCo. The descent is in `descent.py`, its derivative in
`follow.py`.
"""

import jax

from jaxsim.physics.arrays.array import Array
from jaxsim.physics.collision.field.descent import descend
from jaxsim.physics.collision.field.fields import Fields
from jaxsim.physics.collision.field.follow import followed
from jaxsim.physics.collision.field.found import Found, contacts, in_world
from jaxsim.physics.collision.field.pair import normals, pair_of, relative
from jaxsim.physics.collision.field.starts import starting_points
from jaxsim.physics.collision.shape import Placed, Touch, slots


def sdf_contacts(a: Placed, b: Placed, fields: Fields, reach: Array | None = None) -> Touch:
    """Compute the contacts of geoms with `sdf` geoms, at most one per initial point.

    `reach` is not used: the distance of a pair is unknown before the search ends.
    """
    return _contacts(a, b, fields)


@jax.custom_jvp
def _contacts(a: Placed, b: Placed, fields: Fields) -> Touch:
    """Return the contacts in the world frame."""
    return in_world(_search(a, b, fields), b)


@_contacts.defjvp
def _sdf_contacts_jvp(primals: tuple, tangents: tuple) -> tuple[Touch, Touch]:
    """Differentiate the contacts at fixed results of the search (follow.py)."""
    found = _search(*primals)

    def follow(a, b, fields):
        return in_world(followed(found, a, b, fields), b)

    _, tangent = jax.jvp(follow, primals, tangents)
    return in_world(found, primals[1]), tangent


def _search(a: Placed, b: Placed, fields: Fields) -> Found:
    """Return the contacts in the frames of the second geoms."""
    pair = pair_of(a, b, fields)
    y, meet = starting_points(fields.box(a), fields.box(b), *relative(a, b), fields.starts)
    x, dist = descend(pair, pair.to_second(y), fields.iterations)
    return contacts(Found(x, dist, normals(pair, x)), slots(meet))
