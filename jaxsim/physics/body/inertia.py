"""Centers of mass, com-based inertias and motion axes, and the joint-space inertia matrix.

Composite-rigid-body algorithm, about the center of mass of each kinematic tree. M is built in the
form that linalg/choose.py selects for the model: dense, as diagonal blocks, or by its entries
between dofs and their ancestors.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import outer_sum
from jaxsim.arrays.gather import column, gather_static
from jaxsim.arrays.products import gram
from jaxsim.enums import MINVAL, JointType
from jaxsim.linalg.block_diagonal import BlockDiagonal
from jaxsim.linalg.choose import Form
from jaxsim.linalg.dense import Dense
from jaxsim.linalg.ldl import ltdl
from jaxsim.linalg.operator import MassMatrix
from jaxsim.linalg.tree_sparse import TreeSparse
from jaxsim.math import Inertia, Spatial, Vec, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.actuator.reflected_inertia import dof_armature, tendon_armature
from jaxsim.physics.body.singular_inertia import diagonal_deficit, raise_diagonal
from jaxsim.physics.body.tree_sums import subtree_sums
from jaxsim.physics.partition import inertia_blocks, inertia_choice
from jaxsim.physics.topology import dof_ancestors, dof_forest, dof_slot
from jaxsim.transforms.derivative_context import prefer_loops
from jaxsim.transforms.materialize import is_unbatched, materialize


def com_pos(m: Model, d: Data) -> Data:
    """Compute centers of mass of subtrees, and com-based inertias and motion axes of trees.

        subtree_com[b] = sum(mass[i] xipos[i]) / sum(mass[i]),   i in the subtree of b

    A massless subtree has no center of mass; it keeps its own `xipos`, as in MuJoCo. Corresponds to
    `mj_comPos` in MuJoCo.
    """
    mass = m.body_mass
    # Mass-weighted positions, summed over subtrees.
    moment, subtree = subtree_sums(m, (d.xipos.scale(mass), mass))
    heavy = subtree > MINVAL
    inverse = 1 / jnp.where(heavy, subtree, 1.0)
    com = select_where(heavy, moment.scale(inverse), d.xipos)
    # Spatial inertias and motion axes about the center of mass of the tree.
    origin = gather_static(com, m.body_rootid)
    cinert = Inertia.about(m.body_inertia, d.ximat, mass, d.xipos - origin)
    cinert, cdof = materialize((cinert, motion_axes(m, d, origin)), d.qpos)
    return d.replace(subtree_com=com, cinert=cinert, cdof=cdof)


def motion_axes(m: Model, d: Data, origin: Vec) -> Spatial:
    """Compute spatial velocities per unit dof velocity at the tree's reference point, `[nv, *W]`.

    Args:
      m: model.
      d: data with the poses of bodies and joints.
      origin: center of mass of each body's tree, `[nbody, *W]`.
    """
    # Axis of each dof, by the type of its joint.
    joint, body, slot = m.dof_jntid, m.dof_bodyid, dof_slot(m)
    kind = m.jnt_type[joint]
    axis = gather_static(d.xaxis, joint)
    turn = np.isin(kind, (JointType.BALL, JointType.HINGE))
    free = kind == JointType.FREE
    if np.any(free | (kind == JointType.BALL)):
        # Rotations of ball and free joints are about the axes of the body that they move.
        columns = gather_static(d.xmat, body).cols
        first = np.where(free, 3, 0)
        for k in range(3):
            here = (free | (kind == JointType.BALL)) & (slot - first == k)
            axis = select_where(column(here, axis), columns[k], axis)
        turn = turn | (free & (slot >= 3))
    # Rotational axes have a moment about the origin; slides are pure translations.
    rotates = column(turn, axis)
    zero = axis.map(jnp.zeros_like)
    offset = gather_static(origin, body) - gather_static(d.xanchor, joint)
    rot = select_where(rotates, axis, zero)
    lin = select_where(rotates, axis.cross(offset), axis)
    if free.any():
        # Translations of a free joint are along the world's axes.
        move = column(free & (slot < 3), axis)
        unit = Vec(*(column(1.0 * (slot == k), axis) for k in range(3)))
        lin = select_where(move, Vec(*(jnp.broadcast_to(u, axis.shape) for u in unit.parts)), lin)
    return Spatial.of(rot, lin)


def crb(m: Model, d: Data) -> Data:
    """Compute the joint-space inertia by the composite-rigid-body algorithm (Featherstone, ch. 6).

        M[i, j] = cdof[j] . (crb[body of i] cdof[i]),   j an ancestor dof of i (or i itself)

    plus armature on the diagonal, and the armature of tendons; coupling by a tendon across branches
    or trees is omitted, as in MuJoCo. A dof that moves no mass has the least inertia
    (singular_inertia.py). A Data that keeps `qLD` also receives the factors of M.
    Corresponds to `mj_crb` (and `mj_factorM`) in MuJoCo.
    """
    # The world body is not part of any subtree here.
    moving = column(1.0 * (np.arange(m.nbody) > 0), d.cinert)
    composite = subtree_sums(m, d.cinert).map(lambda a: moving * a)
    # Composite inertias, and the force of each unit acceleration.
    force = gather_static(composite, m.dof_bodyid) @ d.cdof
    # One product over all dofs, or one per tree.
    one_by_one = m.ntree > 1 and is_unbatched(d.qpos) and prefer_loops()
    M = _inertia_by_trees(m, force, d.cdof) if one_by_one else _dense_inertia(m, force, d.cdof)
    # Tendon armature, restricted to dofs on one chain.
    if m.ntendon:
        along = gram(d.ten_J, tendon_armature(m)[:, None] * d.ten_J)
        M = M + jnp.where(_broadcast_table(dof_ancestors(m) | dof_ancestors(m).T, M), along, 0)
    M = raise_diagonal(M)
    # The compiler removes the form that is not used.
    inertia = _inertia_by_entries(m, d, force)
    d = d.replace(crb=composite, M=materialize(M, d.qpos), inertia=inertia)
    return d if d.qLD is None and d.qLDiagInv is None else _ldl_factors(d)


def _dense_inertia(m: Model, force: Spatial, cdof: Spatial) -> Array:
    """Return M without tendons, as one product over all dofs."""
    # Outer product of forces and axes; keep the ancestor entries and mirror them.
    below = outer_sum(zip(force.parts, cdof.parts, strict=True))
    lower, upper = (_broadcast_table(a, below) for a in (dof_ancestors(m), dof_ancestors(m).T))
    M = jnp.where(lower, below, jnp.where(upper, below.swapaxes(0, 1), 0))
    return M + _broadcast_table(np.eye(m.nv), below) * dof_armature(m)[:, None]


def _inertia_by_trees(m: Model, force: Spatial, cdof: Spatial) -> Array:
    """Return M without tendons, one product per tree size, since M is block-diagonal in trees."""
    trees = (np.flatnonzero(m.dof_treeid == tree).tolist() for tree in range(m.ntree))
    parts = tuple(tuple(tree) for tree in trees if tree)
    M = BlockDiagonal.of_products(force.parts, cdof.parts, parts, dof_ancestors(m))
    return M.add_diagonal(jnp.broadcast_to(dof_armature(m), cdof.parts[0].shape)).dense()


def _inertia_by_entries(m: Model, d: Data, force: Spatial) -> TreeSparse | BlockDiagonal | None:
    """Return M without the zeros between trees; None where there are few."""
    f, x, form = force.parts, d.cdof.parts, inertia_choice(m).form
    products: TreeSparse | BlockDiagonal
    if form is Form.TREE_SPARSE:
        products = TreeSparse.of_products(f, x, dof_forest(m))
    elif form is Form.BLOCK_DIAGONAL:
        products = BlockDiagonal.of_products(f, x, inertia_blocks(m), dof_ancestors(m))
    else:
        return None
    products = products.add_diagonal(jnp.broadcast_to(dof_armature(m), x[0].shape))
    return products.add_diagonal(diagonal_deficit(products.diagonal))


def mass_matrix(m: Model, d: Data) -> MassMatrix:
    """Return M in the form in which it is solved and multiplied."""
    return Dense(d.M, inertia_blocks(m)) if d.inertia is None else d.inertia


def _ldl_factors(d: Data) -> Data:
    """Compute M = L' D L: L below the diagonal of qLD, D on it."""
    L, D = ltdl(d.M)
    diagonal = _broadcast_table(np.eye(len(D), dtype=bool), L)
    return d.replace(qLD=jnp.where(diagonal, D[:, None], L), qLDiagInv=1 / D)


def _broadcast_table(table: np.ndarray, like: Array) -> np.ndarray:
    """Reshape a constant `[n, n]` table to broadcast with a matrix `[n, n, *W]`."""
    a = table.astype(like.dtype) if table.dtype == np.float64 else table
    return a.reshape(a.shape + (1,) * (like.ndim - 2))
