"""Containment of points in a site, from the configuration alone; MuJoCo's `mj_insideSite`."""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather
from jaxsim.enums import GeomType
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.shaped import Bool, Float, Int
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.body.site_volume import INSIDE_FUNCTIONS, in_hull
from jaxsim.physics.public.arguments import (
    check_array,
    check_data,
    check_model,
    check_points,
    object_id,
)
from jaxsim.physics.public.wrapper import to_items
from jaxsim.physics.query.ray import to_vectors
from jaxsim.transforms.layout import batched
from jaxsim.transforms.program_cache import ProgramCache


def inside_site(
    m: Model,
    d: Data,
    site: Int[Array, ""] | int | str,
    point: Float[Array, "*n 3"],
) -> Bool[Array, "*n"]:
    """Return True where points are inside a site, or inside the convex hull of a mesh site.

    Args:
      m: the model.
      d: data, of which qpos and the poses of mocap bodies are used.
      site: id () or name of the site.
      point: (3,), or several (n, 3), in the world [m].

    Returns:
      bool, () or (n,).

    Raises:
      ValueError: no such site exists, or a shape or precision is wrong.
    """
    check_model("inside_site", m)
    check_data("inside_site", m, d)
    check_points("inside_site", m, "point", point)
    point = jnp.asarray(point).astype(m.qpos0.dtype)
    number = object_id("inside_site", m, "site", site)
    check_array("inside_site", m, "site", number)
    sites = to_items(number, m.qpos0.dtype)
    found = _inside(m, d, sites, point.reshape(-1, 3))
    return found if point.ndim == 2 else found[0]


def _is_inside_site(m: Model, d: Data, site: Array, point: Array) -> Array:
    d = kinematics(m, d)
    # The points in the frame of the site.
    p = gather(d.site_xmat, site).T @ (to_vectors(point) - gather(d.site_xpos, site))
    size = [gather(m.site_size[:, k], site) for k in range(3)]
    type_ = jnp.asarray(column(m.site_type.astype(np.int32), d.site_xpos))
    here = gather(type_, site)
    mesh = gather(jnp.asarray(column(m.site_dataid.astype(np.int32), d.site_xpos)), site)
    inside = jnp.zeros(p.x.shape, bool)
    # Evaluate every type that occurs and select the site's own.
    for kind in sorted(set(m.site_type.tolist())):
        of_kind = in_hull(m, mesh, p) if kind == GeomType.MESH else INSIDE_FUNCTIONS[kind](*size, p)
        inside = jnp.where(here == kind, of_kind, inside)
    return inside


_inside = ProgramCache(batched(_is_inside_site), inline=True)
