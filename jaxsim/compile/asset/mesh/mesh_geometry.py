"""Geometry of mesh geoms and sites, and of primitives fitted to a mesh."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.element_pose import pose_of
from jaxsim.compile.geometry.pose import FramePose, identity_pose
from jaxsim.compile.geometry.primitive import Solid, primitive
from jaxsim.compile.geometry.shape import Geometry, check_size, unknown_geometry
from jaxsim.enums import GeomType
from jaxsim.math.quaternion import IDENTITY
from jaxsim.spec import SpecElement

_FitFunction = Callable[[float, float, float], tuple[float, ...]]

# From the half sizes of the box with the mesh's inertia: intermediate cross sections and volume.
TO_INERTIA: dict[GeomType, _FitFunction] = {
    GeomType.SPHERE: lambda x, y, z: ((x + y + z) / 3,),
    GeomType.CAPSULE: lambda x, y, z: ((x + y) / 2, max(0.0, z - (x + y) / 4)),
    GeomType.CYLINDER: lambda x, y, z: ((x + y) / 2, z),
    GeomType.ELLIPSOID: lambda x, y, z: (x, y, z),
    GeomType.BOX: lambda x, y, z: (x, y, z),
}

# From the half sizes of the bounding box: the smallest shape whose own box contains it.
AROUND_BOX: dict[GeomType, _FitFunction] = {
    GeomType.SPHERE: lambda x, y, z: (max(x, y, z),),
    GeomType.CAPSULE: lambda x, y, z: (max(x, y), max(0.0, z - max(x, y))),
    GeomType.CYLINDER: lambda x, y, z: (max(x, y), z),
    GeomType.ELLIPSOID: lambda x, y, z: (x, y, z),
    GeomType.BOX: lambda x, y, z: (x, y, z),
}


def inertia_box(moments: np.ndarray) -> np.ndarray:
    """Return the half sizes of the box with these principal moments per mass [m^2], (3,)."""
    return np.sqrt(np.maximum(0.0, 1.5 * (moments.sum() - 2 * moments)))


def mesh_geometry(c: Compilation, element: SpecElement, kind: GeomType) -> Geometry:
    """Return the geometry of a geom of type mesh or sdf, or of a site of type mesh.

    A geom is placed so that the points of the file keep their coordinates. A site, as in MuJoCo,
    has the mesh's own frame at the written pose.
    """
    if element.get("mesh") is None:
        c.fault(element, f"type='{kind.name.lower()}' needs mesh, the name of a mesh")
        return unknown_geometry(kind)
    if element.get("shellinertia") == "true":
        c.fault(element, "shellinertia is for primitive shapes; set inertia='shell' of the mesh")
    if element.get("fromto") is not None:
        c.fault(element, "fromto is for capsules, cylinders, boxes and ellipsoids; use pos")
    dataid = c.resolve_attribute("mesh", element, "mesh")
    if dataid < 0:
        return unknown_geometry(kind)
    mesh = c.meshes[dataid]
    low, high = mesh.bounds
    size = np.maximum(np.abs(low), np.abs(high))
    moved = mesh.pose if element.tag == "geom" else identity_pose()
    aabb = np.concatenate([(high + low) / 2, (high - low) / 2])
    return Geometry(
        kind=kind,
        size=size,
        pose=pose_of(c, element).apply(moved),
        solid=Solid(mesh.content, mesh.moments, aabb, float(np.linalg.norm(size))),
        dataid=dataid,
        moved=moved,
    )


def fit_primitive(c: Compilation, element: SpecElement, kind: GeomType) -> Geometry:
    """Return the geometry of a primitive fitted to a mesh, at the pose of the mesh.

    With `fitaabb` it is fitted to the bounding box of the mesh, otherwise to its inertia box.
    """
    if element.get("fromto") is not None:
        c.fault(element, "both mesh and fromto give its size; remove one of them")
        return unknown_geometry(kind)
    if kind not in TO_INERTIA:
        c.fault(element, f"a {kind.name.lower()} cannot be fitted to a mesh; use a solid shape")
        return unknown_geometry(kind)
    dataid = c.resolve_attribute("mesh", element, "mesh")
    if dataid < 0:
        return unknown_geometry(kind)
    mesh = c.meshes[dataid]
    if c.settings_of(element).fitaabb:
        low, high = mesh.bounds
        moved = mesh.pose.apply(FramePose((high + low) / 2, IDENTITY))
        half = AROUND_BOX[kind](*(high - low) / 2)
    else:
        moved = mesh.pose
        half = TO_INERTIA[kind](*inertia_box(mesh.moments))
    size = np.zeros(3)
    given = np.atleast_1d(element.get("size"))
    size[: len(given)] = given
    size[: len(half)] = float(element.get("fitscale")) * np.array(half)
    check_size(c, element, kind, size)
    return Geometry(
        kind=kind,
        size=size,
        pose=pose_of(c, element).apply(moved),
        solid=primitive(kind, size, shell=element.get("shellinertia") == "true"),
        moved=moved,
    )
