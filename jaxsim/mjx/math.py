"""Functions of MJX's `math`, with its names and its shapes.

Each takes one item, whose components are along the first axis: a quaternion (w, x, y, z) is (4,), a
vector (3,). An angle or a time may have the shape (1,), as in MJX. `jax.vmap` batches them; the
functions of `jaxsim.functions` have leading batch axes themselves.
"""

import jax
import jax.numpy as jnp

from jaxsim.enums import MINVAL
from jaxsim.math import Inertia, Quat, Spatial, Vec, safe_atan2, safe_divide, safe_sqrt
from jaxsim.physics.collision.frame import contact_frame
from jaxsim.physics.collision.primitive.segment import nearest_on_segments

Axis = int | tuple[int, ...] | None


def norm(x: jax.Array, axis: Axis = None) -> jax.Array:
    """Return the length of a vector; its derivative is zero where it is zero."""
    return safe_sqrt(jnp.sum(x * x, axis=axis))


def normalize_with_norm(x: jax.Array, axis: Axis = None) -> tuple[jax.Array, jax.Array]:
    """Return a vector of length 1, and the length it had; the zero vector is unchanged."""
    length = norm(x, axis)
    whole = length if axis is None else jnp.expand_dims(length, axis)
    return x / jnp.where(whole == 0, 1.0, whole), length


def normalize(x: jax.Array, axis: Axis = None) -> jax.Array:
    """Return a vector of length 1; the zero vector is unchanged."""
    return normalize_with_norm(x, axis)[0]


def rotate(vec: jax.Array, quat: jax.Array) -> jax.Array:
    """Return a vector (3,), rotated by a unit quaternion (4,).

    Raises:
      ValueError: the vector has more axes than one.
    """
    if jnp.ndim(vec) != 1:
        raise ValueError(
            f"rotate: vec: expected one vector, (3,), got {jnp.shape(vec)}; of many: jax.vmap, or "
            "jaxsim.functions.rot_vec_quat"
        )
    s, u = quat[0], quat[1:]
    return (s * s - u @ u) * vec + 2 * ((u @ vec) * u + s * jnp.cross(u, vec))


def quat_inv(q: jax.Array) -> jax.Array:
    """Return the conjugate (4,) of a quaternion: the inverse of an orientation."""
    signs = jnp.array([1, -1, -1, -1], jnp.result_type(q))
    return jnp.reshape(signs, (1,) * max(jnp.ndim(q) - 1, 0) + (4,)) * q


def quat_mul(u: jax.Array, v: jax.Array) -> jax.Array:
    """Return the product (4,) of two quaternions: the rotation `v` first, then `u`."""
    return _stack_components(_quat(u) * _quat(v))


def quat_mul_axis(q: jax.Array, axis: jax.Array) -> jax.Array:
    """Return the product (4,) of a quaternion and (0, axis), with `axis` (3,)."""
    x, y, z = (axis[k] for k in range(3))
    return _stack_components(_quat(q) * Quat(jnp.zeros_like(x), x, y, z))


def quat_sub(u: jax.Array, v: jax.Array) -> jax.Array:
    """Return the rotation vector r (3,) [rad], in the frame of `v`, with v * quat(r) = u."""
    return _stack_components(_quat(quat_mul(quat_inv(v), u)).rotation_vector())


def quat_to_mat(q: jax.Array) -> jax.Array:
    """Return the rotation matrix (3, 3) of an orientation (4,)."""
    return jnp.stack(_quat(jnp.ravel(q)).matrix().parts).reshape(3, 3)


