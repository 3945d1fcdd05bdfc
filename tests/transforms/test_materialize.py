"""Values that pass through a branch, so that XLA computes them once."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import ROUNDING

import jaxsim
from jaxsim.transforms.materialize import materialize, materialize_decision, materialize_result

pytestmark = pytest.mark.kernels

X = np.random.default_rng(0).normal(size=(5, 3))


def formula(x):
    return jnp.sin(x) * x, jnp.cos(x)


def branches(f, *arguments) -> int:
    return jax.jit(f).lower(*arguments).as_text().count("stablehlo.case")


def test_values_of_a_batch_pass_through_one_branch():
    assert branches(lambda x: materialize(formula(x), x), X) == 1
    assert branches(lambda x: materialize(formula(x), x), X[:, 0]) == 0
    for ours, theirs in zip(materialize(formula(X), X), formula(X), strict=True):
        np.testing.assert_allclose(ours, theirs, **ROUNDING)


def test_other_platforms_have_no_branch():
    with jaxsim.for_platform("tpu"):
        assert branches(lambda x: materialize(formula(x), x), X) == 0
        assert branches(lambda x: materialize_result(formula, x), X) == 0


def test_a_function_is_evaluated_in_a_branch_and_traced_once():
    traces = []

    def counted(x):
        traces.append(x)
        return formula(x)

    for _ in range(3):  # three programs
        assert branches(lambda x: materialize_result(counted, x), X) == 1
    assert len(traces) == 1


def test_derivatives_pass_through_the_branch():
    def loss(x):
        return sum(jnp.sum(a) for a in materialize_result(formula, x))

    expected = jax.grad(lambda x: sum(jnp.sum(a) for a in formula(x)))(X)
    np.testing.assert_allclose(jax.jit(jax.grad(loss))(X), expected, **ROUNDING)


def test_a_decision_has_no_derivative():
    def loss(x):
        return jnp.sum(jnp.where(materialize_decision(lambda a: a > 0, x), x, 2 * x))

    np.testing.assert_array_equal(jax.grad(loss)(X), np.where(X > 0, 1, 2))
