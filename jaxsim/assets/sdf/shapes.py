"""Table of the shapes given by a signed distance, with their settings, and the simple shapes.

The compiler reads the settings of a plugin from it and generates its mesh. The physics uses

    shape = SDF_SHAPES["mujoco.sdf.torus"]
    constants = shape.constants(*settings(shape, config))
    distance = shape.distance(x, y, z, *constants)

with arrays of `jax.numpy` for the point; the constants are numbers stored in the structure of the
model, or arrays over several geoms.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from jaxsim.assets.sdf import gear, screw
from jaxsim.assets.sdf.operations import AnyArray, Number, length, library
from jaxsim.errors import AssetError


class SdfShape(NamedTuple):
    """A shape of an `sdf` plugin.

    Attributes:
      settings: its settings and their defaults, in the order of the functions' arguments.
      distance: signed distance [m] of points, from their coordinates x, y, z and the constants.
      half_box: half sizes of a box about the origin that contains it, from the settings.
      fault: the fault in the settings, or "".
      constants: parameters of the distance, derived from the settings.
    """

    settings: Mapping[str, float]
    distance: Callable[..., Any]
    half_box: Callable[..., tuple[float, float, float]]
    fault: Callable[..., str] = lambda *_: ""
    constants: Callable[..., tuple[float, ...]] = lambda *settings: settings


# --- a spherical shell about the origin, open at the top ---


def bowl(
    x: AnyArray,
    y: AnyArray,
    z: AnyArray,
    height: Number,
    radius: Number,
    thickness: Number,
    rim: Number,
) -> AnyArray:
    """Return the signed distance from a sphere cut at z = `height`, thickened by `thickness` on
    both sides.

    The cut leaves a circular rim, the closest feature for points above the cone from the origin to
    it.
    """
    xp = library(x)
    rho = length(x, y)
    from_rim = length(rho - rim, z - height)
    from_sphere = xp.abs(length(rho, z) - radius)
    return xp.where(height * rho < rim * z, from_rim, from_sphere) - thickness


def _bowl_constants(height: float, radius: float, thickness: float) -> tuple[float, ...]:
    """Return the settings, and the radius of the rim."""
    return height, radius, thickness, math.sqrt(radius * radius - height * height)


def _bowl_half_box(height: float, radius: float, thickness: float) -> tuple[float, float, float]:
    """Return the half sizes of the box around the whole sphere."""
    return (radius + thickness,) * 3


def _bowl_fault(height: float, radius: float, thickness: float) -> str:
    """Return a fault if the plane of the rim does not intersect the sphere, or ""."""
    return (
        "" if radius >= abs(height) else "radius must not be less than the absolute value of height"
    )


# --- a torus about the z axis ---


def torus(x: AnyArray, y: AnyArray, z: AnyArray, radius1: Number, radius2: Number) -> AnyArray:
    """Return the signed distance from a torus of radius `radius1`, whose tube has radius
    `radius2`."""
    return length(length(x, y) - radius1, z) - radius2


def _torus_half_box(radius1: float, radius2: float) -> tuple[float, float, float]:
    """Return the half sizes of the box around it."""
    return radius1 + radius2, radius1 + radius2, radius2


# --- the table ---

SDF_SHAPES: dict[str, SdfShape] = {
    "mujoco.sdf.bolt": SdfShape({"radius": 0.26}, screw.bolt, screw.bolt_half_box),
    "mujoco.sdf.bowl": SdfShape(
        {"height": 0.4, "radius": 1.0, "thickness": 0.02},
        bowl,
        _bowl_half_box,
        _bowl_fault,
        _bowl_constants,
    ),
    "mujoco.sdf.gear": SdfShape(
        {"alpha": 0.0, "diameter": 2.8, "teeth": 25.0, "thickness": 0.2, "innerdiameter": -1.0},
        gear.gear,
        gear.gear_half_box,
        gear.gear_fault,
        gear.gear_constants,
    ),
    "mujoco.sdf.nut": SdfShape({"radius": 0.26}, screw.nut, screw.nut_half_box),
    "mujoco.sdf.torus": SdfShape({"radius1": 0.35, "radius2": 0.15}, torus, _torus_half_box),
}


def shape_settings(shape: SdfShape, config: Mapping[str, str]) -> tuple[float, ...]:
    """Return the settings of an instance, parsed from the texts of a model.

    Raises:
      AssetError: a text is no number, or the shape has no such settings.
    """
    values = tuple(
        _parse_number(key, config.get(key, ""), shape.settings[key]) for key in shape.settings
    )
    fault = shape.fault(*values)
    if fault:
        raise AssetError(fault)
    return values


def _parse_number(key: str, text: str, default: float) -> float:
    """Return a text as a number, decimal or hexadecimal as in C; the default if it is blank."""
    text = text.strip()
    if not text:
        return default
    try:
        value = float.fromhex(text) if "x" in text.lower() else float(text)
    except (ValueError, OverflowError):
        raise AssetError(f"{key}='{text}' must be a number") from None
    if not np.isfinite(value):
        raise AssetError(f"{key}='{text}' must be finite")
    return value
