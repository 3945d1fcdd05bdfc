"""Whole numbers that MuJoCo keeps among the real ones of flexes, as tables of the structure.

Which vertices a rod bends at stands in `flex_bending`, which cell a constraint holds in `eq_data`,
and how many modes that has in `flex_stiffness`. They decide the program.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxsim.enums import EqType

RECORD = 10  # numbers of a vertex, or a pair, in flex_bending
NO_TWIST = -1
SIDE = 9  # place of the side of a box in the record of a vertex


def flex_tables(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tables `rod_*`, one row for each vertex or pair of a rod that bends, and `eq_*`.

    rod_flexid, rod_vert: four vertices of the flex, the last -1: a vertex, not a pair; rod_dof: of
    the twist hinge of the edge after it, or -1; rod_adr: where its numbers begin in flex_bending;
    eq_elemid, eq_modenum: cell or wall that a strain constraint holds, and its modes. flex_touches:
    which flexes may have contacts, with whatever flags; flex_boxed: which are rods with a box
    section.
    """
    rods = [_rod(fields, f) for f in range(fields["nflex"])]
    parts = zip(_none(), *rods, strict=True)
    flex, vert, dof, adr = (np.concatenate(t).astype(np.int32) for t in parts)
    elem, mode = _strains(fields)
    tables: dict[str, Any] = {"rod_flexid": flex, "rod_vert": vert, "rod_dof": dof, "rod_adr": adr}
    tables |= {"nrod": len(flex), "eq_elemid": elem, "eq_modenum": mode}
    boxed = np.array([_is_boxed(fields, f) for f in range(fields["nflex"])], bool)
    return {**tables, "flex_touches": _touching(fields), "flex_boxed": boxed}


def _touching(fields: Mapping[str, Any]) -> np.ndarray:
    """Return a bit of the type of one is in the affinity of the other, `[nflex]` bool."""
    kind, affinity = (
        [np.asarray(fields[f"{what}_{name}"]) for what in ("geom", "flex")]
        for name in ("contype", "conaffinity")
    )
    match = [(kind[1][:, None] & affinity[k]) | (affinity[1][:, None] & kind[k]) for k in range(2)]
    return (np.concatenate(match, axis=1) != 0).any(axis=1)


def _is_boxed(fields: Mapping[str, Any], f: int) -> bool:
    """Return a circle has no side."""
    if fields["flex_plasticadr"][f] < 0 or not len(_rod(fields, f)[0]):
        return False
    return bool(fields["flex_bending"][fields["flex_bendingadr"][f] + 1 + SIDE] != 0)


def _none() -> tuple[np.ndarray, ...]:
    return np.zeros(0), np.zeros((0, 4)), np.zeros(0), np.zeros(0)


def _rod(fields: Mapping[str, Any], f: int) -> tuple[np.ndarray, ...]:
    first = fields["flex_bendingadr"][f]
    if fields["flex_dim"][f] != 1 or fields["flex_interp"][f] or first < 0:
        return _none()
    n = int(fields["flex_bending"][first])
    adr = first + 1 + RECORD * np.arange(n)
    numbers = np.rint(fields["flex_bending"][adr[:, None] + np.arange(RECORD)])
    vert = numbers[:, :4]
    hinge = np.where(vert[:, 3] < 0, numbers[:, 7], NO_TWIST).astype(int)
    dof = np.array([fields["jnt_dofadr"][j] if j >= 0 else NO_TWIST for j in hinge], int)
    return np.full(n, f), vert, dof, adr


def _strains(fields: Mapping[str, Any]) -> tuple[np.ndarray, np.ndarray]:
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
        size = 3 * (abs(order) + 1) ** (2 if order < 0 else 3)
        mode[i] = np.rint(fields["flex_stiffness"][first + elem[i] * size * size])
    return elem, mode
