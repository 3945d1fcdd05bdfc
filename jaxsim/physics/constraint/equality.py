"""Equality constraints: connect, weld, and couplings of joints or tendons.

MuJoCo's documentation, Computation: Equality; XML reference, equality; corresponds to
`mj_instantiateEquality`. A constraint has rows if it is active in the state (`d.eq_active`) and
some dof can move its objects. References include the drift J-dot qvel of connects and welds.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import column, gather_static
from jaxsim.enums import ConstraintType, DisableBit, EqType, ObjType
from jaxsim.math import Quat, Rot, Vec, safe_sqrt, select_where
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.body.point_motion import PointMotion, point_motion
from jaxsim.physics.constraint.cost import Quadratic
from jaxsim.physics.constraint.impedance import impedance, reference_law, split_columns
from jaxsim.physics.constraint.jacobian import DenseJacobian, SparseJacobian
from jaxsim.physics.constraint.rows import SingleRows, Terms, make_row_block
from jaxsim.physics.tendon.path import tendon_pattern
from jaxsim.physics.topology import ancestors
from jaxsim.physics.unsupported import Refusal, make_refusal


def connect_rows(m: Model, d: Data) -> SingleRows | None:
    """Build the rows of connects, which make two points coincide: residual = p1 - p2."""
    ids = active_equalities(m, EqType.CONNECT)
    if not len(ids):
        return None
    first, second = attachments(m, d, ids)
    return equality_rows(m, d, ids, _points(m, first, second))


def welds(m: Model, d: Data) -> SingleRows | None:
    """Build the six rows of each weld, which make two frames coincide: three of position, three of
    orientation.

    residual = (p1 - p2, s vec(q)),   q = q2* q1,   s the torque scale
    vec(q)'  = 1/2 A w,               A x = vec(q2* x q1),   w = w1 - w2
    vec(q)'' = 1/2 A (w' + w1 x w2) - 1/4 |w|^2 vec(q)
    """
    ids = active_equalities(m, EqType.WELD)
    if not len(ids):
        return None
    first, second = attachments(m, d, ids)
    # Residual of both frames: position difference and scaled quaternion vector part.
    scale = gather_static(m.eq_data[:, TORQUE_SCALE], ids)
    residual = (second.quat.conj * first.quat).vec.scale(scale)
    A = _rotation_error_matrix(first.quat, second.quat).map(lambda a: 0.5 * a * scale)

    # Second derivative of the quaternion residual, without the acceleration term.
    w1, w2 = first.angular.velocity, second.angular.velocity
    w = _subtract(first.angular, second.angular)
    velocity = A @ w.velocity
    drift = A @ (w.drift + w1.cross(w2)) - residual.scale(0.25 * w.velocity.dot(w.velocity))
    rotation = PointMotion(A.map(lambda a: a[:, None]) @ w.J, velocity, drift)
    weight = _inverse_weight(m, first.body, second.body, 1)
    return equality_rows(m, d, ids, _points(m, first, second) + _vector(residual, rotation, weight))


def joint_couplings(m: Model, d: Data) -> SingleRows | None:
    """Build rows by which a joint follows a polynomial of another: residual = y - f(x).

    Both are measured from qpos0.
    """
    ids = active_equalities(m, EqType.JOINT)
    if not len(ids):
        return None
    # Residual relative to qpos0.
    joint1, joint2 = m.eq_obj1id[ids], m.eq_obj2id[ids]
    moved = d.qpos - m.qpos0
    y = gather_static(moved, m.jnt_qposadr[joint1])
    x = _if_second(joint2, gather_static(moved, m.jnt_qposadr[np.maximum(joint2, 0)]))
    value, slope = _polynomial(m, ids, x)
    slope = _if_second(joint2, slope)

    # Jacobian: the first dof minus the slope times the second.
    dof1, dof2 = m.jnt_dofadr[joint1], m.jnt_dofadr[np.maximum(joint2, 0)]
    unit = np.eye(m.nv)
    J = column(unit[dof1], y) - column(unit[dof2], y) * slope[:, None]
    velocity = gather_static(d.qvel, dof1) - slope * gather_static(d.qvel, dof2)
    weight = gather_static(m.dof_invweight0, dof1) + _if_second(
        joint2, gather_static(m.dof_invweight0, dof2)
    )
    return equality_rows(m, d, ids, [EqualityRow(y - value, J, velocity, 0.0, weight)])


def tendon_couplings(m: Model, d: Data) -> SingleRows | None:
    """Build rows by which a tendon's length follows a polynomial of another's, from qpos0."""
    ids = active_equalities(m, EqType.TENDON)
    if not len(ids):
        return None
    tendon1, tendon2 = m.eq_obj1id[ids], m.eq_obj2id[ids]
    other = np.maximum(tendon2, 0)
    # Residual and Jacobian of the tendons, with the chain rule for the second.
    residual, slope = tendon_residual(m, d, ids)
    J = gather_static(d.ten_J, tendon1) - gather_static(d.ten_J, other) * slope[:, None]
    velocity = gather_static(d.ten_velocity, tendon1) - slope * gather_static(d.ten_velocity, other)
    invweight = m.tendon_invweight0
    weight = gather_static(invweight, tendon1) + _if_second(
        tendon2, gather_static(invweight, other)
    )
    return equality_rows(m, d, ids, [EqualityRow(residual, J, velocity, 0.0, weight)])


def tendon_residual(m: Model, d: Data, ids: np.ndarray) -> tuple[Array, Array]:
    """Return y - f(x) of tendon couplings, and the slope f'(x); `[n, *W]` each."""
    tendon1, tendon2 = m.eq_obj1id[ids], m.eq_obj2id[ids]
    stretch = d.ten_length - m.tendon_length0
    x = _if_second(tendon2, gather_static(stretch, np.maximum(tendon2, 0)))
    value, slope = _polynomial(m, ids, x)
    return gather_static(stretch, tendon1) - value, _if_second(tendon2, slope)


def unsupported_equalities(m: Model) -> list[Refusal]:
    """Return the equality constraints that are not supported."""
    lacking = {
        kind: f"constraints of type {kind.name.lower()} are not supported; remove it"
        for kind in EqType
        if kind not in _SUPPORTED_TYPES
    }
    return [
        make_refusal(m, "equality", e, lacking[EqType(kind)])
        for e, kind in enumerate(m.eq_type)
        if kind in lacking
    ]


_SUPPORTED_TYPES = (
    *(EqType.CONNECT, EqType.WELD, EqType.JOINT, EqType.TENDON, EqType.FLEX, EqType.FLEXSTRAIN),
)
TORQUE_SCALE = 10  # column of eq_data


def active_equalities(m: Model, kind: EqType) -> np.ndarray:
    """Return the ids of the constraints of a type that have rows; none under the disable flag."""
    if m.opt.disableflags & DisableBit.EQUALITY:
        return np.zeros(0, int)
    return _movable_constraints(m)[kind]


@cache_by_structure
def _movable_constraints(s: Structure) -> dict[EqType, np.ndarray]:
    """Return constraints of each type whose objects some dof can move, as MuJoCo does."""
    moves = ancestors(s).any(1)
    tendon_moves = np.zeros(s.ntendon + 1, bool)  # the last entry: no second tendon
    tendon_moves[tendon_pattern(s).row] = True
    out = {}
    for kind in _SUPPORTED_TYPES:
        ids = np.flatnonzero(s.eq_type == kind)
        ends = s.eq_obj1id[ids], s.eq_obj2id[ids]
        # A connect or weld needs a body that moves; a tendon coupling a movable tendon.
        if kind in (EqType.CONNECT, EqType.WELD):
            keep = [moves[_body(s, ids, end)] for end in ends]
        elif kind == EqType.TENDON:
            keep = [tendon_moves[end] for end in ends]
        else:
            keep = [np.ones(len(ids), bool)]
        out[kind] = ids[np.any(keep, axis=0)]
    return out


# Attachment of the ends of a connect or weld.


class End(NamedTuple):
    """Frame fixed in a body: constant `[n]` body, pose in the world `[n, *W]`, its motion."""

    body: np.ndarray
    point: Vec
    quat: Quat
    shift: PointMotion
    angular: PointMotion


def attachments(m: Model, d: Data, ids: np.ndarray) -> tuple[End, End]:
    """Return both ends of connects or welds, which are all of one type.

    Between bodies, `eq_data` of a connect has the anchors in the first and second body; of a weld
    the anchor in the second, then position and orientation of the second in the first.
    """
    data = gather_static(m.eq_data, ids)
    anchors = [Vec(*(data[:, k + i] for i in range(3))) for k in (0, 3)]
    zero = jnp.zeros_like(data[:, 0])
    upright = Quat(zero + 1, zero, zero, zero)
    quat_in_body = upright
    if m.eq_type[ids[0]] == EqType.WELD:
        anchors.reverse()
        quat_in_body = Quat(*(data[:, 6 + i] for i in range(4)))
    first = _attach(m, d, ids, m.eq_obj1id[ids], anchors[0], quat_in_body)
    return first, _attach(m, d, ids, m.eq_obj2id[ids], anchors[1], upright)


def _attach(
    m: Model, d: Data, ids: np.ndarray, obj: np.ndarray, anchor: Vec, quat_in_body: Quat
) -> End:
    """Return the frame in a body given by the data, or that of a site."""
    on_site = m.eq_objtype[ids] == ObjType.SITE
    # Sites replace the anchors of bodies.
    if on_site.any():
        site = np.where(on_site, obj, 0)
        mask = column(on_site, anchor)
        anchor = select_where(mask, gather_static(m.site_pos, site), anchor)
        quat_in_body = select_where(mask, gather_static(m.site_quat, site), quat_in_body)
    body = _body(m, ids, obj)
    quat = gather_static(d.xquat, body)
    point = gather_static(d.xpos, body) + quat.rotate(anchor)
    return End(body, point, quat * quat_in_body, *point_motion(m, d, body, point))


def _body(m: Model | Structure, ids: np.ndarray, obj: np.ndarray) -> np.ndarray:
    """Return the body of one end of each constraint, itself or through its site."""
    on_site = m.eq_objtype[ids] == ObjType.SITE
    body = obj.copy()
    body[on_site] = m.site_bodyid[obj[on_site]]
    return body


def _points(m: Model, first: End, second: End) -> list["EqualityRow"]:
    """Return the rows that make two points coincide."""
    weight = _inverse_weight(m, first.body, second.body, 0)
    return _vector(first.point - second.point, _subtract(first.shift, second.shift), weight)


def _vector(residual: Vec, motion: PointMotion, weight: Array) -> list["EqualityRow"]:
    """Return one row for each component of a vector."""
    parts = zip(residual.parts, *(v.parts for v in motion), strict=True)
    return [EqualityRow(r, J, velocity, drift, weight) for r, J, velocity, drift in parts]


def _subtract(a: PointMotion, b: PointMotion) -> PointMotion:
    return PointMotion(*(x - y for x, y in zip(a, b, strict=True)))


def _rotation_error_matrix(first: Quat, second: Quat) -> Rot:
    """Return the matrix of x -> vec(second* x first)."""
    zero = jnp.zeros_like(first.w)
    one = zero + 1
    units = (Quat(zero, one, zero, zero), Quat(zero, zero, one, zero), Quat(zero, zero, zero, one))
    return Rot.from_cols(*((second.conj * unit * first).vec for unit in units))


def _inverse_weight(m: Model, body1: np.ndarray, body2: np.ndarray, kind: int) -> Array:
    """Return the translational (0) or rotational (1) inverse inertia of both bodies."""
    invweight = m.body_invweight0[:, kind]
    return gather_static(invweight, body1) + gather_static(invweight, body2)


# Couplings.


def _polynomial(m: Model, ids: np.ndarray, x: Array) -> tuple[Array, Array]:
    """Evaluate each constraint's quartic polynomial and its slope at x."""
    a = [gather_static(m.eq_data[:, k], ids) for k in range(5)]
    value = a[0] + x * (a[1] + x * (a[2] + x * (a[3] + x * a[4])))
    return value, a[1] + x * (2 * a[2] + x * (3 * a[3] + x * 4 * a[4]))


def _if_second(other: np.ndarray, a: Array) -> Array:
    """Zero the entries of constraints without a second object."""
    return jnp.where(column(other >= 0, a), a, 0)


# Rows of any type.


class EqualityRow(NamedTuple):
    """One row of each of n constraints.

    Attributes:
      residual: violation `[n, *W]`.
      J: its Jacobian `[n, nv, *W]`, or another storage if this is the only row.
      velocity: J qvel `[n, *W]`.
      drift: J-dot qvel `[n, *W]`, or 0 where MuJoCo omits it.
      weight: approximate inverse inertia `[n, *W]`.
    """

    residual: jax.Array
    J: jax.Array | SparseJacobian
    velocity: jax.Array
    drift: jax.Array | float
    weight: jax.Array


def equality_rows(m: Model, d: Data, ids: np.ndarray, rows: list[EqualityRow]) -> SingleRows:
    """Build a block: first rows of all constraints, second rows of all, ...

        aref = -B velocity - K imp residual - drift

    All rows of a constraint share the impedance at the norm of its residual.
    """
    # Impedance by the norm of all residual components.
    if len(rows) == 1:
        violation = rows[0].residual
    else:
        violation = safe_sqrt(sum(r.residual * r.residual for r in rows))
    # Reference of each row, with the drift.
    solref, solimp = (
        split_columns(gather_static(m.eq_solref, ids)),
        split_columns(gather_static(m.eq_solimp, ids)),
    )
    spring = reference_law(m, solref, solimp[1], impedance(solimp, violation))
    aref = [spring.reference(m, r.residual, r.velocity, r.drift) for r in rows]
    terms = Terms(
        Quadratic,
        jnp.concatenate([gather_static(d.eq_active, ids)] * len(rows)),
        jnp.concatenate(aref),
        jnp.concatenate([spring.softness(m)] * len(rows)),
        jnp.concatenate([r.weight for r in rows]),
        jnp.concatenate([r.residual for r in rows]),
    )
    return make_row_block(
        ConstraintType.EQUALITY,
        np.tile(ids, len(rows)),
        _stack_jacobians([r.J for r in rows]),
        terms,
    )


def _stack_jacobians(J: list) -> DenseJacobian | SparseJacobian:
    """Concatenate the Jacobians of all rows."""
    if isinstance(J[0], SparseJacobian):
        (only,) = J
        return only
    return DenseJacobian(jnp.concatenate(J))
