"""Passive forces of flexes: the sum of their elastic laws.

MuJoCo's documentation, XML reference: flex/edge and flex/elasticity. Each law returns forces on
points (`PointForces`); they are summed per point and body, and mapped to dofs once.
"""

from typing import NamedTuple

from jaxsim.arrays.array import Array
from jaxsim.enums import DisableBit
from jaxsim.math import concat
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.flex.bending import bend_forces
from jaxsim.physics.flex.cell import cell_forces, element_rotations
from jaxsim.physics.flex.flex import node_positions, node_velocity, vertex_velocity
from jaxsim.physics.flex.frames import Frames
from jaxsim.physics.flex.lattice import lattice_elements
from jaxsim.physics.flex.point_forces import FlexPointState, generalized_forces
from jaxsim.physics.flex.rod import rod_forces
from jaxsim.physics.flex.stretch import stretch_forces
from jaxsim.physics.flex.twist import twist_forces
from jaxsim.physics.flex.wall import wall_forces

_FORCE_LAWS = (stretch_forces, bend_forces, rod_forces, cell_forces, wall_forces)


class Forces(NamedTuple):
    """Generalized forces of flexes.

    Attributes:
      spring, damper: forces of springs and of dampers, `[nv, *W]` [N or N m]; 0: none.
      whole: their sum.
      frames: frames of the rods, which the twist needs and other stages read; None without rods.
    """

    spring: Array | float = 0.0
    damper: Array | float = 0.0
    whole: Array | float = 0.0
    frames: Frames | None = None


def flex_forces(m: Model, d: Data) -> Forces:
    """Compute the forces of springs and dampers of flexes."""
    if not m.nflex or not m.nv:
        return Forces()
    # Positions and velocities of all points, and rotations of elements.
    node = node_positions(m, d)
    xpos = concat([d.flexvert_xpos, node])
    velocity = concat([vertex_velocity(m, d), node_velocity(m, d, node)])
    state = FlexPointState(
        xpos, velocity, element_rotations(m, lattice_elements(m), xpos), d.plastic
    )
    # Evaluate all laws.
    point_forces = [push for law in _FORCE_LAWS for push in law(m, state)]
    twisted = twist_forces(m, d, state)
    if twisted is not None:
        point_forces.append(twisted.on_vertices)
    if not point_forces:
        return Forces()
    # Map point forces to dofs; torques of rods add directly.
    spring, damper, whole = generalized_forces(m, d, point_forces, state)
    if twisted is not None:
        spring, damper = spring + twisted.spring, damper + twisted.damper
        whole = whole + (twisted.spring + twisted.damper)
    # Omit springs or dampers that a flag disables.
    frames, off = None if twisted is None else twisted.frames, m.opt.disableflags
    if off & DisableBit.SPRING:
        return Forces(0.0, damper, damper, frames)
    if off & DisableBit.DAMPER:
        return Forces(spring, 0.0, spring, frames)
    return Forces(spring, damper, whole, frames)
