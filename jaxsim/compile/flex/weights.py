"""Inverse weights of the edges of flexes, the pattern of their Jacobian, and their constraints.

An edge between two bodies that only slide has the mean of their inverse weights. Any other edge has
J M^-1 J^T, with J the Jacobian of its length, if a constraint, a spring or a damper needs the
length; otherwise it has 0. In the former case the pattern of J is filled; it is always allocated.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.flex.flex import Flex
from jaxsim.compile.reference.constants import Constants
from jaxsim.compile.step import declare_pass
from jaxsim.enums import MINVAL, EqType
from jaxsim.model.derived import SLIDERS_ONLY

_EDGES, _STRAIN = 1, 3  # values of flex_edgeequality


@declare_pass(needs="joints tree frames flexes equalities derive", gives="flex flexedge")
def flex_weights(c: Compilation) -> None:
    """Set `flex_edgeequality`, `flexedge_invweight0` and `flexedge_J_*`."""
    f = c.fields
    held = np.zeros(f["nflex"], np.int32)
    for kind, value in ((EqType.FLEX, _EDGES), (EqType.FLEXSTRAIN, _STRAIN)):
        held[f["eq_obj1id"][f["eq_type"] == kind]] = value
    constants = c.constants
    weights, count = [np.zeros(0)], [np.zeros(0, int)]
    filled, total_size = [np.zeros(0, int)], 0
    for flex in c.flexes:
        measured = held[flex.id] == _EDGES or _has_edge_forces(flex)
        weights.append(_weights(constants, flex, measured))
        rows = _dofs(constants, flex)
        size = np.array([len(row) for row in rows], int)
        total_size += int(size.sum())
        count.append(size if measured else np.zeros_like(size))
        filled += rows if measured else []
    columns = np.zeros(total_size, np.int32)
    used = np.concatenate(filled)
    columns[: len(used)] = used
    number = np.concatenate(count)
    f.update(
        flex_edgeequality=held,
        flexedge_invweight0=np.concatenate(weights),
        nJfe=total_size,
        flexedge_J_rownnz=number.astype(np.int32),
        flexedge_J_rowadr=(np.cumsum(number) - number).astype(np.int32),
        flexedge_J_colind=columns,
    )


def _has_edge_forces(flex: Flex) -> bool:
    """Return whether it has springs or dampers along its edges."""
    edge = flex.edge
    follow = edge.get("stiffness") > 0 or edge.get("damping") > 0
    return follow or flex.elasticity.get("damping") > 0


def _dofs(constants: Constants, flex: Flex) -> list[np.ndarray]:
    """Return the dofs that move each edge; none for a flex that is rigid or interpolated."""
    edge = flex.topology.edge
    if flex.order or flex.rigid:
        return [np.zeros(0, int) for _ in edge]
    above = constants.reference.lineage
    return [np.union1d(above[a], above[b]) for a, b in flex.vertbody[edge]]


def _weights(constants: Constants, flex: Flex, measured: bool) -> np.ndarray:
    """Return the inverse weight of each edge, (nedge,)."""
    f, edge = constants.fields, flex.topology.edge
    if flex.order:
        return np.zeros(len(edge))
    body = flex.vertbody[edge]
    simple = (f["body_simple"][body] == SLIDERS_ONLY).all(axis=1)
    weight = np.where(simple, f["body_invweight0"][body, 0].mean(axis=1), 0.0)
    if measured:
        for i in np.flatnonzero(~simple & (body[:, 0] != body[:, 1])):
            weight[i] = _inverse_effective_mass(constants, body[i], flex.rest_position[edge[i]])
    return weight


def _inverse_effective_mass(constants: Constants, body: np.ndarray, position: np.ndarray) -> float:
    """Return J M^-1 J^T of the distance of two points that are fixed to bodies."""
    along = position[1] - position[0]
    along = along / max(float(np.linalg.norm(along)), MINVAL)
    row = np.zeros(constants.fields["nv"])
    for sign, b, point in ((-1.0, body[0], position[0]), (1.0, body[1], position[1])):
        dofs, axes = constants.reference.jacobian(b, point)
        row[dofs] += sign * (axes[:, 3:] @ along)
    dofs = np.flatnonzero(row)
    return float(constants.inertia.sandwich(dofs, row[None, dofs])[0, 0]) if len(dofs) else 0.0
