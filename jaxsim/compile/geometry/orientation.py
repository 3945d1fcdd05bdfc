"""Convert every orientation format of MJCF to a unit quaternion (w, x, y, z).

Follows "Frame orientations" of MuJoCo's modeling chapter. An element uses the format of its
strongest layer that has one: its own, else that of the innermost default class.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.enums import MINVAL
from jaxsim.math.quaternion import (
    IDENTITY,
    MIN_QUAT_NORM,
    quat_from_axis_angle,
    quat_from_euler,
    quat_from_matrix,
    quat_from_z_axis,
    quat_normalize,
)
from jaxsim.spec import SpecElement

MIN_SQUARED_LENGTH = 1e-14  # vectors with a smaller squared norm have no direction (MuJoCo's mjEPS)


def orientation(c: Compilation, element: SpecElement) -> np.ndarray:
    """Return the quaternion of an element's orientation attributes, (4,); the identity without
    any."""
    for layer in reversed(element.layers()):
        given = [attr for attr in SPELLINGS if attr in layer.attrs]
        if len(given) > 1:
            c.fault(layer, f"{' and '.join(given)} both give an orientation; keep one of them")
        for attr in given:
            quat = SPELLINGS[attr](c, element, np.array(layer.attrs[attr], float))
            return IDENTITY.copy() if quat is None else quat
    return IDENTITY.copy()


Spelling = Callable[[Compilation, SpecElement, np.ndarray], np.ndarray | None]


def _quat(c: Compilation, element: SpecElement, value: np.ndarray) -> np.ndarray | None:
    if np.any(value):
        return value.copy() if np.linalg.norm(value) < MINVAL else quat_normalize(value)
    c.fault(element, "quat must not be zero; '1 0 0 0' is no rotation")
    return None


def _axisangle(c: Compilation, element: SpecElement, value: np.ndarray) -> np.ndarray | None:
    axis = normalize_direction(c, element, "the axis of axisangle", value[:3])
    return (
        None
        if axis is None
        else quat_from_axis_angle(axis, c.settings_of(element).radians(value[3]))
    )


def _euler(c: Compilation, element: SpecElement, value: np.ndarray) -> np.ndarray | None:
    settings = c.settings_of(element)
    return quat_from_euler(settings.radians(value), settings.eulerseq)


def _xyaxes(c: Compilation, element: SpecElement, value: np.ndarray) -> np.ndarray | None:
    x = normalize_direction(c, element, "the x axis of xyaxes", value[:3])
    if x is None:
        return None
    y = value[3:] - x * (x @ value[3:])
    y = normalize_direction(
        c, element, "the part of the y axis of xyaxes that is normal to the x axis", y
    )
    return None if y is None else quat_from_matrix(np.stack([x, y, np.cross(x, y)], axis=1))


def _zaxis(c: Compilation, element: SpecElement, value: np.ndarray) -> np.ndarray | None:
    z = normalize_direction(c, element, "zaxis", value)
    return None if z is None else quat_from_z_axis(z)


SPELLINGS: dict[str, Spelling] = {
    "quat": _quat,
    "axisangle": _axisangle,
    "euler": _euler,
    "xyaxes": _xyaxes,
    "zaxis": _zaxis,
}


def normalize_direction(
    c: Compilation, element: SpecElement, what: str, v: np.ndarray
) -> np.ndarray | None:
    """Return v normalized to length 1; None, and a fault of the element, if v has no direction."""
    length = float(np.linalg.norm(v))
    if not v @ v >= MIN_SQUARED_LENGTH:
        c.fault(element, f"{what} has no direction ('{mjcf_numbers(v)}'); give a longer vector")
        return None
    return v if abs(length - 1.0) <= MIN_QUAT_NORM else v / length


def mjcf_numbers(v: np.ndarray) -> str:
    """Return an array in MJCF notation, for messages."""
    return " ".join(f"{x:g}" for x in np.atleast_1d(v))
