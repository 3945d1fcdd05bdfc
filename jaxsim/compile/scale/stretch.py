"""Scale elements inside a `<frame>` with different factors for its axes.

Positions are transformed by the linear map of the scale and orientations are unchanged, so that a
shape is stretched along its own axes. Most shapes keep their type only if those axes are
eigenvectors of the map.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.orientation import SPELLINGS, orientation
from jaxsim.compile.scale.dimension import Scale
from jaxsim.math.quaternion import quat_from_z_axis, quat_to_matrix
from jaxsim.spec import SpecElement

# Sine of the angle by which the map may rotate an axis, and relative difference of factors that
# count as equal: MuJoCo's.
_ALIGNED_TOLERANCE = 0.0349

# Attributes that are set here, not by their units.
STRETCHED_ATTRS = ("pos", "fromto", "size", "diaginertia", "fullinertia")


def stretch(c: Compilation, element: SpecElement, scale: Scale) -> None:
    """Map the position and the shape of an element of the tree."""
    if element.tag in ("geom", "site"):
        # before the ends of `fromto` move: the shape is stretched along its original axes
        _set_shape_size(c, element, scale)
    elif element.tag == "joint" and element.get("type") in ("hinge", "slide"):
        if not _keeps_direction(scale.linear, np.asarray(element.get("axis"), float)):
            c.fault(
                element, f"its axis is not along one of those that are stretched; {_REMEDY_AXIS}"
            )
    elif element.tag == "inertial":
        _inertia(c, element, scale)
    if element.get("pos") is not None:
        element.attrs["pos"] = scale.linear @ element.get("pos")
    if element.row.attribute("fromto") is not None and element.get("fromto") is not None:
        ends = np.reshape(element.get("fromto"), (2, 3))
        element.attrs["fromto"] = (ends @ scale.linear.T).ravel()


def axes_of(c: Compilation, element: SpecElement) -> np.ndarray:
    """Return the axes of a geom or site in those of its parent, the columns of a matrix (3, 3)."""
    ends = element.get("fromto")
    if ends is not None and np.any(ends[:3] != ends[3:]):
        return quat_to_matrix(quat_from_z_axis(ends[:3] - ends[3:]))
    return quat_to_matrix(orientation(c, element))


def along_axes(linear: np.ndarray, R: np.ndarray) -> np.ndarray:
    """Return the factors of lengths along the columns of R, (3,)."""
    factors: np.ndarray = np.linalg.norm(linear @ R, axis=0)
    return factors


def is_aligned(linear: np.ndarray, R: np.ndarray) -> bool:
    """Return whether the map keeps the directions of all columns of R."""
    return all(_keeps_direction(linear, axis) for axis in R.T)


_REMEDY = "rotate it by its frame, or use a mesh"
_REMEDY_AXIS = "rotate it, or let the frame have the same factor for all axes"


def _keeps_direction(linear: np.ndarray, axis: np.ndarray) -> bool:
    mapped = linear @ axis
    turned = np.linalg.norm(np.cross(axis, mapped))
    return bool(turned <= _ALIGNED_TOLERANCE * np.linalg.norm(axis) * np.linalg.norm(mapped))


def _are_equal(factors: np.ndarray) -> bool:
    return bool(np.ptp(factors) <= _ALIGNED_TOLERANCE * factors.max())


# --- shapes: factors of the three sizes, or why there are none ---

Sizes = tuple[float, float, float] | str


def _sphere_sizes(factors: np.ndarray, mean: float, aligned: bool) -> Sizes:
    if not (aligned and _are_equal(factors)):
        return "a sphere cannot be stretched; make it an ellipsoid"
    return mean, 1.0, 1.0


def _round_sizes(factors: np.ndarray, mean: float, aligned: bool) -> Sizes:
    if not (aligned and _are_equal(factors[:2])):
        return f"it can only be stretched along its axis, and equally across it; {_REMEDY}"
    return float(np.sqrt(factors[0] * factors[1])), float(factors[2]), 1.0


def _box_sizes(factors: np.ndarray, mean: float, aligned: bool) -> Sizes:
    if not aligned:
        return f"its axes are not along those that are stretched; {_REMEDY}"
    x, y, z = (float(factor) for factor in factors)
    return x, y, z


def _plane_sizes(factors: np.ndarray, mean: float, aligned: bool) -> Sizes:
    """Return its half-sizes, and the spacing of its grid lines."""
    found = _box_sizes(factors, mean, aligned)
    return found if isinstance(found, str) else (*found[:2], mean)


_SHAPES: dict[str, Callable[[np.ndarray, float, bool], Sizes]] = {
    "plane": _plane_sizes,
    "hfield": _box_sizes,
    "sphere": _sphere_sizes,
    "capsule": _round_sizes,
    "ellipsoid": _box_sizes,
    "cylinder": _round_sizes,
    "box": _box_sizes,
}


def _set_shape_size(c: Compilation, element: SpecElement, scale: Scale) -> None:
    """Set the sizes of a geom or site; a site is stretched as far as its shape allows.

    A mesh, and a primitive that is fitted to one, take theirs from a stretched mesh.
    """
    kind = str(element.get("type"))
    if element.get("mesh") is not None or kind not in _SHAPES:
        return
    if element.get("fromto") is not None:
        kind = "capsule"  # any shape with fromto has a single size across the segment
    R = axes_of(c, element)
    factors, aligned = along_axes(scale.linear, R), is_aligned(scale.linear, R)
    if element.tag == "site":
        factors, aligned = _site_factors(kind, factors), True
    sizes = _SHAPES[kind](factors, scale.length, aligned)
    if isinstance(sizes, str):
        c.fault(element, sizes)
        return
    given = np.atleast_1d(element.get("size")).astype(float)
    element.attrs["size"] = given * np.array(sizes)[: len(given)]


def _site_factors(kind: str, factors: np.ndarray) -> np.ndarray:
    """Return factors valid for every site: means, where a shape has one size for several axes."""
    alike = {"sphere": 3, "capsule": 2, "cylinder": 2}.get(kind, 0)
    factors = factors.copy()
    factors[:alike] = np.prod(factors[:alike]) ** (1 / max(alike, 1))
    return factors


# --- inertia ---

_MATRIX = ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2))  # order of `fullinertia`


def _inertia(c: Compilation, element: SpecElement, scale: Scale) -> None:
    """Map the second moments of mass about the center, from which the inertia is computed."""
    full, diagonal = element.own("fullinertia"), element.own("diaginertia")
    if full is not None:
        inertia = np.zeros((3, 3))
        for (i, j), value in zip(_MATRIX, full, strict=True):
            inertia[i, j] = inertia[j, i] = value
    elif diagonal is not None:
        R = quat_to_matrix(orientation(c, element))
        inertia = (R * np.asarray(diagonal, float)) @ R.T
    else:
        return
    second = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    second = scale.mass * scale.linear @ second @ scale.linear.T
    inertia = np.trace(second) * np.eye(3) - second
    for attr in ("diaginertia", *SPELLINGS):
        element.attrs.pop(attr, None)
    element.attrs["fullinertia"] = np.array([inertia[i, j] for i, j in _MATRIX])
