"""A flex as the passes know it: its element, its parts, and their places in the reference pose."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from jaxsim.compile.flex.topology import FlexTopology
from jaxsim.spec import SpecElement


@dataclass(eq=False)
class Flex:
    """One flex as it is written, with its children (stand-ins where they are absent).

    Attributes:
      id: its number.
      element: the `<flex>`.
      order: 0, or the order of the interpolation.
      cellcount: cells of the interpolation, (3,).
      vertbody, vert: body (-1: interpolated) and place in it of each vertex, (n,), (n, 3).
      nodebody, node: the same of each node.
      elem: vertices of the elements, (nelem, dim + 1).
      topology: its edges and surface.
      place: positions of the vertices in the reference pose, (n, 3): in the world, for an
        interpolated flex in axes along its lattice.
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
    place: np.ndarray
    node_place: np.ndarray

    @property
    def dim(self) -> int:
        """1: rod, 2: shell, 3: solid."""
        return self.elem.shape[1] - 1

    @property
    def is_rod(self) -> bool:
        """Whether it bends as a rod; one that is interpolated moves as its cells do."""
        return self.dim == 1 and not self.order

    @property
    def bodies(self) -> np.ndarray:
        """The bodies that it hangs on."""
        return np.unique(self.nodebody if self.order else self.vertbody)

    @property
    def elastic(self) -> bool:
        """Whether it has forces of elasticity."""
        shell = self.dim == 2 and not self.order
        idle = shell and self.elasticity.get("elastic2d") == "none"
        return not self.rigid and not idle and self.elasticity.get("young") > 0

    @property
    def rigid(self) -> bool:
        """Whether all of it is fixed to one body."""
        return len(self.bodies) == 1
