"""Mapping of 2D textures to primitives, as in MuJoCo 4's renderer (a test compares).

Texture coordinates are from 0 to 1, to the right and down in the image, before repetition:

    box, plane    .5 + a, .5 - b        a, b from -.5 to .5 along the first and the second of the
                                        axes of the face
    sphere, ellipsoid   azimuth / 2 pi, polar angle / pi    in the frame of the unit sphere
    cylinder      azimuth / 2 pi, .5 - z / 2h               its ends: .5 + x / 2r, .5 + y / 2r
    capsule       the same; the upper end: twice the polar angle / pi, the lower one: that - 1

With `texuniform` they are multiplied by the half sizes along x and y. Other shapes and infinite
planes are mapped along their z axis (XML reference, asset/material).
"""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.enums import GeomType
from jaxsim.math import Vec

_TexCoord = tuple[Array, Array]


def wrap_box(p: Vec, half: Vec, at: Vec) -> _TexCoord:
    """Return the coordinates on a box; `at` selects the face."""
    near = [jnp.abs(a) / h for a, h in zip(at.parts, half.parts, strict=True)]
    on_x = (near[0] >= near[1]) & (near[0] >= near[2])
    on_z = ~on_x & (near[2] > near[1])
    x, y, z = (0.5 * a / h for a, h in zip(p.parts, half.parts, strict=True))
    return 0.5 + jnp.where(on_x, y, x), 0.5 - jnp.where(on_z, y, z)


def wrap_plane(p: Vec, half: Vec, at: Vec) -> _TexCoord:
    """Return the coordinates on a finite plane."""
    return 0.5 + 0.5 * p.x / half.x, 0.5 - 0.5 * p.y / half.y


def wrap_ellipsoid(p: Vec, half: Vec, at: Vec) -> _TexCoord:
    """Return the coordinates on a sphere or ellipsoid."""
    q = Vec(*(a / h for a, h in zip(p.parts, half.parts, strict=True))).normalize()
    return _azimuth(q, at), jnp.arccos(q.z.clip(-1, 1)) / np.pi


def wrap_cylinder(p: Vec, half: Vec, at: Vec) -> _TexCoord:
    """Return the coordinates on a cylinder."""
    # points of the lateral surface are relatively farther out than those of the ends
    end = (jnp.abs(at.z) / half.z) ** 2 > (at.x**2 + at.y**2) / half.x**2
    u = jnp.where(end, 0.5 + 0.5 * p.x / half.x, _azimuth(p, at))
    return u, jnp.where(end, 0.5 + 0.5 * p.y / half.x, 0.5 - 0.5 * p.z / half.z)


def wrap_capsule(p: Vec, half: Vec, at: Vec) -> _TexCoord:
    """Return the coordinates on a capsule."""
    beyond = p.z - p.z.clip(-half.z, half.z)
    angle = jnp.arccos((beyond / half.x).clip(-1, 1)) * 2 / np.pi
    end = jnp.where(at.z > 0, angle, angle - 1)
    return _azimuth(p, at), jnp.where(jnp.abs(at.z) <= half.z, 0.5 - 0.5 * p.z / half.z, end)


WRAP_FUNCTIONS: dict[int, Callable[[Vec, Vec, Vec], _TexCoord]] = {
    GeomType.PLANE: wrap_plane,
    GeomType.SPHERE: wrap_ellipsoid,
    GeomType.CAPSULE: wrap_capsule,
    GeomType.ELLIPSOID: wrap_ellipsoid,
    GeomType.CYLINDER: wrap_cylinder,
    GeomType.BOX: wrap_box,
}


def _azimuth(p: Vec, at: Vec) -> Array:
    """Return the azimuth from the x axis in revolutions: 0 to 1 at `at`, continuous near it at
    `p`."""
    there, here = (jnp.arctan2(v.y, v.x) / (2 * np.pi) for v in (at, p))
    there = there % 1
    return there + (here - there + 0.5) % 1 - 0.5
