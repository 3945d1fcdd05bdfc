"""Fields of a recorded motion as curves, with names and units, in a picture."""

import os
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from jaxsim.enums import JointType
from jaxsim.extra import needed
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.rollout.trajectory import Trajectory, target_of

MOST = 12  # curves of a panel that have their shades; names in a column beside it
BAND = (5, 95)  # percentiles of the worlds between which the shade of a curve lies
HEIGHT, WIDTH = 3.0, 12.0  # of a panel [inches]
ENDINGS = (".png", ".svg", ".pdf")

# coordinates and velocities of a joint; "" for the only one
COORDINATES = {
    "qpos": {
        JointType.FREE: ("x", "y", "z", "qw", "qx", "qy", "qz"),
        JointType.BALL: ("qw", "qx", "qy", "qz"),
        JointType.SLIDE: ("",),
        JointType.HINGE: ("",),
    },
    "qvel": {
        JointType.FREE: ("vx", "vy", "vz", "wx", "wy", "wz"),
        JointType.BALL: ("wx", "wy", "wz"),
        JointType.SLIDE: ("",),
        JointType.HINGE: ("",),
    },
}
LIKE_QVEL = "qacc qfrc_applied qfrc_actuator qfrc_bias qfrc_passive qfrc_constraint qfrc_smooth"


def draw_motion(
    motion: Trajectory,
    fields: Sequence[str],
    path: str | os.PathLike[str],
    *,
    m: Model | None = None,
    world: int = 0,
) -> None:
    """Draws fields of a motion against time, a panel each.

    Curves are those of one world; where there are several, a shade behind each shows between which
    values nine tenths of them are (of up to twelve curves).

    Args:
      motion: the motion.
      fields: names of recorded fields; "qpos:knee" draws the numbers of qpos whose name has "knee"
        in it.
      path: a .png, .svg or .pdf file; it is written as a whole or not at all.
      m: its model, which has the names of joints, actuators and sensors; None: numbers stand for
        them.
      world: number of the world.

    Raises:
      ValueError: a field was not recorded, there is no such world, or the file has another ending.
      OSError: the file cannot be written.
      MissingExtra: matplotlib is not installed.
    """
    target = target_of(path)
    if target.suffix not in ENDINGS:
        raise ValueError(f"'{path}' does not end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}")
    for name in (field.partition(":")[0] for field in fields):
        if name not in motion.fields:
            raise ValueError(f"'{name}' was not recorded; {', '.join(motion.fields)} were")
    worlds = next(iter(motion.fields.values())).shape[1]
    if not 0 <= world < worlds:
        raise ValueError(f"there is no world {world}; the motion has {worlds}, from 0 on")
    size = (WIDTH, HEIGHT * len(fields))
    figure = needed("matplotlib.figure", "view").Figure(figsize=size, layout="constrained")
    panels = figure.subplots(len(fields), 1, sharex=True, squeeze=False)[:, 0]
    step = float(motion.header.get("timestep", 1.0)) * int(motion.header.get("every", 1))
    for panel, field in zip(panels, fields, strict=True):
        _draw(panel, *_chosen(motion, field, m), step, world)
    panels[-1].set_xlabel("time [s]")
    of_worlds = f", world {world} of {worlds}" if worlds > 1 else ""
    figure.suptitle(f"{motion.header.get('model', 'motion')}{of_worlds}")
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as folder:
        figure.savefig(Path(folder) / target.name, dpi=120)
        os.replace(Path(folder) / target.name, target)


def _chosen(motion: Trajectory, field: str, m: Model | None) -> tuple[str, list[str], np.ndarray]:
    """A field, names of its numbers that were chosen, and these, (records, worlds, n)."""
    name, _, part = field.partition(":")
    values = np.asarray(motion[name], float)
    values = values.reshape(*values.shape[:2], -1)
    labels = column_names(m, name, values.shape[-1])
    chosen = [k for k, label in enumerate(labels) if part in label]
    if not chosen:
        raise ValueError(f"no number of {name} has '{part}' in its name: {', '.join(labels)}")
    return name, [labels[k] for k in chosen], values[..., chosen]


def _draw(
    panel: Any, name: str, labels: list[str], values: np.ndarray, step: float, world: int
) -> None:
    """The curves of one field."""
    time = step * np.arange(len(values))
    for k, label in enumerate(labels):
        (line,) = panel.plot(time, values[:, world, k], label=label, linewidth=1.2)
        if values.shape[1] > 1 and len(labels) <= MOST:
            low, high = np.nanpercentile(values[..., k], BAND, axis=1)
            panel.fill_between(time, low, high, color=line.get_color(), alpha=0.15, linewidth=0)
    columns = -(-len(labels) // MOST)
    panel.legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5), ncols=columns)
    panel.grid(alpha=0.3)
    unit = Data.fields[name].unit if name in Data.fields else ""
    panel.set_ylabel(f"{name} [{unit}]" if unit else name)


def column_names(m: Model | None, name: str, number: int) -> list[str]:
    """Names of the numbers of a field, such as those of joints, sensors or actuators.

    Args:
      m: the model; None: they are counted.
      name: the field.
      number: how many numbers there are.
    """
    found = None if m is None else _named(m, name)
    if found is not None and len(found) == number:
        return found
    return [name] if number == 1 else [f"{name}[{k}]" for k in range(number)]


def _named(m: Model, name: str) -> list[str] | None:
    """The names of all numbers of a field, if they are those of objects."""
    names = dict(m.structure.names)
    name = "qvel" if name in LIKE_QVEL.split() else name
    if name in COORDINATES:
        kinds = COORDINATES[name]
        return [
            " ".join(filter(None, (names["joint"][j] or f"joint {j}", of_joint)))
            for j, kind in enumerate(m.jnt_type)
            for of_joint in kinds[JointType(int(kind))]
        ]
    if name == "sensordata":
        return _spread("sensor", names["sensor"], m.sensor_dim)
    if name == "ctrl":
        return _spread("actuator", names["actuator"], m.actuator_ctrlnum)
    if name == "actuator_force":
        return _spread("actuator", names["actuator"], m.actuator_outnum)
    if name in ("ten_length", "ten_velocity"):
        return _spread("tendon", names["tendon"], np.ones(m.ntendon, int))
    return None


def _spread(kind: str, names: Sequence[str], dims: np.ndarray) -> list[str]:
    """The name of an object for each of its numbers."""
    return [
        (name or f"{kind} {i}") + (f"[{k}]" if dim > 1 else "")
        for i, (name, dim) in enumerate(zip(names, dims, strict=True))
        for k in range(int(dim))
    ]
