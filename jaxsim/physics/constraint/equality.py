"""Equality constraints: bodies connected at a point or welded, joints or tendons coupled.

MuJoCo's documentation, Computation: Equality; XML reference, equality. A constraint has rows when
it is active in the state (`d.eq_active`) and some dof can move what it holds.
"""

from collections.abc import Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np

from jaxsim.data import Data
from jaxsim.enums import ConstraintType, DisableBit, EqType, ObjType
from jaxsim.math import Quat, Vec, safe_sqrt, select
from jaxsim.model import Model
from jaxsim.physics.constraint.impedance import (
    columns,
    impedance,
    regularize,
    stiffness_damping,
)
from jaxsim.physics.constraint.rows import DenseRows
from jaxsim.physics.jacobian import point_drift, point_jacobian
from jaxsim.physics.layout import ancestors
from jaxsim.physics.products import apply
from jaxsim.physics.refusal import named
from jaxsim.physics.tendon_path import tendon_pattern
from jaxsim.physics.tree import column, take
from jaxsim.structure import Structure, derived


def connects(m: Model, d: Data) -> DenseRows | None:
    """Two points coincide: residual = p1 - p2."""
    ids = members(m, EqType.CONNECT)
    if not len(ids):
        return None
    first, second = _attachments(m, d, ids)
    J, drift, _, _ = _relative(m, d, first, second)
    residual = first.point - second.point
    weight = _inverse_weight(m, first.body, second.body, 0)
    return _rows(m, d, ids, residual.parts, J.parts, drift.parts, [weight] * 3)


def welds(m: Model, d: Data) -> DenseRows | None:
    """Two frames coincide.

        residual = (p1 - p2, s vec(q)),   q = q2* q1,   s the torque scale
        vec(q)'  = 1/2 vec(q2* w q1)                    w = w1 - w2
        vec(q)'' = 1/2 vec(q2* (w' + (w w1 - w2 w) / 2) q1)

    The last line, at qacc = 0, is the drift; vectors are pure quaternions in the products.
    """
    ids = members(m, EqType.WELD)
    if not len(ids):
        return None
    first, second = _attachments(m, d, ids)
    J, drift, Jw, dw = _relative(m, d, first, second)
    scale = take(m.eq_data[:, TORQUE_SCALE], ids)

    turn = second.quat.conj * first.quat
    columns1, columns2 = (q.map(lambda a: a[:, None]) for q in (first.quat, second.quat))
    J_turn = _sandwich(columns2, _pure(Jw), columns1).scale(0.5 * scale[:, None])

    w1, w2 = take(d.cvel, first.body).rot, take(d.cvel, second.body).rot
    w = _pure(w1 - w2)
    gyration = (w * _pure(w1) - _pure(w2) * w).scale(0.5)
    drift_turn = _sandwich(second.quat, _pure(dw) + gyration, first.quat).scale(0.5 * scale)

    residual = (*(first.point - second.point).parts, *turn.vec.scale(scale).parts)
    weight = [_inverse_weight(m, first.body, second.body, kind) for kind in (0, 0, 0, 1, 1, 1)]
    J = (*J.parts, *J_turn.parts)
    return _rows(m, d, ids, residual, J, (*drift.parts, *drift_turn.parts), weight)


def joint_couplings(m: Model, d: Data) -> DenseRows | None:
    """A joint follows a polynomial of another, both measured from qpos0: residual = y - f(x)."""
    ids = members(m, EqType.JOINT)
    if not len(ids):
        return None
    joint1, joint2 = m.eq_obj1id[ids], m.eq_obj2id[ids]
    moved = d.qpos - m.qpos0
    y = take(moved, m.jnt_qposadr[joint1])
    x = _if_second(joint2, take(moved, m.jnt_qposadr[np.maximum(joint2, 0)]))
    value, slope = _polynomial(m, ids, x)
    slope = _if_second(joint2, slope)

    dof1, dof2 = m.jnt_dofadr[joint1], m.jnt_dofadr[np.maximum(joint2, 0)]
    unit = np.eye(m.nv)
    J = column(unit[dof1], y) - column(unit[dof2], y) * slope[:, None]
    weight = take(m.dof_invweight0, dof1) + _if_second(joint2, take(m.dof_invweight0, dof2))
    return _rows(m, d, ids, [y - value], [J], None, [weight])


