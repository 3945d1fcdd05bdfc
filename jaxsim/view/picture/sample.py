"""Texture sampling as in OpenGL: bilinear, and trilinear between mipmap levels.

The level is chosen so that a pixel of the image covers one texel. With the changes of the texture
coordinates (u, v) to the adjacent pixels to the right and up, in texels, it is

    log2 max(|du/dx|, |du/dy|, |dv/dx|, |dv/dy|)

as OpenGL allows (4.6, 8.14.1) and Mesa does; colors are interpolated between two levels.
"""

import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.arrays.array import Array
from jaxsim.math import Vec
from jaxsim.physics.ray.local_rays import gather_by_world as look_up
from jaxsim.view.picture.pyramid import Texture, levels_of, srgb_to_linear

TexCoord = tuple[Array, Array]
# For the sides +x -x +y -y +z -z of a cube: signed axes (1 to 3) to the right and down in the
# image, seen from inside (OpenGL 4.6, table 8.19).
CUBE_AXES = ((-3, -2), (3, -2), (1, 3), (1, -3), (1, -2), (-1, -2))
_MIN_FOOTPRINT = 1e-9  # lower bound on changes of texture coordinates


def sample_flat(
    textures: tuple[Texture, ...],
    which: Array,
    texcoord: TexCoord,
    near: tuple[TexCoord, TexCoord],
    pixels: Array,
    world: Array,
) -> tuple[Vec, Array]:
    """Return the color and opacity of 2D textures, which repeat.

    Args:
      textures: textures of the model.
      which: texture id of each ray.
      texcoord: texture coordinates, from the left and from the top, from 0 to 1 before repetition.
      near: texture coordinates of the adjacent pixels to the right and up.
      pixels: all levels of all textures, `[n]`, `[n, 1]` or `[n, worlds]`.
      world: index of the world, `[1, *W]`.
    """
    return _blend_sizes(
        textures, which, texcoord, near, jnp.zeros_like(which), False, pixels, world
    )


def sample_cube(
    textures: tuple[Texture, ...],
    which: Array,
    way: Vec,
    near: tuple[Vec, Vec],
    pixels: Array,
    world: Array,
) -> tuple[Vec, Array]:
    """Return the color and opacity of cube textures in directions, given those of the adjacent
    pixels."""
    x, y, z = (jnp.abs(p) for p in way.parts)
    axis = jnp.where((x >= y) & (x >= z), 0, jnp.where(y >= z, 1, 2)).astype(jnp.int32)
    main = _signed_component(way, axis + 1)
    sign = jnp.where(main < 0, -1, 1).astype(main.dtype)
    side = 2 * axis + (main < 0).astype(jnp.int32)
    across = jnp.asarray(np.array(CUBE_AXES, np.int32))[side]

    def texcoord(to: Vec) -> TexCoord:
        ahead = sign * _signed_component(to, axis + 1)
        # an adjacent direction may be beyond the edge of the side, but not behind the camera
        ahead = jnp.maximum(ahead, jnp.maximum(0.1 * jnp.abs(main), jnp.finfo(main.dtype).tiny))
        u, v = (0.5 + 0.5 * _signed_component(to, across[..., k]) / ahead for k in range(2))
        return u, v

    texcoords = texcoord(near[0]), texcoord(near[1])
    return _blend_sizes(textures, which, texcoord(way), texcoords, side, True, pixels, world)


def _signed_component(way: Vec, axis: Array) -> Array:
    """Return the component along a signed axis, 1 to 3."""
    part = jnp.select([jnp.abs(axis) == 1, jnp.abs(axis) == 2], way.parts[:2], way.z)
    return jnp.sign(axis).astype(part.dtype) * part


