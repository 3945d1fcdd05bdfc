"""Scale factors of quantities by dimensional analysis: the unit of the schema -> a factor.

If the unit of length is multiplied by `s` and that of mass by `m`, a quantity of dimension L^a M^b
T^c is multiplied by s^a m^b; times and angles do not change. `Q` is the coordinate of a joint,
tendon or actuator and `F` its force: m and N where it is linear, rad and N m where it is angular.

If the three axes have different length factors, positions are transformed by a linear map, and
quantities without direction use the geometric mean of the three factors.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from jaxsim.cache import bounded_cache

Exponents = tuple[int, int]  # of length and mass

_BASE: dict[str, Exponents] = {"m": (1, 0), "kg": (0, 1), "N": (1, 1)}
_LINEAR: dict[str, Exponents] = {"Q": (1, 0), "F": (1, 1)}
_ANGULAR: dict[str, Exponents] = {"Q": (0, 0), "F": (2, 1)}


@dataclass(frozen=True)
class Scale:
    """The scale factors that the frames around an element define.

    Attributes:
      length, mass: factors of lengths and masses.
      force_length, force_mass: factors of the units of forces, stiffnesses and gains.
      map: linear map of positions if the axes have different factors: a (3, 3) matrix, row by row,
        in the axes in which the position is given; empty if `length` suffices.
    """

    length: float = 1.0
    mass: float = 1.0
    force_length: float = 1.0
    force_mass: float = 1.0
    map: tuple[float, ...] = ()

    def times(self, lengths: np.ndarray, mass: float, *, forces: bool) -> Scale:
        """Return the product of this scale and a nested one.

        Args:
          lengths: factors along the three axes, (3,).
          mass: factor of masses.
          forces: whether forces are scaled, which requires a single length factor.
        """
        alike = not self.map and np.all(lengths == lengths[0])
        length = float(lengths[0]) if alike else float(np.cbrt(np.prod(lengths)))
        return Scale(
            self.length * length,
            self.mass * mass,
            self.force_length * (length if forces else 1.0),
            self.force_mass * (mass if forces else 1.0),
            () if alike else tuple((self.linear * lengths).ravel().tolist()),
        )

    def in_axes(self, R: np.ndarray) -> Scale:
        """Return this scale in other axes, the columns of R (3, 3)."""
        if not self.map:
            return self
        return replace(self, map=tuple((R.T @ self.linear @ R).ravel().tolist()))

    @property
    def overall(self) -> Scale:
        """Return this scale without directions."""
        if not self.map:
            return self
        return replace(self, length=float(np.cbrt(np.linalg.det(self.linear))), map=())

    @property
    def linear(self) -> np.ndarray:
        """Return the linear map of positions, (3, 3)."""
        return np.reshape(self.map, (3, 3)) if self.map else self.length * np.eye(3)

    def factor(self, unit: str, *, angular: bool = False) -> float:
        """Return the factor of a quantity in a unit such as `F s/Q`."""
        (a, b), force = _exponents(unit, angular)
        if force:
            return self.force_length**a * self.force_mass**b
        return self.length**a * self.mass**b

    def factors(self, units: str, n: int, *, angular: bool = False) -> np.ndarray:
        """Return the factors of n numbers in units such as `1, m, m`, or in one unit, (n,)."""
        each = [self.factor(unit, angular=angular) for unit in units.split(",")]
        return np.array((each * n)[:n] if len(each) == 1 else each[:n])


def mean_scale(one: Scale, other: Scale) -> Scale:
    """Return the geometric mean of two scales, for elements between two bodies; it has no
    direction."""
    return Scale(
        float(np.sqrt(one.length * other.length)),
        float(np.sqrt(one.mass * other.mass)),
        float(np.sqrt(one.force_length * other.force_length)),
        float(np.sqrt(one.force_mass * other.force_mass)),
    )


@bounded_cache(1024)
def _exponents(unit: str, angular: bool) -> tuple[Exponents, bool]:
    """Return the exponents of length and mass, and whether the unit contains a force."""
    symbols = _BASE | (_ANGULAR if angular else _LINEAR)
    above, _, below = unit.strip().partition("/")
    length = mass = 0
    for part, sign in ((above, 1), (below, -1)):
        for symbol, power in re.findall(r"([A-Za-z]+)(?:\^(\d))?", part):
            a, b = symbols.get(symbol, (0, 0))
            length += sign * a * int(power or 1)
            mass += sign * b * int(power or 1)
    timed = bool(re.search(r"\bs\b", unit))
    return (length, mass), "F" in unit or (timed and "kg" in unit)
