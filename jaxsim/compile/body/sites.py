"""Compile sites: `site_*`."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.asset import assets
from jaxsim.compile.body.bodies import owners
from jaxsim.compile.columns import Column, copy_columns, user_data
from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.shape import GEOM_TYPE_BY_NAME, Geometry, primitive_geometry
from jaxsim.compile.step import declare_pass
from jaxsim.enums import GeomType

_COLUMNS = (Column("site_group", "group", dtype=np.int32),)


@declare_pass(needs="read_settings assets bodies meshes", gives="site")
def sites(c: Compilation) -> None:
    """Add all fields of sites."""
    elements = [site for body in c.bodies for site in body.sites]
    c.register("site", elements, [site.name for site in elements])
    geometries: list[Geometry] = []
    for element in elements:
        kind = GEOM_TYPE_BY_NAME[element.get("type")]
        if element.get("mesh") is not None and kind != GeomType.MESH:
            c.fault(element, "mesh is for sites of type='mesh'; remove it, or change the type")
        if kind == GeomType.PLANE:
            c.fault(element, "a site cannot be a plane; make it a flat box")
        draw = assets.geometry if kind in assets.ASSET_TYPES else primitive_geometry
        geometries.append(draw(c, element, kind))
    c.fields.update(
        nsite=len(elements),
        site_bodyid=owners(c.bodies, "sites"),
        site_type=np.array([g.kind for g in geometries], np.int32),
        site_dataid=np.array([g.dataid for g in geometries], np.int32),
        site_size=np.array([g.size for g in geometries]).reshape(-1, 3),
        site_pos=np.array([g.pose.pos for g in geometries]).reshape(-1, 3),
        site_quat=np.array([g.pose.quat for g in geometries]).reshape(-1, 4),
        site_matid=np.array([assets.material(c, e) for e in elements], np.int32),
        site_rgba=np.array([e.get("rgba") for e in elements], np.float32).reshape(-1, 4),
    )
    copy_columns(c, elements, _COLUMNS)
    user_data(c, "site", elements)
