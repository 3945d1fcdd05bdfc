"""Inverse kinematics: the pose in which sites and bodies reach their targets."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.control.motion import carry_results
from jaxsim.control.solve.levenberg_marquardt import levenberg_marquardt
from jaxsim.control.solve.third_party import minimize_with_optimistix
from jaxsim.derivative.tangent import apply_tangent
from jaxsim.enums import JointType
from jaxsim.functions.quaternion import quat_to_mat
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.model.record.check import brief_value
from jaxsim.physics.public.arguments import check_count, check_data, check_model
from jaxsim.spelling import remedy
from jaxsim.stages import kinematics

# Initial damping of searches for a pose. With a tenth of it 25 of 256 random poses of an arm of 7
# joints were not reached, with this one all, in two thirds of the iterations.
INITIAL_DAMPING = 1e-2
# kind of object: the fields of its position and orientation
_TARGET_KINDS = {
    "site": ("site_xpos", "site_xmat"),
    "body": ("xpos", "xmat"),
    "geom": ("geom_xpos", "geom_xmat"),
}


@dataclass(frozen=True)
class Target:
    """Target pose of an object.

    Attributes:
      kind: "site", "body" or "geom".
      name: name of the object.
      pos: target position in the world, (3,) [m]; None: free.
      quat: target orientation in the world, (4,), real part first; None: free.
      weight: weight of the position error, per meter.
      orientation_weight: weight of the orientation error, per radian.
    """

    kind: str
    name: str
    pos: Any = None
    quat: Any = None
    weight: Any = 1.0
    orientation_weight: Any = 1.0

    def __post_init__(self):
        if self.kind not in _TARGET_KINDS:
            known = "; there are: " + ", ".join(_TARGET_KINDS)
            raise ValueError(
                f"kind: no {self.kind!r}{remedy(str(self.kind), _TARGET_KINDS, known)}"
            )
        for name, size in (("pos", 3), ("quat", 4)):
            value = getattr(self, name)
            if value is not None and jnp.shape(value) != (size,):
                raise ValueError(f"{name}: expected shape ({size},), got {brief_value(value)}")

    def residual(self, m: Model, d: Data) -> jax.Array:
        """Return the weighted errors: meters, then radians if the angle is small."""
        i = name2id(m, self.kind, self.name)
        pos, mat = (getattr(d, field)[i] for field in _TARGET_KINDS[self.kind])
        parts = [jnp.zeros(0, pos.dtype)]
        if self.pos is not None:
            parts.append(self.weight * (pos - jnp.asarray(self.pos).astype(pos.dtype)))
        if self.quat is not None:
            error = _rotation_error(mat, jnp.asarray(self.quat).astype(pos.dtype))
            parts.append(self.orientation_weight * error)
        return jnp.concatenate(parts)


class Pose(NamedTuple):
    """A pose found by inverse kinematics.

    Attributes:
      qpos: (nq,).
      error: largest remaining residual of a target, () [m, or rad if small].
      outside: largest violation of joint limits, () [m or rad].
    """

    qpos: jax.Array
    error: jax.Array
    outside: jax.Array


def inverse_kinematics(
    m: Model,
    d: Data,
    targets: Sequence[Target],
    *,
    limits: float = 10.0,
    rest: float | jax.Array = 0.0,
    iterations: int = 100,
    solver: Any = None,
) -> Pose:
    """Return the pose, starting from that of `d`, that brings objects closest to their targets.

    Least squares of weighted errors. If the targets leave freedom, the result depends on the
    initial pose; for many starts or moving targets use `jax.vmap` or `jax.lax.scan`.

    Args:
      m: the model.
      d: the initial world.
      targets: target poses of objects; their positions may be traced.
      limits: weight of violations of joint limits; 0: limits are ignored.
      rest: weight of the displacement from the pose of `d`, a number or (nv,).
      iterations: iteration limit.
      solver: a least-squares solver of optimistix, such as
        `optimistix.Dogleg(rtol=1e-9, atol=1e-9)`; None: the Levenberg-Marquardt method.

    Returns:
      A Pose.

    Raises:
      ImportError: a solver is given, and the extra `control` is not installed.
      ValueError: a name or shape is wrong.
    """
    check_model("inverse_kinematics", m)
    check_data("inverse_kinematics", m, d)
    iterations = check_count("inverse_kinematics: iterations", iterations)
    for target in targets:
        name2id(m, target.kind, target.name)
    dtype = m.qpos0.dtype
    there = carry_results(m, d, [name for t in targets for name in _TARGET_KINDS[t.kind]])
    hold = jnp.broadcast_to(jnp.asarray(rest).astype(dtype), (m.nv,))
    still = jnp.zeros(m.nv + m.na, dtype)

    def pose(dq: jax.Array) -> jax.Array:
        return apply_tangent(m, d, jnp.concatenate([dq, still])).qpos

    def errors(qpos: jax.Array) -> jax.Array:
        found = kinematics(m, there.replace(qpos=qpos))
        return jnp.concatenate([jnp.zeros(0, dtype), *(t.residual(m, found) for t in targets)])

    def residuals(dq: jax.Array) -> jax.Array:
        qpos = pose(dq)
        return jnp.concatenate([errors(qpos), limits * _limit_violation(m, qpos), hold * dq])

    qpos = pose(_minimize(residuals, jnp.zeros(m.nv, dtype), iterations, solver))
    error = jnp.max(jnp.abs(errors(qpos)), initial=0)
    return Pose(qpos, error, jnp.max(jnp.abs(_limit_violation(m, qpos)), initial=0))


def _minimize(
    residuals: Callable[[jax.Array], jax.Array], start: jax.Array, iterations: int, solver: Any
) -> jax.Array:
    """Return the minimum of least squares, by a solver of optimistix or Levenberg-Marquardt."""
    if solver is None:
        return levenberg_marquardt(
            residuals, start, iterations=iterations, damping=INITIAL_DAMPING, uniform=True
        ).x
    return minimize_with_optimistix(
        residuals, solver, start, iterations=iterations, extra="control"
    ).x


def _limit_violation(m: Model, qpos: jax.Array) -> jax.Array:
    """Return the limit violations of slide and hinge joints; ball joints are not included."""
    scalar = np.isin(m.jnt_type, (JointType.SLIDE, JointType.HINGE))
    joints = np.flatnonzero(scalar & np.asarray(m.jnt_limited).astype(bool))
    q, limits = qpos[m.jnt_qposadr[joints]], m.jnt_range[joints]
    return q - jnp.clip(q, limits[:, 0], limits[:, 1])


def _rotation_error(mat: jax.Array, quat: jax.Array) -> jax.Array:
    """Return the orientation error of a frame, (9,).

    The difference of the rotation matrices over the root of 2: its norm is 2 sin(angle / 2), the
    angle itself if that is small, and it has no singularity.
    """
    goal = quat_to_mat(quat / jnp.sqrt(jnp.sum(quat * quat)))
    return ((mat - goal) / jnp.sqrt(2.0).astype(mat.dtype)).reshape(-1)
