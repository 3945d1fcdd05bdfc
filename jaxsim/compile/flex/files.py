"""Points and elements of a `<flexcomp>` from a file or from a mesh asset.

A surface gives a shell of its triangles, a rod of their first edges, or, with `origin`, a solid
whose tetrahedra join its triangles to that point. The elements of a GMSH file are used as they are.
"""

from __future__ import annotations

import numpy as np

from jaxsim.assets.builtin.lattice import LatticePoints
from jaxsim.assets.mesh.weld import weld_vertices
from jaxsim.assets.read.decode import extension, read_surface
from jaxsim.assets.read.gmsh import GMSH_MAGIC, read_gmsh
from jaxsim.assets.read.obj import read_obj_lines
from jaxsim.assets.surface import Surface
from jaxsim.compile.asset.files import read_asset
from jaxsim.compile.asset.mesh.meshes import mesh_of
from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.orientation import IDENTITY
from jaxsim.enums import MINVAL
from jaxsim.errors import AssetError
from jaxsim.math.quaternion import quat_conjugate, quat_normalize, quat_rotate
from jaxsim.spec import SpecElement

_LEAST_VOLUME = MINVAL  # least volume of a tetrahedron that joins a triangle to the origin


def file_points(c: Compilation, e: SpecElement) -> LatticePoints | None:
    """Return the points and elements of a flexcomp of type mesh or gmsh, scaled."""
    if e.own("file") is not None and e.own("mesh") is not None:
        c.fault(e, "both file and mesh are given; remove one of them")
        return None
    if e.own("file") is None and e.own("mesh") is None:
        c.fault(e, f"type='{e.get('type')}' needs a file, or mesh='...' with the name of a mesh")
        return None
    source = e if e.own("mesh") is None else _asset(c, e)
    if source is None:
        return None
    try:
        points = _read(c, source, e)
    except AssetError as error:
        c.fault(source, f"file='{source.own('file')}' cannot be read: {error}")
        return None
    return None if points is None else points._replace(point=points.point * e.get("scale"))


def _asset(c: Compilation, e: SpecElement) -> SpecElement | None:
    name = e.own("mesh")
    for asset in c.spec.section("asset"):
        if asset.tag == "mesh" and asset.asset_name == name:
            return asset
    c.fault(e, f"mesh='{name}' names no mesh of this model; add <asset><mesh name='{name}' .../>")
    return None


def _read(c: Compilation, source: SpecElement, e: SpecElement) -> LatticePoints | None:
    """Return the points before they are scaled by the flexcomp."""
    file, dim = source.own("file"), e.get("dim")
    data = None if file is None else read_asset(c, source, file, "mesh")
    if file is not None and data is None:
        return None
    if data is not None and data.startswith(GMSH_MAGIC):
        simplices = read_gmsh(data)
        return LatticePoints(
            simplices.dim, _to_asset_frame(source, simplices.point), simplices.element
        )
    if data is not None and dim == 1 and extension(file) == ".obj":
        vertex, line = read_obj_lines(data)
        if len(line):
            vertex, place = weld_vertices(vertex)
            return LatticePoints(1, _to_asset_frame(source, vertex), place[line])
    if source.tag == "mesh":
        return _read_mesh_asset(c, e, source)
    surface = read_surface(file, data or b"", source.own("content_type"))
    vertex, place = weld_vertices(surface.vertex)
    return _select_elements(c, e, vertex, place[surface.face], surface)


def _read_mesh_asset(c: Compilation, e: SpecElement, asset: SpecElement) -> LatticePoints | None:
    """Return the triangles of a mesh asset, whose vertices have the single precision of a mesh."""
    mesh = mesh_of(c, asset)
    if mesh is None:
        return None
    vertex = mesh.pose.point(mesh.vertex.astype(np.float32).astype(np.float64))
    face = mesh.placement.orient_faces(mesh.surface.face)
    return _select_elements(c, e, vertex, face, mesh.surface.source)


def _select_elements(
    c: Compilation, e: SpecElement, vertex: np.ndarray, face: np.ndarray, surface: Surface
) -> LatticePoints | None:
    """Return a shell of the triangles, a rod of their first edges, or a solid behind them."""
    dim = e.get("dim")
    if not len(face):
        c.fault(e, "there are no triangles in its file; give faces")
        return None
    texcoord = corner = None
    if surface.texcoord is not None and surface.face_texcoord is not None:
        texcoord, corner = surface.texcoord, surface.face_texcoord
    if dim < 3:
        corner = None if corner is None else corner[:, : dim + 1]
        return LatticePoints(dim, vertex, face[:, : dim + 1], texcoord, corner)
    if e.own("origin") is None:
        c.fault(e, "a solid from a surface needs origin, the point its triangles are joined to")
        return None
    return _cone_tetrahedra(vertex, face, np.array(e.get("origin"), float))


def _cone_tetrahedra(vertex: np.ndarray, face: np.ndarray, origin: np.ndarray) -> LatticePoints:
    """Return tetrahedra of the origin, as point 0, with each triangle that it is behind."""
    a, b, c = (vertex[face[:, i]] - origin for i in range(3))
    behind = np.einsum("ij,ij->i", np.cross(a, b), c) > _LEAST_VOLUME
    element = np.concatenate([np.zeros((len(face), 1), int), face + 1], axis=1)
    return LatticePoints(3, np.concatenate([origin[None], vertex]), element[behind])


def _to_asset_frame(source: SpecElement, vertex: np.ndarray) -> np.ndarray:
    """Return vertices of a mesh asset in its own frame; those of a file are unchanged."""
    if source.tag != "mesh":
        return vertex
    pos, quat, scale = (source.get(attr) for attr in ("refpos", "refquat", "scale"))
    moved = vertex if pos is None else vertex - pos
    back = quat_conjugate(quat_normalize(np.array(IDENTITY if quat is None else quat, float)))
    return quat_rotate(back, moved) * (1.0 if scale is None else scale)
