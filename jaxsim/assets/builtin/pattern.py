"""Built-in textures: gradients, checkers and flat colors, with marks on them.

XML reference, asset/texture/builtin. The six sides of a cube are stacked vertically, in the order
right, left, up, down, front, back.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from jaxsim.assets.builtin.random64 import uniform
from jaxsim.cache import bounded_cache

CUBE_SIDES = 6
_UP, _DOWN = 2, 3
_MAX_BATCH_PIXELS = 2**18  # pixels whose colors are computed together


def draw_pattern(
    kind: str, sides: int, height: int, width: int, rgb1: np.ndarray, rgb2: np.ndarray
) -> np.ndarray:
    """Return the image of a built-in pattern.

    Args:
      kind: "gradient", "checker" or "flat".
      sides: 1 for a flat image, 6 for a cube.
      height: rows of a side.
      width: columns of a side.
      rgb1: first color, (3,) in [0, 1].
      rgb2: second color, (3,) in [0, 1].

    Returns:
      Pixels, (sides, height, width, 3), uint8.
    """
    return _PATTERNS[kind](sides, height, width, np.asarray(rgb1), np.asarray(rgb2))


def draw_marks(image: np.ndarray, kind: str, rgb: np.ndarray, probability: float) -> None:
    """Draw marks on a pattern of any number of sides, in place.

    Args:
      image: pixels, (sides, height, width, 3), uint8.
      kind: "none", "edge", "cross" or "random".
      rgb: color of the marks, (3,).
      probability: probability of a random mark at a pixel.
    """
    sides, height, width, _ = image.shape
    color = color_bytes(rgb)
    if kind == "edge":
        image[:, [0, -1]] = color
        image[:, :, [0, -1]] = color
    elif kind == "cross":
        image[:, height // 2] = color
        image[:, :, width // 2] = color
    elif kind == "random":
        count = sides * height * width
        chosen = np.unpackbits(_random_marks(count, probability), count=count).view(bool)
        image[chosen.reshape(image.shape[:3])] = color


@bounded_cache(8)
def _random_marks(n: int, probability: float) -> np.ndarray:
    """Return which of n pixels have a random mark, as bits; the same in every texture."""
    blocks = [numbers < probability for numbers in uniform(n)]
    return np.packbits(np.concatenate(blocks))


def color_bytes(rgb: np.ndarray) -> np.ndarray:
    """Return colors as bytes, truncated, not rounded; values outside [0, 1] wrap around, as in
    MuJoCo."""
    return (255 * np.asarray(rgb, np.float64)).astype(np.int64).astype(np.uint8)


def _flat(sides: int, height: int, width: int, rgb1: np.ndarray, rgb2: np.ndarray) -> np.ndarray:
    image = np.empty((sides, height, width, 3), np.uint8)
    image[:] = color_bytes(rgb1)
    if sides == CUBE_SIDES:
        image[_DOWN] = color_bytes(rgb2)
    return image


def _checker(sides: int, height: int, width: int, rgb1: np.ndarray, rgb2: np.ndarray) -> np.ndarray:
    """Return a 2 x 2 checker; its colors are swapped on the front and back of a cube."""
    upper = np.arange(height)[:, None] < height // 2
    second = upper != (np.arange(width) < width // 2)
    colors = np.stack([color_bytes(rgb1), color_bytes(rgb2)])
    image = np.empty((sides, height, width, 3), np.uint8)
    image[:] = np.where(second[..., None], colors[1], colors[0])
    if sides == CUBE_SIDES:
        image[4:] = np.where(second[..., None], colors[0], colors[1])
    return image


def _gradient(
    sides: int, height: int, width: int, rgb1: np.ndarray, rgb2: np.ndarray
) -> np.ndarray:
    """Return a gradient from the center to the rim of an image; on a cube, from top to bottom."""
    if min(height, width) == 1:  # neither center nor rim: black, as in MuJoCo
        return np.zeros((sides, height, width, 3), np.uint8)
    image = np.empty((sides, height, width, 3), np.uint8)
    # blockwise, since the intermediate numbers need much more memory than the bytes
    columns = min(width, _MAX_BATCH_PIXELS)
    rows = max(1, _MAX_BATCH_PIXELS // columns)
    for top in range(0, height, rows):
        for left in range(0, width, columns):
            part = image[:, top : top + rows, left : left + columns]
            x, y = _ticks(width, left, part.shape[2])[None], _ticks(height, top, part.shape[1])
            for side, place in _color_fractions(sides, x, y[:, None]).items():
                part[side] = _blend(_sigmoid(place), rgb1, rgb2)
    return image


def _color_fractions(sides: int, x: np.ndarray, y: np.ndarray) -> dict[int, np.ndarray]:
    """Return the interpolation parameter between the two colors, from 0 to 1, for the pixels of
    each side."""
    radius = np.hypot(x, y)
    if sides == 1:
        return {0: np.minimum(radius, 1.0)}
    up = np.arctan(radius) / np.pi
    azimuth_fraction = 0.5 + np.arctan2(y, np.hypot(x, 1.0)) / np.pi
    return {**dict.fromkeys(range(CUBE_SIDES), azimuth_fraction), _UP: up, _DOWN: 1 - up}


def _blend(share: np.ndarray, rgb1: np.ndarray, rgb2: np.ndarray) -> np.ndarray:
    channels = zip(rgb1, rgb2, strict=True)
    return np.stack([color_bytes(a * (1 - share) + b * share) for a, b in channels], axis=-1)


def _ticks(n: int, start: int, count: int) -> np.ndarray:
    """Return the coordinates of some of n pixels, where the first of all is at -1 and the last at
    1."""
    return 2 * np.arange(start, min(n, start + count)) / (n - 1) - 1


def _sigmoid(place: np.ndarray) -> np.ndarray:
    """Return a smooth step from 0 to 1, steepest in the middle."""
    u = 2 * place - 1
    return 0.5 + u / np.sqrt(2 * (1 + u**2))


_PATTERNS: dict[str, Callable[[int, int, int, np.ndarray, np.ndarray], np.ndarray]] = {
    "flat": _flat,
    "checker": _checker,
    "gradient": _gradient,
}
