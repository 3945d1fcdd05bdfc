"""Motions as recordings of Rerun (.rrd): entities of worlds, bodies and parts, and scalars.

The timeline `time` is the time since the first record. Triangles and poses in the frame of a body
are static; bodies have a transform for each frame.
"""

from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.optional import require
from jaxsim.view.export.clip import Clip, Soft, Solid
from jaxsim.view.export.surface import Material, vertex_normals

RERUN_MODULES = ("rerun",)
_SCALAR_FIRST = [1, 2, 3, 0]  # from quaternions (w, x, y, z) to (x, y, z, w)


def write_rerun(clip: Clip, path: Path) -> list[str]:
    """Write a motion as a recording of Rerun; return what is left out."""
    rr = require("rerun", "export")
    recording = rr.RecordingStream("jaxsim")
    recording.save(str(path))
    recording.send_recording_name(clip.title)
    recording.log("/", rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
    time = [rr.TimeColumn("time", duration=clip.time)]
    for world, name in enumerate(clip.worlds):
        for body in range(len(clip.bodies)):
            _write_body(rr, recording, clip, world, body, time)
        for solid in clip.solids_of(world):
            entity = rr.new_entity_path([name, clip.bodies[solid.body], solid.name])
            _write_solid(rr, recording, entity, solid)
        for soft in clip.softs:
            entity = rr.new_entity_path([name, soft.name])
            vertex, start = soft.vertex[:, world], float(clip.time[0])
            _write_soft(rr, recording, entity, soft, vertex, start, time)
    _write_curves(rr, recording, clip)
    recording.flush()
    recording.disconnect()
    return []


def _write_body(rr: Any, recording: Any, clip: Clip, world: int, body: int, time: list) -> None:
    entity = rr.new_entity_path([clip.worlds[world], clip.bodies[body]])
    pos = clip.pos[:, world, body]
    quat = clip.quat[:, world, body][:, _SCALAR_FIRST]
    if clip.moving[body]:
        columns = rr.Transform3D.columns(translation=pos, quaternion=quat)
        recording.send_columns(entity, time, columns)
    else:
        still = rr.Transform3D(translation=pos[0], quaternion=quat[0])
        recording.log(entity, still, static=True)


def _write_solid(rr: Any, recording: Any, entity: str, solid: Solid) -> None:
    surface = solid.surface
    place = rr.Transform3D(translation=solid.pos, quaternion=solid.quat[_SCALAR_FIRST])
    mesh = rr.Mesh3D(
        vertex_positions=surface.vertex,
        vertex_normals=surface.normal,
        triangle_indices=surface.face,
        vertex_texcoords=surface.texcoord,
        **_look(surface.material),
    )
    recording.log(entity, place, mesh, static=True)


def _look(material: Material) -> dict[str, Any]:
    return {"albedo_factor": material.rgba, "albedo_texture": material.image}


def _write_soft(
    rr: Any, recording: Any, entity: str, soft: Soft, vertex: np.ndarray, start: float, time: list
) -> None:
    """Write a flex or skin with vertices (frames, n, 3) in each frame."""
    frames, number = vertex.shape[:2]
    if soft.rod:
        style = {"colors": [soft.material.rgba], "radii": [soft.radius]}
        recording.log(entity, rr.LineStrips3D.from_fields(**style), static=True)
        columns = rr.LineStrips3D.columns(strips=vertex[:, soft.face].reshape(-1, 2, 3))
        recording.send_columns(entity, time, columns.partition([len(soft.face)] * frames))
        return
    # Static vertices would hide those of the frames, so the first frame has the constant fields.
    recording.set_time("time", duration=start)
    normal = vertex_normals(vertex, soft.face)
    first = rr.Mesh3D(
        vertex_positions=vertex[0],
        vertex_normals=normal[0],
        triangle_indices=soft.face,
        vertex_texcoords=soft.texcoord,
        **_look(soft.material),
    )
    recording.log(entity, first)
    columns = rr.Mesh3D.columns(
        vertex_positions=vertex.reshape(-1, 3), vertex_normals=normal.reshape(-1, 3)
    )
    recording.send_columns(entity, time, columns.partition([number] * frames))


def _write_curves(rr: Any, recording: Any, clip: Clip) -> None:
    time = [rr.TimeColumn("time", duration=clip.curve_time)]
    for curves in clip.curves:
        for world, name in enumerate(clip.worlds):
            entity = rr.new_entity_path(["curves", name, curves.name])
            recording.log(entity, rr.SeriesLines(names=curves.titles), static=True)
            values = curves.values[:, world]
            columns = rr.Scalars.columns(scalars=values.reshape(-1))
            recording.send_columns(entity, time, columns.partition([values.shape[1]] * len(values)))
