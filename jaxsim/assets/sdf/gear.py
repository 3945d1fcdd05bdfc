"""A spur gear: an involute profile, extruded along the z axis.

The flank of a tooth is the involute of the base circle, the path of the end of a string that is
unwound from it. A point at radius rho and angle phi is at a distance from an involute that starts
at angle 0 of

    sqrt(rho^2 - Rb^2) - Rb (phi + arccos(Rb / rho))

measured along the string, with Rb the radius of the base circle. The two flanks of a tooth mirror
each other; both repeat once per pitch. Names are those of gear theory (F. Litvin and A. Fuentes,
*Gear Geometry and Applied Theory*, 2004): the pitch circle is the rolling one, and the addendum is
the height of a tooth beyond it.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from jaxsim.assets.sdf.operations import (
    AnyArray,
    Number,
    azimuth,
    extrusion,
    intersection,
    length,
    library,
    smooth_intersection,
    smooth_union,
    union,
)

_DEPTH = 2.2  # depth of a tooth, in addenda
_RIM = 0.14  # thickness of the ring under the teeth, in diameters
_ROUNDING = 0.0035  # rounding of the tips, in diameters
_FAR_DISTANCE = 0.2  # distance beyond the tips [m] from which the distance is that of their circle
_MAX_TEETH = 10_000  # a limit of our own, far beyond what a mesh can resolve
_UNDER_BASE = -1e6  # an involute ends at the base circle; below, it is far away


class Gear(NamedTuple):
    """Parameters from which the distance of a gear is computed; lengths [m] and angles [rad].

    Attributes:
      alpha: clockwise rotation about z.
      tip, root, base, hole: radii of its circles; the base circle is that of the involutes.
      stride: angle between adjacent teeth.
      gap: angle between two flanks of a gap, at the base circle.
      half: half of the thickness.
      rounding: width of the rounding of the tips.
    """

    alpha: Number
    tip: Number
    root: Number
    base: Number
    hole: Number
    stride: Number
    gap: Number
    half: Number
    rounding: Number


def gear(x: AnyArray, y: AnyArray, z: AnyArray, *constants: Number) -> AnyArray:
    """Return a bound of the signed distance [m] from the gear given by `gear_constants`."""
    g = Gear(*constants)
    return extrusion(_profile(x, y, g), z, g.half)


def gear_constants(
    alpha: float, diameter: float, teeth: float, thickness: float, innerdiameter: float
) -> Gear:
    """Return the gear with these settings.

    Args:
      alpha: clockwise rotation about z [rad].
      diameter: diameter of the pitch circle [m].
      teeth: number of teeth.
      thickness: thickness along z [m].
      innerdiameter: diameter of the hole [m]; negative: as large as a ring under the teeth allows.
    """
    addendum = diameter / teeth
    tip = (diameter + 2 * addendum) / 2
    root = tip - _DEPTH * addendum
    base = diameter * math.cos(_pressure_angle(teeth)) / 2
    contact, stride = math.acos(base / (diameter / 2)), 2 * math.pi / teeth
    return Gear(
        alpha=alpha,
        tip=tip,
        root=root,
        base=base,
        hole=innerdiameter / 2 if innerdiameter >= 0 else root - _RIM * diameter,
        stride=stride,
        gap=stride / 2 - 2 * (math.tan(contact) - contact),
        half=thickness / 2,
        rounding=_ROUNDING * diameter,
    )


def gear_half_box(
    alpha: float, diameter: float, teeth: float, thickness: float, innerdiameter: float
) -> tuple[float, float, float]:
    """Return the half sizes of a box around a gear, with some margin."""
    side = diameter / 2 * max(1.25, 1.05 * (1 + 2 / teeth))
    return side, side, thickness / 2 * 1.1


def gear_fault(
    alpha: float, diameter: float, teeth: float, thickness: float, innerdiameter: float
) -> str:
    """Return a fault if the number of teeth is out of range, or ""."""
    return "" if 0 < teeth <= _MAX_TEETH else f"teeth must be positive, at most {_MAX_TEETH}"


def _profile(x: AnyArray, y: AnyArray, g: Gear) -> AnyArray:
    """Return the distance in the plane: flanks between root and tip circle, around a hole."""
    xp = library(x)
    rho, phi = length(x, y), azimuth(x, y) + g.alpha
    cog = smooth_intersection(rho - g.tip, _tooth(rho, phi, g), g.rounding)
    fillet = xp.where(g.base <= g.root, 1, g.base - g.root)
    filleted = smooth_union(rho - g.root, cog, fillet)
    cog = xp.where(g.base <= g.root, union(rho - g.root, cog), filleted)
    solid = intersection(cog, g.hole - rho)
    beyond = xp.where(g.tip - rho < -_FAR_DISTANCE, rho - g.tip, solid)
    return xp.where(rho < g.hole, g.hole - rho, beyond)


def _tooth(rho: AnyArray, phi: AnyArray, g: Gear) -> AnyArray:
    """Return the distance from the two flanks of the nearest tooth."""
    left = _wrap_angle(phi + g.gap / 2, g.stride) - g.gap / 2
    right = _wrap_angle(-phi - g.gap / 2, g.stride) - g.gap / 2
    walls = intersection(left, right) - (g.stride - g.gap)
    return intersection(
        walls, intersection(_involute(rho, left, g.base), _involute(rho, right, g.base))
    )


def _involute(rho: AnyArray, phi: AnyArray, base: Number) -> AnyArray:
    """Return the distance [m] from the involute that starts at angle 0; see the module."""
    xp = library(rho)
    above = rho > base
    safe = xp.where(above, rho, 2 * base)
    string = xp.sqrt(safe * safe - base * base)
    return xp.where(above, string - base * (phi + xp.acos(base / safe)), _UNDER_BASE)


def _wrap_angle(angle: AnyArray, stride: Number) -> AnyArray:
    """Return the angle modulo the angle between teeth, in [0, stride)."""
    return angle - stride * library(angle).floor(angle / stride)


def _pressure_angle(teeth: float) -> float:
    """Return the pressure angle [rad], larger for few teeth; an empirical fit."""
    return 3.096e-5 * teeth * teeth - 6.557e-3 * teeth + 0.551
