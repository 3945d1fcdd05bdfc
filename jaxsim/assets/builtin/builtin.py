"""Built-in meshes: surfaces generated from a few parameters (XML reference, asset/mesh/builtin).

Points and triangles are in MuJoCo's order and single precision, so that sensors and files that
count vertices agree. A surface without triangles represents the convex hull of its points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from jaxsim.assets.builtin.builtin_shapes import (
    cone,
    hemisphere,
    plate,
    single_precision_surface,
    sphere,
    supersphere,
    supertorus,
    wedge,
)
from jaxsim.assets.builtin.lattice import LATTICE_SHAPES
from jaxsim.assets.source.limits import check_limit
from jaxsim.assets.surface import Surface
from jaxsim.errors import AssetError

# Shapes over a grid of `count` points, `spacing` apart; the first ones are always planar.
_PLANE = ("square", "disc")
_LATTICE = (*_PLANE, "grid", "box", "cylinder", "ellipsoid")


def builtin_surface(kind: str, params: np.ndarray) -> Surface:
    """Return the surface of a built-in mesh.

    A wedge and a plate, which are made for tactile sensors, have three normals for each point: the
    frame in which the sensor reports. Corner k of a face has normals 3 k, 3 k + 1, 3 k + 2.

    Args:
      kind: keyword of the attribute `builtin`.
      params: its parameters, (n,); integers are truncated, not rounded.

    Raises:
      AssetError: there is no such shape, or a parameter is out of its range.
    """
    params = np.atleast_1d(np.asarray(params, np.float64))
    if not np.all(np.isfinite(params)):
        raise AssetError(f"the params of a built-in {kind} must be finite")
    if kind in _LATTICE:
        return _lattice(kind, params)
    if kind not in _SHAPES:
        known = ", ".join(sorted([*_SHAPES, *_LATTICE]))
        raise AssetError(f"there is no built-in mesh '{kind}'; there are {known}")
    shape = _SHAPES[kind]
    if len(params) != len(shape.params):
        names = ", ".join(shape.params)
        raise AssetError(
            f"a built-in {kind} needs {len(shape.params)} params ({names}), got {len(params)}"
        )
    for value, (name, param) in zip(params, shape.params.items(), strict=True):
        param.check(kind, name, value)
    check_limit("mesh_vertices", shape.points(*params))
    return shape.make(*params)


def has_no_volume(kind: str, params: np.ndarray) -> bool:
    """Return whether a built-in mesh is a sheet or an open shell, with the legacy inertia of a
    shell."""
    dim = 2 if kind in _PLANE else int(params[6]) if len(params) > 6 else 3
    return kind == "plate" or (kind in _LATTICE and dim < 3)


# --- shapes over a grid, shared with <flexcomp> ---


def _lattice(kind: str, params: np.ndarray) -> Surface:
    """Return a sheet or an open shell of triangles; for solid elements, only their points."""
    dims = [6] if kind in _PLANE else [6, 7]
    if len(params) not in dims:
        extra = "" if kind in _PLANE else ", [dim]"
        raise AssetError(
            f"a built-in {kind} needs the params count[3], spacing[3]{extra}: got {len(params)}"
        )
    count, spacing = params[:3].astype(int), params[3:6]
    dim = int(params[6]) if len(params) > 6 else 2 if kind in _PLANE else 3
    if dim not in (2, 3):
        raise AssetError(f"the dim of a built-in {kind} is 2 or 3, got {dim}")
    flat = kind in (*_PLANE, "grid")
    if np.any(count < (1 if flat else 2)):
        raise AssetError(
            f"the counts of a built-in {kind} must be at least {1 if flat else 2}, got {count}"
        )
    if flat and dim == 2 and count[2] != 1:
        raise AssetError(f"the third count of a flat {kind} must be 1, got {count[2]}")
    check_limit("mesh_vertices", float(np.prod(params[:3])))
    points = LATTICE_SHAPES[kind](dim, count, spacing)
    if not len(points.element):
        raise AssetError(f"the counts {count} of a built-in {kind} give no elements")
    return single_precision_surface(points.point, points.element if dim == 2 else None)


# --- parameters ---


class _Param(NamedTuple):
    """Range of a parameter; bounds are inclusive unless open."""

    low: float
    high: float = np.inf
    open: bool = False  # whether `low` is excluded

    def check(self, kind: str, name: str, value: float) -> None:
        """Refuse a value outside the range."""
        value = int(value) if isinstance(self.low, int) else value
        if value > self.high or value < self.low or (self.open and value == self.low):
            above = f"above {self.low}" if self.open else f"at least {self.low}"
            below = "" if self.high == np.inf else f" and at most {self.high}"
            raise AssetError(f"{name} of a built-in {kind} must be {above}{below}, got {value}")


class _Shape(NamedTuple):
    """A shape: its parameters, its generator, and its number of points."""

    params: dict[str, _Param]
    make: Callable[..., Surface]
    points: Callable[..., float]


def _resolutions(names: Sequence[str]) -> dict[str, _Param]:
    return {name: _Param(1) for name in names}


_SHAPES = {
    "sphere": _Shape({"subdivision": _Param(0, 4)}, sphere, lambda s: 2 + 10 * 4**s),
    "hemisphere": _Shape(
        {"resolution": _Param(0, 10)}, hemisphere, lambda r: 2 + 2 * (r + 1) * (r + 2)
    ),
    "cone": _Shape({"nvert": _Param(3), "radius": _Param(0.0, 1.0)}, cone, lambda n, radius: 2 * n),
    "supersphere": _Shape(
        {"resolution": _Param(3), "e": _Param(0.0), "n": _Param(0.0)},
        supersphere,
        lambda r, e, n: r**2,
    ),
    "supertorus": _Shape(
        {
            "resolution": _Param(3),
            "radius": _Param(0.0, 1.0, open=True),
            "s": _Param(0.0, open=True),
            "t": _Param(0.0, open=True),
        },
        supertorus,
        lambda r, *_: r**2,
    ),
    "wedge": _Shape(
        _resolutions(["res_phi", "res_theta"])
        | {
            "fov_phi": _Param(0.0, 180.0, open=True),
            "fov_theta": _Param(0.0, 90.0, open=True),
            "gamma": _Param(0.0, 1.0),
        },
        wedge,
        lambda phi, theta, *_: phi * theta,
    ),
    "plate": _Shape(_resolutions(["res_x", "res_y"]), plate, lambda x, y: x * y),
}
