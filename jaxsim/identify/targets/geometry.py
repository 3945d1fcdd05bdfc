"""Sizes and densities of geoms as parameters, with the inertias of their bodies.

The compiler infers the inertia of a body without `<inertial>` from its geoms; the structure stores
which geoms (`body_matter`), and `set_inertia` repeats the inference on traced numbers. Only bodies
whose geoms a parameter names are recomputed, so all others keep their numbers bit for bit.
"""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import GeomType
from jaxsim.functions.set_inertia import set_inertia
from jaxsim.model.model import Model

# Not a field of the model: the densities that `set_inertia` takes, (ngeom,).
DENSITY_FIELD = "geom_density"
SIZE_FIELD = "geom_size"
OF_BODY = ("body_mass", "body_inertia", "body_ipos", "body_iquat")
_SIZED_TYPES = (
    *(GeomType.SPHERE, GeomType.CAPSULE, GeomType.ELLIPSOID, GeomType.CYLINDER, GeomType.BOX),
    GeomType.PLANE,
)


def densities(m: Model) -> np.ndarray:
    """Return the density of each geom that determines its mass, nan for others, (ngeom,)."""
    found = np.full(m.ngeom, np.nan)
    for row in _inertia_rows(m).values():
        found[row[0]] = np.nan if row[1] is not None else row[2]
    return found


def check_geoms(m: Model, key: str, field: str, ids: np.ndarray) -> None:
    """Raise ValueError if geoms have no such number, or its effect on inertias is not known."""
    rows = _inertia_rows(m)
    for i in map(int, ids):
        name = m.names["geom"][i] or i
        if "body_matter" not in m.structure:
            raise ValueError(
                f"{key}: the model was made from MuJoCo's, which does not tell whether the inertia "
                f"of a body follows from geom {name!r}; load it from MJCF"
            )
        if field == SIZE_FIELD and m.geom_type[i] not in _SIZED_TYPES:
            kind = GeomType(m.geom_type[i]).name.lower()
            raise ValueError(f"{key}: the size of geom {name!r} is that of its {kind}")
        if field == DENSITY_FIELD and i not in rows:
            raise ValueError(
                f"{key}: no mass follows from geom {name!r}: its body has an <inertial>, or the "
                "geom no density; use 'body:NAME/mass'"
            )
        if field == DENSITY_FIELD and rows[i][1] is not None:
            raise ValueError(
                f"{key}: the mass of geom {name!r} is written, not its density; use "
                "'body:NAME/mass'"
            )


def with_reshaped_geoms(m: Model, changed: Mapping[str, jax.Array], geoms: np.ndarray) -> Model:
    """Return the model with other sizes and densities of geoms, and the inertias that follow.

    Args:
      m: the model.
      changed: new `geom_size` and `geom_density`, as far as they change.
      geoms: the geoms whose numbers change.
    """
    values: dict[str, Any] = {n: v for n, v in changed.items() if n != DENSITY_FIELD}
    new = m.replace(**values)
    rows = _inertia_rows(m)
    bodies = np.unique([m.geom_bodyid[i] for i in geoms if int(i) in rows]).astype(int)
    if not bodies.size:
        return new
    density = jnp.where(np.isnan(densities(m)), 0, changed.get(DENSITY_FIELD, densities(m)))
    inferred = set_inertia(new, density=density.astype(m.body_mass.dtype))
    return new.replace(
        **{n: getattr(m, n).at[bodies].set(getattr(inferred, n)[bodies]) for n in OF_BODY}
    )


def _inertia_rows(m: Model) -> dict[int, tuple]:
    """Return the parts of inferred inertias, by geom; see `compile/body/masses.py`."""
    table = m.body_matter if "body_matter" in m.structure else ()
    return {row[0]: row for of in table if of for row in of[2]}
