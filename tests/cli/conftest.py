"""Commands run in the process of the tests."""

import jax
import pytest


@pytest.fixture(autouse=True)
def precision():
    """Each test gets back the precision that a command has set."""
    before = jax.config.jax_enable_x64
    yield
    jax.config.update("jax_enable_x64", before)
