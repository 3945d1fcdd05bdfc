"""What rays may meet, made once for each picture: surfaces of geoms, and what changes its form.

Rays are cast in many places of a program: first hits, what is behind and in mirrors, shadows. The
tables of meshes are long, and stand in the program once; so do the boxes around their faces.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.ray.surfaces import Surfaces, surfaces
from jaxsim.view.picture.soft import Soft, soft


class Scene(NamedTuple):
    """What may be met.

    Attributes:
      solid: surfaces of geoms, with the vertices of the faces of meshes.
      soft: flexes, skins, tendons and rods; None: there are none.
      normal, place: of all faces of meshes the normals and texture coordinates of their corners,
        three arrays `[nmeshface]`.
    """

    solid: Surfaces
    soft: Soft | None
    normal: tuple[jax.Array, ...]
    place: tuple[jax.Array, ...]


def scene(m: Model, d: Data, geoms: np.ndarray, groups: tuple[bool, ...]) -> Scene:
    """What may be met in a world with the poses of bodies.

    Args:
      m, d: model and data.
      geoms: those that may be seen.
      groups: which groups of other things are shown.
    """
    normal, place = (tuple(map(jnp.asarray, table)) for table in _of_corners(m.structure))
    return Scene(surfaces(m, geoms), soft(m, d, groups), normal, place)


@derived
def _of_corners(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return the normals and texture coordinates of the corners of all faces of meshes, `[3,
    nmeshface]`."""
    starts = s.mesh_normaladr, np.maximum(s.mesh_texcoordadr, 0)
    tables = s.mesh_facenormal, s.mesh_facetexcoord
    normal, place = (
        (np.asarray(t).reshape(-1, 3) + np.repeat(a, s.mesh_facenum)[:, None]).T.astype(np.int32)
        for t, a in zip(tables, starts, strict=True)
    )
    return normal, place
