"""Virtual (added) mass and inertia of an ellipsoid in potential flow, per unit density of fluid.

Tuckerman, *Inertia factors of ellipsoids for use in airship design*, 1925; MuJoCo's documentation,
Fluid forces, "Added mass". With V the volume and kappa the shape integral of an axis, the virtual
mass along the axis is V kappa / (2 - kappa).

The compiler evaluates the formulas in numpy, `set_const` in JAX: `xp` is the namespace of the
arrays. This file does not import JAX.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from jaxsim.enums import MINVAL

# 15-point Gauss-Kronrod rule on [0, 1], with the eight decimals that MuJoCo uses: exact values
# would change the virtual mass of thin ellipsoids noticeably.
_KRONROD_NODES = np.array((
    *(0.00427231, 0.02544604, 0.06756779, 0.12923441, 0.20695638, 0.29707742, 0.39610752),
    *(0.5, 0.60389248, 0.70292258, 0.79304362, 0.87076559, 0.93243221, 0.97455396, 0.99572769),
))  # fmt: skip
_KRONROD_WEIGHTS = np.array((
    *(0.01146766, 0.03154605, 0.05239501, 0.07032663, 0.08450236, 0.09517529, 0.10221647),
    *(0.10474107, 0.10221647, 0.09517529, 0.08450236, 0.07032663, 0.05239501, 0.03154605),
    0.01146766,
))  # fmt: skip


def added_mass(xp: Any, semiaxes: Any) -> list:
    """Return the virtual masses along the axes [m^3] and inertias about them [m^5], per density.

    Args:
      xp: numpy or jax.numpy.
      semiaxes: three arrays of equal shape [m].

    Returns:
      Six arrays of this shape.
    """
    a, b, c = semiaxes
    # Shape integral of each axis, by cyclic permutation of the semi-axes.
    kappa = [_kappa(xp, a, b, c), _kappa(xp, b, c, a), _kappa(xp, c, a, b)]
    volume = 4 / 3 * math.pi * a * b * c
    mass = [volume * k / xp.maximum(MINVAL, 2 - k) for k in kappa]
    return mass + [_virtual_inertia(xp, volume, semiaxes, kappa, axis) for axis in range(3)]


def _kappa(xp: Any, a: Any, b: Any, c: Any) -> Any:
    """Integrate a b c / sqrt((a^2 + u)^3 (b^2 + u) (c^2 + u)) over u from 0 to infinity."""
    # The substitution u = scale t^3 / (1 - t)^2 maps it to t in [0, 1], along a new first axis.
    t, weight = (
        table.astype(a.dtype).reshape(-1, *(1,) * a.ndim)
        for table in (_KRONROD_NODES, _KRONROD_WEIGHTS)
    )
    scale = xp.maximum(MINVAL, (a * a * a * b * c) ** 0.4)
    u = scale[None] * (t**3 / (1 - t) ** 2)
    slope = u * (3 / t + 2 / (1 - t))
    near = (a * a)[None] + u
    root = xp.sqrt(near * near * near * (((b * b)[None] + u) * ((c * c)[None] + u)))
    return a * b * c * xp.sum(weight * (slope / root), axis=0)


def _virtual_inertia(xp: Any, volume: Any, semiaxes: Any, kappa: list, axis: int) -> Any:
    j, k = (axis + 1) % 3, (axis + 2) % 3
    jj, kk = semiaxes[j] * semiaxes[j], semiaxes[k] * semiaxes[k]
    difference, slip = jj - kk, kappa[k] - kappa[j]
    denominator = 2 * difference - (jj + kk) * slip
    # A body of revolution rotates about its axis without moving the fluid.
    is_round = xp.abs(denominator) < MINVAL
    inertia = volume / 5 * difference * difference * slip / xp.where(is_round, 1, denominator)
    return xp.where(is_round, 0, inertia)
