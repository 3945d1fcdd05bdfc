"""The faces of meshes that collide with `sdf` geoms, in the order in which MuJoCo visits them."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather
from jaxsim.arrays.node import node
from jaxsim.enums import GeomType
from jaxsim.math import Vec
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure
from jaxsim.physics.collision.candidates.pairs import known_pairs
from jaxsim.physics.collision.shape import PlacedGeoms, add_slot_axis, per_slot

CORNERS_PER_FACE = 3


@node("most")
class Faces:
    """Faces of some meshes, in lists padded to the longest one.

    Tables `[n, *1]` have a last axis of length 1 if there are worlds, else none.

    Attributes:
      most: length of the lists (static).
      row: index of each geom's mesh among these, `[ngeom, *1]`.
      number: number of faces of each mesh, `[nmeshes, *1]`.
      corner: vertex ids, one array for each corner, `[nmeshes * most, *1]`.
      vertex: positions of all vertices in the frames of their meshes, `[nmeshvert, *W]`.
    """

    most: int
    row: jax.Array
    number: jax.Array
    corner: tuple[jax.Array, ...]
    vertex: Vec

    def corners_of(self, geoms: PlacedGeoms) -> tuple[tuple[Vec, ...], Array]:
        """Return the faces of the meshes of geoms `[n, *W]`.

        Returns:
          The three corners in the frames of the meshes, `[most, n, *W]` each, and which faces
          exist, `[most, n, *W]` bool.
        """
        # Mesh of each geom, and addresses of its faces in the padded lists.
        row = gather(self.row, geoms.id)
        row, number = add_slot_axis((row, gather(self.number, row)))
        slot = per_slot(np.arange(self.most), row[0])
        shape = self.most, *row.shape[1:]
        flat = (self.most * row + slot).reshape(-1, *shape[2:])
        # Positions of the vertices of each corner.
        corners = []
        for corner in self.corner:
            index = gather(corner, flat)
            worlds = jnp.broadcast_shapes(index.shape[1:], self.vertex.shape[1:])
            found = gather(self.vertex, jnp.broadcast_to(index, (len(index), *worlds)))
            corners.append(found.map(lambda c: c.reshape(*shape[:2], *c.shape[1:])))
        return tuple(corners), jnp.asarray(slot < number)


def sdf_mesh_faces(m: Model) -> Faces:
    """Return the faces of the meshes of an (unpacked) model that collide with `sdf` geoms."""
    return mesh_faces_of(m, _meshes(m.structure, m.pair_flags))


def mesh_faces_of(m: Model, meshes: np.ndarray) -> Faces:
    """Return the faces of some meshes, ids ascending, of an (unpacked) model."""
    s = m.structure
    most = int(s.mesh_facenum[meshes].max(initial=1))
    corner = np.zeros((len(meshes), most, CORNERS_PER_FACE), np.int32)
    # Vertex ids of each mesh's faces, in MuJoCo's order.
    for row, mesh in enumerate(meshes):
        start, number = s.mesh_faceadr[mesh], s.mesh_facenum[mesh]
        here = slice(start, start + number)
        face = np.asarray(s.mesh_face).reshape(-1, CORNERS_PER_FACE)[here][s.mesh_faceorder[here]]
        corner[row, :number] = face + s.mesh_vertadr[mesh]
    rows = np.searchsorted(meshes, s.geom_dataid)
    rows = np.where(np.isin(s.geom_dataid, meshes), rows, 0).astype(np.int32)

    def constant(table: np.ndarray) -> jax.Array:
        return jnp.asarray(column(np.asarray(table, np.int32), m.mesh_vert))

    return Faces(
        most=most,
        row=constant(rows),
        number=constant(s.mesh_facenum[meshes]),
        corner=tuple(constant(corner[..., k].ravel()) for k in range(CORNERS_PER_FACE)),
        vertex=m.mesh_vert,
    )


def _meshes(s: Structure, flags: int) -> np.ndarray:
    """Return the meshes whose geoms collide with `sdf` geoms, ids ascending."""
    geoms = known_pairs(s, flags).searched(s.geom_type).geom1
    return np.unique(s.geom_dataid[geoms[s.geom_type[geoms] == GeomType.MESH]])