def tendon_couplings(m: Model, d: Data) -> DenseRows | None:
    """A tendon's length follows a polynomial of another's, both measured from qpos0."""
    ids = members(m, EqType.TENDON)
    if not len(ids):
        return None
    tendon1, tendon2 = m.eq_obj1id[ids], m.eq_obj2id[ids]
    other = np.maximum(tendon2, 0)
    stretch = d.ten_length - m.tendon_length0
    y, x = take(stretch, tendon1), _if_second(tendon2, take(stretch, other))
    value, slope = _polynomial(m, ids, x)
    slope = _if_second(tendon2, slope)

    J = take(d.ten_J, tendon1) - take(d.ten_J, other) * slope[:, None]
    invweight = m.tendon_invweight0
    weight = take(invweight, tendon1) + _if_second(tendon2, take(invweight, other))
    return _rows(m, d, ids, [y - value], [J], None, [weight])


def refusals(m: Model) -> list[str]:
    """Equality constraints that are not simulated, named."""
    return [
        f"{named(m, 'equality', e)}: constraints of type {EqType(kind).name.lower()} are not "
        "supported; remove it"
        for e, kind in enumerate(m.eq_type)
        if kind not in SUPPORTED
    ]


SUPPORTED = (EqType.CONNECT, EqType.WELD, EqType.JOINT, EqType.TENDON)
TORQUE_SCALE = 10  # column of eq_data


def members(m: Model, kind: EqType) -> np.ndarray:
    """Ids of the constraints of a kind that have rows; none under the disable flag."""
    if m.opt.disableflags & DisableBit.EQUALITY:
        return np.zeros(0, int)
    return _movable(m)[kind]


@derived
def _movable(s: Structure) -> dict[EqType, np.ndarray]:
    """Constraints of each kind whose objects some dof can move; MuJoCo leaves out the others."""
    moves = ancestors(s).any(1)
    tendon_moves = np.zeros(s.ntendon + 1, bool)  # the last: no second tendon
    tendon_moves[tendon_pattern(s).row] = True
    out = {}
    for kind in SUPPORTED:
        ids = np.flatnonzero(s.eq_type == kind)
        ends = s.eq_obj1id[ids], s.eq_obj2id[ids]
        if kind in (EqType.CONNECT, EqType.WELD):
            keep = [moves[_body(s, ids, end)] for end in ends]
        elif kind == EqType.TENDON:
            keep = [tendon_moves[end] for end in ends]
        else:
            keep = [np.ones(len(ids), bool)]
        out[kind] = ids[np.any(keep, axis=0)]
    return out


# where the ends of a connect or weld are attached


class _End(NamedTuple):
    """A frame fixed in a body: constant `[n]` body, pose in the world `[n, *W]`."""

    body: np.ndarray
    point: Vec
    quat: Quat


def _attachments(m: Model, d: Data, ids: np.ndarray) -> tuple[_End, _End]:
    """Both ends of connects or welds, which are of one kind.

    Between bodies the data are, for a connect, the anchors in the first and second body; for
    a weld, the anchor in the second, then position and orientation of the second in the first.
    """
    data = take(m.eq_data, ids)
    anchors = [Vec(*(data[:, k + i] for i in range(3))) for k in (0, 3)]
    zero = jnp.zeros_like(data[:, 0])
    upright = Quat(zero + 1, zero, zero, zero)
    turn = upright
    if m.eq_type[ids[0]] == EqType.WELD:
        anchors.reverse()
        turn = Quat(*(data[:, 6 + i] for i in range(4)))
    first = _attach(m, d, ids, m.eq_obj1id[ids], anchors[0], turn)
    return first, _attach(m, d, ids, m.eq_obj2id[ids], anchors[1], upright)


