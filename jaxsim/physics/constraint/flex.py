"""Equality constraints of flexes: constant edge lengths, or constant cell strain.

MuJoCo's documentation, XML reference: equality/flex, equality/flexstrain.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.enums import EqType
from jaxsim.math import Vec, concat
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, derived
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.bilinear import apply
from jaxsim.physics.arrays.select import take
from jaxsim.physics.body.point_motion import point_jacobian
from jaxsim.physics.constraint.equality import Row, equality_rows, members
from jaxsim.physics.constraint.jacobian import SparseJacobian
from jaxsim.physics.constraint.rows import SingleRows
from jaxsim.physics.flex.cell import of_all, shifts, turns
from jaxsim.physics.flex.flex import nodes
from jaxsim.physics.flex.lattice import Elements, elements


def flex_lengths(m: Model, d: Data) -> SingleRows | None:
    """Build rows that keep edge lengths: residual = length - length0."""
    table = _edges(m, members(m, EqType.FLEX))
    if not len(table.edge):
        return None
    # Sparse rows: the edge Jacobian has the same nonzeros.
    J = SparseJacobian(tuple(map(tuple, table.dof.tolist())), _padded(d.flexedge_J, table.entry))
    residual = take(d.flexedge_length, table.edge) - take(m.flexedge_length0, table.edge)
    weight = take(m.flexedge_invweight0, table.edge)
    return equality_rows(m, d, table.id, [Row(residual, J, J.times(d.qvel), 0.0, weight)])


def flex_strains(m: Model, d: Data) -> SingleRows | None:
    """Build rows that keep the strain of cells and walls, one per mode.

    residual = mode . (R' x - X), see flex/cell.py; the Jacobian omits the derivative of R.
    """
    parts = _modes(m, members(m, EqType.FLEXSTRAIN))
    if not parts:
        return None
    node = nodes(m, d)
    # Modes of each kind of element, then sorted by constraint.
    found = [_strain(m, d, part, node) for part in parts]
    residual, J, weight = (jnp.concatenate(a) for a in zip(*found, strict=True))
    id = np.concatenate([part.id[part.owner] for part in parts])
    velocity = apply(J, d.qvel)
    order = np.argsort(id, kind="stable")
    residual, J, velocity, weight = (take(a, order) for a in (residual, J, velocity, weight))
    return equality_rows(m, d, id[order], [Row(residual, J, velocity, 0.0, weight)])


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
    edge = [_held(m.structure, m.eq_obj1id[i]) for i in ids]
    id = np.repeat(ids, [len(e) for e in edge])
    whole = np.concatenate([np.zeros(0, int), *edge])
    # Addresses of the nonzeros in flexedge_J, padded to equal length.
    number, first = m.flexedge_J_rownnz[whole], m.flexedge_J_rowadr[whole]
    slot = np.arange(number.max(initial=0))
    there = slot < number[:, None]
    entry = np.where(there, first[:, None] + slot, m.nJfe)
    dof = m.flexedge_J_colind[np.where(there, first[:, None] + slot, first[:, None])]
    return _Edges(id, whole, dof, entry)


def _held(s: Structure, f: int) -> np.ndarray:
    """Return the edges of a flex whose length some dof can change."""
    edge = s.flex_edgeadr[f] + np.arange(s.flex_edgenum[f])
    return edge[~np.asarray(s.flexedge_rigid, bool)[edge] & (s.flexedge_J_rownnz[edge] > 0)]


def _padded(J: Array, entry: np.ndarray) -> Array:
    """Gather entries `[n, k, *W]` of a Jacobian `[nJfe, *W]`; the address past the last gives 0."""
    longer = jnp.concatenate([J, jnp.zeros_like(J[:1])])
    return take(longer, entry.ravel()).reshape(*entry.shape, *J.shape[1:])


class _Modes(NamedTuple):
    """Strain modes of elements of one kind.

    Attributes:
      id: constraint of each element, `[n]`.
      element: the elements.
      owner: element index of each mode, `[k]`.
      number: index of the mode in its element, `[k]`.
    """

    id: np.ndarray
    element: Elements
    owner: np.ndarray
    number: np.ndarray


def _strain(m: Model, d: Data, part: _Modes, node: Vec) -> tuple[Array, Array, Array]:
    """Compute residual `[k, *W]`, Jacobian `[k, nv, *W]` and inverse inertia of the modes."""
    # Rotation of each element, and node displacements in its rest axes.
    group, owner = part.element, part.owner
    xpos = concat([d.flexvert_xpos, node])
    # Displacement of the nodes in the rest axes of their element.
    turn = turns(m, [group], xpos)
    quat = of_all(turn, np.arange(len(group.flex)))
    shift = shifts(m, group, xpos, quat)
    # Gather the modes from flex_stiffness, and project the displacement on them.
    size = 3 * group.node.shape[1]
    first = m.flex_stiffnessadr[group.flex] + group.number * size * size
    place = first[owner] + 1 + part.number * size
    table = place[:, None, None] + np.arange(size).reshape(-1, 3)
    mode = Vec(
        *(_shaped(take(m.flex_stiffness, t.ravel()), t.shape) for t in np.moveaxis(table, 2, 0))
    )
    residual = jnp.sum(mode.dot(take(shift, owner)), axis=1)

    # Jacobian: modes rotated to the world, applied to the Jacobians of the nodes.
    push = take(quat, owner).rotate(mode)
    used, where = np.unique(group.node, return_inverse=True)
    moved, _ = point_jacobian(m, d, m.flex_nodebodyid[used], take(node, used))
    where = where.reshape(group.node.shape)[owner]
    J = sum(push[:, k][:, None].dot(take(moved, where[:, k])) for k in range(where.shape[1]))
    # Inverse weight: mean over the nodes of the element.
    of_node = take(m.body_invweight0[:, 0], m.flex_nodebodyid[group.node].ravel())
    weight = jnp.mean(_shaped(of_node, group.node.shape), axis=1)
    return residual, J, jnp.broadcast_to(take(weight, owner), residual.shape)


def _shaped(a: Array, shape: tuple[int, ...]) -> Array:
    """Reshape items `[n k, *W]` to `[n, k, *W]`."""
    return a.reshape(*shape, *a.shape[1:])


@derived
def _strained(s: Structure) -> list[tuple[np.ndarray, np.ndarray, Elements]]:
    """Return strain constraints by kind of element: ids, mode counts, elements."""
    out = []
    ids = np.flatnonzero((s.eq_type == EqType.FLEXSTRAIN) & (s.eq_modenum > 0))
    # Find the element of each constraint by flex and element id.
    for group in elements(s):
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
    for id, count, element in _strained(m) if len(ids) else ():
        owner = np.repeat(np.arange(len(id)), count)
        number = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
        out.append(_Modes(id, element, owner, number))
    return out
