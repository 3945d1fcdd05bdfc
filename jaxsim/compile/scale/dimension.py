"""Factors of quantities when their units change: the unit of the schema -> a number.

A unit of length that is `s` times and one of mass that is `m` times as large multiply a quantity of
dimension L^a M^b T^c by s^a m^b; times and angles stay. `Q` is the coordinate of a joint, tendon or
actuator and `F` its force: m and N where it is linear, rad and N m where it is angular.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

import numpy as np

Exponents = tuple[int, int]  # of length and mass

_BASE: dict[str, Exponents] = {"m": (1, 0), "kg": (0, 1), "N": (1, 1)}
_LINEAR: dict[str, Exponents] = {"Q": (1, 0), "F": (1, 1)}
_ANGULAR: dict[str, Exponents] = {"Q": (0, 0), "F": (2, 1)}


@dataclass(frozen=True)
class Scale:
    """What the frames around an element multiply.

    Attributes:
      length, mass: lengths and masses.
      force_length, force_mass: the units that forces, stiffnesses and gains are measured in.
    """

    length: float = 1.0
    mass: float = 1.0
    force_length: float = 1.0
    force_mass: float = 1.0

    def times(self, length: float, mass: float, *, forces: bool) -> Scale:
        """This scale and another inside it; `forces` says whether forces follow that one."""
        return Scale(
            self.length * length,
            self.mass * mass,
            self.force_length * (length if forces else 1.0),
            self.force_mass * (mass if forces else 1.0),
        )

    def factor(self, unit: str, *, angular: bool = False) -> float:
        """The factor of a quantity in a unit such as `F s/Q`."""
        (a, b), force = _exponents(unit, angular)
        if force:
            return self.force_length**a * self.force_mass**b
        return self.length**a * self.mass**b

    def factors(self, units: str, n: int, *, angular: bool = False) -> np.ndarray:
        """The factors of n numbers in units such as `1, m, m`, or in one unit, (n,)."""
        each = [self.factor(unit, angular=angular) for unit in units.split(",")]
        return np.array((each * n)[:n] if len(each) == 1 else each[:n])


def mean(one: Scale, other: Scale) -> Scale:
    """The geometric mean, for what stands between two elements."""
    return Scale(
        *(np.sqrt(a * b) for a, b in zip(vars(one).values(), vars(other).values(), strict=True))
    )


@cache
def _exponents(unit: str, angular: bool) -> tuple[Exponents, bool]:
    """Exponents of length and mass, and whether it is a force or made of one."""
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
