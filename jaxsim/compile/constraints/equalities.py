"""`<equality>`: `eq_*`.

`eq_data` holds, by type:

    connect   anchor in body 1 (3), anchor in body 2 (3), zeros (4), 1, 0
    weld      anchor in body 2 (3), anchor in body 1 (3), orientation of body 2 in body 1 (4),
              torquescale, and 1 if the pose is that of the reference pose, 0 if it was given
    joint, tendon   coefficients of the polynomial (5), zeros (5), 1, 0
    flex      0, 1, zeros (8), 1, 0
    flexstrain   cell of the flex (3), zeros (7), 1, 0

The anchor in body 2 of a connect, and the pose of a weld, are measured at `qpos0` by
`reference/constants.py`. Constraints between sites have their data in the sites.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from jaxsim.compile.columns import Column, copy_columns
from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.orientation import mjcf_numbers
from jaxsim.compile.step import declare_pass
from jaxsim.enums import EqType, JointType, ObjType
from jaxsim.math import quaternion
from jaxsim.spec import SpecElement

NDATA = 12

_COLUMNS = (
    Column("eq_solref", "solref", 2),
    Column("eq_solimp", "solimp", 5),
    Column("eq_active0", "active", dtype=bool),
)

_DEFAULT_DATA = (0.0, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0)

# Largest number of rows of a constraint of each type.
_ROWS = {
    EqType.CONNECT: 3,
    EqType.WELD: 7,
    EqType.JOINT: 1,
    EqType.TENDON: 1,
    EqType.FLEX: 1,
    EqType.FLEXSTRAIN: 1,
}


class Constraint(NamedTuple):
    """A constraint: its type, the kind of its objects, their ids, and `eq_data`."""

    kind: EqType
    objtype: ObjType
    first: int
    second: int
    data: np.ndarray


@declare_pass(needs="bodies joints sites tendons flexes", gives="eq equality")
def equalities(c: Compilation) -> None:
    """Add all fields of equality constraints that do not need the reference pose."""
    elements = c.spec.section("equality")
    c.register("equality", elements, [e.name for e in elements])
    found = [_CONSTRAINTS[e.tag](c, e) for e in elements]
    for e, constraint in zip(elements, found, strict=True):
        if constraint.first == constraint.second >= 0 and constraint.objtype != ObjType.SITE:
            c.fault(e, "it couples an object to itself; name two different ones")
    c.fields.update(
        neq=len(found),
        nemax=sum(_ROWS.get(constraint.kind, 0) for constraint in found),
        eq_type=np.array([constraint.kind for constraint in found], np.int32),
        eq_objtype=np.array([constraint.objtype for constraint in found], np.int32),
        eq_obj1id=np.array([constraint.first for constraint in found], np.int32),
        eq_obj2id=np.array([constraint.second for constraint in found], np.int32),
        eq_data=np.array([constraint.data for constraint in found], np.float64).reshape(-1, NDATA),
    )
    copy_columns(c, elements, _COLUMNS)


def _bodies(c: Compilation, e: SpecElement) -> tuple[ObjType, int, int]:
    """Return the bodies or the sites of a connect or weld; without body2 the world."""
    if e.own("site1"):
        return (
            ObjType.SITE,
            c.resolve_attribute("site", e, "site1"),
            c.resolve_attribute("site", e, "site2"),
        )
    second = c.resolve_attribute("body", e, "body2") if e.own("body2") else 0
    return ObjType.BODY, c.resolve_attribute("body", e, "body1"), second


def _connect(c: Compilation, e: SpecElement) -> Constraint:
    objtype, first, second = _bodies(c, e)
    data = np.zeros(NDATA)
    if objtype == ObjType.BODY:
        data[:3], data[10] = e.get("anchor"), 1.0
    return Constraint(EqType.CONNECT, objtype, first, second, data)


def _weld(c: Compilation, e: SpecElement) -> Constraint:
    objtype, first, second = _bodies(c, e)
    data = np.array(_DEFAULT_DATA)
    data[10] = e.get("torquescale")
    if objtype == ObjType.BODY:
        data[:3] = 0.0 if e.own("anchor") is None else e.own("anchor")
        relpose = (
            np.zeros(7) if e.own("relpose") is None else np.array(e.own("relpose"), np.float64)
        )
        data[3:6], data[6:10] = relpose[:3], relpose[3:]
        if relpose[3:].any():
            data[6:10] = quaternion.quat_normalize(relpose[3:])
        else:
            data[11] = 1.0
    return Constraint(EqType.WELD, objtype, first, second, data)


def _joint(c: Compilation, e: SpecElement) -> Constraint:
    first, second = (
        c.resolve_attribute("joint", e, "joint1"),
        c.resolve_attribute("joint", e, "joint2"),
    )
    for attr, joint in (("joint1", first), ("joint2", second)):
        if joint >= 0 and c.fields["jnt_type"][joint] not in (JointType.SLIDE, JointType.HINGE):
            c.fault(e, f"{attr}='{e.get(attr)}' must be a hinge or a slide")
    return Constraint(EqType.JOINT, ObjType.UNKNOWN, first, second, _polynomial(e))


def _tendon(c: Compilation, e: SpecElement) -> Constraint:
    first, second = (
        c.resolve_attribute("tendon", e, "tendon1"),
        c.resolve_attribute("tendon", e, "tendon2"),
    )
    return Constraint(EqType.TENDON, ObjType.UNKNOWN, first, second, _polynomial(e))


def _polynomial(e: SpecElement) -> np.ndarray:
    data = np.array(_DEFAULT_DATA)
    data[:5] = e.get("polycoef")
    return data


def _flex(c: Compilation, e: SpecElement) -> Constraint:
    return Constraint(EqType.FLEX, ObjType.UNKNOWN, _flex_of(c, e), -1, np.array(_DEFAULT_DATA))


def _flex_of(c: Compilation, e: SpecElement) -> int:
    """Return the flex that a constraint names, which must not be rigid."""
    flex = c.resolve_attribute("flex", e, "flex")
    if flex >= 0 and c.fields["flex_rigid"][flex]:
        c.fault(e, f"flex='{e.get('flex')}' is rigid, so the constraint has no effect; remove it")
    return flex


def _flexstrain(c: Compilation, e: SpecElement) -> Constraint:
    flex, data = _flex_of(c, e), np.array(_DEFAULT_DATA)
    if flex >= 0 and not c.fields["flex_interp"][flex]:
        c.fault(e, "only an interpolated flex keeps its strain; use <flex>, or dof='trilinear'")
    cell = e.own("cell")
    if cell is not None:
        data[:3] = cell
        if flex >= 0 and not _has_cell(c.fields["flex_cellnum"][flex], data[:3]):
            c.fault(e, f"cell='{mjcf_numbers(data[:3])}' is not one of the cells of the flex")
    return Constraint(EqType.FLEXSTRAIN, ObjType.UNKNOWN, flex, -1, data)


def _has_cell(count: np.ndarray, cell: np.ndarray) -> bool:
    """Return whether a flex has a cell, or a shell a face, written as (face, -1, -1)."""
    if cell[1] == cell[2] == -1:
        nx, ny, nz = count
        return bool(0 <= cell[0] < 2 * (ny * nz + nx * nz + nx * ny))
    return bool(np.all((cell >= 0) & (cell < count)))


_CONSTRAINTS: dict[str, Callable[[Compilation, SpecElement], Constraint]] = {
    "connect": _connect,
    "weld": _weld,
    "joint": _joint,
    "tendon": _tendon,
    "flex": _flex,
    "flexstrain": _flexstrain,
}