def _blend_sizes(
    textures: tuple[Texture, ...],
    which: Array,
    texcoord: TexCoord,
    near: tuple[TexCoord, TexCoord],
    side: Array,
    cube: bool,
    pixels: Array,
    world: Array,
) -> tuple[Vec, Array]:
    """Return the colors interpolated between two mipmap levels."""
    table = levels_of(textures)
    size = [jnp.asarray(x[0])[which].astype(texcoord[0].dtype) for x in (table.width, table.height)]
    changes = [
        jnp.abs(a - b) * n for other in near for a, b, n in zip(other, texcoord, size, strict=True)
    ]
    most = jnp.maximum(jnp.maximum(*changes[:2]), jnp.maximum(*changes[2:]))
    last = jnp.asarray(table.last)[which]
    level = lax.stop_gradient(jnp.log2(jnp.maximum(most, _MIN_FOOTPRINT)))
    level = level.clip(0, last.astype(level.dtype))
    lower = jnp.floor(level).astype(jnp.int32)
    upper = jnp.minimum(lower + 1, last)
    # both levels at once: one program of look-ups, not two
    twice = [jnp.concatenate([x, x]) for x in (which, *texcoord, side)]
    both = twice[0], (twice[1], twice[2]), jnp.concatenate([lower, upper]), twice[3]
    color, opacity = _interpolate_bilinear(textures, *both, cube, pixels, world)
    share = level - lower.astype(level.dtype)
    *rgb, a = (_mean(x, share) for x in (*color.parts, opacity))
    return Vec(*rgb), a


def _mean(both: Array, share: Array) -> Array:
    lower, upper = jnp.split(both, 2)
    return lower * (1 - share) + upper * share


def _interpolate_bilinear(
    textures: tuple[Texture, ...],
    which: Array,
    texcoord: TexCoord,
    level: Array,
    side: Array,
    cube: bool,
    pixels: Array,
    world: Array,
) -> tuple[Vec, Array]:
    """Return the colors interpolated between the four nearest texels of a level."""
    table, (u, v) = levels_of(textures), texcoord
    channels = jnp.asarray(np.array([t.channels for t in textures], np.int32))[which]
    start, width, height = (
        jnp.asarray(x)[level, which] for x in (table.start, table.width, table.height)
    )
    if cube:
        several = jnp.asarray(np.array([t.sides > 1 for t in textures]))[which]
        start = start + jnp.where(several, side, 0) * height * width * channels
    x, y = (p * n.astype(p.dtype) - 0.5 for p, n in ((u, width), (v, height)))
    x0, y0 = jnp.floor(x), jnp.floor(y)
    fx, fy = x - x0, y - y0

    def index(k: Array, number: Array) -> Array:
        k = k.astype(jnp.int32)
        return jnp.clip(k, 0, number - 1) if cube else k % number

    found = []
    for c in range(4 if any(t.channels == 4 for t in textures) else 3):
        channel = jnp.where(channels < 3, 0, jnp.minimum(c, channels - 1))
        total = jnp.zeros_like(u)
        for dx, dy in ((0, 0), (1, 0), (0, 1), (1, 1)):
            row, col = index(y0 + dy, height), index(x0 + dx, width)
            byte = look_up(pixels, start + (row * width + col) * channels + channel, world)
            share = (fx if dx else 1 - fx) * (fy if dy else 1 - fy)
            total = total + share * _linear_channel(textures, which, byte.astype(u.dtype) / 255, c)
        found.append(total)
    opacity = jnp.where(channels == 4, found[3], 1) if len(found) == 4 else jnp.ones_like(u)
    return Vec(*found[:3]), opacity


def _linear_channel(
    textures: tuple[Texture, ...], which: Array, value: Array, channel: int
) -> Array:
    """Return the values of a channel in linear space, as they are interpolated."""
    if channel == 3 or not any(t.srgb for t in textures):
        return value
    srgb = jnp.asarray(np.array([t.srgb for t in textures]))[which]
    return jnp.where(srgb, srgb_to_linear(jnp, value[..., None])[..., 0], value)
