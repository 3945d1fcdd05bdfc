"""Virtual (added) mass and inertia of geoms in `recompute_geom_fluid`, from their sizes.

The formulas and the quadrature of `compile/geometry/fluid.py`, on traced sizes.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import MINVAL, GeomType
from jaxsim.math import safe_divide
from jaxsim.model.derived import KRONROD_NODES, KRONROD_WEIGHTS, OWN_SEMIAXES, SEMIAXES
from jaxsim.model.model import Model


def recompute_geom_fluid(m: Model) -> Array:
    """Compute `recompute_geom_fluid` for the present sizes of the geoms, `[ngeom, 12, *W]`.

    Virtual mass of an ellipsoid along an axis: V kappa / (2 - kappa).
    """
    flat = np.isin(m.geom_type, (GeomType.PLANE, GeomType.HFIELD))
    # Geoms with ellipsoid model, except planes and height fields.
    geom = np.flatnonzero(m.geom_hasfluid & ~flat)
    axes = equivalent_semiaxes(m, geom)
    # Shape integral of each axis, by cyclic permutation of the semi-axes.
    kappa = [_kappa(*axes[k:], *axes[:k]) for k in range(3)]
    volume = 4 / 3 * np.pi * axes[0] * axes[1] * axes[2]
    mass = [volume * k / jnp.maximum(MINVAL, 2 - k) for k in kappa]
    inertia = [_virtual_inertia(volume, axes, kappa, k) for k in range(3)]
    found = jnp.stack(mass + inertia, axis=1)
    # Replace the virtual masses and inertias, with a batch axis if the sizes have one.
    batch = jnp.broadcast_shapes(m.geom_fluid.shape[2:], found.shape[2:])
    whole = jnp.broadcast_to(m.geom_fluid, (*m.geom_fluid.shape[:2], *batch))
    # A geom without interaction keeps its values: it has no virtual mass in the model's file.
    interacts = gather_static(whole, geom)[:, :1] > 0
    return whole.at[geom, 6:].set(jnp.where(interacts, found, gather_static(whole, geom)[:, 6:]))


def equivalent_semiaxes(m: Model, geom: np.ndarray) -> list:
    """Return semi-axes of the ellipsoids that represent geoms, three `[k, *W]`."""
    sizes, kinds = gather_static(m.geom_size, geom), m.geom_type[geom]
    # Each semi-axis is a sum of some of the geom's sizes.
    places = [SEMIAXES.get(GeomType(kind), OWN_SEMIAXES) for kind in kinds]
    axes = []
    for axis in range(3):
        counts = np.array([[n in place[axis] for n in range(3)] for place in places], float)
        axes.append(sum(column(counts[:, n], sizes[:, 0]) * sizes[:, n] for n in range(3)))
    return axes


def _kappa(a: Array, b: Array, c: Array) -> Array:
    """Integrate a b c / sqrt((a^2 + u)^3 (b^2 + u) (c^2 + u)) over u from 0 to infinity."""
    # Quadrature in t in [0, 1], with the substitution u = scale * t^3 / (1 - t)^2.
    t, weight = np.array(KRONROD_NODES), column(np.array(KRONROD_WEIGHTS), a)[:, None]
    scale = jnp.maximum(MINVAL, (a * a * a * b * c) ** 0.4)
    u = scale[None] * column(t**3 / (1 - t) ** 2, a)[:, None]
    slope = u * column(3 / t + 2 / (1 - t), a)[:, None]
    near = (a * a)[None] + u
    root = jnp.sqrt(near * near * near * ((b * b)[None] + u) * ((c * c)[None] + u))
    return a * b * c * jnp.sum(weight * (slope / root), axis=0)


def _virtual_inertia(volume: Array, axes: list, kappa: list, axis: int) -> Array:
    j, k = (axis + 1) % 3, (axis + 2) % 3
    jj, kk = axes[j] * axes[j], axes[k] * axes[k]
    difference, slip = jj - kk, kappa[k] - kappa[j]
    denominator = 2 * difference - (jj + kk) * slip
    # A body of revolution rotates about its axis without moving the fluid.
    denominator = jnp.where(jnp.abs(denominator) < MINVAL, 0, denominator)
    return volume / 5 * safe_divide(difference * difference * slip, denominator)
