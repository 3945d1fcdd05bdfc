"""Meshes, height fields, materials and textures, as far as bodies and geoms refer to them.

The one place that knows which assets can be used. Materials and textures have no effect on the
physics: they are named, so that references to them can be checked, and nothing is read from their
files.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry import Geometry
from jaxsim.compile.pose import here
from jaxsim.compile.shapes import Solid
from jaxsim.enums import GeomType
from jaxsim.spec import SpecElement

# Geom types whose shape is an asset.
ASSET_TYPES = (GeomType.HFIELD, GeomType.MESH, GeomType.SDF)

_KINDS = ("material", "texture", "mesh", "hfield", "skin")
_COUNTS = {
    "material": "nmat",
    "texture": "ntex",
    "mesh": "nmesh",
    "hfield": "nhfield",
    "skin": "nskin",
}


def assets(c: Compilation) -> None:
    """Ids and names of the assets, and their counts."""
    section = c.spec.section("asset")
    for kind in _KINDS:
        elements = [e for e in section if e.tag == kind]
        c.register(kind, elements, [e.asset_name for e in elements])
        c.fields[_COUNTS[kind]] = len(elements)
    for element in section:
        if element.tag not in _KINDS:
            c.fault(element, "this kind of asset is not supported; remove it")


def material(c: Compilation, element: SpecElement) -> int:
    """The id of the material that an element names, -1 without one."""
    return c.find_own("material", element, "material")


def geometry(c: Compilation, element: SpecElement, kind: GeomType) -> Geometry:
    """The shape of a geom or site that refers to an asset: refused until assets are read."""
    c.fault(element, f"{kind.name.lower()} geoms are not supported yet; use primitive shapes")
    nothing = Solid(0.0, np.zeros(3), np.zeros(6), 0.0)
    return Geometry(GeomType.SPHERE, np.zeros(3), here(), nothing)
