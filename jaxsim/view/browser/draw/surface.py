"""Appearance of a geom or site: color, material, texture, and texture coordinates.

Images and materials are those of the compiled model (`tex_data`, `mat_rgba`). 2D textures are
wrapped around primitives (picture/wrap.py), and mapped to other shapes by their texture
coordinates, else along their z axis; cube textures are projected from the center, as in MuJoCo's
renderer (XMLreference, asset/texture and asset/material).
"""

from typing import Any, NamedTuple

import numpy as np

from jaxsim.enums import GeomType
from jaxsim.math import Vec
from jaxsim.model.model import Model
from jaxsim.optional import require
from jaxsim.view.browser.draw.shape import TriangleShape
from jaxsim.view.picture.sample import CUBE_AXES
from jaxsim.view.picture.surface import UNSET_RGBA
from jaxsim.view.picture.wrap import WRAP_FUNCTIONS

_ROUND_SHAPES = (GeomType.CAPSULE, GeomType.CYLINDER)  # their half length is their second size
COLOR_ROLES = (1, 8)  # mjTEXROLE_RGB, mjTEXROLE_RGBA
_TEXTURE_2D = 0  # mjTEXTURE_2D; the others are cubes
ROUGH, SHINY = 0.9, 0.35  # roughness of the least and the most shiny surface


class Appearance(NamedTuple):
    """Color, (4,), material id, or -1, and texture id, or -1."""

    rgba: np.ndarray
    material: int
    texture: int


def appearance_of(m: Model, rgba: np.ndarray, material: int) -> Appearance:
    """Return the appearance of an object with its own color and a material, or -1."""
    if material < 0:
        return Appearance(rgba, -1, -1)
    if np.allclose(rgba, UNSET_RGBA):
        rgba = np.asarray(m.mat_rgba)[material]
    used = [int(m.mat_texid[material, role]) for role in COLOR_ROLES]
    return Appearance(rgba, int(material), max(used))


def texture_mesh(
    m: Model,
    shape: TriangleShape,
    kind: int,
    size: np.ndarray,
    look: Appearance,
    opacity: float = 1.0,
    solid: bool = False,
) -> Any:
    """Return the shape as a `trimesh.Trimesh` with its appearance.

    Args:
      m: the model.
      shape: triangles in the frame of the geom.
      kind, size: `GeomType` and size parameters of the geom, (3,).
      look: its appearance.
      opacity: factor on the opacity.
      solid: whether transparent surfaces are drawn opaque and paler, for large numbers of
        instances:
        viser 1.1 sorts transparent ones in every frame, which is too slow.
    """
    trimesh, visual = require("trimesh", "view"), require("trimesh.visual", "view")
    image = place = None
    if look.texture >= 0 and m.tex_type[look.texture] == _TEXTURE_2D:
        image = image_of(m, look.texture)
        shape, place = _texture_coords(m, shape, kind, size, look.material)
    elif look.texture >= 0:
        image = image_of(m, look.texture)
        shape, place = _cube_strip_coordinates(
            shape, kind, size, repeated=image.shape[0] == image.shape[1]
        )
    if place is not None:
        place = np.stack([place[:, 0], 1 - place[:, 1]], axis=1)  # trimesh counts from the bottom
    return trimesh.Trimesh(
        shape.vertex,
        shape.face,
        vertex_normals=shape.normal,
        process=False,
        visual=visual.TextureVisuals(
            uv=place, material=material_of(m, look, image, opacity, solid)
        ),
    )


def material_of(
    m: Model,
    look: Appearance,
    image: np.ndarray | None,
    opacity: float,
    solid: bool = False,
    sides: int = 1,
) -> Any:
    """Return a glTF material, single- or double-sided.

    The arguments are those of `texture_mesh`. glTF colors are linear, those of the model are sRGB.
    """
    rgba = np.array(look.rgba, float)
    alpha = float(rgba[3]) * opacity
    shine, metal, rough, glow = 0.5, 0.0, -1.0, 0.0
    if look.material >= 0:
        named = (m.mat_shininess, m.mat_metallic, m.mat_roughness, m.mat_emission)
        shine, metal, rough, glow = (float(x[look.material]) for x in named)
    color = np.clip(rgba[:3], 0, 1) ** 2.2
    if solid:
        color, alpha = 1 - alpha * (1 - color), 1.0
        image = None if image is None else image[..., :3]
    pictured = image is not None and image.shape[2] == 4 and image[..., 3].min() < 255
    return require("trimesh.visual.material", "view").PBRMaterial(
        baseColorFactor=np.array([*color, alpha]),
        baseColorTexture=None if image is None else require("PIL.Image", "view").fromarray(image),
        emissiveFactor=np.clip(glow, 0, 1) * color,
        metallicFactor=max(metal, 0.0),
        roughnessFactor=rough if rough >= 0 else ROUGH + (SHINY - ROUGH) * shine,
        alphaMode="BLEND" if alpha < 1 or pictured else "OPAQUE",
        doubleSided=sides == 2,
    )


