"""Triangles and material of a drawn part, as arrays in the conventions of glTF.

The triangles, images and materials are those of the browser viewer
(view/browser/draw/surface.py). Colors of glTF and USD are linear, those of Rerun and Foxglove are
sRGB, as in the model.
"""

from typing import NamedTuple

import numpy as np

from jaxsim.model.model import Model
from jaxsim.view.browser.draw.deformable import Deformable
from jaxsim.view.browser.draw.part import Part
from jaxsim.view.browser.draw.surface import image_of, material_of, texture_mesh

_GAMMA = 2.2  # exponent from sRGB to linear colors, that of `material_of`


class Material(NamedTuple):
    """Material of a surface.

    Attributes:
      rgba: sRGB color and opacity, (4,), from 0 to 1; an image is multiplied by it.
      metallic, roughness: of the metallic-roughness model of glTF, from 0 to 1.
      emission: emitted linear color, (3,).
      image: pixels from the top, (height, width, 3 or 4) uint8; None: there is none.
    """

    rgba: np.ndarray
    metallic: float
    roughness: float
    emission: np.ndarray
    image: np.ndarray | None

    @property
    def linear(self) -> np.ndarray:
        """Return the linear color and the opacity, (4,)."""
        return np.array([*self.rgba[:3] ** _GAMMA, self.rgba[3]])

    @property
    def plain(self) -> "Material":
        """Return the material with the mean color of its image instead of the image."""
        if self.image is None:
            return self
        mean = self.image.reshape(-1, self.image.shape[2])[:, :3].mean(axis=0) / 255
        return self._replace(rgba=self.rgba * [*mean, 1.0], image=None)


class Surface(NamedTuple):
    """Triangles with a material.

    Attributes:
      vertex: positions in the frame of the part, (n, 3) [m].
      normal: unit normals, (n, 3).
      face: vertex indices of each triangle, counterclockwise from outside, (k, 3).
      texcoord: texture coordinates from the left and the top, (n, 2); None: no image.
      material: the material.
    """

    vertex: np.ndarray
    normal: np.ndarray
    face: np.ndarray
    texcoord: np.ndarray | None
    material: Material


def surface_of(part: Part) -> Surface:
    """Return the triangles and the material of a geom or site."""
    mesh = texture_mesh(part.m, part.shape, part.type, part.size, part.look)
    normal = np.array(mesh.vertex_normals, float)
    length = np.linalg.norm(normal, axis=1, keepdims=True)
    # Meshes may have vertices without a direction; glTF requires unit normals.
    normal = np.where(length > 0, normal / np.where(length > 0, length, 1), [0.0, 0.0, 1.0])
    uv = mesh.visual.uv
    texcoord = None if uv is None else np.stack([uv[:, 0], 1 - uv[:, 1]], axis=1)
    material = _material(part.look.rgba, mesh.visual.material)
    return Surface(np.asarray(mesh.vertices), normal, np.asarray(mesh.faces), texcoord, material)


def deformable_material(m: Model, deformable: Deformable) -> Material:
    """Return the material of a flex or skin."""
    image = None if deformable.texcoord is None else image_of(m, deformable.look.texture)
    return _material(deformable.look.rgba, material_of(m, deformable.look, image, 1.0))


def vertex_normals(vertex: np.ndarray, face: np.ndarray) -> np.ndarray:
    """Return area-weighted unit normals of triangles with moving vertices, (..., n, 3).

    Args:
      vertex: positions, (..., n, 3) [m].
      face: vertex indices of each triangle, (k, 3).
    """
    first, second, third = (vertex[..., face[:, k], :] for k in range(3))
    # The cross product of two sides has twice the area as length: sums are weighted by area.
    across = np.cross(second - first, third - first)
    normal = np.zeros_like(vertex)
    for k in range(3):
        np.add.at(np.moveaxis(normal, -2, 0), face[:, k], np.moveaxis(across, -2, 0))
    length = np.linalg.norm(normal, axis=-1, keepdims=True)
    return np.where(length > 0, normal / np.where(length > 0, length, 1), [0.0, 0.0, 1.0])


def _material(rgba: np.ndarray, pbr: object) -> Material:
    """Return the material of an sRGB color (4,) and the viewer's `trimesh.PBRMaterial`."""
    metallic, roughness, emission, image = (
        getattr(pbr, name)
        for name in ("metallicFactor", "roughnessFactor", "emissiveFactor", "baseColorTexture")
    )
    return Material(
        np.clip(np.asarray(rgba, float), 0, 1),
        float(np.clip(metallic, 0, 1)),
        float(np.clip(roughness, 0, 1)),
        np.clip(np.asarray(emission, float), 0, 1),
        None if image is None else np.asarray(image),
    )
