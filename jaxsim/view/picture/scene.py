"""Objects that rays may hit, prepared once per image: surfaces of geoms, and deformable parts.

Rays are cast in many parts of a program: first hits, through transparent surfaces, in mirrors, for
shadows. The tables of meshes are large, and are included in the program once; so are the bounding
boxes of their faces.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.ray.surfaces import Surfaces, ray_surfaces
from jaxsim.view.picture.deformable import FlexScene, flex_scene


class PictureScene(NamedTuple):
    """Objects that rays may hit.

    Attributes:
      solid: surfaces of geoms, with the vertices of the faces of meshes.
      soft: flexes, skins, tendons and rods; None: there are none.
      normal, texcoord_index: normal and texture coordinate indices of the corners of all mesh
        faces, three arrays `[nmeshface]`.
    """

    solid: Surfaces
    soft: FlexScene | None
    normal: tuple[jax.Array, ...]
    texcoord_index: tuple[jax.Array, ...]


def scene(m: Model, d: Data, geoms: np.ndarray, groups: tuple[bool, ...]) -> PictureScene:
    """Return the objects that rays may hit in a world with the poses of bodies.

    Args:
      m, d: model and data.
      geoms: visible geoms.
      groups: visible groups of other objects.
    """
    normal, texcoord_index = (
        tuple(map(jnp.asarray, table)) for table in _corner_indices(m.structure)
    )
    return PictureScene(ray_surfaces(m, geoms), flex_scene(m, d, groups), normal, texcoord_index)


@cache_by_structure
def _corner_indices(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return the normal and texture coordinate indices of the corners of all mesh faces, `[3,
    nmeshface]`."""
    starts = s.mesh_normaladr, np.maximum(s.mesh_texcoordadr, 0)
    tables = s.mesh_facenormal, s.mesh_facetexcoord
    normal, texcoord_index = (
        (np.asarray(t).reshape(-1, 3) + np.repeat(a, s.mesh_facenum)[:, None]).T.astype(np.int32)
        for t, a in zip(tables, starts, strict=True)
    )
    return normal, texcoord_index
