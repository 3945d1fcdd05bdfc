"""Compile meshes: `mesh_*`, from the files, lists, parameters or plugins of `<mesh>` elements."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from jaxsim.assets.builtin.builtin import builtin_surface, has_no_volume
from jaxsim.assets.mesh.surface import MeshSurface
from jaxsim.assets.read.decode import extension, read_surface
from jaxsim.assets.surface import Surface
from jaxsim.compile.asset.files import read_asset
from jaxsim.compile.asset.mesh.mesh import Mesh, MeshPlacement, make_mesh
from jaxsim.compile.asset.mesh.mesh_fields import mesh_fields
from jaxsim.compile.asset.mesh.sdf import is_made_by_plugin, plugin_surface
from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.orientation import mjcf_numbers
from jaxsim.compile.step import declare_pass
from jaxsim.enums import MINVAL
from jaxsim.errors import AssetError
from jaxsim.math.quaternion import quat_normalize
from jaxsim.spec import SpecElement

_MIN_HULL_VERTICES = 4  # smallest `maxhullvert`
NO_LIMIT = -1

_SharedSurfaces = dict[tuple[Any, ...], MeshSurface]


@declare_pass(needs="read_settings scale_frames plugin_fields assets bodies", gives="mesh meshes")
def meshes(c: Compilation) -> None:
    """Add all fields of meshes, and the meshes by id."""
    hulls = _meshes_that_collide(c)
    shared: _SharedSurfaces = {}
    made: list[Mesh] = []
    for element in c.elements["mesh"]:
        hull = element.asset_name in hulls
        made += _mesh(c, element, hull, shared, c.stretched.get(element))
    c.meshes = made
    c.fields.update(mesh_fields(made))


def mesh_of(c: Compilation, element: SpecElement) -> Mesh | None:
    """Return one compiled mesh, for elements that are made of meshes before these are compiled."""
    made = _mesh(c, element, False, {}, None)
    return made[0] if made else None


def _meshes_that_collide(c: Compilation) -> set[str]:
    """Return the names of meshes that need a hull: of sites, and of geoms that can collide."""
    paired = {
        pair.get(attr)
        for pair in c.spec.section("contact")
        if pair.tag == "pair"
        for attr in ("geom1", "geom2")
    }
    found = set()
    for body in c.bodies:
        found |= {site.get("mesh") for site in body.sites}
        found |= {
            geom.get("mesh")
            for geom in body.geoms
            if geom.get("type") in ("mesh", "sdf")
            and (geom.get("contype") or geom.get("conaffinity") or geom.name in paired)
        }
    return found - {None}


def _mesh(
    c: Compilation,
    element: SpecElement,
    hull: bool,
    shared: _SharedSurfaces,
    stretch: np.ndarray | None,
) -> list[Mesh]:
    """Return one mesh in a list, or an empty list and a fault of its element."""
    placement = _placement(c, element, stretch)
    try:
        surface = _surface(c, element, shared)
        if surface is None or placement is None:
            return []
        with np.errstate(all="ignore"):  # overflow is reported as a fault of the mesh
            fixed = is_made_by_plugin(element)
            return [make_mesh(surface, placement, _inertia(element), hull, fixed=fixed)]
    except AssetError as error:
        c.fault(element, str(error))
        return []


def _placement(
    c: Compilation, element: SpecElement, stretch: np.ndarray | None
) -> MeshPlacement | None:
    scale, refpos, refquat = (
        np.array(element.get(attr), float) for attr in ("scale", "refpos", "refquat")
    )
    if not all(np.isfinite(v).all() for v in (scale, refpos, refquat)):
        c.fault(element, "scale, refpos and refquat must be finite")
    elif np.any(scale == 0):
        c.fault(element, f"scale='{mjcf_numbers(scale)}' must not be zero: the mesh would be flat")
    elif np.abs(refquat).max() < MINVAL:
        c.fault(element, "refquat must not be zero; use '1 0 0 0' for no rotation")
    else:
        return MeshPlacement(
            refpos, quat_normalize(refquat / np.abs(refquat).max()), scale, stretch
        )
    return None


def _inertia(element: SpecElement) -> str:
    """Return the mass distribution; a built-in sheet has no volume for `legacy`."""
    inertia, kind = element.get("inertia"), element.get("builtin")
    if inertia == "legacy" and kind != "none" and has_no_volume(kind, _params(element)):
        return "shell"
    return inertia


def _surface(c: Compilation, element: SpecElement, shared: _SharedSurfaces) -> MeshSurface | None:
    """Return the surface of a mesh; meshes of the same file share it."""
    smooth, maxhullvert = element.get("smoothnormal") == "true", int(element.get("maxhullvert"))
    if maxhullvert != NO_LIMIT and maxhullvert < _MIN_HULL_VERTICES:
        raise AssetError(
            f"maxhullvert='{maxhullvert}' must be at least {_MIN_HULL_VERTICES},"
            f" or {NO_LIMIT} for no limit"
        )
    file, kind = element.get("file"), element.get("builtin")
    if is_made_by_plugin(element):
        made = plugin_surface(c, element)
        if made is None:
            return None
        surface = dataclasses.replace(made, texcoord=_attribute_rows(element, "texcoord", 2))
    elif kind != "none":
        surface = builtin_surface(kind, _params(element))
    elif file is None:
        surface = _inline_surface(element)
    elif element.get("vertex") is not None:
        raise AssetError("both file and vertex give its vertices; remove one of them")
    else:
        how = (file, element.get("content_type"), smooth, maxhullvert)
        key = (id(element.origin), c.settings_of(element), *how)
        if key not in shared:
            data = read_asset(c, element, file, "mesh")
            if data is None:
                return None
            surface = read_surface(file, data, how[1])
            repeats = extension(file) == ".stl" or how[1] == "model/stl"
            shared[key] = MeshSurface(surface, smooth, maxhullvert, weld=repeats)
        return shared[key]
    return MeshSurface(surface, smooth, maxhullvert)


def _params(element: SpecElement) -> np.ndarray:
    params = element.get("params")
    return np.zeros(0) if params is None else np.atleast_1d(np.asarray(params, float))


def _inline_surface(element: SpecElement) -> Surface:
    """Return the surface given by the lists of an element, in single precision as in a file."""
    lists = {
        attr: _attribute_rows(element, attr, width)
        for attr, width in (("vertex", 3), ("face", 3), ("normal", 3), ("texcoord", 2))
    }
    face, vertex = lists["face"], lists["vertex"]
    return Surface(
        vertex=np.zeros((0, 3)) if vertex is None else vertex,
        face=np.zeros((0, 3), np.int32) if face is None else face.astype(np.int32),
        normal=lists["normal"],
        texcoord=lists["texcoord"],
    )


def _attribute_rows(element: SpecElement, attr: str, width: int) -> np.ndarray | None:
    """Return an attribute as rows of `width` numbers, None if it is not set."""
    value = element.get(attr)
    if value is None:
        return None
    value = np.atleast_1d(value)
    if len(value) % width:
        raise AssetError(f"{attr} needs {width} numbers for each row, got {len(value)} in all")
    if value.dtype.kind == "f":
        with np.errstate(over="ignore"):  # overflow is reported below
            value = value.astype(np.float32).astype(np.float64)
        if not np.isfinite(value).all():
            at = int(np.argmin(np.isfinite(value)))
            raise AssetError(f"number {at} of {attr} is not a finite number in single precision")
    return value.reshape(-1, width)
