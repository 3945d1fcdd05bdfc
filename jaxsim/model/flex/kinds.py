"""Classification of flexes from the tables of a model, for compiler, options and physics."""

from typing import Any

import numpy as np

from jaxsim.enums import GeomType

# Geom types for which the flag ipc computes distances of vertices.
SURFACE_SHAPES = (
    *(GeomType.PLANE, GeomType.SPHERE, GeomType.CAPSULE, GeomType.ELLIPSOID, GeomType.CYLINDER),
    *(GeomType.BOX, GeomType.MESH),
)


def asks_passive(passive: Any, dim: Any, rigid: Any) -> np.ndarray:
    """Return which flexes request passive contacts; rods and rigid flexes have none.

    Args:
      passive, dim, rigid: `flex_passive`, `flex_dim`, `flex_rigid`, of one flex or of several.
    """
    return (np.asarray(passive) != 0) & (np.asarray(dim) > 1) & ~np.asarray(rigid, bool)


def bits_in_common(m: Any, one: str, other: str) -> np.ndarray:
    """Return which pairs of objects have matching collision masks.

    Args:
      m: a model or its tables, which gives `contype` and `conaffinity`.
      one, other: "geom" or "flex".

    Returns:
      `[n, k]` bool: a bit of the contype of one is set in the conaffinity of the other.
    """
    type1, affinity1, type2, affinity2 = (
        np.asarray(getattr(m, f"{kind}_{what}"))
        for kind in (one, other)
        for what in ("contype", "conaffinity")
    )
    return ((type1[:, None] & affinity2) | (affinity1[:, None] & type2)) != 0


def shells(s: Any) -> np.ndarray:
    """Return which flexes are shells, made of triangles, `[nflex]` bool."""
    is_shell: np.ndarray = np.asarray(s.flex_dim) == 2
    return is_shell


def mode_contacts(s: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs whose contacts the flag ipc handles: flexes with geoms `[nflex, ngeom]`, and
    flexes with flexes `[nflex, nflex]`, bool."""
    fixed = np.asarray(s.body_weldid)[s.geom_bodyid] == 0
    surface = np.isin(s.geom_type, SURFACE_SHAPES) & fixed & _have_hull(s)
    shell = shells(s)
    return shell[:, None] & surface, shell[:, None] & shell


def _have_hull(s: Any) -> np.ndarray:
    """Return which geoms are no mesh or a mesh with a hull, `[ngeom]` bool."""
    mesh = np.asarray(s.geom_type) == GeomType.MESH
    out = ~mesh
    out[mesh] = np.asarray(s.mesh_polynum)[np.asarray(s.geom_dataid)[mesh]] > 0
    return out
