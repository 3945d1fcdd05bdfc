"""Compiler settings: the merged `<compiler>` sections of a model, as values for the passes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from jaxsim.mjcf.schema.option import COMPILER

Angle = TypeVar("Angle", float, np.ndarray)


@dataclass(frozen=True)
class Settings:
    """The attributes of `<compiler>`, with the schema's defaults.

    `inertiafromgeom` is "true", "false" or "auto"; `inertiagrouprange` is (first, last) geom group;
    masses in kg, inertias in kg m^2; a negative `settotalmass` leaves the masses unchanged.
    `meshdir` and `texturedir` are folders relative to that of the model; `strippath` drops the
    folders from file names.
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
    fitaabb: bool
    meshdir: str
    texturedir: str
    strippath: bool
    fusestatic: bool
    discardvisual: bool

    @classmethod
    def of(cls, given: Mapping[str, Any]) -> Settings:
        """Return the settings of the attributes of `<compiler>`; the schema supplies absent
        ones."""
        row = COMPILER
        value = {attr.name: given.get(attr.name, attr.default) for attr in row.attrs.values()}
        first, last = np.asarray(value["inertiagrouprange"])
        for folder in ("meshdir", "texturedir"):
            if value[folder] is None:
                value[folder] = value["assetdir"] or ""
        return cls(
            autolimits=value["autolimits"] == "true",
            degree=value["angle"] == "degree",
            eulerseq=value["eulerseq"],
            boundmass=float(value["boundmass"]),
            boundinertia=float(value["boundinertia"]),
            balanceinertia=value["balanceinertia"] == "true",
            settotalmass=float(value["settotalmass"]),
            inertiafromgeom=value["inertiafromgeom"],
            inertiagrouprange=(int(first), int(last)),
            alignfree=value["alignfree"] == "true",
            fitaabb=value["fitaabb"] == "true",
            meshdir=value["meshdir"],
            texturedir=value["texturedir"],
            strippath=value["strippath"] == "true",
            fusestatic=value["fusestatic"] == "true",
            discardvisual=value["discardvisual"] == "true",
        )

    def radians(self, angle: Angle) -> Angle:
        """Return an angle in the unit of the model, in radians."""
        return angle * np.pi / 180.0 if self.degree else angle
