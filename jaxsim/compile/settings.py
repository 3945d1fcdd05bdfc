"""Compiler settings: the merged `<compiler>` sections of a model, as values the passes read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from jaxsim.compile.context import Compilation

Angle = TypeVar("Angle", float, np.ndarray)

# Settings that ask for a change of the model that is not made here.
_UNSUPPORTED = {
    "fusestatic": "remove it: the model with all its bodies has the same dynamics",
    "discardvisual": "remove it: the model with its visual geoms has the same dynamics",
}


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

    def radians(self, angle: Angle) -> Angle:
        """An angle in the unit of the model, in radians."""
        return angle * np.pi / 180.0 if self.degree else angle


def settings(c: Compilation) -> None:
    """Reads the `<compiler>` sections into `c.settings`."""

    def value(attr: str):
        return c.spec.setting("compiler", attr)

    def flag(attr: str) -> bool:
        return value(attr) == "true"

    if value("coordinate") == "global":
        c.fault(c.spec.author("compiler", "coordinate"), "coordinate='global' is gone; use 'local'")
    for attr, remedy in _UNSUPPORTED.items():
        if flag(attr):
            c.fault(c.spec.author("compiler", attr), f"{attr}='true' is not supported; {remedy}")
    first, last = np.asarray(value("inertiagrouprange"))
    c.settings = Settings(
        autolimits=flag("autolimits"),
        degree=value("angle") == "degree",
        eulerseq=value("eulerseq"),
        boundmass=float(value("boundmass")),
        boundinertia=float(value("boundinertia")),
        balanceinertia=flag("balanceinertia"),
        settotalmass=float(value("settotalmass")),
        inertiafromgeom=value("inertiafromgeom"),
        inertiagrouprange=(int(first), int(last)),
        alignfree=flag("alignfree"),
    )
