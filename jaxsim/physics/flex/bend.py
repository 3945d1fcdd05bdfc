"""Bending of shells: forces of hinges on the four vertices around each inner edge.

    F_i = -sum_j B_ij x_j - c n_i

with the quadratic form B of a flat hinge, and for one that is folded at rest, or has yielded, the
part c, along n_1 = (x_2 - x_0) x (x_3 - x_0) and so on, the areas across from the vertices: the
gradient of the volume that they span. Both are in `flex_bending` (compile/flex/elastic/elastic.py),
and what has yielded is added to c (plastic.py). Damping has the velocities in the place of the
positions.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.math import Vec
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.arrays.select import column, take
from jaxsim.physics.flex.push import (
    YIELDS_BENT,
    YIELDS_STRETCHED,
    Block,
    Place,
    Push,
    corners,
    pushes,
    yielded_numbers,
)

PER_EDGE = 17  # numbers of an edge in flex_bending
ACROSS, CURVED = 11, 16  # of them: B_23, of the vertices across the edge, and c


class Hinges(NamedTuple):
    """Inner edges of shells that bend.

    Attributes:
      flex: `[n]`.
      vert: ends of the edge, then the vertices across it, among those of all flexes, `[n, 4]`.
      edge: among those of all flexes, `[n]`.
      first: place of its numbers in `flex_bending`, `[n]`.
      plastic: place of its number in the plastic state; -1: it does not yield, `[n]`.
    """

    flex: np.ndarray
    vert: np.ndarray
    edge: np.ndarray
    first: np.ndarray
    plastic: np.ndarray

    def some(self, which: np.ndarray) -> "Hinges":
        """Some of them."""
        return Hinges(*(a[which] for a in self))


@derived
def hinges(s: Structure) -> Hinges:
    """The hinges of all shells that are neither rigid nor interpolated."""
    bends = (s.flex_dim == 2) & (s.flex_interp == 0) & (s.flex_bendingadr >= 0)
    flex = np.repeat(np.arange(s.nflex), s.flex_edgenum)
    flap = np.reshape(s.flex_edgeflap, (-1, 2))
    live = (bends & ~np.asarray(s.flex_rigid, bool))[flex] & (flap[:, 1] >= 0)
    edge = np.flatnonzero(live)
    flex = flex[edge]
    vert = np.concatenate([np.reshape(s.flex_edge, (-1, 2)), flap], axis=1)[edge]
    first = s.flex_bendingadr[flex] + PER_EDGE * (edge - s.flex_edgeadr[flex])
    stretched = np.where(s.flex_plasticmode & YIELDS_STRETCHED, 3 * s.flex_elemnum, 0)
    adr = (s.flex_plasticadr + stretched)[flex] + edge - s.flex_edgeadr[flex]
    adr = np.where(s.flex_plasticmode[flex] & YIELDS_BENT, adr, -1)
    return Hinges(flex, vert + s.flex_vertadr[flex][:, None], edge, first, adr)


def bend_forces(m: Model, place: Place) -> list[Push]:
    """Forces of the hinges, and of their damping."""
    table = hinges(m)
    if not len(table.flex):
        return []
    B = [take(m.flex_bending, table.first + k) for k in range(PER_EDGE)]
    x, v = corners(place.xpos, table.vert), corners(place.velocity, table.vert)
    n = _areas(x)
    damping = take(m.flex_damping, table.flex)
    c = B[CURVED] + yielded_numbers(place.plastic, table.plastic, 1)[0]
    spring = [-(_row(B, i, x) + n[i].scale(c)) for i in range(4)]
    return [pushes(table.vert, spring, [-_row(B, i, v).scale(damping) for i in range(4)])]


def bend_stiffness(m: Model, place: Place) -> list[Block]:
    """The quadratic form of each hinge, the same along all axes."""
    table = hinges(m)
    if not len(table.flex):
        return []
    B = [take(m.flex_bending, table.first + k) for k in range(16)]
    form = jnp.stack(B, axis=1).reshape(len(table.flex), 4, 1, 4, 1, *B[0].shape[1:])
    matrix = form * column(np.eye(3)[None, None, :, None], form[:, 0, 0, 0, 0])
    return [Block(table.flex, table.vert, matrix.reshape(-1, 12, 12, *B[0].shape[1:]))]


def _areas(x: list[Vec]) -> list[Vec]:
    first, second, third = (x[k] - x[0] for k in (1, 2, 3))
    n = [second.cross(third), third.cross(first), first.cross(second)]
    return [-(n[0] + n[1] + n[2]), *n]


def _row(B: list, i: int, x: list[Vec]) -> Vec:
    """sum_j B_ij x_j."""
    terms = [x[j].scale(B[4 * i + j]) for j in range(4)]
    return terms[0] + terms[1] + (terms[2] + terms[3])
