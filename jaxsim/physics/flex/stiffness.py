"""Stiffness of flexes, for a step that is implicit in their positions.

Each law returns element matrices between point displacements and forces: minus the derivative of
the force, without parts that could be indefinite (MuJoCo's documentation, Computation: Numerical
integration, Discrete-time): tension of compressed edges, the rotation of cells, the volume term of
hinges. With J the Jacobian of the points,

    K = sum of J' (block) J
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.gather import column, diagonal, gather_static, sum_groups
from jaxsim.arrays.linear import group_table
from jaxsim.arrays.pattern import SparsityPattern
from jaxsim.enums import DisableBit
from jaxsim.math import Vec, concat
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.collision.flex.passive import flexes_with_passive_contacts, passive_flexes
from jaxsim.physics.flex.bending import bend_stiffness
from jaxsim.physics.flex.cell import cell_stiffness, element_rotations
from jaxsim.physics.flex.flex import node_positions
from jaxsim.physics.flex.frames import rod_chains
from jaxsim.physics.flex.lattice import lattice_elements
from jaxsim.physics.flex.point_forces import (
    FlexPointState,
    HingeBlock,
    StiffnessBlock,
    gather_by_flex,
)
from jaxsim.physics.flex.rod import rod_stiffness
from jaxsim.physics.flex.stretch import stretch_stiffness
from jaxsim.physics.flex.twist import twist_stiffness
from jaxsim.physics.topology import ancestors

_STIFFNESS_LAWS = (stretch_stiffness, bend_stiffness, rod_stiffness, cell_stiffness)


class Implicit(NamedTuple):
    """Contribution of flexes to the inertia of a step.

    Attributes:
      matrix: h D + h^2 K, `[nv, nv, *W]`.
      shift: h K qvel, `[nv, *W]`.
      hinges: diagonal of the contribution of rod hinges, `[nv, *W]`; None: none.
    """

    matrix: Array
    shift: Array
    hinges: Array | None


def implicit_flexes(m: Model, d: Data) -> Implicit | None:
    """Compute the contribution of flexes to a step of length h; None: none."""
    if not m.nflex or not m.nv or not implicit_elastic_flexes(m).any():
        return None
    # Element matrices of all laws at the current configuration.
    node = node_positions(m, d)
    xpos = concat([d.flexvert_xpos, node])
    state = FlexPointState(xpos, xpos, element_rotations(m, lattice_elements(m), xpos), d.plastic)
    blocks = [block for law in _STIFFNESS_LAWS for block in law(m, state)]
    rods = twist_stiffness(m, d, state)
    blocks += [] if rods is None else [rods[0]]
    if not blocks:
        return None
    # Weights of stiffness and damping, and map them to dofs with the Jacobians of the points.
    reach = _max_node_distance(m, d, xpos)
    # Spring: h^2 K; damper: h D with D = damping K.
    off, h = m.opt.disableflags, m.opt.timestep
    spring = 0 * m.flex_damping + (0.0 if off & DisableBit.SPRING else h * h)
    damper = 0 * m.flex_damping if off & DisableBit.DAMPER else h * m.flex_damping
    springs_on = not off & DisableBit.SPRING
    velocity = Vec(*(_along_dofs(reach, part, d.qvel) for part in reach.axis.parts))
    matrix, shift = jnp.zeros_like(d.M), jnp.zeros_like(d.qvel)
    # Each block of elements: J' (h^2 K + h D) J, and the force h J' K J qvel.
    for block in blocks:
        k, c = (gather_by_flex(a, block.flex, xpos.x)[:, None, None] for a in (spring, damper))
        stiff = block.matrix if block.turning is None else block.matrix + block.turning
        resists = stiff if block.damper is None else block.damper
        matrix = matrix + _matrix(m, reach, block.point, k * stiff + c * resists)
        if springs_on:
            shift = shift + h * _force(m, reach, block, velocity)
    # Twist hinges of rods act on dofs directly.
    own = None
    if rods is not None:
        hinges = rods[1]
        k, c = (gather_by_flex(a, hinges.flex, xpos.x)[:, None, None] for a in (spring, damper))
        twist = _scatter_hinge_pairs(m, hinges, k * hinges.matrix + c * hinges.damper)
        matrix, own = matrix + twist, diagonal(twist)
        if springs_on:
            shift = shift + h * apply(_scatter_hinge_pairs(m, hinges, hinges.matrix), d.qvel)
    return Implicit(matrix, shift, own)


@cache_by_structure
def implicit_elastic_flexes(s: Structure) -> np.ndarray:
    """Return the flexes whose elasticity is implicit in a discrete step, `[nflex]` bool."""
    stiff = (s.flex_stiffnessadr >= 0) | (s.flex_bendingadr >= 0)
    return stiff & ~np.asarray(s.flex_rigid, bool)


@cache_by_structure
def implicit_flex_mask(s: Structure) -> np.ndarray:
    """Return the flexes with implicit elasticity or contacts in a discrete step, `[nflex]` bool."""
    return implicit_elastic_flexes(s) | passive_flexes(s)


@cache_by_structure
def trees_of_flexes(s: Structure) -> list[np.ndarray]:
    """Return the trees that each implicit flex couples in a discrete step."""
    return [_flex_trees(s, f) for f in np.flatnonzero(implicit_flex_mask(s)).tolist()]


@cache_by_structure
def passive_contact_trees(s: Structure) -> list[np.ndarray]:
    """Return the trees of pairs of flexes that may have passive contacts."""
    return [
        np.union1d(_flex_trees(s, one), _flex_trees(s, other))
        for one, other in flexes_with_passive_contacts(s).tolist()
    ]


def _flex_trees(s: Structure, f: int) -> np.ndarray:
    rods = rod_chains(s)
    # Bodies of vertices or nodes, and hinges of rods.
    if s.flex_interp[f]:
        body = s.flex_nodebodyid[s.flex_nodeadr[f] :][: s.flex_nodenum[f]]
    else:
        body = s.flex_vertbodyid[s.flex_vertadr[f] :][: s.flex_vertnum[f]]
    hinge = rods.dof[(rods.flex == f) & (rods.dof >= 0)]
    tree = np.concatenate([s.body_treeid[body[body >= 0]], s.dof_treeid[hinge]])
    return np.unique(tree[tree >= 0])


class _Reach(NamedTuple):
    """Jacobian of points by the dofs that move them.

    Attributes:
      dof: dofs of each point `[npoint, p]`; padded with dof 0.
      axis: velocity of the point per unit velocity of each dof, `[npoint, p, *W]`; padding: 0.
    """

    dof: np.ndarray
    axis: Vec


def _max_node_distance(m: Model, d: Data, xpos: Vec) -> _Reach:
    # Velocity of each point per unit velocity of its dofs.
    dof, real = _dofs(m)
    flat = dof.ravel()
    point = np.repeat(np.arange(len(dof)), dof.shape[1])
    origin = gather_static(d.subtree_com, m.body_rootid[m.dof_bodyid[flat]])
    speed = gather_static(d.cdof, flat).at(gather_static(xpos, point) - origin)
    live = column(1.0 * real.ravel(), speed)
    axis = speed.scale(live).map(lambda a: a.reshape(*dof.shape, *a.shape[1:]))
    return _Reach(dof, axis)


@cache_by_structure
def _dofs(s: Structure) -> tuple[np.ndarray, np.ndarray]:
    """Return the dofs of each point, and a mask of those that are not padding."""
    body = np.concatenate([s.flex_vertbodyid, s.flex_nodebodyid])
    # Dofs that move each point of implicit flexes, padded to equal number.
    moves = (ancestors(s)[np.maximum(body, 0)] > 0) & (body >= 0)[:, None]
    soft = np.concatenate(
        [
            np.repeat(implicit_flex_mask(s) & (s.flex_interp == 0), s.flex_vertnum),
            np.repeat(implicit_flex_mask(s) & (s.flex_interp != 0), s.flex_nodenum),
        ]
    )
    moves &= soft[:, None]
    table = groups_of_rows(moves)
    return np.where(table < s.nv, table, 0), table < s.nv


@cache_by_structure
def moves_flexes(s: Structure) -> np.ndarray:
    """Return the dofs that move points of implicit flexes, `[nv]` bool."""
    dof, real = _dofs(s)
    return np.isin(np.arange(s.nv), dof[real])


def groups_of_rows(moves: np.ndarray) -> np.ndarray:
    """Return the columns that are True in each row, padded with the number of columns."""
    row, col = np.nonzero(moves)
    table = group_table(row, len(moves))
    padded = np.append(col, moves.shape[1])
    return padded[np.minimum(table, len(col))]


def _along_dofs(reach: _Reach, axis: Array, x: Array) -> Array:
    """Sum axis * x over the dofs of each point, `[npoint, *W]`."""
    of_point = gather_static(x, reach.dof.ravel()).reshape(*reach.dof.shape, *x.shape[1:])
    return jnp.sum(axis * of_point, axis=1)


def _force(m: Model, reach: _Reach, block: StiffnessBlock, x: Vec) -> Array:
    """Compute J' K x from displacements `[npoint, *W]`."""
    n, k = block.point.shape
    # Gather the displacements of each element, multiply by its matrix.
    parts = [gather_static(a, block.point.ravel()).reshape(n, k, *a.shape[1:]) for a in x.parts]
    whole = jnp.stack(parts, axis=2).reshape(n, 3 * k, *parts[0].shape[2:])
    out = jnp.sum(block.matrix * whole[:, None], axis=2).reshape(n * k, 3, *whole.shape[2:])
    # Scatter to points, then to dofs.
    on_point = group_table(block.point.ravel(), len(reach.dof))
    force = Vec(*(sum_groups(out[:, i], on_point)[:, None] for i in range(3)))
    along = reach.axis.dot(force)
    flat = along.reshape(-1, *along.shape[2:])
    total: Array = sum_groups(flat, group_table(reach.dof.ravel(), m.nv))
    return total


