"""Contacts of two geoms with signed distance functions, one of which is an `sdf` geom.

Each initial point of the descent may end in a contact; among those that end in the same point the
first counts. Corresponds to `mjc_SDF` in MuJoCo. The descent is in `descent.py`, its derivative in
`contact_derivative.py`.
"""

import jax

from jaxsim.arrays.array import Array
from jaxsim.physics.collision.field.contact_derivative import follow_contacts
from jaxsim.physics.collision.field.descent import descend_gradient
from jaxsim.physics.collision.field.fields import SdfTables
from jaxsim.physics.collision.field.initial_points import starting_points
from jaxsim.physics.collision.field.pair import pair_normals, pair_of, relative_pose
from jaxsim.physics.collision.field.search_results import (
    SdfSearchResult,
    contacts_in_world,
    filter_contacts,
)
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms, add_slot_axis


def sdf_contacts(
    a: PlacedGeoms, b: PlacedGeoms, fields: SdfTables, reach: Array | None = None
) -> ContactPoints:
    """Compute the contacts of geoms with `sdf` geoms, at most one per initial point.

    `reach` is not used: the distance of a pair is unknown before the search ends.
    """
    return _contacts(a, b, fields)


@jax.custom_jvp
def _contacts(a: PlacedGeoms, b: PlacedGeoms, fields: SdfTables) -> ContactPoints:
    """Return the contacts in the world frame."""
    return contacts_in_world(_search_contacts(a, b, fields), b)


@_contacts.defjvp
def _sdf_contacts_jvp(primals: tuple, tangents: tuple) -> tuple[ContactPoints, ContactPoints]:
    """Differentiate the contacts at fixed results of the search (contact_derivative.py)."""
    found = _search_contacts(*primals)

    def follow(a, b, fields):
        return contacts_in_world(follow_contacts(found, a, b, fields), b)

    _, tangent = jax.jvp(follow, primals, tangents)
    return contacts_in_world(found, primals[1]), tangent


def _search_contacts(a: PlacedGeoms, b: PlacedGeoms, fields: SdfTables) -> SdfSearchResult:
    """Return the contacts in the frames of the second geoms."""
    pair = pair_of(a, b, fields)
    y, meet = starting_points(fields.box(a), fields.box(b), *relative_pose(a, b), fields.starts)
    x, dist = descend_gradient(pair, pair.to_second(y), fields.iterations)
    return filter_contacts(SdfSearchResult(x, dist, pair_normals(pair, x)), add_slot_axis(meet))
