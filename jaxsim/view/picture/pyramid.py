"""Mipmaps of textures, which prevent aliasing at a distance.

Each level has half the width and height of the previous one, rounded down, until one pixel is left,
and its pixels are averages of the corresponding ones (OpenGL 4.6, 8.14.4). All levels of all
textures are one array: the pixels of the model, then the mipmaps.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.cache import bounded_cache
from jaxsim.model.structure import Structure

TEXTURE_2D = 0  # mjTEXTURE_2D; the others are cubes
_SRGB_COLORSPACE = 2  # mjCOLORSPACE_SRGB


class Texture(NamedTuple):
    """An image, or the six images of a cube.

    Attributes:
      start: address of its pixels.
      width, height, channels: of each image.
      sides: number of images; 1 for a cube with equal sides.
      srgb: whether its values are sRGB-encoded, not linear.
    """

    start: int
    width: int
    height: int
    channels: int
    sides: int
    srgb: bool

    def pixels(self) -> int:
        """Return the number of values, all channels included."""
        return self.sides * self.width * self.height * self.channels


class PyramidLevels(NamedTuple):
    """Addresses and sizes of all levels of all textures, `[levels, ntex]`; padded with the last
    level.

    Attributes:
      start, width, height: of the first image of the level.
      last: index of the smallest level of each texture, `[ntex]`.
    """

    start: np.ndarray
    width: np.ndarray
    height: np.ndarray
    last: np.ndarray


def textures_of(s: Structure) -> tuple[Texture, ...]:
    """Return the textures of a model; those without pixels are empty."""
    found = []
    names = "tex_adr tex_width tex_height tex_nchannel tex_type tex_colorspace".split()
    for row in zip(*(np.asarray(getattr(s, n)) for n in names), strict=True):
        start, width, height, channels, kind, space = map(int, row)
        # A cube is a strip of six square images, or one square for all sides.
        flat = kind == TEXTURE_2D
        sides = 1 if flat or width == height else 6
        height = height if flat else min(width, height)
        extent = (width, height) if start >= 0 else (0, 0)
        found.append(
            Texture(max(start, 0), *extent, channels, sides, flat and space == _SRGB_COLORSPACE)
        )
    return tuple(found)


@bounded_cache(32)
def levels_of(textures: tuple[Texture, ...]) -> PyramidLevels:
    """Return the addresses and sizes of the levels."""
    end = max((t.start + t.pixels() for t in textures), default=0)
    rows = []
    for t in textures:
        row = [(t.start, t.width, t.height)]
        for width, height in _mipmap_sizes(t):
            row.append((end, width, height))
            end += t._replace(width=width, height=height).pixels()
        rows.append(row)
    deep = max(map(len, rows), default=1)
    table = np.array([row + row[-1:] * (deep - len(row)) for row in rows], np.int32)
    starts, widths, heights = (table.reshape(-1, deep, 3)[..., k].T for k in range(3))
    return PyramidLevels(
        starts, widths, heights, np.array([len(row) - 1 for row in rows], np.int32)
    )


def pyramid(textures: tuple[Texture, ...], tex_data: Any) -> Any:
    """Return all levels, (..., n) bytes, from the pixels of all textures, (..., ntexdata).

    Args:
      textures: the textures of the model.
      tex_data: pixels of all textures; a traced or a numpy array.
    """
    traced = isinstance(tex_data, jax.core.Tracer)
    xp: Any = jnp if traced else np
    data = tex_data if traced else np.asarray(tex_data)
    parts, lead = [data], data.shape[:-1]
    for t in textures:
        image = data[..., t.start : t.start + t.pixels()]
        image = image.reshape(*lead, t.sides, t.height, t.width, t.channels)
        # Halve the image in linear light, round to bytes, and continue with the rounded image.
        for _ in _mipmap_sizes(t):
            value = image.astype(np.float32) / np.float32(255)
            light = srgb_to_linear(xp, value) if t.srgb else value
            light = _half(xp, _half(xp, light, -3), -2)
            encoded = _linear_to_srgb(xp, light) if t.srgb else light
            image = xp.floor(255 * encoded + 0.5).astype(np.uint8)
            parts.append(image.reshape(*lead, -1))
    return xp.concatenate(parts, axis=-1)


def srgb_to_linear(xp: Any, encoded: Any) -> Any:
    """Return linear values of sRGB-encoded ones (IEC 61966-2-1), from 0 to 1, (..., channels).

    The alpha channel is unchanged.
    """
    curved = xp.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    return _colors_only(xp, curved, encoded)


def _linear_to_srgb(xp: Any, light: Any) -> Any:
    """Return sRGB-encoded values, the inverse of `srgb_to_linear`."""
    high = 1.055 * xp.maximum(light, 0.0031308) ** (1 / 2.4) - 0.055
    return _colors_only(xp, xp.where(light <= 0.0031308, 12.92 * light, high), light)


def _colors_only(xp: Any, changed: Any, before: Any) -> Any:
    """Return changed colors with the original alpha channel, (..., channels)."""
    return xp.concatenate([changed[..., :3], before[..., 3:]], axis=-1)


def _mipmap_sizes(t: Texture) -> list[tuple[int, int]]:
    """Return the widths and heights of the mipmaps."""
    found, width, height = [], t.width, t.height
    while max(width, height) > 1:
        width, height = max(width // 2, 1), max(height // 2, 1)
        found.append((width, height))
    return found


def _half(xp: Any, image: Any, axis: int) -> Any:
    """Return an image with half as many pixels along an axis, by linear interpolation at the new
    centers."""
    number = image.shape[axis]
    if number == 1:
        return image
    position = (np.arange(number // 2) + 0.5) * number / (number // 2) - 0.5
    first = np.floor(position).astype(int)
    shape = [1] * image.ndim
    shape[axis] = -1
    share = (position - first).astype(np.float32).reshape(shape)
    some = [xp.take(image, k, axis=axis) for k in (first, np.minimum(first + 1, number - 1))]
    return (1 - share) * some[0] + share * some[1]
