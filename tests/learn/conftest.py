"""Settings of JAX in which rejax and the learners run: single precision, standard promotion."""

import jax
import pytest


@pytest.fixture(scope="module")
def single_precision():
    standard, allow = jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow")
    with jax.enable_x64(False), standard, allow:
        yield
