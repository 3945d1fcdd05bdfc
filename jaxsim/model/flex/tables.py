"""Integers that MuJoCo stores in real-valued fields of flexes, as tables of the structure.

The vertices at which a rod bends are stored in `flex_bending`, the cell of a strain constraint in
`eq_data`, and the number of its modes in `flex_stiffness`. They decide the shape of the program.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxsim.enums import EqType

# Records of a rod in flex_bending, after their number (compile/flex/elastic/rods.py). Columns 0-3:
# vertices of the bending stencil, the last -1 for a stencil of three. Then, for three vertices:
# 4, 5 bending stiffness across the weak axis, and what the strong axis adds to it; 6 rest
# curvature; 7 joint of the twist of the next edge, or -1; 8 torsional stiffness; 9 side of the box
# section, 0 for a circle. For four vertices: 4, 5 stiffness and 6, 7 rest curvature of the inner
# two; 8, 9 torsional stiffness times cosine and sine of the dihedral angle.
_RECORD_LENGTH = 10
_TWIST_COLUMN, _SIDE_COLUMN = 7, 9
NO_TWIST = -1


def flex_tables(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables `rod_*`, one row per bending stencil of a rod, and `eq_*`.

    rod_flexid: flex, `[nrod]`.
    rod_vert: vertices of the stencil, `[nrod, 4]`; the last is -1 for a stencil of three vertices.
    rod_dof: dof of the twist hinge of the next edge, or -1, `[nrod]`.
    rod_adr: address of the stencil's record in flex_bending, `[nrod]`.
    eq_elemid, eq_modenum: cell or wall of a strain constraint, and its number of modes, `[neq]`.
    flex_touches: flexes that may have contacts, whatever the flags, `[nflex]` bool.
    flex_boxed: flexes that are rods with a box section, `[nflex]` bool.
    """
    rods = [_rod(fields, f) for f in range(fields["nflex"])]
    parts = zip(_empty_table(), *rods, strict=True)
    flex, vert, dof, adr = (np.concatenate(t).astype(np.int32) for t in parts)
    elem, mode = _strain_tables(fields)
    tables: dict[str, Any] = {"rod_flexid": flex, "rod_vert": vert, "rod_dof": dof, "rod_adr": adr}
    tables |= {"nrod": len(flex), "eq_elemid": elem, "eq_modenum": mode}
    boxed = np.array([_is_boxed(fields, f) for f in range(fields["nflex"])], bool)
    return {**tables, "flex_touches": _flexes_in_contact(fields), "flex_boxed": boxed}


def _flexes_in_contact(fields: Mapping[str, Any]) -> np.ndarray:
    """Return the flexes whose collision masks match those of a geom or flex, `[nflex]` bool."""
    kind, affinity = (
        [np.asarray(fields[f"{what}_{name}"]) for what in ("geom", "flex")]
        for name in ("contype", "conaffinity")
    )
    match = [(kind[1][:, None] & affinity[k]) | (affinity[1][:, None] & kind[k]) for k in range(2)]
    return (np.concatenate(match, axis=1) != 0).any(axis=1)


def _is_boxed(fields: Mapping[str, Any], f: int) -> bool:
    """Return whether a flex is a plastic rod with a box section; a circular section has no side."""
    if fields["flex_plasticadr"][f] < 0 or not len(_rod(fields, f)[0]):
        return False
    return bool(fields["flex_bending"][fields["flex_bendingadr"][f] + 1 + _SIDE_COLUMN] != 0)


def _empty_table() -> tuple[np.ndarray, ...]:
    """Return the tables of `_rod` without rows."""
    return np.zeros(0), np.zeros((0, 4)), np.zeros(0), np.zeros(0)


def _rod(fields: Mapping[str, Any], f: int) -> tuple[np.ndarray, ...]:
    """Return flex `[n]`, vertices `[n, 4]`, dof `[n]` and address `[n]` of a flex's stencils."""
    first = fields["flex_bendingadr"][f]
    if fields["flex_dim"][f] != 1 or fields["flex_interp"][f] or first < 0:
        return _empty_table()
    n = int(fields["flex_bending"][first])
    adr = first + 1 + _RECORD_LENGTH * np.arange(n)
    records = np.rint(fields["flex_bending"][adr[:, None] + np.arange(_RECORD_LENGTH)])
    vert = records[:, :4]
    hinge = np.where(vert[:, 3] < 0, records[:, _TWIST_COLUMN], NO_TWIST).astype(int)
    dof = np.array([fields["jnt_dofadr"][j] if j >= 0 else NO_TWIST for j in hinge], int)
    return np.full(n, f), vert, dof, adr


def _strain_tables(fields: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """Return cell or wall, -1 for none, and number of modes of each equality, `[neq]` each."""
    elem = np.full(fields["neq"], -1, np.int32)
    mode = np.zeros(fields["neq"], np.int32)
    for i in np.flatnonzero(np.asarray(fields["eq_type"]) == EqType.FLEXSTRAIN):
        f = fields["eq_obj1id"][i]
        order, count = fields["flex_interp"][f], np.reshape(fields["flex_cellnum"], (-1, 3))[f]
        first = fields["flex_stiffnessadr"][f]
        if not order or first < 0:
            continue
        cell = np.rint(np.reshape(fields["eq_data"], (fields["neq"], -1))[i, :3]).astype(int)
        elem[i] = cell[0] if order < 0 else np.ravel_multi_index(tuple(cell), tuple(count))
        # A cell or wall has a block of size^2 numbers, of which the first is the number of modes.
        size = 3 * (abs(order) + 1) ** (2 if order < 0 else 3)  # coordinates of its nodes
        mode[i] = np.rint(fields["flex_stiffness"][first + elem[i] * size * size])
    return elem, mode
