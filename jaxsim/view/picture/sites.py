"""Draw sites as additional geoms of the rendered model.

MuJoCo's renderer draws a site like a geom of its shape, color and material, including shadows,
reflections, transparency and textures. An image is therefore rendered from a model whose geoms are
followed by the visible sites; only the renderer uses this model.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import GeomType
from jaxsim.math import Rot, Vec, concat, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure

_SHARED_TABLES = ("type", "bodyid", "dataid", "matid", "group")  # tables that sites have too
# values of tables that sites do not have
_SITE_DEFAULTS = {"contype": 0, "conaffinity": 0, "castshadow": 1}


def visible_sites(s: Structure, sitegroup: tuple[bool, ...]) -> np.ndarray:
    """Return the visible sites, except meshes without faces; larger group numbers count as the
    last."""
    shown = np.array(sitegroup)[np.clip(s.site_group, 0, len(sitegroup) - 1)]
    mesh = np.where(s.site_type == GeomType.MESH, s.site_dataid, -1)
    return np.flatnonzero(shown & ((mesh < 0) | (np.append(s.mesh_facenum, 0)[mesh] > 0)))


def add_site_geoms(m: Model, d: Data, sitegroup: tuple[bool, ...]) -> tuple[Model, Data]:
    """Return a model whose last geoms are the sites of some groups, and its poses.

    Only for rays and appearance: other fields of its geoms are those of `m`.

    Args:
      m, d: model and data, unpacked, with the poses of geoms and sites.
      sitegroup: visible groups.
    """
    sites = visible_sites(m.structure, sitegroup)
    if not len(sites):
        return m, d
    values = {
        "structure": _structure(m.structure, sitegroup),
        "geom_size": _concatenate(m.geom_size, gather_static(m.site_size, sites)),
        "geom_rgba": _concatenate(m.geom_rgba, gather_static(m.site_rgba, sites)),
        # 0: no bounding sphere, so that rays test every site (physics/ray/cast.py).
        "geom_rbound": _concatenate(
            m.geom_rbound, jnp.zeros_like(gather_static(m.site_size, sites)[:, 0])
        ),
    }
    pos, rot = _site_poses(m, d, sites)
    poses = {
        "geom_xpos": concat([d.geom_xpos, pos]),
        "geom_xmat": concat([d.geom_xmat, rot]),
    }
    return m.replace_unchecked(values, native=True), d.replace_unchecked(poses, native=True)


def _site_poses(m: Model, d: Data, sites: np.ndarray) -> tuple[Vec, Rot]:
    """Return the poses of some sites; for a mesh that of the frame of its points."""
    pos, rot = gather_static((d.site_xpos, d.site_xmat), sites)
    is_mesh = m.site_type[sites] == GeomType.MESH
    if not is_mesh.any():
        return pos, rot
    mesh = np.where(is_mesh, m.site_dataid[sites], 0)
    here = column(is_mesh, pos)
    shift, quat = gather_static((m.mesh_pos, m.mesh_quat), mesh)
    return select_where(here, pos + rot @ shift, pos), select_where(here, rot @ quat.matrix(), rot)


@cache_by_structure
def _structure(s: Structure, sitegroup: tuple[bool, ...]) -> Structure:
    sites, tables = visible_sites(s, sitegroup), {}
    for name in _SHARED_TABLES:
        tables[f"geom_{name}"] = getattr(s, f"site_{name}")[sites]
    for name, value in _SITE_DEFAULTS.items():
        tables[f"geom_{name}"] = np.full(len(sites), value)
    joined = {}
    for name, rows in tables.items():
        own = getattr(s, name)
        joined[name] = np.concatenate([own, rows.astype(own.dtype)])
    return s.replace(ngeom=s.ngeom + len(sites), **joined)


def _concatenate(a: Array, b: Array) -> Array:
    """Return the concatenated rows of two tables, one of which may be shared by all worlds."""
    rank = max(a.ndim, b.ndim)
    a, b = (x.reshape(x.shape + (1,) * (rank - x.ndim)) for x in (a, b))
    shape = jnp.broadcast_shapes(a.shape[1:], b.shape[1:])
    return jnp.concatenate([jnp.broadcast_to(x, (len(x), *shape)) for x in (a, b)])
