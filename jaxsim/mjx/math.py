"""Functions of MJX's `math` that programs call, by its names; quaternions are (w, x, y, z)."""

import jax
import jax.numpy as jnp

from jaxsim.enums import MINVAL
from jaxsim.functions import quaternion
from jaxsim.math import Inertia, Spatial, Vec, safe_atan2, safe_divide, safe_sqrt
from jaxsim.physics.collision.frame import contact_frame
from jaxsim.physics.collision.primitive.segment import nearest_on_segments

rotate = quaternion.rot_vec_quat
quat_inv = quaternion.neg_quat
quat_mul = quaternion.mul_quat
quat_mul_axis = quaternion.mul_quat_axis
quat_sub = quaternion.sub_quat
quat_to_mat = quaternion.quat_to_mat
axis_angle_to_quat = quaternion.axis_angle_to_quat
quat_integrate = quaternion.quat_integrate


def norm(x: jax.Array, axis: int | None = None) -> jax.Array:
    """Length of a vector; its derivative is zero where it is zero."""
    return safe_sqrt(jnp.sum(x * x, axis=axis))


def normalize_with_norm(x: jax.Array, axis: int | None = None) -> tuple[jax.Array, jax.Array]:
    """A vector of length 1, and the length it had; of the zero vector, itself."""
    length = norm(x, axis)
    whole = length if axis is None else jnp.expand_dims(length, axis)
    return x / jnp.where(whole == 0, 1.0, whole), length


def normalize(x: jax.Array, axis: int | None = None) -> jax.Array:
    """A vector of length 1; of the zero vector, itself."""
    return normalize_with_norm(x, axis)[0]


def quat_to_axis_angle(q: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The axis of the vector part, and the angle about it, between -pi and pi [rad]."""
    axis, sine = normalize_with_norm(q[..., 1:], axis=-1)
    angle = 2 * safe_atan2(sine, q[..., 0])
    return axis, jnp.where(angle > jnp.pi, angle - 2 * jnp.pi, angle)


def sign(x: jax.Array) -> jax.Array:
    """-1 below zero, else 1."""
    return jnp.where(x < 0, -1, 1)


def motion_cross(u: jax.Array, v: jax.Array) -> jax.Array:
    """The rate of a motion v (..., 6) that moves with u; rotation first."""
    turn, push = jnp.cross(u[..., :3], v[..., :3]), jnp.cross(u[..., :3], v[..., 3:])
    return jnp.concatenate([turn, push + jnp.cross(u[..., 3:], v[..., :3])], axis=-1)


def motion_cross_force(v: jax.Array, f: jax.Array) -> jax.Array:
    """The rate of a force f (..., 6) that moves with v; rotation first."""
    turn = jnp.cross(v[..., :3], f[..., :3]) + jnp.cross(v[..., 3:], f[..., 3:])
    return jnp.concatenate([turn, jnp.cross(v[..., :3], f[..., 3:])], axis=-1)


def inert_mul(i: jax.Array, v: jax.Array) -> jax.Array:
    """The force (6,) of a motion (6,): an inertia as `cinert` has it, (10,), times the motion."""
    force = Inertia.from_array(i, axis=-1) @ Spatial.from_array(v, axis=-1)
    return force.to_array(axis=-1)


def transform_motion(vel: jax.Array, offset: jax.Array, rotmat: jax.Array) -> jax.Array:
    """A motion (6,), rotation first, seen from another frame.

    Args:
      vel: the motion.
      offset: origin of the other frame, (3,).
      rotmat: its orientation, (3, 3): columns are its axes.
    """
    turn, push = vel[:3], vel[3:]
    return jnp.concatenate([turn @ rotmat, (push + jnp.cross(turn, offset)) @ rotmat])


def safe_div(num: jax.Array, den: jax.Array) -> jax.Array:
    """num / den; where den is 0, num / `MINVAL`."""
    return num / jnp.where(den == 0, MINVAL, den)


def matmul_unroll(a: jax.Array, b: jax.Array) -> jax.Array:
    """The product of two matrices."""
    return jnp.matmul(a, b, precision="highest")


def orthogonals(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Two unit vectors (3,) at right angles to a unit vector and to each other; zero for zero."""
    _, first, second = contact_frame(Vec.from_array(a, axis=-1)).rows
    some = jnp.any(a != 0)
    b, c = (jnp.where(some, v.to_array(axis=-1), 0) for v in (first, second))
    return b, c


def make_frame(a: jax.Array) -> jax.Array:
    """A right-handed frame (3, 3), as contacts have it: its first row is along `a`, (3,)."""
    a = normalize(a)
    return jnp.stack([a, *orthogonals(a)])


def closest_segment_point(a: jax.Array, b: jax.Array, pt: jax.Array) -> jax.Array:
    """The point (3,) of the segment from a to b that is nearest to a point."""
    along = b - a
    part = safe_divide((pt - a) @ along, along @ along)
    return a + jnp.clip(part, 0, 1) * along


def closest_segment_point_and_dist(
    a: jax.Array, b: jax.Array, pt: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The nearest point (3,) of a segment, and the square of the distance () [m^2]."""
    nearest = closest_segment_point(a, b, pt)
    return nearest, (pt - nearest) @ (pt - nearest)


def closest_segment_to_segment_points(
    a0: jax.Array, a1: jax.Array, b0: jax.Array, b1: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """The nearest points (3,) of two segments, each given by its ends.

    Of parallel segments, which have many, one is nearest to the middle of the first.
    """
    (u, length1), (v, length2) = normalize_with_norm(a1 - a0), normalize_with_norm(b1 - b0)
    middle1, middle2 = 0.5 * (a0 + a1), 0.5 * (b0 + b1)
    offset, first, second = (Vec.from_array(x, axis=-1) for x in (middle2 - middle1, u, v))
    s, t = nearest_on_segments(offset, first, 0.5 * length1, second, 0.5 * length2)
    return middle1 + s * u, middle2 + t * v
