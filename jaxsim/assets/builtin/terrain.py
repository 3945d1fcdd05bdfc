"""Terrain for legged robots and vehicles: rough ground, slopes, stairs, stepping stones, waves.

    ground = jaxsim.terrain.stairs((8, 8), step_height=0.15, step_width=0.3)
    ground.add_to(spec, "stairs")

Heights are numpy arrays in meters over a regular grid. Equal seeds give equal terrain. Where a step
has a vertical face, a height field rises over one cell of width `spacing`. For exactly vertical
faces use `Boxes`: `stairs_of_boxes`, `stones_of_boxes`.

The kinds are those of Rudin et al., Learning to Walk in Minutes (CoRL 2021), section 4.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from jaxsim.assets.source.limits import check_limit

Size = tuple[float, float]

_MIN_HFIELD_TOP = 1e-3  # elevation range of a flat height field, which must be positive [m]


@dataclass(frozen=True, eq=False)
class Terrain:
    """Heights over a regular grid around the origin.

    Attributes:
      height: (nrow, ncol) [m]; rows go along y, columns along x, the first at the lowest of each.
      spacing: distance of neighbors [m].
    """

    height: np.ndarray
    spacing: float

    @property
    def size(self) -> Size:
        """Return the extent along x and y [m]."""
        nrow, ncol = self.height.shape
        return (ncol - 1) * self.spacing, (nrow - 1) * self.spacing

    def at(self, x: float, y: float) -> float:
        """Return the height [m] at (x, y), linearly interpolated and constant outside."""
        nrow, ncol = self.height.shape
        i = np.clip((y + self.size[1] / 2) / self.spacing, 0, nrow - 1)
        j = np.clip((x + self.size[0] / 2) / self.spacing, 0, ncol - 1)
        low, left = min(int(i), nrow - 2), min(int(j), ncol - 2)
        rows = np.array([1 - (i - low), i - low])
        columns = np.array([1 - (j - left), j - left])
        return float(rows @ self.height[low : low + 2, left : left + 2] @ columns)

    def add_to(
        self,
        spec: Any,
        name: str,
        *,
        pos: Sequence[float] = (0, 0, 0),
        base: float = 1.0,
        **geom: Any,
    ) -> Any:
        """Add the terrain to a `Spec`: an `<hfield>` and a geom of the world.

        Args:
          spec: the model.
          name: name of both elements.
          pos: position of the origin of the terrain, (3,) [m]; height 0 is at `pos[2]`.
          base: thickness below the lowest point [m].
          geom: further attributes of the geom, such as `material="grass"`.

        Returns:
          The geom's element.
        """
        low, high = float(self.height.min()), float(self.height.max())
        spec.at("asset").add(
            "hfield",
            name=name,
            nrow=self.height.shape[0],
            ncol=self.height.shape[1],
            size=[self.size[0] / 2, self.size[1] / 2, max(high - low, _MIN_HFIELD_TOP), base],
            # written from the top, as seen from above
            elevation=(self.height - low)[::-1].ravel(),
        )
        origin = [pos[0], pos[1], pos[2] + low]
        world = spec.at("worldbody")
        return world.add("geom", name=name, type="hfield", hfield=name, pos=origin, **geom)


@dataclass(frozen=True, eq=False)
class Boxes:
    """Terrain of boxes with vertical faces.

    Attributes:
      pos: centers, (n, 3) [m].
      size: half sizes, (n, 3) [m].
    """

    pos: np.ndarray
    size: np.ndarray

    def add_to(
        self, spec: Any, name: str, *, pos: Sequence[float] = (0, 0, 0), **geom: Any
    ) -> list[Any]:
        """Add a geom of the world for each box, `<name>0` and so on; return their elements."""
        world = spec.at("worldbody")
        return [
            world.add(
                "geom", name=f"{name}{i}", type="box", pos=p + np.asarray(pos), size=s, **geom
            )
            for i, (p, s) in enumerate(zip(self.pos, self.size, strict=True))
        ]


def flat(size: Size, *, spacing: float = 0.1) -> Terrain:
    """Return flat ground of height 0, with a size along x and y [m]."""
    return Terrain(np.zeros_like(_grid(size, spacing)[0]), spacing)


def rough(
    size: Size,
    *,
    spacing: float = 0.1,
    low: float = -0.05,
    high: float = 0.05,
    step: float = 0.0,
    scale: float | None = None,
    border: float = 0.0,
    seed: int = 0,
) -> Terrain:
    """Return ground with random heights, uniform between two bounds.

    Args:
      size: extent along x and y [m].
      spacing: spacing of the grid [m].
      low, high: smallest and largest height [m].
      step: heights are multiples of it above `low` [m]; 0: continuous.
      scale: spacing of the random points [m], with linear interpolation between them; None: that of
        the grid.
      border: width of flat ground along the edge [m].
      seed: random seed.

    Raises:
      ValueError: a number is out of its range.
    """
    if not low <= high:
        raise ValueError(f"low: expected at most high ({high}), got {low}")
    _check_positive(scale=spacing if scale is None else scale)
    _not_negative(step=step)
    x, y = _grid(size, spacing)
    chance = np.random.default_rng(seed)
    scale = spacing if scale is None else max(scale, spacing)
    # random heights on a coarse grid that covers the fine one
    number = [max(2, math.ceil(round(n / scale, 9)) + 1) for n in (np.ptp(y), np.ptp(x))]
    drawn = low + (high - low) * chance.random(number)
    if step:
        drawn = low + step * np.round((drawn - low) / step)
        drawn = np.minimum(drawn, high)
    height = _interpolate(drawn, (y - y.min()) / scale, (x - x.min()) / scale)
    return Terrain(_flatten_border(height, x, y, border), spacing)


def slope(
    size: Size, *, spacing: float = 0.1, slope: float = 0.3, platform: float = 1.0
) -> Terrain:
    """Return a pyramid with a flat top; negative slopes form a pit.

    Args:
      size: extent along x and y [m]; the edge has height 0.
      spacing: spacing of the grid [m].
      slope: rise over run of its four sides, the tangent of their angle.
      platform: width of the flat square in the middle [m].
    """
    _not_negative(platform=platform)
    return Terrain(slope * _distance_from_edge(size, spacing, platform), spacing)


def stairs(
    size: Size,
    *,
    spacing: float = 0.1,
    step_height: float = 0.15,
    step_width: float = 0.3,
    platform: float = 1.0,
) -> Terrain:
    """Return a pyramid of stairs; a negative step height leads down.

    Args:
      size: extent along x and y [m]; the edge has height 0.
      spacing: spacing of the grid, and horizontal extent of a riser [m].
      step_height: height of one step [m].
      step_width: width of one step [m].
      platform: width of the flat square in the middle [m].

    Raises:
      ValueError: a step is narrower than the grid spacing.
    """
    _not_negative(platform=platform)
    if not step_width >= spacing:
        raise ValueError(f"step_width: expected at least the spacing {spacing}, got {step_width}")
    way = _distance_from_edge(size, spacing, platform)
    return Terrain(step_height * np.floor(way / step_width + 1e-9), spacing)


def stepping_stones(
    size: Size,
    *,
    spacing: float = 0.1,
    stone: float = 0.5,
    gap: float = 0.2,
    depth: float = 1.0,
    jitter: float = 0.0,
    platform: float = 1.0,
    seed: int = 0,
) -> Terrain:
    """Return square stones in a grid, with gaps between them.

    Args:
      size: extent along x and y [m].
      spacing: spacing of the grid [m].
      stone: width of a stone [m].
      gap: width of the gaps [m].
      depth: depth of the gaps [m].
      jitter: heights of stones are uniform between -jitter and jitter [m].
      platform: width of a square of height 0 in the middle [m].
      seed: random seed.

    Raises:
      ValueError: stones or gaps are narrower than the grid spacing.
    """
    _not_negative(depth=depth, jitter=jitter, platform=platform)
    for name, value in (("stone", stone), ("gap", gap)):
        if not value >= spacing:
            raise ValueError(f"{name}: expected at least the spacing {spacing}, got {value}")
    x, y = _grid(size, spacing)
    pitch = stone + gap
    column, row = (np.floor((a - a.min()) / pitch + 1e-9).astype(int) for a in (x, y))
    on = [(a - a.min()) - n * pitch < stone - 1e-9 for a, n in ((x, column), (y, row))]
    chance = np.random.default_rng(seed)
    top = jitter * (2 * chance.random((row.max() + 1, column.max() + 1)) - 1)
    height = np.where(on[0] & on[1], top[row, column], -depth)
    middle = np.maximum(np.abs(x), np.abs(y)) <= platform / 2 + 1e-9
    return Terrain(np.where(middle & (platform > 0), 0.0, height), spacing)


def wave(
    size: Size,
    *,
    spacing: float = 0.1,
    amplitude: float = 0.1,
    wavelength: float = 2.0,
    border: float = 0.0,
) -> Terrain:
    """Return waves along x and y: amplitude / 2 (sin(2 pi x / wavelength) + sin(2 pi y / ...)).

    Args:
      size: extent along x and y [m].
      spacing: spacing of the grid [m].
      amplitude: largest height [m].
      wavelength: distance between crests [m].
      border: width of flat ground along the edge [m].
    """
    _check_positive(wavelength=wavelength)
    x, y = _grid(size, spacing)
    along_x, along_y = (np.sin(2 * np.pi * a / wavelength) for a in (x, y))
    return Terrain(_flatten_border(amplitude / 2 * (along_x + along_y), x, y, border), spacing)


def stairs_of_boxes(
    size: Size, *, step_height: float = 0.15, step_width: float = 0.3, platform: float = 1.0
) -> Boxes:
    """Return a pyramid of stairs, one box per step, standing on z = 0; see `stairs`.

    Raises:
      ValueError: a number is not positive, or no step fits.
    """
    _check_positive(step_height=step_height, step_width=step_width, platform=platform)
    number = int(np.floor((min(size) - platform) / 2 / step_width + 1e-9))
    if number < 1:
        raise ValueError(f"size: {size} is too small for a step around a platform of {platform}")
    check_limit("hfield_points", number)
    step = np.arange(1, number + 1)
    half = [n / 2 - step * step_width for n in size]
    top = step * step_height
    pos = np.stack([0 * top, 0 * top, top / 2], axis=1)
    return Boxes(pos, np.stack([half[0], half[1], top / 2], axis=1))


def stones_of_boxes(
    size: Size,
    *,
    stone: float = 0.5,
    gap: float = 0.2,
    depth: float = 1.0,
    jitter: float = 0.0,
    seed: int = 0,
) -> Boxes:
    """Return square stones in a grid around the origin, with their tops near z = 0.

    Args:
      size: extent along x and y [m], filled with as many stones as fit.
      stone, gap: width of a stone, and of the gap between two [m].
      depth: height of a stone [m].
      jitter: heights of their tops are uniform between -jitter and jitter [m].
      seed: random seed.

    Raises:
      ValueError: a number is out of its range, or no stone fits.
    """
    _check_positive(stone=stone, depth=depth)
    _not_negative(gap=gap, jitter=jitter)
    number = [int(np.floor((n + gap) / (stone + gap) + 1e-9)) for n in size]
    if min(number) < 1:
        raise ValueError(f"size: {size} is too small for a stone of {stone}")
    check_limit("hfield_points", number[0] * number[1])
    x, y = ((np.arange(n) - (n - 1) / 2) * (stone + gap) for n in number)
    grid_points = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    top = jitter * (2 * np.random.default_rng(seed).random(len(grid_points)) - 1)
    pos = np.concatenate([grid_points, (top - depth / 2)[:, None]], axis=1)
    return Boxes(pos, np.broadcast_to([stone / 2, stone / 2, depth / 2], pos.shape).copy())


def join(tiles: Sequence[Sequence[Terrain]]) -> tuple[Terrain, np.ndarray]:
    """Join tiles into one terrain.

    Args:
      tiles: rows along y of tiles along x, all of one shape and spacing. Neighbors share the points
        of their edge, which take the larger height.

    Returns:
      The terrain, and the position of the center of each tile, (rows, columns, 3) [m].

    Raises:
      ValueError: tiles differ in shape or spacing.
    """
    first = tiles[0][0]
    nrow, ncol = first.height.shape
    for tile in (tile for row in tiles for tile in row):
        if tile.height.shape != first.height.shape or tile.spacing != first.spacing:
            raise ValueError(
                f"tiles: expected all of shape {first.height.shape} with spacing {first.spacing}, "
                f"got {tile.height.shape} with {tile.spacing}"
            )
    if {len(row) for row in tiles} != {len(tiles[0])}:
        raise ValueError(f"tiles: rows have different lengths, {[len(row) for row in tiles]}")
    shape = len(tiles) * (nrow - 1) + 1, len(tiles[0]) * (ncol - 1) + 1
    check_limit("hfield_points", shape[0] * shape[1])
    height = np.full(shape, -np.inf)
    for i, row in enumerate(tiles):
        for j, tile in enumerate(row):
            part = height[i * (nrow - 1) :, j * (ncol - 1) :][:nrow, :ncol]
            np.maximum(part, tile.height, out=part)
    whole = Terrain(height, first.spacing)
    middle = [
        (np.arange(n) - (n - 1) / 2) * extent
        for n, extent in ((len(tiles[0]), first.size[0]), (len(tiles), first.size[1]))
    ]
    origins = [[(x, y, whole.at(x, y)) for x in middle[0]] for y in middle[1]]
    return whole, np.array(origins)


def curriculum(
    kinds: Sequence[Callable[[float, int], Terrain]], levels: int, *, seed: int = 0
) -> tuple[Terrain, np.ndarray]:
    """Return a grid of tiles: one column for each kind, one row for each level of difficulty.

    Args:
      kinds: functions (difficulty from 0 to 1, seed) -> Terrain, all of one size.
      levels: number of rows; the first is the easiest.
      seed: seed of the first tile; each tile has its own.

    Returns:
      The terrain, and the position of the center of each tile, (levels, kinds, 3) [m].

    Example:
      >>> kinds = [
      ...     lambda level, seed: rough((4, 4), low=0, high=0.02 + 0.1 * level, seed=seed),
      ...     lambda level, seed: stairs((4, 4), step_height=0.05 + 0.15 * level),
      ... ]
      >>> ground, origins = curriculum(kinds, levels=3)
      >>> ground.size, origins.shape
      ((8.0, 12.0), (3, 2, 3))
    """
    if levels < 1 or not kinds:
        raise ValueError("curriculum: expected at least one level and one kind")
    difficulty = np.linspace(0, 1, levels) if levels > 1 else np.zeros(1)
    return join(
        [
            [make(float(level), seed + i * len(kinds) + j) for j, make in enumerate(kinds)]
            for i, level in enumerate(difficulty)
        ]
    )


def _grid(size: Size, spacing: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the coordinates x and y of all points, (nrow, ncol) each, around the origin.

    Raises:
      ValueError: the size is not a multiple of the spacing, or not positive.
    """
    _check_positive(spacing=spacing)
    if np.shape(size) != (2,) or not np.all(np.isfinite(size)):
        raise ValueError(f"size: expected extents along x and y, got {size!r}")
    number = [round(n / spacing) for n in size]
    if min(number) < 1 or not np.allclose(np.multiply(number, spacing), size, rtol=1e-6, atol=0):
        raise ValueError(f"size: expected positive multiples of the spacing {spacing}, got {size}")
    check_limit("hfield_points", (number[0] + 1) * (number[1] + 1))
    x, y = ((np.arange(n + 1) - n / 2) * spacing for n in number)
    return np.broadcast_to(x, (len(y), len(x))), np.broadcast_to(y[:, None], (len(y), len(x)))


