"""What the tables of a model say of its flexes, for the compiler, the options and the physics."""

from typing import Any

import numpy as np

from jaxsim.enums import GeomType

# surfaces of which the mode ipc knows how far a vertex is
SURFACES = (
    *(GeomType.PLANE, GeomType.SPHERE, GeomType.CAPSULE, GeomType.ELLIPSOID, GeomType.CYLINDER),
    *(GeomType.BOX, GeomType.MESH),
)


def asks_passive(passive: Any, dim: Any, rigid: Any) -> np.ndarray:
    """Which flexes ask for passive contacts; of rods and of what is rigid it says nothing.

    Args:
      passive, dim, rigid: `flex_passive`, `flex_dim`, `flex_rigid`, of one flex or of several.
    """
    return (np.asarray(passive) != 0) & (np.asarray(dim) > 1) & ~np.asarray(rigid, bool)


def meet(m: Any, one: str, other: str) -> np.ndarray:
    """Which of one kind and of another have bits in common.

    Args:
      m: a model or its tables, of which `contype` and `conaffinity` count.
      one, other: "geom" or "flex".

    Returns:
      `[n, k]` bool: a bit of the type of one is in the affinity of the other.
    """
    type1, affinity1, type2, affinity2 = (
        np.asarray(getattr(m, f"{kind}_{what}"))
        for kind in (one, other)
        for what in ("contype", "conaffinity")
    )
    return ((type1[:, None] & affinity2) | (affinity1[:, None] & type2)) != 0


def shells(s: Any) -> np.ndarray:
    """Return `[nflex]` bool: the flexes of triangles."""
    is_shell: np.ndarray = np.asarray(s.flex_dim) == 2
    return is_shell


def of_mode(s: Any) -> tuple[np.ndarray, np.ndarray]:
    """What the mode takes from the other contacts: flexes with geoms `[nflex, ngeom]`, and with
    flexes `[nflex, nflex]`, bool."""
    fixed = np.asarray(s.body_weldid)[s.geom_bodyid] == 0
    surface = np.isin(s.geom_type, SURFACES) & fixed & _hulled(s)
    shell = shells(s)
    return shell[:, None] & surface, shell[:, None] & shell


def _hulled(s: Any) -> np.ndarray:
    """Return the geoms that are no mesh, or one with a hull, `[ngeom]` bool."""
    mesh = np.asarray(s.geom_type) == GeomType.MESH
    out = ~mesh
    out[mesh] = np.asarray(s.mesh_polynum)[np.asarray(s.geom_dataid)[mesh]] > 0
    return out
