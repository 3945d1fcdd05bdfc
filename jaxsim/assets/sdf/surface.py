"""The mesh of a shape given by a signed distance, as the MuJoCo compiler generates it."""

from __future__ import annotations

import numpy as np

from jaxsim.assets.sdf.marching_cubes import marching_cubes
from jaxsim.assets.sdf.shapes import SdfShape
from jaxsim.assets.surface import Surface
from jaxsim.errors import AssetError

_POINTS = 300  # of the lattice, along all three axes together


def sdf_surface(shape: SdfShape, values: tuple[float, ...]) -> Surface:
    """Return the zero level set of a shape, sampled in its box.

    Args:
      shape: an entry of `SDF_SHAPES`.
      values: its settings, as returned by `settings`.

    Raises:
      AssetError: the settings give no solid, or one too thin for the lattice.
    """
    half = np.array(shape.half_box(*values))
    if not (np.isfinite(half).all() and (half > 0).all()):
        raise AssetError(f"no solid has {_format_settings(shape, values)}; make its sizes positive")
    count = np.floor(_POINTS / half.sum() * half).astype(int) + 1
    if count.min() > 1:
        field = _sample_lattice(shape, values, half, count)
        vertex, face, normal = marching_cubes(field)
        if len(vertex):
            placed = 2 * half * vertex.astype(np.float64) / (count - 1) - half
            return Surface(
                vertex=placed.astype(np.float32).astype(np.float64),
                face=face,
                normal=normal.astype(np.float64),
            )
    raise AssetError(
        f"with {_format_settings(shape, values)} it is too thin for a lattice of {_POINTS} points "
        "along"
        " the sides of its box together; make it thicker"
    )


def _sample_lattice(
    shape: SdfShape, values: tuple[float, ...], half: np.ndarray, count: np.ndarray
) -> np.ndarray:
    """Return the signed distance on a lattice of `count` points that fills the box, (nz, ny,
    nx)."""
    x, y, z = (
        -h + 2 * h * np.arange(n, dtype=np.float64) / (n - 1)
        for h, n in zip(half.tolist(), count.tolist(), strict=True)
    )
    with np.errstate(all="ignore"):  # overflowing values have no surface
        distance = shape.distance(x, y[:, None], z[:, None, None], *shape.constants(*values))
        return np.asarray(distance).astype(np.float32)


def _format_settings(shape: SdfShape, values: tuple[float, ...]) -> str:
    return ", ".join(f"{key}='{v:g}'" for key, v in zip(shape.settings, values, strict=True))