def _attach(m: Model, d: Data, ids: np.ndarray, obj: np.ndarray, anchor: Vec, turn: Quat) -> _End:
    """The frame in a body that the data give, or that of a site."""
    on_site = m.eq_objtype[ids] == ObjType.SITE
    if on_site.any():
        site = np.where(on_site, obj, 0)
        mask = column(on_site, anchor)
        anchor = select(mask, take(m.site_pos, site), anchor)
        turn = select(mask, take(m.site_quat, site), turn)
    body = _body(m, ids, obj)
    quat = take(d.xquat, body)
    return _End(body, take(d.xpos, body) + quat.rotate(anchor), quat * turn)


def _body(m: Model | Structure, ids: np.ndarray, obj: np.ndarray) -> np.ndarray:
    """Body of one end of each constraint, itself or through its site."""
    on_site = m.eq_objtype[ids] == ObjType.SITE
    body = obj.copy()
    body[on_site] = m.site_bodyid[obj[on_site]]
    return body


def _relative(m: Model, d: Data, first: _End, second: _End) -> tuple[Vec, Vec, Vec, Vec]:
    """Jacobian and drift of p1 - p2, then of the relative angular velocity."""
    J1, Jw1 = point_jacobian(m, d, first.body, first.point)
    J2, Jw2 = point_jacobian(m, d, second.body, second.point)
    a1, dw1 = point_drift(m, d, first.body, first.point)
    a2, dw2 = point_drift(m, d, second.body, second.point)
    return J1 - J2, a1 - a2, Jw1 - Jw2, dw1 - dw2


def _inverse_weight(m: Model, body1: np.ndarray, body2: np.ndarray, kind: int):
    """Translational (0) or rotational (1) inverse inertia of both bodies."""
    invweight = m.body_invweight0[:, kind]
    return take(invweight, body1) + take(invweight, body2)


def _pure(v: Vec) -> Quat:
    return Quat(jnp.zeros_like(v.x), *v.parts)


def _sandwich(left: Quat, middle: Quat, right: Quat) -> Vec:
    """vec(left* middle right)."""
    return (left.conj * middle * right).vec


# couplings


def _polynomial(m: Model, ids: np.ndarray, x):
    """Value and slope at x of each constraint's polynomial of fourth degree."""
    a = [take(m.eq_data[:, k], ids) for k in range(5)]
    value = a[0] + x * (a[1] + x * (a[2] + x * (a[3] + x * a[4])))
    return value, a[1] + x * (2 * a[2] + x * (3 * a[3] + x * 4 * a[4]))


def _if_second(other: np.ndarray, a):
    """Zero for constraints without a second object."""
    return jnp.where(column(other >= 0, a), a, 0)


# rows of any kind


def _rows(
    m: Model, d: Data, ids: np.ndarray, residual: Sequence, J: Sequence, drift, weight: Sequence
) -> DenseRows:
    """Rows of n constraints with k rows each: first row of all, second row of all, ...

        aref = -B J qvel - K imp residual - drift

    All rows of a constraint share the impedance at the length of its residual.

    Args:
      m: model.
      d: data with qvel and eq_active.
      ids: constant `[n]` constraints.
      residual: k arrays `[n, *W]`.
      J: k arrays `[n, nv, *W]`.
      drift: k arrays `[n, *W]`, J-dot qvel; None: left out.
      weight: k arrays `[n, *W]` of approximate inverse inertias.
    """
    violation = residual[0] if len(residual) == 1 else safe_sqrt(sum(r * r for r in residual))
    solref, solimp = columns(take(m.eq_solref, ids)), columns(take(m.eq_solimp, ids))
    imp = impedance(solimp, violation)
    K, B = stiffness_damping(m, solref, solimp[1])
    active = take(d.eq_active, ids)
    D = [jnp.where(active, regularize(imp, w), 0) for w in weight]
    aref = [-B * apply(j, d.qvel) - K * imp * r for j, r in zip(J, residual, strict=True)]
    if drift is not None:
        aref = [a - b for a, b in zip(aref, drift, strict=True)]
    J, D, aref = (jnp.concatenate(rows) for rows in (J, D, aref))
    return DenseRows(ConstraintType.EQUALITY, np.tile(ids, len(residual)), J, D, aref, None)
