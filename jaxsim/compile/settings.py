"""Compiler settings: the merged `<compiler>` sections of a model, as values the passes read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from jaxsim.compile.context import Compilation


@dataclass(frozen=True)
class Settings:
    """What `<compiler>` says; where it is silent, what the schema says.

    `inertiafromgeom` is "true", "false" or "auto"; `inertiagrouprange` is (first, last) geom group;
    masses in kg, inertias in kg m^2; a negative `settotalmass` leaves the masses alone.
    """

    autolimits: bool
    degree: bool
    eulerseq: str
    boundmass: float
    boundinertia: float
    balanceinertia: bool
    settotalmass: float
    inertiafromgeom: str
    inertiagrouprange: tuple[int, int]
    alignfree: bool
    fusestatic: bool
    discardvisual: bool

    def radians(self, angle: np.ndarray | float) -> np.ndarray | float:
        """An angle in the unit of the model, in radians."""
        return np.deg2rad(angle) if self.degree else angle


def settings(c: Compilation) -> None:
    """Reads the `<compiler>` sections into `c.settings`."""

    def value(attr: str):
        return c.spec.setting("compiler", attr)

    def flag(attr: str) -> bool:
        return value(attr) == "true"

    if value("coordinate") == "global":
        c.fault(c.spec.author("compiler", "coordinate"), "coordinate='global' is gone; use 'local'")
    first, last = np.asarray(value("inertiagrouprange"))
    c.settings = Settings(
        autolimits=flag("autolimits"),
        degree=value("angle") == "degree",
        eulerseq=_sequence(c, value("eulerseq")),
        boundmass=float(value("boundmass")),
        boundinertia=float(value("boundinertia")),
        balanceinertia=flag("balanceinertia"),
        settotalmass=float(value("settotalmass")),
        inertiafromgeom=value("inertiafromgeom"),
        inertiagrouprange=(int(first), int(last)),
        alignfree=flag("alignfree"),
        fusestatic=flag("fusestatic"),
        discardvisual=flag("discardvisual"),
    )


def _sequence(c: Compilation, sequence: str) -> str:
    """The Euler sequence, if it is one; else a fault, and the default."""
    if len(sequence) == 3 and set(sequence) <= set("xyzXYZ"):
        return sequence
    message = f"eulerseq='{sequence}' must be three of the letters x, y, z, X, Y, Z"
    c.fault(c.spec.author("compiler", "eulerseq"), message)
    return "xyz"
