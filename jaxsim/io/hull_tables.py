"""Support maps of the convex hulls that collide or are measured, computed when a model is made.

hull_*: candidate vertices that can be extreme in a direction, concatenated over the hulls
(assets/mesh/support_map.py). hull_vert: coordinates of these vertices, as the bits of
single-precision numbers, from which replaced vertices are detected. mesh_polyplace, mesh_polyquad:
vertices of the hull polygons (assets/mesh/outline.py).
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxsim.assets.mesh.directions import CUBE_FACES, FAN_SLICES
from jaxsim.assets.mesh.outline import outline_positions, quads
from jaxsim.assets.mesh.support_map import CELL_CODE_BASE, CELLS_PER_EDGE, SupportMap, support_map
from jaxsim.enums import GeomType, ObjType, SensorType
from jaxsim.physics.collision.convex.hull.tables import collidable_geoms

CompiledFields = Mapping[str, Any]


def hull_tables(fields: CompiledFields) -> dict[str, Any]:
    """Return the tables of the structure, from the tables of a compiled model under MuJoCo's
    names."""
    of_geom = np.where(_has_hull(fields), fields["geom_dataid"], -1)
    meshes, hull = np.unique(of_geom, return_inverse=True)
    # The id -1 of geoms without a hull is listed first.
    num_missing = int(np.any(of_geom < 0))
    meshes = meshes[num_missing:]
    tables = _concatenate_maps(fields, meshes)
    tables["geom_hullid"] = (hull - num_missing).astype(np.int32)
    vertex = np.asarray(fields["mesh_vert"]).reshape(-1, 3)[np.unique(tables["hull_vertid"])]
    tables["nhullpoint"] = len(vertex)
    tables["hull_vert"] = vertex.astype(np.float32).view(np.int32)
    return tables | _polygon_tables(fields)


def _has_hull(fields: CompiledFields) -> np.ndarray:
    """Return which geoms are meshes with a hull that collide or are measured, bool (ngeom,)."""
    is_mesh = np.isin(fields["geom_type"], (GeomType.MESH, GeomType.SDF))
    needs_hull = collidable_geoms(fields.__getitem__) | _measured_geoms(fields)
    has_hull = is_mesh & needs_hull & (fields["geom_dataid"] >= 0)
    has_hull[has_hull] = fields["mesh_graphadr"][fields["geom_dataid"][has_hull]] >= 0
    return has_hull


def _measured_geoms(fields: CompiledFields) -> np.ndarray:
    """Return which geoms are measured by distance sensors, bool (ngeom,)."""
    kinds = (SensorType.GEOMDIST, SensorType.GEOMNORMAL, SensorType.GEOMFROMTO)
    sensor = np.isin(fields["sensor_type"], kinds)
    body, found = np.asarray(fields["geom_bodyid"]), np.zeros(len(fields["geom_type"]), bool)
    for side in ("obj", "ref"):
        kind, ids = (np.asarray(fields[f"sensor_{side}{x}"])[sensor] for x in ("type", "id"))
        found |= np.isin(body, ids[kind == ObjType.BODY])
        found[ids[kind == ObjType.GEOM]] = True
    return found


def _concatenate_maps(fields: CompiledFields, meshes: np.ndarray) -> dict[str, Any]:
    """Return the concatenated support maps of meshes.

    After the candidates of each mesh the list is padded to the length of the longest candidate
    list, so that a fixed number can be read.
    """
    maps = [_support_map(fields, mesh) for mesh in meshes]
    longest_list = max((h.most for h in maps), default=0)
    cell, part, pole, slices, vertex = ([] for _ in range(5))
    parts = fans = vertices = 0
    for mesh, h in zip(meshes, maps, strict=True):
        # A cell stores its first part times CELL_CODE_BASE, plus log2 of the parts along its side.
        # A part stores the address of its candidates, or -1 - its fan.
        cell.append(h.cell + CELL_CODE_BASE * parts)
        part.append(np.where(h.part < 0, h.part - fans, h.part + vertices))
        pole.append(h.pole)
        slices.append(h.slice + vertices)
        spare = np.full(longest_list, h.candidate[0])
        vertex.append(np.concatenate([h.candidate, spare]) + fields["mesh_vertadr"][mesh])
        parts, fans = parts + len(h.part), fans + len(h.pole)
        vertices += len(vertex[-1])
    return {
        "nhull": len(maps),
        "nhullpart": parts,
        "nhullfan": fans,
        "nhullvert": vertices,
        "nhullmost": longest_list,
        "hull_cell": _stack_rows(cell, CUBE_FACES * CELLS_PER_EDGE * CELLS_PER_EDGE),
        "hull_part": _stack_rows(part),
        "hull_pole": _stack_rows(pole, 2),
        "hull_slice": _stack_rows(slices, FAN_SLICES),
        "hull_vertid": _stack_rows(vertex),
    }


def _support_map(fields: CompiledFields, mesh: int) -> SupportMap:
    start, count = (int(fields[f"mesh_vert{x}"][mesh]) for x in ("adr", "num"))
    vertex = np.asarray(fields["mesh_vert"]).reshape(-1, 3)[start : start + count]
    return support_map(vertex, fields["mesh_graph"][fields["mesh_graphadr"][mesh] :])


def _stack_rows(parts: list[np.ndarray], *width: int) -> np.ndarray:
    """Return concatenated parts as rows of this width."""
    joined = np.concatenate([p.ravel() for p in parts]) if parts else np.zeros(0)
    return joined.reshape(-1, *width).astype(np.int32)


def _polygon_tables(fields: CompiledFields) -> dict[str, np.ndarray]:
    """Return the positions and spanning quads of the vertices of all polygons, with ids that count
    through all meshes."""
    mesh = np.arange(len(fields["mesh_vertadr"]))
    polynum, mapnum = fields["mesh_polyvertnum"], fields["mesh_polymapnum"]
    of_corner = np.repeat(np.repeat(mesh, fields["mesh_polynum"]), polynum)
    of_entry = np.repeat(np.repeat(mesh, fields["mesh_vertnum"]), mapnum)
    corner = fields["mesh_polyvert"] + fields["mesh_vertadr"][of_corner]
    entry = fields["mesh_polymap"] + fields["mesh_polyadr"][of_entry]
    vertex = np.asarray(fields["mesh_vert"]).reshape(-1, 3)
    return {
        "mesh_polyplace": outline_positions(corner, polynum, entry, mapnum),
        "mesh_polyquad": quads(vertex, corner, polynum),
    }
