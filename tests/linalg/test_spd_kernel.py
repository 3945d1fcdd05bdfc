"""Systems in a kernel of ours: the numbers are those of NumPy.

The kernel is interpreted here, operation by operation, which is what it computes on a device.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import ROUNDING

import jaxsim
from jaxsim.linalg.choose import Factorization, choose_factorization
from jaxsim.linalg.spd_kernel import solve_in_kernel
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
    def in_kernel(size: int, batched: bool, has_world_axis: bool = True) -> bool:
        with jaxsim.for_platform("cuda", kernels=True):
            choice = choose_factorization(size, batched, has_world_axis)
        return choice.form is Factorization.KERNEL

    assert in_kernel(3, batched=True)
    assert in_kernel(Tuning().max_kernel_dofs, batched=False)
    assert not in_kernel(Tuning().max_kernel_dofs + 1, batched=True)
    assert not in_kernel(3, batched=False, has_world_axis=False)
    assert choose_factorization(3, batched=True).form is not Factorization.KERNEL