def _scatter_hinge_pairs(m: Model, block: HingeBlock, numbers: Array) -> Array:
    """Scatter matrices `[n, 2, 2, *W]` of pairs of hinges to a matrix `[nv, nv, *W]`."""
    first, second = block.dof[:, :, None], block.dof[:, None]
    at = np.where((first >= 0) & (second >= 0), first * m.nv + second, -1).ravel()
    place, owner = np.unique(at, return_inverse=True)
    # Sum of equal entries; pairs without a dof are dropped.
    flat = numbers.reshape(len(at), *numbers.shape[3:])
    sums = sum_groups(flat, group_table(owner.ravel(), len(place)))
    real = np.flatnonzero(place >= 0)
    place = place[real]
    return SparsityPattern(place // m.nv, place % m.nv, (m.nv, m.nv)).dense(
        gather_static(sums, real)
    )


def _matrix(m: Model, reach: _Reach, point: np.ndarray, numbers: Array) -> Array:
    """Compute J' K J of blocks K, `[nv, nv, *W]`: summed by pairs of points, then of dofs."""
    n, k = point.shape
    worlds = numbers.shape[3:]
    # Sum the 3 x 3 blocks of equal pairs of points.
    numbers = numbers.reshape(n, k, 3, k, 3, *worlds)
    numbers = numbers.swapaxes(2, 3).reshape(n * k * k, 3, 3, *worlds)
    count = len(reach.dof)
    at = (point[:, :, None] * count + point[:, None]).ravel()
    pair, owner = np.unique(at, return_inverse=True)
    numbers = sum_groups(numbers, group_table(owner.ravel(), len(pair)))
    # Project each block on the axes of both points' dofs.
    first, second = pair // count, pair % count
    left, right = (gather_static(reach.axis, i) for i in (first, second))
    half = [sum(numbers[:, i, j][:, None] * a for j, a in enumerate(right.parts)) for i in range(3)]
    both = sum(a[:, :, None] * b[:, None] for a, b in zip(left.parts, half, strict=True))
    # Sum the entries of equal pairs of dofs into the matrix.
    flat = both.reshape(-1, *worlds)
    at = (reach.dof[first][:, :, None] * m.nv + reach.dof[second][:, None]).ravel()
    place, owner = np.unique(at, return_inverse=True)
    sums = sum_groups(flat, group_table(owner.ravel(), len(place)))
    return SparsityPattern(place // m.nv, place % m.nv, (m.nv, m.nv)).dense(sums)
