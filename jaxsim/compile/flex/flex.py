"""A flex during compilation: its element, its parts, and their positions in the reference pose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.compile.flex.topology import FlexTopology
from jaxsim.spec import SpecElement


@dataclass(eq=False)
class Flex:
    """One flex as written, with its children (defaults where they are absent).

    Attributes:
      id: its id.
      element: the `<flex>`.
      order: 0, or the order of the interpolation.
      cellcount: cells of the interpolation, (3,).
      vertbody, vert: body (-1: interpolated) and position in it of each vertex, (n,), (n, 3).
      nodebody, node: body and position of each node.
      elem: vertices of the elements, (nelem, dim + 1).
      topology: its edges and surface.
      rest_position: positions of the vertices in the reference pose, (n, 3): in the world, or for
        an interpolated flex in axes along its lattice.
      node_place: positions of the nodes in the same axes, (nnode, 3).
    """

    id: int
    element: SpecElement
    contact: SpecElement
    edge: SpecElement
    elasticity: SpecElement
    order: int
    cellcount: np.ndarray
    vertbody: np.ndarray
    vert: np.ndarray
    nodebody: np.ndarray
    node: np.ndarray
    elem: np.ndarray
    topology: FlexTopology
    rest_position: np.ndarray
    node_place: np.ndarray

    @property
    def dim(self) -> int:
        """Return 1 for a rod, 2 for a shell, 3 for a solid."""
        return self.elem.shape[1] - 1

    @property
    def is_rod(self) -> bool:
        """Return whether it bends as a rod; an interpolated rod moves as its cells do."""
        return self.dim == 1 and not self.order

    @property
    def bodies(self) -> np.ndarray:
        """Return the bodies that it is attached to."""
        return np.unique(self.nodebody if self.order else self.vertbody)

    @property
    def elastic(self) -> bool:
        """Return whether it has elastic forces."""
        shell = self.dim == 2 and not self.order
        idle = shell and self.elasticity.get("elastic2d") == "none"
        return not self.rigid and not idle and self.elasticity.get("young") > 0

    @property
    def rigid(self) -> bool:
        """Return whether all of it is fixed to one body."""
        return len(self.bodies) == 1
