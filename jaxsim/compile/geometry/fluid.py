"""Coefficients of the ellipsoid fluid model: `geom_fluid`, half of which follow from the shape.

Virtual mass and inertia of an ellipsoid in potential flow (Tuckerman 1925; MuJoCo's Fluid forces
chapter, "Added mass"), per unit density of the fluid.
"""

from __future__ import annotations

import numpy as np

from jaxsim.enums import MINVAL
from jaxsim.model.derived import KRONROD_NODES, KRONROD_WEIGHTS


def geom_fluid(shape: str, coefficients: np.ndarray, semiaxes: np.ndarray) -> np.ndarray:
    """Return the row of `geom_fluid`, (12,): on/off, five coefficients, virtual mass (3,) and
    inertia (3,).

    Args:
      shape: `fluidshape`; `none` leaves the row zero.
      coefficients: `fluidcoef`, (5,): blunt, slender and angular drag, Kutta and Magnus lift.
      semiaxes: semi-axes of the ellipsoid [m], (3,).
    """
    row = np.zeros(12)
    if shape == "none":
        return row
    kappa = np.array([_kappa(*np.roll(semiaxes, -axis)) for axis in range(3)])
    volume = 4 / 3 * np.pi * np.prod(semiaxes)
    row[0] = 1.0
    row[1:6] = coefficients
    row[6:9] = volume * kappa / np.maximum(MINVAL, 2.0 - kappa)
    row[9:12] = [_virtual_inertia(volume, semiaxes, kappa, axis) for axis in range(3)]
    return row


def _kappa(a: float, b: float, c: float) -> float:
    """Return the integral of a b c / sqrt((a^2 + u)^3 (b^2 + u) (c^2 + u)) over u from 0 to
    infinity.

    u = s t^3 / (1 - t)^2 maps it to t in [0, 1], where the quadrature rule gives MuJoCo's digits.
    """
    t, weights = np.array(KRONROD_NODES), np.array(KRONROD_WEIGHTS)
    scale = max(MINVAL, (a**3 * b * c) ** 0.4)
    u = scale * t**3 / (1 - t) ** 2
    slope = u * (3 / t + 2 / (1 - t))
    root = np.sqrt((a * a + u) ** 3 * (b * b + u) * (c * c + u))
    return float(a * b * c * weights @ (slope / root))


def _virtual_inertia(volume: float, r: np.ndarray, kappa: np.ndarray, axis: int) -> float:
    j, k = (axis + 1) % 3, (axis + 2) % 3
    difference, total = r[j] ** 2 - r[k] ** 2, r[j] ** 2 + r[k] ** 2
    slip = kappa[k] - kappa[j]
    denominator = 2 * difference - total * slip
    # rotational symmetry about this axis: the rotation does not move the fluid
    if abs(denominator) < MINVAL:
        return 0.0
    return float(volume / 5 * difference**2 * slip / denominator)
