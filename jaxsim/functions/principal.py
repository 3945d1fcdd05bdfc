"""Principal axes of a matrix of second moments, with a derivative even where moments are equal."""

import jax
import jax.numpy as jnp

from jaxsim.functions.quaternion import mat_to_quat, mul_quat_axis, quat_to_mat


@jax.custom_jvp
def principal(second: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Return the principal axes and the separated eigenvalues of a matrix of second moments.

    Eigenvalues closer than sqrt(precision) times the trace are increased until they are distinct;
    the inertia stays physically valid.

    Args:
      second: symmetric, positive definite, (3, 3).

    Returns:
      quat (4,), eigenvalues (3,) in ascending order: second = R diag(eigenvalues) R'.
    """
    values, axes = jnp.linalg.eigh(second)
    apart = jnp.sqrt(jnp.finfo(second.dtype).eps).astype(second.dtype) * jnp.sum(values)
    middle = jnp.maximum(values[1], values[0] + apart)
    last = jnp.maximum(values[2], middle + apart)
    axes = axes * jnp.sign(jnp.linalg.det(axes))  # right-handed
    return mat_to_quat(axes), jnp.stack([values[0], middle, last])


@principal.defjvp
def _principal_jvp(primals, tangents):
    """Compute tangents from d(R D R') = R ([w] D - D [w] + dD) R', w the rotation of the axes in
    their own frame."""
    quat, values = principal(*primals)
    axes = quat_to_mat(quat)
    change = axes.T @ tangents[0] @ axes
    w = [change[i, j] / (values[j] - values[i]) for i, j in ((2, 1), (0, 2), (1, 0))]
    return (quat, values), (mul_quat_axis(quat, jnp.stack(w)) / 2, jnp.diag(change))
