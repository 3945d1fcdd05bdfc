"""Virtual (added) mass and inertia of geoms in `geom_fluid`, from their sizes.

The formulas are those of the compiler (`math/added_mass.py`), on traced sizes.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import GeomType
from jaxsim.math.added_mass import added_mass
from jaxsim.math.solids import half_side_sizes
from jaxsim.model.model import Model


def recompute_geom_fluid(m: Model) -> Array:
    """Compute `geom_fluid` for the present sizes of the geoms, `[ngeom, 12, *W]`."""
    flat = np.isin(m.geom_type, (GeomType.PLANE, GeomType.HFIELD))
    # Geoms with ellipsoid model, except planes and height fields.
    geom = np.flatnonzero(m.geom_hasfluid & ~flat)
    found = jnp.stack(added_mass(jnp, equivalent_semiaxes(m, geom)), axis=1)
    # Replace the virtual masses and inertias, with a batch axis if the sizes have one.
    batch = jnp.broadcast_shapes(m.geom_fluid.shape[2:], found.shape[2:])
    whole = jnp.broadcast_to(m.geom_fluid, (*m.geom_fluid.shape[:2], *batch))
    # A geom without interaction keeps its values: it has no virtual mass in the model's file.
    interacts = gather_static(whole, geom)[:, :1] > 0
    return whole.at[geom, 6:].set(jnp.where(interacts, found, gather_static(whole, geom)[:, 6:]))


def equivalent_semiaxes(m: Model, geom: np.ndarray) -> list:
    """Return semi-axes of the ellipsoids that represent geoms, three `[k, *W]`."""
    sizes = gather_static(m.geom_size, geom)
    # Each semi-axis is a sum of some of the geom's sizes.
    slots = [half_side_sizes(GeomType(kind)) for kind in m.geom_type[geom]]
    axes = []
    for axis in range(3):
        counts = np.array([[n in slot[axis] for n in range(3)] for slot in slots], float)
        axes.append(sum(column(counts[:, n], sizes[:, 0]) * sizes[:, n] for n in range(3)))
    return axes