def image_of(m: Model, texture: int) -> np.ndarray:
    """Return the pixels of a texture, (height, width, 3 or 4), from the top."""
    shape = [int(x[texture]) for x in (m.tex_height, m.tex_width, m.tex_nchannel)]
    start = int(m.tex_adr[texture])
    pixels = m.tex_data[start : start + int(np.prod(shape))].reshape(shape)
    return np.repeat(pixels, 3, axis=2) if shape[2] == 1 else pixels


def _texture_coords(
    m: Model, shape: TriangleShape, kind: int, size: np.ndarray, material: int
) -> tuple[TriangleShape, np.ndarray]:
    """Return the shape, and its texture coordinates in a 2D image, (n, 2)."""
    if shape.texcoord is not None:
        return shape, shape.texcoord
    half, repeat = _half(shape, kind, size), np.asarray(m.mat_texrepeat)[material]
    uniform = bool(m.mat_texuniform[material])
    if kind in WRAP_FUNCTIONS and np.all(half[:2] > 0):
        shape, middle = _split_triangles(shape)
        radii = half * [1, 1, 0] + [0, 0, size[1]] if kind in _ROUND_SHAPES else half
        corner, at, whole = (
            Vec(*np.broadcast_to(x, shape.vertex.shape).T)
            for x in (shape.vertex, np.repeat(middle, 3, axis=0), radii)
        )
        place = np.stack(WRAP_FUNCTIONS[kind](corner, whole, at), axis=1)
        return shape, place * repeat * (half[:2] if uniform else 1)
    span = np.ones(2) if uniform else np.where(half[:2] > 0, half[:2], 1)
    return shape, 0.5 * repeat / span * shape.vertex[:, :2] * [1, -1] - 0.5


def _split_triangles(shape: TriangleShape) -> tuple[TriangleShape, np.ndarray]:
    """Return the shape with separate corners for each triangle, and the triangle centers, (k,
    3)."""
    index = shape.face.reshape(-1)
    face = np.arange(len(index)).reshape(-1, 3)
    vertex = shape.vertex[index]
    return TriangleShape(vertex, shape.normal[index], face), vertex.reshape(-1, 3, 3).mean(axis=1)


def _half(shape: TriangleShape, kind: int, size: np.ndarray) -> np.ndarray:
    """Return the half sizes by which texture coordinates are scaled, (3,); infinite planes have
    none."""
    if kind == GeomType.PLANE:
        return np.array([*size[:2], 1.0])
    return np.abs(shape.vertex).max(axis=0)


def _cube_strip_coordinates(
    shape: TriangleShape, kind: int, size: np.ndarray, repeated: bool
) -> tuple[TriangleShape, np.ndarray]:
    """Return the corners of all triangles, and their coordinates in a strip of six images, (n, 2).

    A triangle is mapped to the side of the cube that it faces most.
    """
    shape, _ = _split_triangles(shape)
    way = shape.vertex / np.maximum(_half(shape, kind, size), 1e-9)
    middle = way.reshape(-1, 3, 3).mean(axis=1)
    axis = np.argmax(np.abs(middle), axis=1)
    negative = np.take_along_axis(middle, axis[:, None], axis=1)[:, 0] < 0
    side = np.repeat(2 * axis + negative, 3)
    ahead = np.maximum(np.abs(way[np.arange(len(way)), side // 2]), 1e-6)
    across = np.array(CUBE_AXES)[side]
    along = np.sign(across) * np.take_along_axis(way, np.abs(across) - 1, axis=1)
    place = np.clip(0.5 + 0.5 * along / ahead[:, None], 0.005, 0.995)
    if not repeated:
        place[:, 1] = (side + place[:, 1]) / 6
    return shape, place
