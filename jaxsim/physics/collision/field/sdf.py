"""Contacts of geoms that are known by their signed distance, one of which is an `sdf` geom.

Each starting point of the search may end in a contact; of those that end in the same point the
first counts. See `descent.py` for the search and `follow.py` for its derivative.
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
    """Contacts of geoms with `sdf` geoms, at most one for each starting point.

    How far contacts reach is not asked: the search does not know before its end.
    """
    return _contacts(a, b, fields)


@jax.custom_jvp
def _contacts(a: Placed, b: Placed, fields: Fields) -> Touch:
    return in_world(_search(a, b, fields), b)


@_contacts.defjvp
def _sdf_contacts_jvp(primals: tuple, tangents: tuple) -> tuple[Touch, Touch]:
    found = _search(*primals)

    def follow(a, b, fields):
        return in_world(followed(found, a, b, fields), b)

    _, tangent = jax.jvp(follow, primals, tangents)
    return in_world(found, primals[1]), tangent


def _search(a: Placed, b: Placed, fields: Fields) -> Found:
    """The contacts in the frames of the second geoms."""
    pair = pair_of(a, b, fields)
    y, meet = starting_points(fields.box(a), fields.box(b), *relative(a, b), fields.starts)
    x, dist = descend(pair, pair.to_second(y), fields.iterations)
    return contacts(Found(x, dist, normals(pair, x)), slots(meet))
