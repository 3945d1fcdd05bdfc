"""Compile asset ids and names, and the references to assets from bodies, geoms and sites.

The contents of assets are read by the passes `meshes`, `hfields`, `textures`, `materials` and
`skins`.
"""

from __future__ import annotations

from jaxsim.compile.asset.hfields import hfield_geometry
from jaxsim.compile.asset.mesh.mesh_geometry import fit_primitive, mesh_geometry
from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.shape import Geometry
from jaxsim.compile.step import declare_pass
from jaxsim.enums import GeomType
from jaxsim.spec import SpecElement

# Geom types whose shape is defined by an asset.
ASSET_TYPES = (GeomType.HFIELD, GeomType.MESH, GeomType.SDF)

_COUNTS = {
    "material": "nmat",
    "texture": "ntex",
    "mesh": "nmesh",
    "hfield": "nhfield",
    "skin": "nskin",
}


@declare_pass(gives="hfield material mesh skin texture")
def assets(c: Compilation) -> None:
    """Add the ids and names of the assets, and their counts."""
    section = c.spec.section("asset")
    for kind, count in _COUNTS.items():
        # Skins may also be in the section of soft bodies; those come last.
        elements = [e for e in [*section, *c.spec.section("deformable")] if e.tag == kind]
        c.register(kind, elements, [e.asset_name for e in elements])
        c.fields[count] = len(elements)
    for element in section:
        if element.tag not in _COUNTS:
            c.fault(element, "this kind of asset is not supported; remove it")


def material(c: Compilation, element: SpecElement) -> int:
    """Return the id of the material that an element, or its mesh, names; -1 without one."""
    own = element.get("material")
    mesh = c.ids["mesh"].get(element.get("mesh"))
    if own is None and mesh is not None:
        return c.resolve_attribute("material", c.elements["mesh"][mesh], "material")
    return c.resolve_attribute("material", element, "material")


def geometry(c: Compilation, element: SpecElement, kind: GeomType) -> Geometry:
    """Return the geometry of a geom or site that is defined by an asset or fitted to one."""
    return _SHAPES.get(kind, fit_primitive)(c, element, kind)


_SHAPES = {
    GeomType.HFIELD: hfield_geometry,
    GeomType.MESH: mesh_geometry,
    GeomType.SDF: mesh_geometry,
}
