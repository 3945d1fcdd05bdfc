"""Touch sensors: normal force of contacts in the volume of a site."""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.gather import gather_static
from jaxsim.arrays.kind_dispatch import compute_by_kind
from jaxsim.enums import GeomType
from jaxsim.math import Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.sensor.shape_query import RAY_INTERVALS, ray_hits_shape
from jaxsim.physics.solver.constraint_force import contact_side, net_contact_force


def touch(m: Model, d: Data, site: np.ndarray) -> Array:
    """Sum the normal forces of contacts in a site's volume, `[n, *W]` [N].

    A contact counts if it is on the site's body and its normal, as a ray from the contact point out
    of the body, intersects the site's volume.
    """
    force = net_contact_force(d)
    if force is None:
        return jnp.zeros((len(site), *d.qpos.shape[1:]), d.qpos.dtype)
    normal, contacts = force[0], d.found.contacts

    def force_inside(i: np.ndarray, kind: GeomType) -> Array:
        one = site[i]
        # The contact normal points from the first geom to the second, out of the first body.
        out = -contact_side(d, m.site_bodyid[one])
        R = gather_static(d.site_xmat, one).map(lambda a: a[:, None])
        place = gather_static(d.site_xpos, one)
        offset = Vec(
            *(p[None] - c[:, None] for p, c in zip(contacts.pos.parts, place.parts, strict=True))
        )
        axis = contacts.frame.rows[0].map(lambda a: a[None])
        size = gather_static(m.site_size, one)[:, :, None]
        meets = ray_hits_shape(kind, size, R.T @ offset, (R.T @ axis).scale(out))
        # Sum the repulsive normal forces of the contacts that meet the site.
        return apply(meets.astype(normal.dtype), jnp.maximum(normal, 0))

    table = {kind: lambda i, kind=kind: force_inside(i, kind) for kind in RAY_INTERVALS}
    return compute_by_kind(m.site_type[site], table, normal)