def quat_to_axis_angle(q: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the axis (3,) of the vector part, and the angle () about it in [-pi, pi] [rad]."""
    axis, sine = normalize_with_norm(q[1:], axis=0)
    angle = 2 * safe_atan2(sine, q[0])
    return axis, jnp.where(angle > jnp.pi, angle - 2 * jnp.pi, angle)


def axis_angle_to_quat(axis: jax.Array, angle: jax.Array) -> jax.Array:
    """Return the quaternion (4,) of a rotation by () or (1,) [rad] about a unit vector (3,)."""
    half = 0.5 * angle
    return jnp.concatenate([jnp.ravel(jnp.cos(half)), jnp.ravel(axis * jnp.sin(half))])


def quat_integrate(q: jax.Array, v: jax.Array, dt: jax.Array) -> jax.Array:
    """Return an orientation (4,) after rotating with `v` (3,) [rad/s] for a time, () or (1,) [s].

    The velocity is in the moving frame.
    """
    turn = jnp.ravel(v * dt)
    turned = _quat(q) * Quat.from_rotation_vector(Vec(*(turn[k] for k in range(3))))
    return _stack_components(turned.normalize())


def sign(x: jax.Array) -> jax.Array:
    """Return -1 below zero, else 1."""
    return jnp.where(x < 0, -1, 1)


def motion_cross(u: jax.Array, v: jax.Array) -> jax.Array:
    """Return the rate of a motion v (..., 6) that moves with u; rotation first."""
    return _spatial(u).cross_motion(_spatial(v)).to_array(axis=-1)


def motion_cross_force(v: jax.Array, f: jax.Array) -> jax.Array:
    """Return the rate of a force f (..., 6) that moves with v; rotation first."""
    return _spatial(v).cross_force(_spatial(f)).to_array(axis=-1)


def inert_mul(i: jax.Array, v: jax.Array) -> jax.Array:
    """Return the force (6,) of a motion (6,): the product with an inertia as `cinert`, (10,)."""
    return (Inertia.from_array(i, axis=-1) @ _spatial(v)).to_array(axis=-1)


def transform_motion(vel: jax.Array, offset: jax.Array, rotmat: jax.Array) -> jax.Array:
    """Return a motion (6,), rotation first, in another frame.

    Args:
      vel: the motion.
      offset: origin of the other frame, (3,).
      rotmat: its orientation, (3, 3): columns are its axes.
    """
    turn, push = vel[:3], vel[3:]
    return jnp.concatenate([turn @ rotmat, (push + jnp.cross(turn, offset)) @ rotmat])


def safe_div(num: jax.Array, den: jax.Array) -> jax.Array:
    """Return num / den; where den is 0, num / `MINVAL`."""
    return num / jnp.where(den == 0, MINVAL, den)


def matmul_unroll(a: jax.Array, b: jax.Array) -> jax.Array:
    """Return the product of two matrices."""
    return jnp.einsum("ik...,kj...->ij...", a, b, precision="highest")


def orthogonals(a: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return two unit vectors (3,) that complete a unit vector to a frame; zero for zero."""
    _, first, second = contact_frame(Vec.from_array(a, axis=-1)).rows
    some = jnp.any(a != 0)
    b, c = (jnp.where(some, v.to_array(axis=-1), 0) for v in (first, second))
    return b, c


def make_frame(a: jax.Array) -> jax.Array:
    """Return a right-handed frame (3, 3), as contacts have it: its first row is along `a`, (3,)."""
    a = normalize(a)
    return jnp.stack([a, *orthogonals(a)])


def closest_segment_point(a: jax.Array, b: jax.Array, pt: jax.Array) -> jax.Array:
    """Return the point (3,) of the segment from a to b that is nearest to a point."""
    along = b - a
    part = safe_divide(jnp.dot(pt - a, along), jnp.dot(along, along))
    return a + jnp.clip(part, 0, 1) * along


def closest_segment_point_and_dist(
    a: jax.Array, b: jax.Array, pt: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the nearest point (3,) of a segment, and the square of the distance () [m^2]."""
    nearest = closest_segment_point(a, b, pt)
    return nearest, jnp.dot(pt - nearest, pt - nearest)


def closest_segment_to_segment_points(
    a0: jax.Array, a1: jax.Array, b0: jax.Array, b1: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return the nearest points (3,) of two segments, each given by its ends; in the plane (2,).

    For parallel segments, which have many, a point nearest to the middle of the first is returned.
    """
    a0, a1, b0, b1 = jnp.broadcast_arrays(a0, a1, b0, b1)
    (u, length1), (v, length2) = normalize_with_norm(a1 - a0), normalize_with_norm(b1 - b0)
    middle1, middle2 = 0.5 * (a0 + a1), 0.5 * (b0 + b1)
    offset, first, second = map(_pad_to_vec3, (middle2 - middle1, u, v))
    s, t = nearest_on_segments(offset, first, 0.5 * length1, second, 0.5 * length2)
    return middle1 + s * u, middle2 + t * v


def _quat(q: jax.Array) -> Quat:
    """Return a quaternion whose components are along the first axis."""
    return Quat(*(q[k] for k in range(4)))


def _spatial(a: jax.Array) -> Spatial:
    """Return a spatial vector whose components are along the last axis."""
    return Spatial.from_array(a, axis=-1)


def _pad_to_vec3(x: jax.Array) -> Vec:
    """Return a vector of up to three components."""
    return Vec.from_array(jnp.pad(jnp.ravel(x), (0, 3 - x.size)), axis=0)


def _stack_components(value: Quat | Vec) -> jax.Array:
    """Return an array of components along the first axis."""
    return jnp.stack(value.parts)