def _distance_from_edge(size: Size, spacing: float, platform: float) -> np.ndarray:
    """Return the distance of points from the edge, at most that of the platform, (nrow, ncol)."""
    x, y = _grid(size, spacing)
    way = np.minimum(size[0] / 2 - np.abs(x), size[1] / 2 - np.abs(y))
    return np.clip(way, 0, max(0.0, (min(size) - platform) / 2))


def _flatten_border(height: np.ndarray, x: np.ndarray, y: np.ndarray, border: float) -> np.ndarray:
    """Return the heights, with 0 within the border."""
    _not_negative(border=border)
    way = np.minimum(x.max() - np.abs(x), y.max() - np.abs(y))
    return np.where(way < border - 1e-9, 0.0, height)


def _interpolate(drawn: np.ndarray, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Interpolate the values of a grid linearly at fractional rows and columns."""
    i, j = (
        np.minimum(np.floor(a + 1e-9).astype(int), n - 2)
        for a, n in ((row, drawn.shape[0]), (column, drawn.shape[1]))
    )
    r, s = np.clip(row - i, 0, 1), np.clip(column - j, 0, 1)
    low = (1 - s) * drawn[i, j] + s * drawn[i, j + 1]
    high = (1 - s) * drawn[i + 1, j] + s * drawn[i + 1, j + 1]
    return (1 - r) * low + r * high


def _check_positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if not value > 0 or not math.isfinite(value):
            raise ValueError(f"{name}: expected a positive number, got {value!r}")


def _not_negative(**numbers: float) -> None:
    for name, value in numbers.items():
        if not value >= 0 or not math.isfinite(value):
            raise ValueError(f"{name}: expected at least 0, got {value!r}")
