"""Equality constraints of flexes: constant edge lengths, or constant cell strain.

MuJoCo's documentation, XML reference: equality/flex, equality/flexstrain.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.bilinear import apply
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import EqType
from jaxsim.math import Vec, concat
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.body.point_motion import point_jacobian
from jaxsim.physics.constraint.equality import EqualityRow, active_equalities, equality_rows
from jaxsim.physics.constraint.jacobian import SparseJacobian
from jaxsim.physics.constraint.rows import SingleRows
from jaxsim.physics.flex.cell import element_rotations, gather_rotations, node_displacements
from jaxsim.physics.flex.flex import node_positions
from jaxsim.physics.flex.lattice import LatticeElements, lattice_elements


def flex_lengths(m: Model, d: Data) -> SingleRows | None:
    """Build rows that keep edge lengths: residual = length - length0."""
    table = _edges(m, active_equalities(m, EqType.FLEX))
    if not len(table.edge):
        return None
    # Sparse rows: the edge Jacobian has the same nonzeros.
    J = SparseJacobian(
        tuple(map(tuple, table.dof.tolist())), _gather_entries(d.flexedge_J, table.entry)
    )
    residual = gather_static(d.flexedge_length, table.edge) - gather_static(
        m.flexedge_length0, table.edge
    )
    weight = gather_static(m.flexedge_invweight0, table.edge)
    return equality_rows(m, d, table.id, [EqualityRow(residual, J, J.times(d.qvel), 0.0, weight)])


def flex_strains(m: Model, d: Data) -> SingleRows | None:
    """Build rows that keep the strain of cells and walls, one per mode.

    residual = mode . (R' x - X), see flex/cell.py; the Jacobian omits the derivative of R.
    """
    parts = _modes(m, active_equalities(m, EqType.FLEXSTRAIN))
    if not parts:
        return None
    node = node_positions(m, d)
    # Modes of each kind of element, then sorted by constraint.
    found = [_strain_rows(m, d, part, node) for part in parts]
    residual, J, weight = (jnp.concatenate(a) for a in zip(*found, strict=True))
    id = np.concatenate([part.id[part.owner] for part in parts])
    velocity = apply(J, d.qvel)
    order = np.argsort(id, kind="stable")
    residual, J, velocity, weight = (
        gather_static(a, order) for a in (residual, J, velocity, weight)
    )
    return equality_rows(m, d, id[order], [EqualityRow(residual, J, velocity, 0.0, weight)])


class _Edges(NamedTuple):
    """Edges held by constraints.

    Attributes:
      id: constraint of each, `[n]`.
      edge: edge ids, `[n]`.
      dof: dofs of each `[n, k]`.
      entry: addresses in `flexedge_J` `[n, k]`, padded with the address past the last.
    """

    id: np.ndarray
    edge: np.ndarray
    dof: np.ndarray
    entry: np.ndarray


def _edges(m: Model, ids: np.ndarray) -> _Edges:
    edge = [_changeable_edges(m.structure, m.eq_obj1id[i]) for i in ids]
    id = np.repeat(ids, [len(e) for e in edge])
    whole = np.concatenate([np.zeros(0, int), *edge])
    # Addresses of the nonzeros in flexedge_J, padded to equal length.
    number, first = m.flexedge_J_rownnz[whole], m.flexedge_J_rowadr[whole]
    slot = np.arange(number.max(initial=0))
    there = slot < number[:, None]
    entry = np.where(there, first[:, None] + slot, m.nJfe)
    dof = m.flexedge_J_colind[np.where(there, first[:, None] + slot, first[:, None])]
    return _Edges(id, whole, dof, entry)


def _changeable_edges(s: Structure, f: int) -> np.ndarray:
    """Return the edges of a flex whose length some dof can change."""
    edge = s.flex_edgeadr[f] + np.arange(s.flex_edgenum[f])
    return edge[~np.asarray(s.flexedge_rigid, bool)[edge] & (s.flexedge_J_rownnz[edge] > 0)]


def _gather_entries(J: Array, entry: np.ndarray) -> Array:
    """Gather entries `[n, k, *W]` of a Jacobian `[nJfe, *W]`; the address past the last gives 0."""
    longer = jnp.concatenate([J, jnp.zeros_like(J[:1])])
    return gather_static(longer, entry.ravel()).reshape(*entry.shape, *J.shape[1:])


class _Modes(NamedTuple):
    """Strain modes of elements of one kind.

    Attributes:
      id: constraint of each element, `[n]`.
      element: the elements.
      owner: element index of each mode, `[k]`.
      number: index of the mode in its element, `[k]`.
    """

    id: np.ndarray
    element: LatticeElements
    owner: np.ndarray
    number: np.ndarray


def _strain_rows(m: Model, d: Data, part: _Modes, node: Vec) -> tuple[Array, Array, Array]:
    """Compute residual `[k, *W]`, Jacobian `[k, nv, *W]` and inverse inertia of the modes."""
    # Rotation of each element, and node displacements in its rest axes.
    group, owner = part.element, part.owner
    xpos = concat([d.flexvert_xpos, node])
    # Displacement of the nodes in the rest axes of their element.
    turn = element_rotations(m, [group], xpos)
    quat = gather_rotations(turn, np.arange(len(group.flex)))
    shift = node_displacements(m, group, xpos, quat)
    # Gather the modes from flex_stiffness, and project the displacement on them.
    size = 3 * group.node.shape[1]
    first = m.flex_stiffnessadr[group.flex] + group.number * size * size
    place = first[owner] + 1 + part.number * size
    table = place[:, None, None] + np.arange(size).reshape(-1, 3)
    mode = Vec(
        *(
            _split_items(gather_static(m.flex_stiffness, t.ravel()), t.shape)
            for t in np.moveaxis(table, 2, 0)
        )
    )
    residual = jnp.sum(mode.dot(gather_static(shift, owner)), axis=1)

    # Jacobian: modes rotated to the world, applied to the Jacobians of the nodes.
    push = gather_static(quat, owner).rotate(mode)
    used, where = np.unique(group.node, return_inverse=True)
    moved, _ = point_jacobian(m, d, m.flex_nodebodyid[used], gather_static(node, used))
    where = where.reshape(group.node.shape)[owner]
    J = sum(
        push[:, k][:, None].dot(gather_static(moved, where[:, k])) for k in range(where.shape[1])
    )
    # Inverse weight: mean over the nodes of the element.
    of_node = gather_static(m.body_invweight0[:, 0], m.flex_nodebodyid[group.node].ravel())
    weight = jnp.mean(_split_items(of_node, group.node.shape), axis=1)
    return residual, J, jnp.broadcast_to(gather_static(weight, owner), residual.shape)


def _split_items(a: Array, shape: tuple[int, ...]) -> Array:
    """Reshape items `[n k, *W]` to `[n, k, *W]`."""
    return a.reshape(*shape, *a.shape[1:])


@cache_by_structure
def _strain_groups(s: Structure) -> list[tuple[np.ndarray, np.ndarray, LatticeElements]]:
    """Return strain constraints by kind of element: ids, mode counts, elements."""
    out = []
    ids = np.flatnonzero((s.eq_type == EqType.FLEXSTRAIN) & (s.eq_modenum > 0))
    # Find the element of each constraint by flex and element id.
    for group in lattice_elements(s):
        key = {pair: i for i, pair in enumerate(zip(group.flex, group.number, strict=True))}
        pairs = list(zip(s.eq_obj1id[ids], s.eq_elemid[ids], strict=True))
        own = np.array([pair in key for pair in pairs], bool)
        which = np.array([key[pair] for pair in pairs if pair in key], int)
        if own.any():
            out.append((ids[own], s.eq_modenum[ids[own]], group.some(which)))
    return out


def _modes(m: Model, ids: np.ndarray) -> list[_Modes]:
    """Return the modes of constraints, by kind of element."""
    out = []
    for id, count, element in _strain_groups(m) if len(ids) else ():
        owner = np.repeat(np.arange(len(id)), count)
        number = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
        out.append(_Modes(id, element, owner, number))
    return out
