"""Compile keyframes: `key_*`.

Values that a keyframe does not give, including the rest of a short vector, are those at the start.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.options.bounds import fits_bounds
from jaxsim.compile.step import declare_pass
from jaxsim.enums import JointType
from jaxsim.math import quaternion
from jaxsim.spec import SpecElement


@declare_pass(needs="bodies joints align_free tendons actuators flexes derive", gives="key")
def keyframes(c: Compilation) -> None:
    """Add all fields of keyframes; the last pass that reads the model's elements in order."""
    elements = c.spec.section("keyframe")
    extra = max(0, int(c.spec.setting("size", "nkey") or 0) - len(elements))
    state = 1 + sum(len(start) for start in _initial_state(c).values())
    if not fits_bounds(c, c.spec.author("size", "nkey"), "nkey", extra * state):
        extra = 0
    rows: list[SpecElement | None] = [*elements, *[None] * extra]
    c.register("key", rows, [e.name if e is not None else None for e in rows])
    c.fields["nkey"] = len(rows)
    time = [0.0 if e is None else e.get("time") or 0.0 for e in rows]
    c.fields["key_time"] = np.array(time, np.float64)
    for attr, start in _initial_state(c).items():
        table = np.tile(start, (len(rows), 1)).reshape(len(rows), len(start))
        for row, e in zip(table, rows, strict=True):
            if e is not None and e.own(attr) is not None:
                _overwrite_leading(c, e, attr, row)
        c.fields[f"key_{attr}"] = table
    _normalize(c)


def _initial_state(c: Compilation) -> dict[str, np.ndarray]:
    """Return the initial state of a simulation, by the attribute that overrides it."""
    f = c.fields
    mocap = np.flatnonzero(f["body_mocapid"] >= 0)
    return {
        "qpos": f["qpos0"],
        "qvel": np.zeros(f["nv"]),
        "act": np.zeros(f["na"]),
        "ctrl": np.zeros(f["nu"]),
        "mpos": f["body_pos"][mocap].reshape(-1),
        "mquat": f["body_quat"][mocap].reshape(-1),
        "plastic": _plastic(f),
    }


def _plastic(f) -> np.ndarray:
    """Return the rest of each yielding spring: positions of joints, length ranges of tendons."""
    plastic = np.zeros(f["nplastic"])
    for joint, adr in enumerate(f["jnt_plasticadr"]):
        if adr >= 0:
            width = JointType(f["jnt_type"][joint]).nq
            first = f["jnt_qposadr"][joint]
            plastic[adr : adr + width] = f["qpos_spring"][first : first + width]
    for tendon, adr in enumerate(f["tendon_plasticadr"]):
        if adr >= 0:
            plastic[adr : adr + 2] = f["tendon_lengthspring"][tendon]
    return plastic


# Values per mocap pose; an incomplete last pose is ignored, as in MuJoCo.
_POSE = {"mpos": 3, "mquat": 4}


def _overwrite_leading(c: Compilation, e: SpecElement, attr: str, row: np.ndarray) -> None:
    values = np.atleast_1d(e.own(attr))
    if len(values) > len(row):
        c.fault(e, f"{attr} has {len(values)} numbers, but this model has {len(row)} of them")
        return
    given = len(values) - len(values) % _POSE.get(attr, 1)
    row[:given] = values[:given]


def _normalize(c: Compilation) -> None:
    """Scale the quaternions in positions, and in the plastic rest of springs, to norm 1."""
    f = c.fields
    qpos, plastic = f["jnt_qposadr"], f["jnt_plasticadr"]
    free, ball = f["jnt_type"] == JointType.FREE, f["jnt_type"] == JointType.BALL
    _normalize_quats(f["key_qpos"], np.concatenate([qpos[free] + 3, qpos[ball]]))
    _normalize_quats(f["key_plastic"], plastic[ball & (plastic >= 0)])
    _normalize_quats(f["key_mquat"], 4 * np.arange(f["nmocap"]))


def _normalize_quats(table: np.ndarray, first: np.ndarray) -> None:
    """Normalize the quaternions in a table, each in four columns from one of `first`."""
    at = first[:, None] + np.arange(4)
    table[:, at] = quaternion.quat_normalize(table[:, at])
