"""The engine plugins of MuJoCo, with what a model says of them.

A plugin is code that no model file contains. These are compiled, so that a model with them can be
read, changed and saved; whether they can be simulated is for the physics to say. A plugin's number
is its place in this list, as in MuJoCo's Python package.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from jaxsim.assets.sdf.shapes import SHAPES, Shape, settings
from jaxsim.enums import ObjType
from jaxsim.errors import AssetError
from jaxsim.extend.plugin import Config, Plugin, without_defaults

FOV = (180.0, 90.0)  # largest fields of view of a touch grid [deg]
CHANNELS = 6  # most channels of a touch grid


def pid_activations(config: Config) -> int:
    """Activations of a `mujoco.pid`: the integral of the error, the setpoint if it is slowed."""
    return int(_numbers(config, "ki", 1)[0] != 0) + int(bool(config.get("slewmax")))


def grid_readings(config: Config) -> int:
    """Numbers that a `mujoco.sensor.touch_grid` reports: columns times rows times channels."""
    columns, rows = _numbers(config, "size", 2).astype(int)
    return int(columns * rows * max(1, _numbers(config, "nchannel", 1)[0]))


def _check_pid(config: Config) -> str:
    negative = _numbers(config, "slewmax", 1)[0] < 0
    return "slewmax must not be negative" if negative else ""


def _check_grid(config: Config) -> str:
    for key, what in (("size", "columns and rows"), ("fov", "horizontal and vertical angle")):
        if len(config.get(key, "").split()) != 2:
            return f"config '{key}' must give two numbers, {what}"
    if (_numbers(config, "size", 2).astype(int) <= 0).any():
        return "config 'size' must be two positive counts"
    for angle, most in zip(_numbers(config, "fov", 2), FOV, strict=True):
        if not 0 < angle <= most:
            return f"config 'fov' has {angle:g}; it must be positive and at most {most:g} here"
    if not 0 <= _numbers(config, "nchannel", 1)[0] <= CHANNELS:
        return f"config 'nchannel' must be from 1 to {CHANNELS}"
    if not 0 <= _numbers(config, "gamma", 1)[0] <= 1:
        return "config 'gamma' must be from 0 to 1"
    return ""


def _check_shape(shape: Shape, config: Config) -> str:
    try:
        settings(shape, config)
    except AssetError as error:
        return str(error)
    return ""


def _numbers(config: Config, key: str, count: int) -> np.ndarray:
    """The first numbers of a setting; 0 for what is not there or is no number, as in MuJoCo."""
    out = np.zeros(count)
    for i, word in enumerate(config.get(key, "").split()[:count]):
        try:
            out[i] = float(word)
        except ValueError:
            break
    return out


KNOWN = (
    Plugin(
        "mujoco.pid",
        "actuator",
        without_defaults(("kp", "ki", "kd", "imax", "slewmax")),
        _check_pid,
        activations=pid_activations,
    ),
    Plugin(
        "mujoco.sensor.touch_grid",
        "sensor",
        without_defaults(("nchannel", "size", "fov", "gamma")),
        _check_grid,
        readings=grid_readings,
        objtype=ObjType.SITE,
    ),
    *(
        Plugin(name, "sdf", without_defaults(tuple(shape.settings)), partial(_check_shape, shape))
        for name, shape in SHAPES.items()
    ),
)
