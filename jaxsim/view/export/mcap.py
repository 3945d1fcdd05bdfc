"""Motions as MCAP files (.mcap) with Foxglove's messages, for Foxglove and Lichtblick.

Topics: `/tf` has the frames of moving bodies, `/tf_static` those of others; `/scene` has the
triangles of geoms and sites, in the frames of their bodies, `/deformables` those of flexes and
skins in each frame. Each recorded field is a topic of JSON objects, with a number for each entry.
Foxglove's triangles have colors only, so an image is replaced by its mean color.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.optional import require
from jaxsim.version import __version__
from jaxsim.view.export.clip import Clip, Curves, Soft, Solid

_MESSAGES = ("FrameTransforms", "SceneUpdate")
MCAP_MODULES = (
    "mcap.writer",
    "mcap_protobuf.schema",
    *(f"foxglove_schemas_protobuf.{name}_pb2" for name in _MESSAGES),
)
_ROOT = "world"  # frame of the model; that of a body is WORLD/BODY
_NANOSECONDS = 1e9


def write_mcap(clip: Clip, path: Path) -> list[str]:
    """Write a motion as an MCAP file; return what is left out."""
    with path.open("wb") as stream:
        log = _Log(stream)
        start, body_moves = clip.time[0], clip.moving
        log.write("/tf_static", _transforms(clip, 0, np.flatnonzero(~body_moves)), start)
        log.write("/scene", _scene(clip), start)
        for frame, time in enumerate(clip.time):
            if body_moves.any():
                log.write("/tf", _transforms(clip, frame, np.flatnonzero(body_moves)), time)
            if clip.softs:
                log.write("/deformables", _deformables(clip, frame), time)
        for curves in clip.curves:
            for world, name in enumerate(clip.worlds):
                topic = f"/{curves.name}" if len(clip.worlds) == 1 else f"/{name}/{curves.name}"
                log.write_curves(topic, curves, clip.curve_time, curves.values[:, world])
        log.finish(clip)
    images = sum(solid.surface.material.image is not None for solid in clip.solids)
    images += sum(soft.material.image is not None for soft in clip.softs)
    return [f"images of {images} textured objects"] if images else []


class _Log:
    """An MCAP file under construction."""

    def __init__(self, stream: Any):
        library = require("mcap.writer", "export")
        self._writer = library.Writer(stream)
        self._writer.start(library=f"jaxsim {__version__}")
        self._channels: dict[str, int] = {}

    def write(self, topic: str, message: Any, time: float) -> None:
        """Append a message of Foxglove at a time [s]."""
        if topic not in self._channels:
            schema = require("mcap_protobuf.schema", "export").register_schema(
                self._writer, type(message)
            )
            self._channels[topic] = self._writer.register_channel(topic, "protobuf", schema)
        self._append(topic, message.SerializeToString(), time)

    def write_curves(
        self, topic: str, curves: Curves, time: np.ndarray, values: np.ndarray
    ) -> None:
        """Append values of a recorded field, (records, n)."""
        entries = {
            label: {"type": ["number", "null"], "description": unit}
            for label, unit in zip(curves.labels, curves.units, strict=True)
        }
        schema = json.dumps({"type": "object", "properties": entries}).encode()
        number = self._writer.register_schema(f"jaxsim.{curves.name}", "jsonschema", schema)
        self._channels[topic] = self._writer.register_channel(topic, "json", number)
        for at, row in zip(time, values, strict=True):
            numbers = [float(x) if np.isfinite(x) else None for x in row]  # JSON has no NaN
            record = dict(zip(curves.labels, numbers, strict=True))
            self._append(topic, json.dumps(record).encode(), at)

    def _append(self, topic: str, content: bytes, time: float) -> None:
        at = round(float(time) * _NANOSECONDS)
        self._writer.add_message(self._channels[topic], at, content, at)

    def finish(self, clip: Clip) -> None:
        """Append the metadata, and the index of the file."""
        about = {"model": clip.title, "length": "m", "time": "s", "up": "z", "root frame": _ROOT}
        self._writer.add_metadata("jaxsim", about)
        self._writer.finish()


def _frame_id(clip: Clip, world: int, body: int) -> str:
    return f"{clip.worlds[world]}/{clip.bodies[body]}"


def _transforms(clip: Clip, frame: int, bodies: np.ndarray) -> Any:
    """Return the frames of some bodies of all worlds in a frame of the motion."""
    found = require("foxglove_schemas_protobuf.FrameTransforms_pb2", "export").FrameTransforms()
    for world in range(len(clip.worlds)):
        for body in bodies:
            made = found.transforms.add()
            _set_time(made.timestamp, clip.time[frame])
            made.parent_frame_id, made.child_frame_id = _ROOT, _frame_id(clip, world, int(body))
            _set_position(made.translation, clip.pos[frame, world, body])
            _set_rotation(made.rotation, clip.quat[frame, world, body])
    return found


def _scene(clip: Clip) -> Any:
    """Return the geoms and sites of all worlds, locked to the frames of their bodies."""
    found = require("foxglove_schemas_protobuf.SceneUpdate_pb2", "export").SceneUpdate()
    for world, name in enumerate(clip.worlds):
        for solid in clip.solids_of(world):
            made = found.entities.add()
            made.id, made.frame_locked = f"{name}/{solid.name}", True
            made.frame_id = _frame_id(clip, world, solid.body)
            _set_time(made.timestamp, clip.time[0])
            _add_solid(made, solid)
    return found


def _add_solid(entity: Any, solid: Solid) -> None:
    made = entity.triangles.add()
    _set_position(made.pose.position, solid.pos)
    _set_rotation(made.pose.orientation, solid.quat)
    _set_triangles(made, solid.surface.vertex, solid.surface.face)
    _set_color(made.color, solid.surface.material.plain.rgba)


def _deformables(clip: Clip, frame: int) -> Any:
    """Return the flexes and skins of all worlds in a frame of the motion."""
    found = require("foxglove_schemas_protobuf.SceneUpdate_pb2", "export").SceneUpdate()
    for world, name in enumerate(clip.worlds):
        for soft in clip.softs:
            made = found.entities.add()
            made.id, made.frame_id, made.frame_locked = f"{name}/{soft.name}", _ROOT, True
            _set_time(made.timestamp, clip.time[frame])
            _add_soft(made, soft, soft.vertex[frame, world])
    return found


def _add_soft(entity: Any, soft: Soft, vertex: np.ndarray) -> None:
    made = (entity.lines if soft.rod else entity.triangles).add()
    made.pose.orientation.w = 1.0
    _set_color(made.color, soft.material.plain.rgba)
    _set_triangles(made, vertex, soft.face)
    if soft.rod:
        made.type, made.thickness = made.LINE_LIST, 2 * soft.radius


def _set_triangles(made: Any, vertex: np.ndarray, face: np.ndarray) -> None:
    """Set the vertices (n, 3), and the indices of triangles or lines."""
    for point in vertex:
        _set_position(made.points.add(), point)
    made.indices.extend(face.reshape(-1).tolist())


def _set_time(made: Any, time: float) -> None:
    made.FromNanoseconds(round(float(time) * _NANOSECONDS))


def _set_position(made: Any, value: np.ndarray) -> None:
    made.x, made.y, made.z = map(float, value)


def _set_rotation(made: Any, quat: np.ndarray) -> None:
    made.w, made.x, made.y, made.z = map(float, quat)


def _set_color(made: Any, rgba: np.ndarray) -> None:
    made.r, made.g, made.b, made.a = map(float, rgba)
