"""Bending of shells: discrete hinge forces on the four vertices around each inner edge.

    F_i = -sum_j B_ij x_j - c n_i

B is the quadratic form of a flat hinge (isometric bending model). For a hinge that is folded at
rest or has yielded, c weights the area normals n_1 = (x_2 - x_0) x (x_3 - x_0), ..., which are the
gradient of the volume that the four vertices span. Both are stored in `flex_bending`
(compile/flex/elastic/elastic.py); the plastic state is added to c (plastic.py). Damping applies B
to velocities. Corresponds to `mj_flexPassiveBend` in MuJoCo.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.gather import column, gather_static
from jaxsim.math import Vec
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.flex.point_forces import (
    YIELDS_BENT,
    YIELDS_STRETCHED,
    FlexPointState,
    PointForces,
    StiffnessBlock,
    element_points,
    plastic_values,
    spring_force,
)

_RECORD_SIZE = 17  # numbers per edge in flex_bending
ACROSS, CURVED = 11, 16  # offsets in them: B_23, between the vertices across the edge, and c


class Hinges(NamedTuple):
    """Inner edges of shells that bend.

    Attributes:
      flex: flex of each hinge, `[n]`.
      vert: vertex ids: ends of the edge, then the two vertices across it, `[n, 4]`.
      edge: edge ids, `[n]`.
      first: address in `flex_bending`, `[n]`.
      plastic: address in the plastic state; -1: the hinge does not yield, `[n]`.
    """

    flex: np.ndarray
    vert: np.ndarray
    edge: np.ndarray
    first: np.ndarray
    plastic: np.ndarray

    def some(self, which: np.ndarray) -> "Hinges":
        """Return a subset."""
        return Hinges(*(a[which] for a in self))


@cache_by_structure
def shell_hinges(s: Structure) -> Hinges:
    """Return the hinges of all shells that are neither rigid nor interpolated."""
    # Shells without interpolation, edges with triangles on both sides.
    bends = (s.flex_dim == 2) & (s.flex_interp == 0) & (s.flex_bendingadr >= 0)
    flex = np.repeat(np.arange(s.nflex), s.flex_edgenum)
    flap = np.reshape(s.flex_edgeflap, (-1, 2))
    live = (bends & ~np.asarray(s.flex_rigid, bool))[flex] & (flap[:, 1] >= 0)
    edge = np.flatnonzero(live)
    flex = flex[edge]
    # Ends of the edge, then both opposite vertices.
    vert = np.concatenate([np.reshape(s.flex_edge, (-1, 2)), flap], axis=1)[edge]
    first = s.flex_bendingadr[flex] + _RECORD_SIZE * (edge - s.flex_edgeadr[flex])
    stretched = np.where(s.flex_plasticmode & YIELDS_STRETCHED, 3 * s.flex_elemnum, 0)
    # Plastic state: stretched elements first, then one number per edge.
    adr = (s.flex_plasticadr + stretched)[flex] + edge - s.flex_edgeadr[flex]
    adr = np.where(s.flex_plasticmode[flex] & YIELDS_BENT, adr, -1)
    return Hinges(flex, vert + s.flex_vertadr[flex][:, None], edge, first, adr)


def bend_forces(m: Model, state: FlexPointState) -> list[PointForces]:
    """Compute spring and damper forces of the hinges."""
    table = shell_hinges(m)
    if not len(table.flex):
        return []
    # Gather the quadratic form, positions and velocities of each hinge.
    B = [gather_static(m.flex_bending, table.first + k) for k in range(_RECORD_SIZE)]
    x, v = element_points(state.xpos, table.vert), element_points(state.velocity, table.vert)
    n = _areas(x)
    damping = gather_static(m.flex_damping, table.flex)
    # Weight of the volume gradient: rest fold plus plastic fold.
    c = B[CURVED] + plastic_values(state.plastic, table.plastic, 1)[0]
    spring = [-(_quadratic_form_row(B, i, x) + n[i].scale(c)) for i in range(4)]
    return [
        spring_force(
            table.vert, spring, [-_quadratic_form_row(B, i, v).scale(damping) for i in range(4)]
        )
    ]


def bend_stiffness(m: Model, state: FlexPointState) -> list[StiffnessBlock]:
    """Return the quadratic form of each hinge as a stiffness, equal along all axes."""
    table = shell_hinges(m)
    if not len(table.flex):
        return []
    B = [gather_static(m.flex_bending, table.first + k) for k in range(16)]
    # The scalar form acts on each coordinate: Kronecker product with the identity.
    form = jnp.stack(B, axis=1).reshape(len(table.flex), 4, 1, 4, 1, *B[0].shape[1:])
    matrix = form * column(np.eye(3)[None, None, :, None], form[:, 0, 0, 0, 0])
    return [StiffnessBlock(table.flex, table.vert, matrix.reshape(-1, 12, 12, *B[0].shape[1:]))]


def _areas(x: list[Vec]) -> list[Vec]:
    # Area normals; they sum to zero.
    first, second, third = (x[k] - x[0] for k in (1, 2, 3))
    n = [second.cross(third), third.cross(first), first.cross(second)]
    return [-(n[0] + n[1] + n[2]), *n]


def _quadratic_form_row(B: list, i: int, x: list[Vec]) -> Vec:
    """Compute sum_j B_ij x_j."""
    terms = [x[j].scale(B[4 * i + j]) for j in range(4)]
    return terms[0] + terms[1] + (terms[2] + terms[3])
