"""Systems in a kernel of ours: the numbers are those of NumPy.

The kernel is interpreted here, operation by operation, which is what it computes on a device.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import ROUNDING

from jaxsim.linalg.spd_kernel import solve_in_kernel, supports_rhs
from jaxsim.transforms.tuning import Tuning

pytestmark = pytest.mark.kernels


def system(n: int, worlds: int):
    """Positive definite matrices and right-hand sides."""
    rng = np.random.default_rng(n)
    root = rng.standard_normal((n, n, worlds))
    A = np.einsum("ikw,jkw->ijw", root, root) + n * np.eye(n)[:, :, None]
    return jnp.asarray(A), jnp.asarray(rng.standard_normal((n, worlds)))


@pytest.mark.parametrize("n", [1, 6, 31, 32, 70])
def test_solutions(n):
    """Sizes of one tile, of which 31 fills it, and of several."""
    A, b = system(n, 3)
    x = jax.jit(solve_in_kernel)(A, b)
    np.testing.assert_allclose(np.einsum("ijw,jw->iw", A, x), b, **ROUNDING)


def test_one_matrix_may_serve_all_worlds():
    A, b = system(4, 5)
    x = jax.jit(solve_in_kernel)(A[..., :1], b)
    np.testing.assert_allclose(np.einsum("ij,jw->iw", A[..., 0], x), b, **ROUNDING)


def test_one_world_and_large_systems_are_left_to_xla():
    assert supports_rhs(jnp.ones((3, 33)))
    assert supports_rhs(jnp.ones((Tuning().max_kernel_dofs, 1)))
    assert not supports_rhs(jnp.ones((Tuning().max_kernel_dofs + 1, 64)))
    assert not supports_rhs(jnp.ones(3))
    assert not supports_rhs(jnp.ones((0, 64)))
