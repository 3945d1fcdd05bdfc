"""The choice of matrix forms: which rule applies where, with its reason filled in."""

import pytest

import jaxsim
from jaxsim.linalg.choose import (
    Factorization,
    Form,
    HessianFacts,
    InertiaFacts,
    choose_factorization,
    choose_inverse,
    choose_operator,
)
from jaxsim.transforms import tuning
from jaxsim.transforms.derivative_context import trace_for_derivative
from jaxsim.transforms.tuning import Tuning

pytestmark = pytest.mark.kernels

LIMITS = Tuning()
SMALL, MEDIUM, LARGE = LIMITS.max_unrolled_dofs, LIMITS.max_tiled_dofs, LIMITS.max_tiled_dofs + 1


@pytest.mark.parametrize(
    ("platform", "facts", "form"),
    [
        ("cpu", InertiaFacts((60,), False, 100), Form.TREE_SPARSE),
        ("cuda", InertiaFacts((60,), False, 100), Form.DENSE),
        ("cpu", InertiaFacts((60,), True, 100), Form.DENSE),
        ("cpu", InertiaFacts((60,), False, 10**6), Form.DENSE),
        ("cpu", InertiaFacts((SMALL,), False, 100), Form.DENSE),
        ("cpu", InertiaFacts((6, 6), False, 10**6), Form.BLOCK_DIAGONAL),
        ("cuda", InertiaFacts((6, 6), False, 10**6), Form.BLOCK_DIAGONAL),
        ("cpu", InertiaFacts((6, 6), True, 10**6), Form.DENSE),
    ],
)
def test_forms_of_the_mass_matrix(platform, facts, form):
    with jaxsim.for_platform(platform):
        choice = choose_operator(facts)
    assert choice.form is form
    assert "{" not in choice.reason


@pytest.mark.parametrize(
    ("facts", "form", "by_world"),
    [
        (HessianFacts(SMALL, batched=True), Form.PACKED_LOWER, False),
        (HessianFacts(SMALL), Form.DENSE, False),
        (HessianFacts(MEDIUM, batched=True), Form.BLOCKED_LOWER, False),
        (HessianFacts(LARGE, batched=True), Form.DENSE, True),
        (HessianFacts(LARGE, batched=True, has_active_count=False), Form.DENSE, False),
        (HessianFacts(12, (6, 6), batched=True), Form.BLOCK_DIAGONAL, False),
        (HessianFacts(LARGE, (6,) * 17, batched=True), Form.BLOCK_DIAGONAL, True),
        (HessianFacts(MEDIUM, uncoupled_blocks=16), Form.SKYLINE, False),
        (HessianFacts(MEDIUM, uncoupled_blocks=16, batched=True), Form.SKYLINE, True),
        (HessianFacts(SMALL, uncoupled_blocks=8), Form.DENSE, False),
        (HessianFacts(SMALL, uncoupled_blocks=8, batched=True), Form.PACKED_LOWER, False),
        (
            HessianFacts(LARGE, batched=True, has_sparse_inertia=True, has_single_dof_rows=True),
            Form.TREE_SPARSE,
            False,
        ),
        (HessianFacts(LARGE, batched=True, has_sparse_inertia=True), Form.DENSE, True),
    ],
)
def test_forms_of_the_hessian_on_a_cpu(facts, form, by_world):
    with jaxsim.for_platform("cpu"):
        choice = choose_operator(facts)
    assert (choice.form, choice.by_world) == (form, by_world)
    assert "{" not in choice.reason


@pytest.mark.parametrize(
    ("facts", "form"),
    [
        (HessianFacts(LIMITS.max_kernel_dofs, suits_kernel=True, batched=True), Form.NEWTON_KERNEL),
        (HessianFacts(LIMITS.max_kernel_dofs + 1, suits_kernel=True, batched=True), Form.DENSE),
        (HessianFacts(LIMITS.max_kernel_dofs, batched=True), Form.DENSE),
        (HessianFacts(MEDIUM, uncoupled_blocks=16), Form.DENSE),
        (HessianFacts(12, (6, 6), batched=True), Form.BLOCK_DIAGONAL),
    ],
)
def test_forms_of_the_hessian_on_a_gpu(facts, form):
    with jaxsim.for_platform("cuda", kernels=True):
        choice = choose_operator(facts)
    assert (choice.form, choice.by_world) == (form, False)
    assert "{" not in choice.reason


def test_a_derivative_has_a_dense_hessian():
    """JAX differentiates its operations; entries of a tree are differentiable as well."""
    facts = HessianFacts(SMALL, (6,) * 8, uncoupled_blocks=8, batched=True, suits_kernel=True)
    assert choose_operator(facts, differentiated=True).form is Form.DENSE
    with jaxsim.for_platform("cuda", kernels=True):
        assert choose_operator(facts, differentiated=True).form is Form.DENSE
    tree = facts._replace(has_sparse_inertia=True, has_single_dof_rows=True)
    assert choose_operator(tree, differentiated=True).form is Form.TREE_SPARSE


@pytest.mark.parametrize(
    ("platform", "size", "batched", "algorithm"),
    [
        ("cpu", 8, True, Factorization.PANELS),
        ("cpu", 9, True, Factorization.ROWS),
        ("cpu", SMALL, False, Factorization.LDL_ROWS),
        ("cpu", SMALL + 1, True, Factorization.BLOCK_LOOPS),
        ("cpu", MEDIUM, True, Factorization.BLOCK_LOOPS),
        ("cpu", MEDIUM, False, Factorization.LDL_ROWS),
        ("cpu", LARGE, True, Factorization.LIBRARY),
        ("cpu", LIMITS.max_library_dofs + 1, False, Factorization.BLOCKS),
        ("tpu", SMALL, True, Factorization.PANELS),
        ("tpu", SMALL + 1, True, Factorization.LIBRARY),
        ("tpu", LIMITS.max_library_dofs + 1, False, Factorization.LIBRARY),
    ],
)
def test_algorithms_of_dense_blocks(platform, size, batched, algorithm):
    with jaxsim.for_platform(platform):
        assert choose_factorization(size, batched).form is algorithm


def test_algorithms_of_inverses():
    with jaxsim.for_platform("cpu"):
        assert choose_inverse(SMALL, batched=True).form is Factorization.PANELS
        assert choose_inverse(SMALL, batched=False).form is Factorization.LDL_ROWS
        assert choose_inverse(MEDIUM, batched=True).form is Factorization.BLOCK_LOOPS
        with trace_for_derivative():
            assert choose_inverse(MEDIUM, batched=True).form is Factorization.LIBRARY
        assert choose_inverse(LARGE, batched=True).form is Factorization.LIBRARY


def test_the_rules_read_the_thresholds_of_the_trace():
    facts, tree = HessianFacts(SMALL, batched=True), InertiaFacts((60,), False, 1000)
    with jaxsim.for_platform("cpu"), tuning.override(max_unrolled_dofs=SMALL - 1):
        choice = choose_operator(facts)
        assert choice.form is Form.BLOCKED_LOWER
        assert choice.thresholds == ("max_tiled_dofs", "max_unrolled_dofs")
        assert f"{SMALL - 1} to" in choice.reason
        assert choose_inverse(SMALL, batched=True).form is not Factorization.PANELS
    with jaxsim.for_platform("cpu"):
        assert choose_operator(facts).form is Form.PACKED_LOWER
        assert choose_operator(tree).form is Form.TREE_SPARSE
        with tuning.override(min_block_speedup=40):
            assert choose_operator(tree).form is Form.DENSE
