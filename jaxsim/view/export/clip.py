"""A recorded motion for export: names, poses, triangles and curves, the same for all formats.

Poses come from the recorded positions by forward kinematics, in one program that is compiled once
for batches of records and worlds. Worlds stand side by side as in the viewer.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jaxsim.batch.trajectory import Trajectory, load_trajectory
from jaxsim.escape import unique
from jaxsim.model.describe import name_of
from jaxsim.model.model import Model
from jaxsim.view.browser.draw.deformable import Deformable, deformables_of, points_of
from jaxsim.view.browser.draw.layout import WORLD_SPACING, bounding_balls, grid_cells, is_shared
from jaxsim.view.browser.draw.part import Part, parts_of
from jaxsim.view.browser.draw.poses import Poses, Posing
from jaxsim.view.browser.motion import Recorded, RecordedMotion, motion_of
from jaxsim.view.columns import column_names, column_units
from jaxsim.view.export.surface import Material, Surface, deformable_material, surface_of
from jaxsim.view.picking import DEFAULT_GROUPS

_MAX_RATE = 60.0  # default limit on the frames per second
_BATCH_STATES = 256  # states whose poses are computed at a time
_MIN_MOTION = 1e-7  # a body whose pose changes less does not move
_NO_CURVES = ("time", "mocap_pos", "mocap_quat")  # recorded fields that are drawn, or are the axis
_Fields = Trajectory | Mapping[str, np.ndarray]


class Solid(NamedTuple):
    """A geom or site.

    Attributes:
      name: its name, unique in the clip.
      body: id of its body.
      pos, quat: its pose in the frame of the body, (3,) [m] and (4,), scalar first.
      surface: its triangles.
      shared: whether it is drawn once for all worlds.
    """

    name: str
    body: int
    pos: np.ndarray
    quat: np.ndarray
    surface: Surface
    shared: bool


class Soft(NamedTuple):
    """A flex or skin.

    Attributes:
      name: its name, unique in the clip.
      face: three vertices each, (k, 3); of a rod two, (k, 2).
      radius: radius of a rod [m].
      texcoord: texture coordinates, from the left and from the top, (n, 2); None: no image.
      material: its material.
      vertex: positions of its vertices, (frames, worlds, n, 3) [m].
    """

    name: str
    face: np.ndarray
    radius: float
    texcoord: np.ndarray | None
    material: Material
    vertex: np.ndarray

    @property
    def rod(self) -> bool:
        """Return whether it consists of lines."""
        return self.face.shape[1] == 2


class Curves(NamedTuple):
    """A recorded field over time.

    Attributes:
      name: the field.
      labels, units: of its entries.
      values: its values, (records, worlds, n).
    """

    name: str
    labels: list[str]
    units: list[str]
    values: np.ndarray

    @property
    def titles(self) -> list[str]:
        """Return the labels with their units."""
        both = zip(self.labels, self.units, strict=True)
        return [f"{label} [{unit}]" if unit else label for label, unit in both]


@dataclass(frozen=True, eq=False)
class Clip:
    """A motion for export.

    Attributes:
      title: name of the model.
      rate: nominal frames per second.
      time: time of each frame since the first record, (frames,) [s].
      worlds: names of the worlds.
      bodies: names of the bodies, unique.
      moving: whether a body moves, (nbody,).
      pos, quat: poses of bodies, (frames, worlds, nbody, 3) [m] and (frames, worlds, nbody, 4),
        scalar first; the sign of a quaternion does not change from frame to frame.
      solids: geoms and sites.
      softs: flexes and skins.
      curves: recorded fields.
      curve_time: time of each record, (records,) [s].
      left_out: descriptions of what no format carries.
    """

    title: str
    rate: float
    time: np.ndarray
    worlds: list[str]
    bodies: list[str]
    moving: np.ndarray
    pos: np.ndarray
    quat: np.ndarray
    solids: list[Solid]
    softs: list[Soft]
    curves: list[Curves]
    curve_time: np.ndarray
    left_out: list[str]

    def solids_of(self, world: int) -> list[Solid]:
        """Return the geoms and sites that are drawn for a world."""
        return [s for s in self.solids if world == 0 or not s.shared]


def clip_of(m: Model, recorded: Recorded, *, worlds: int = 1, fps: float | None = None) -> Clip:
    """Return a motion of a model for export.

    Args:
      m: the model.
      recorded: a trajectory, its file, or arrays by name, as for `motion_of`.
      worlds: number of worlds.
      fps: frames per second; records between them are skipped. None: those of the motion, at most
        60.

    Raises:
      ValueError: this is no motion of the model, it does not have so many worlds, or its first
        record is not finite.
      OSError: the file cannot be read.
    """
    if fps is not None and not fps > 0:
        raise ValueError(f"fps: expected frames per second above 0, got {fps}")
    if isinstance(recorded, str | os.PathLike):
        recorded = load_trajectory(recorded)
    motion = motion_of(m, recorded)
    number = motion.num_shown(worlds, 1)
    rate, records = _frames(motion, fps)
    poses, finite = _finite_poses(m, motion, records, number)
    left_out = _left_out(m)
    if len(finite) < len(records):
        bad = motion.time[records[len(finite)]]
        left_out.append(f"frames from {bad:g} s on: poses are not finite")
    records = finite
    parts = [p for p in parts_of(m) if DEFAULT_GROUPS[p.group]]
    first = _select(poses, slice(0, number))
    ball = bounding_balls(m, parts, DEFAULT_GROUPS, first, np.zeros((number, 3)))
    offset = WORLD_SPACING * float(ball.radius.max()) * grid_cells(number)
    shape = len(records), number
    pos = poses.xpos.reshape(*shape, m.nbody, 3) + offset[:, None]
    quat = _continuous(poses.xquat.reshape(*shape, m.nbody, 4))
    return Clip(
        title=_title(recorded),
        rate=rate,
        time=motion.time[records],
        worlds=[f"world {k}" for k in range(number)],
        bodies=unique(name_of(m, "body", b) for b in range(m.nbody)),
        moving=_moving(pos) | _moving(quat),
        pos=pos,
        quat=quat,
        solids=_solids(m, parts, offset),
        softs=_softs(m, poses, offset, len(records)),
        curves=_curves(m, recorded, motion, number),
        curve_time=motion.time,
        left_out=left_out,
    )


def _frames(motion: RecordedMotion, fps: float | None) -> tuple[float, np.ndarray]:
    """Return the frame rate, and the last record at or before each frame, without repetitions."""
    end = float(motion.time[-1])
    own = (motion.records - 1) / end if end > 0 else _MAX_RATE
    rate = min(own, _MAX_RATE) if fps is None else fps
    times = np.arange(0, end + 0.5 / rate, 1 / rate)
    records = np.searchsorted(motion.time, times + 1e-9, side="right") - 1
    return rate, np.unique(np.clip(records, 0, None))


def _finite_poses(
    m: Model, motion: RecordedMotion, records: np.ndarray, worlds: int
) -> tuple[Poses, np.ndarray]:
    """Return the poses of the frames of some worlds, frames first, up to the first that is not
    finite, and the records of these frames."""
    state = {
        name: value[records, :worlds].reshape(len(records) * worlds, *value.shape[2:])
        for name, value in motion.state.items()
    }
    poses = _poses(Posing(m), state)
    drawn = (poses.xpos, poses.xquat, poses.flexvert_xpos, poses.soft)
    finite = np.array([np.isfinite(x.reshape(len(records), -1)).all(axis=1) for x in drawn])
    good = int(np.argmin(np.append(finite.all(axis=0), False)))
    if good == 0:
        raise ValueError("the first record of the motion is not finite: no pose can be exported")
    return _select(poses, slice(0, good * worlds)), records[:good]


def _poses(posing: Posing, state: dict[str, np.ndarray]) -> Poses:
    """Return the poses of states, (states, ...), in batches of one size, so that one program is
    compiled."""
    number = len(state["qpos"])
    size = min(number, _BATCH_STATES)
    found = []
    for start in range(0, number, size):
        index = np.minimum(np.arange(start, start + size), number - 1)  # repeats the last state
        found.append(posing.of({n: x[index] for n, x in state.items() if n in posing.start}))
    joined = {
        name: np.concatenate([getattr(p, name) for p in found])[:number]
        for name in Poses._fields
        if name != "paths"
    }
    return Poses(**joined, paths={})


def _select(poses: Poses, states: slice) -> Poses:
    arrays = {n: x[states] for n, x in poses._asdict().items() if n != "paths"}
    return Poses(**arrays, paths={})


def _continuous(quat: np.ndarray) -> np.ndarray:
    """Return quaternions, (frames, ...), with signs such that they do not jump between frames."""
    flips = np.sum(quat[1:] * quat[:-1], axis=-1) < 0
    sign = np.where(np.cumsum(flips, axis=0) % 2 == 1, -1.0, 1.0)
    return np.concatenate([quat[:1], quat[1:] * sign[..., None]])


def _moving(values: np.ndarray) -> np.ndarray:
    """Return for which bodies values (frames, worlds, nbody, n) change over time, (nbody,)."""
    return np.abs(values - values[:1]).max(axis=(0, 1, 3)) > _MIN_MOTION


def _solids(m: Model, parts: Sequence[Part], offset: np.ndarray) -> list[Solid]:
    names = unique(part.name for part in parts)
    return [
        Solid(name, p.body, p.pos, p.quat, surface_of(p), is_shared(m, p, offset))
        for name, p in zip(names, parts, strict=True)
    ]


def _softs(m: Model, poses: Poses, offset: np.ndarray, frames: int) -> list[Soft]:
    drawn = [soft for soft in deformables_of(m) if DEFAULT_GROUPS[soft.group]]
    names = unique(f"{soft.kind} {soft.name}" for soft in drawn)
    return [_soft(m, n, s, poses, offset, frames) for n, s in zip(names, drawn, strict=True)]


def _soft(
    m: Model, name: str, soft: Deformable, poses: Poses, offset: np.ndarray, frames: int
) -> Soft:
    point = points_of(soft, poses)
    vertex = point.reshape(frames, len(offset), *point.shape[1:]) + offset[:, None]
    material = deformable_material(m, soft)
    return Soft(name, soft.face, soft.radius, soft.texcoord, material, vertex)


def _curves(m: Model, recorded: _Fields, motion: RecordedMotion, worlds: int) -> list[Curves]:
    """Return the recorded fields of numbers, one row for each record and world."""
    fields = recorded.fields if isinstance(recorded, Trajectory) else recorded
    single = np.ndim(fields["qpos"]) == 2
    found = []
    for title, (name, given) in zip(unique(fields), fields.items(), strict=True):
        value = np.asarray(given)
        value = value[:, None] if single else value
        if name in _NO_CURVES or value.shape[:2] != (motion.records, motion.worlds):
            continue
        value = value[:, :worlds].reshape(motion.records, worlds, -1).astype(float)
        labels = unique(column_names(m, name, value.shape[2]))
        if labels:
            found.append(Curves(title, labels, column_units(m, name, len(labels)), value))
    return found


def _title(recorded: _Fields) -> str:
    name = recorded.header.get("model") if isinstance(recorded, Trajectory) else None
    return unique([str(name or "motion")])[0]


def _left_out(m: Model) -> list[str]:
    """Return what the viewer draws and no format carries."""
    hidden = sum(not DEFAULT_GROUPS[part.group] for part in parts_of(m))
    found = [f"{hidden} geoms and sites of groups that the viewer hides"] if hidden else []
    return found + ([f"paths of {m.ntendon} tendons"] if m.ntendon else [])
