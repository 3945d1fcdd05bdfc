"""Compile height fields: `hfield_*`, and the geometry of hfield geoms."""

from __future__ import annotations

import numpy as np

from jaxsim.assets.read.heightfield import normalize_heights, read_heightfield
from jaxsim.assets.source.limits import check_limit
from jaxsim.compile.asset.files import read_asset
from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.element_pose import pose_of
from jaxsim.compile.geometry.orientation import mjcf_numbers
from jaxsim.compile.geometry.primitive import Solid, primitive
from jaxsim.compile.geometry.shape import Geometry, unknown_geometry
from jaxsim.compile.step import declare_pass
from jaxsim.enums import GeomType
from jaxsim.errors import AssetError
from jaxsim.spec import SpecElement


@declare_pass(needs="read_settings assets", gives="hfield")
def hfields(c: Compilation) -> None:
    """Add all fields of height fields; their heights are concatenated, row by row."""
    elements = c.elements["hfield"]
    heights = [_heights(c, element) for element in elements]
    sizes = [h.size for h in heights]
    for element in elements:
        _check(c, element)
    c.fields.update(
        hfield_size=np.array([e.get("size") for e in elements], np.float64).reshape(-1, 4),
        hfield_nrow=np.array([h.shape[0] for h in heights], np.int32),
        hfield_ncol=np.array([h.shape[1] for h in heights], np.int32),
        hfield_adr=np.array(np.cumsum(sizes) - sizes, np.int32),
        hfield_data=np.concatenate([np.zeros(0, np.float32), *(h.ravel() for h in heights)]),
        nhfielddata=int(sum(sizes)),
    )


def _check(c: Compilation, element: SpecElement) -> None:
    if not element.asset_name:
        c.fault(element, "it needs a name, so that geoms can refer to it")
    if not np.all(element.get("size") > 0):
        given = mjcf_numbers(element.get("size"))
        c.fault(element, f"size needs four positive numbers, got '{given}'")


def _heights(c: Compilation, element: SpecElement) -> np.ndarray:
    """Return the heights between 0 and 1, (nrow, ncol): from a file, from the model, or all 0."""
    file = element.get("file")
    return _inline_heights(c, element) if not file else _from_file(c, element, file)


def _from_file(c: Compilation, element: SpecElement, file: str) -> np.ndarray:
    data = read_asset(c, element, file, "hfield")
    if data is not None:
        try:
            return normalize_heights(read_heightfield(file, data, element.get("content_type")))
        except AssetError as error:
            c.fault(element, f"file='{file}': {error}")
    return np.zeros((2, 2), np.float32)


def _inline_heights(c: Compilation, element: SpecElement) -> np.ndarray:
    nrow, ncol = int(element.get("nrow")), int(element.get("ncol"))
    if nrow < 2 or ncol < 2:
        c.fault(element, f"nrow='{nrow}' and ncol='{ncol}' must be 2 or more, or file be given")
        return np.zeros((2, 2), np.float32)
    try:
        check_limit("hfield_points", nrow * ncol)
    except AssetError as error:
        c.fault(element, f"nrow='{nrow}' and ncol='{ncol}': {error}")
        return np.zeros((2, 2), np.float32)
    given = element.get("elevation")
    if given is None:
        return np.zeros((nrow, ncol), np.float32)
    if len(given) != nrow * ncol:
        c.fault(
            element, f"elevation needs {nrow * ncol} numbers, nrow times ncol; got {len(given)}"
        )
        return np.zeros((nrow, ncol), np.float32)
    # Written from the top, as seen from above; the first row of the data is the last.
    return normalize_heights(np.asarray(given).reshape(nrow, ncol)[::-1])


def write_heights(element: SpecElement, heights: np.ndarray) -> None:
    """Set the heights of a height field element, (nrow, ncol) in the order of the model."""
    name = element.asset_name
    for attr in ("file", "content_type"):
        element.unset(attr)
    if name:
        element.set("name", name)
    element.update(nrow=heights.shape[0], ncol=heights.shape[1], elevation=heights[::-1].ravel())


def hfield_geometry(c: Compilation, element: SpecElement, kind: GeomType) -> Geometry:
    """Return the geometry of an hfield geom: the extent of the asset, the mass of a box of mean
    height."""
    if element.tag == "site":
        c.fault(element, "a site cannot be a height field; give it a primitive shape")
        return unknown_geometry(kind)
    if element.get("hfield") is None:
        c.fault(element, "type='hfield' needs hfield, the name of a height field")
        return unknown_geometry(kind)
    if element.get("mesh") is not None:
        c.fault(element, "both hfield and mesh give its shape; remove one of them")
    if element.get("fromto") is not None:
        c.fault(element, "fromto is for capsules, cylinders, boxes and ellipsoids; use pos")
    dataid = c.resolve_attribute("hfield", element, "hfield")
    if dataid < 0:
        return unknown_geometry(kind)
    x, y, top, base = c.fields["hfield_size"][dataid]
    size = np.array([x, y, top / 4 + base / 2])
    box = primitive(GeomType.BOX, size, element.get("shellinertia") == "true")
    aabb = np.array([0, 0, (top - base) / 2, x, y, (top + base) / 2])
    rbound = float(np.sqrt(x**2 + y**2 + max(top, base) ** 2))
    solid = Solid(box.content, box.inertia, aabb, rbound)
    return Geometry(kind, size, pose_of(c, element), solid, dataid)
