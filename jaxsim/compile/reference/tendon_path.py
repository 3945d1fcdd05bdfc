"""Lengths and Jacobians of tendons in a given pose, for the derived constants.

A fixed tendon is a weighted sum of joint positions. A spatial tendon is the shortest path through
its sites and around its geoms; a pulley starts a new branch, whose length is divided by the
pulley's divisor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from jaxsim.compile.reference.pose import Reference
from jaxsim.compile.reference.wrap import wrap
from jaxsim.enums import MINVAL, WrapType
from jaxsim.math import quaternion

_GEOMS = (WrapType.SPHERE, WrapType.CYLINDER)


class Stretch(NamedTuple):
    """A length and its derivative: `values` (n,) at the dofs `dofs` (n,), zero elsewhere."""

    length: float
    dofs: np.ndarray
    values: np.ndarray


def tendon_stretches(reference: Reference) -> list[Stretch]:
    """Return the length [m, or rad for a fixed tendon of hinges] and Jacobian of every tendon."""
    f = reference.fields
    found = []
    for adr, num in zip(f["tendon_adr"], f["tendon_num"], strict=True):
        path = range(adr, adr + num)
        fixed = num > 0 and f["wrap_type"][adr] == WrapType.JOINT
        found.append(
            _fixed_stretch(reference, path) if fixed else _spatial_stretch(reference, path)
        )
    return found


def _fixed_stretch(reference: Reference, path: range) -> Stretch:
    f = reference.fields
    joints, coefficients = (
        f["wrap_objid"][path.start : path.stop],
        f["wrap_prm"][path.start : path.stop],
    )
    length = coefficients @ reference.qpos[f["jnt_qposadr"][joints]]
    return Stretch(float(length), f["jnt_dofadr"][joints], np.array(coefficients, dtype=np.float64))


class _Point(NamedTuple):
    """A point of the path and the body that carries it."""

    pos: np.ndarray
    body: int


def _spatial_stretch(reference: Reference, path: range) -> Stretch:
    f = reference.fields
    length, row, divisor = 0.0, np.zeros(f["nv"]), 1.0
    here: _Point | None = None
    obstacle: int | None = None
    for i in path:
        kind, obj_id = f["wrap_type"][i], f["wrap_objid"][i]
        if kind == WrapType.PULLEY:
            divisor, here = f["wrap_prm"][i], None
        elif kind in _GEOMS:
            obstacle = i
        else:
            there = _Point(reference.site_xpos[obj_id], f["site_bodyid"][obj_id])
            if here is not None:
                points, curved = _straight_pieces(reference, here, there, obstacle)
                length += curved / divisor
                for a, b in zip(points[:-1:2], points[1::2], strict=True):
                    length += float(np.linalg.norm(b.pos - a.pos)) / divisor
                    _add_distance_gradient(reference, a, b, divisor, row)
            here, obstacle = there, None
    dofs = np.flatnonzero(row)
    return Stretch(float(length), dofs, row[dofs])


def _straight_pieces(
    reference: Reference, a: _Point, b: _Point, obstacle: int | None
) -> tuple[list[_Point], float]:
    """Return the ends of the straight pieces between two sites, pairwise, and the length on the
    geom."""
    if obstacle is None:
        return [a, b], 0.0
    f = reference.fields
    geom, side = f["wrap_objid"][obstacle], int(f["wrap_prm"][obstacle])
    origin, quat = reference.geom_xpos[geom], reference.geom_xquat[geom]

    def local(point: np.ndarray) -> np.ndarray:
        return quaternion.quat_rotate(quaternion.quat_conjugate(quat), point - origin)

    arc = wrap(
        f["wrap_type"][obstacle],
        f["geom_size"][geom, 0],
        np.stack([local(a.pos), local(b.pos)]),
        local(reference.site_xpos[side]) if side >= 0 else None,
    )
    if arc is None:
        return [a, b], 0.0
    body = f["geom_bodyid"][geom]
    enter, leave = (
        _Point(origin + quaternion.quat_rotate(quat, p), body) for p in (arc.enter, arc.leave)
    )
    return [a, enter, leave, b], arc.length


def _add_distance_gradient(
    reference: Reference, a: _Point, b: _Point, divisor: float, row: np.ndarray
) -> None:
    """Add the derivative of the distance between two points to a row (nv,)."""
    if a.body == b.body:
        return
    direction = b.pos - a.pos
    length = np.linalg.norm(direction)
    # coincident points pull along x, as in MuJoCo
    direction = direction / length if length >= MINVAL else np.array([1.0, 0.0, 0.0])
    for point, sign in ((a, -1.0), (b, 1.0)):
        dofs, axes = reference.jacobian(point.body, point.pos)
        row[dofs] += sign * (axes[:, 3:] @ direction) / divisor
