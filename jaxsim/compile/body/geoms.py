"""Compile geoms: `geom_*`, their contribution to body fields, and their masses and inertias."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.asset import assets
from jaxsim.compile.body.bodies import address_table, owners
from jaxsim.compile.columns import Column, copy_columns, user_data
from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.shape import GEOM_TYPE_BY_NAME, Geometry, primitive_geometry
from jaxsim.compile.options.plugins import plugin_id
from jaxsim.compile.step import declare_pass
from jaxsim.enums import GeomType
from jaxsim.math.added_mass import added_mass
from jaxsim.math.quaternion import quat_conjugate, quat_rotate
from jaxsim.math.solids import half_sides
from jaxsim.spec import SpecElement

_CONDIMS = (1, 3, 4, 6)

_COLUMNS = (
    Column("geom_contype", "contype", dtype=np.int32),
    Column("geom_conaffinity", "conaffinity", dtype=np.int32),
    Column("geom_condim", "condim", dtype=np.int32),
    Column("geom_group", "group", dtype=np.int32),
    Column("geom_priority", "priority", dtype=np.int32),
    Column("geom_castshadow", "castshadow", dtype=bool),
    Column("geom_solmix", "solmix"),
    Column("geom_solref", "solref", 2),
    Column("geom_solimp", "solimp", 5),
    Column("geom_friction", "friction", 3),
    Column("geom_margin", "margin"),
    Column("geom_gap", "gap"),
    Column("geom_surfacevel", "surfacevel", 6),
    Column("geom_adhesion", "adhesion"),
)


@declare_pass(
    needs="read_settings plugin_fields assets bodies hfields meshes",
    gives="body geom geom_inertia geom_mass",
)
def geoms(c: Compilation) -> None:
    """Add all fields of geoms, and their masses and inertias for the bodies."""
    elements = [geom for body in c.bodies for geom in body.geoms]
    c.register("geom", elements, [geom.name for geom in elements])
    geometries = [_geometry(c, geom) for geom in elements]
    num, adr = address_table([body.geoms for body in c.bodies])
    c.fields.update(
        ngeom=len(elements),
        body_geomnum=num,
        body_geomadr=adr,
        geom_bodyid=owners(c.bodies, "geoms"),
        geom_type=np.array([g.kind for g in geometries], np.int32),
        geom_dataid=np.array([g.dataid for g in geometries], np.int32),
        geom_size=np.array([g.size for g in geometries]).reshape(-1, 3),
        geom_pos=np.array([g.pose.pos for g in geometries]).reshape(-1, 3),
        geom_quat=np.array([g.pose.quat for g in geometries]).reshape(-1, 4),
        geom_aabb=np.array([g.solid.aabb for g in geometries]).reshape(-1, 6),
        geom_rbound=np.array([g.solid.rbound for g in geometries], np.float64),
        geom_fluid=np.array(
            [_fluid(e, g) for e, g in zip(elements, geometries, strict=True)]
        ).reshape(-1, 12),
        geom_matid=np.array([assets.material(c, e) for e in elements], np.int32),
        geom_plugin=np.array([plugin_id(c, e) for e in elements], np.int32),
    )
    copy_columns(c, elements, _COLUMNS)
    _move_surface_velocity(c, geometries)
    c.fields["geom_rgba"] = _colors(elements)
    user_data(c, "geom", elements)
    for element in elements:
        _check(c, element)
    _bodies_inherit(c)
    masses = [_mass(e, g) for e, g in zip(elements, geometries, strict=True)]
    c.geom_mass = np.array(masses, np.float64)
    c.geom_inertia = np.array(
        [mass * g.solid.inertia for mass, g in zip(masses, geometries, strict=True)]
    ).reshape(-1, 3)


def _geometry(c: Compilation, element: SpecElement) -> Geometry:
    """Return the geometry of a geom, from its size or from an asset."""
    kind = GEOM_TYPE_BY_NAME[element.get("type")]
    if element.get("hfield") is not None and kind != GeomType.HFIELD:
        c.fault(element, "hfield is for geoms of type='hfield'; remove it, or change the type")
    if kind in assets.ASSET_TYPES or element.get("mesh") is not None:
        return assets.geometry(c, element, kind)
    return primitive_geometry(c, element, kind, shell=element.get("shellinertia") == "true")


def _mass(element: SpecElement, geometry: Geometry) -> float:
    """Return `mass` if it is given, else density times volume, or times area for a shell [kg].

    A shape without content, such as a plane, has no mass. NaN counts as no mass given.
    """
    content, mass = geometry.solid.content, element.get("mass")
    mass = None if mass is not None and np.isnan(mass) else mass
    if content <= 0:
        return 0.0
    return float(element.get("density")) * content if mass is None else float(mass)


def _fluid(element: SpecElement, geometry: Geometry) -> np.ndarray:
    """Return the row of `geom_fluid`, (12,): on/off, five coefficients, virtual mass (3,) and
    inertia (3,); zero without `fluidshape`."""
    if element.get("fluidshape") == "none":
        return np.zeros(12)
    # Coefficients of blunt, slender and angular drag, Kutta and Magnus lift; virtual masses.
    coefficients = element.get("fluidcoef")
    virtual = added_mass(np, half_sides(geometry.kind, geometry.size))
    return np.concatenate([[1.0], coefficients, virtual])


def _move_surface_velocity(c: Compilation, geometries: list[Geometry]) -> None:
    """Rotate `geom_surfacevel` from the frame of the element to that of the geometry."""
    velocity = c.fields["geom_surfacevel"]
    for i, geometry in enumerate(geometries):
        if geometry.moved is not None and velocity[i].any():
            pos, quat = geometry.moved
            linear, angular = velocity[i, :3], velocity[i, 3:]
            shifted = np.stack([linear + np.cross(angular, pos), angular])
            velocity[i] = quat_rotate(quat_conjugate(quat), shifted).ravel()


def _colors(elements: list[SpecElement]) -> np.ndarray:
    """Return `rgba`, in float32 as MuJoCo stores colors, (n, 4)."""
    return np.array([e.get("rgba") for e in elements], np.float32).reshape(-1, 4)


def _check(c: Compilation, element: SpecElement) -> None:
    condim = element.get("condim")
    if condim not in _CONDIMS:
        c.fault(element, f"condim={condim} is none of 1, 3, 4, 6")


def _bodies_inherit(c: Compilation) -> None:
    """Set collision masks and margin of bodies: the union and the maximum over their geoms."""
    f = c.fields
    contype, conaffinity = np.zeros((2, f["nbody"]), np.int32)
    margin = np.zeros(f["nbody"])
    np.bitwise_or.at(contype, f["geom_bodyid"], f["geom_contype"])
    np.bitwise_or.at(conaffinity, f["geom_bodyid"], f["geom_conaffinity"])
    np.maximum.at(margin, f["geom_bodyid"], f["geom_margin"] + f["geom_gap"])
    f.update(body_contype=contype, body_conaffinity=conaffinity, body_margin=margin)
