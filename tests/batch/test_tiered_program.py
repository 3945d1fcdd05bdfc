"""A program in tiers: quick at first, optimized after it has run for a while."""

import time

import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.batch import tiered_program
from jaxsim.batch.stored_program import prepare_program
from jaxsim.batch.tiered_program import AwaitedProgram, ReplacedProgram

EXPECTED = 4 * np.sin(1) * np.cos(1)


def product(x):
    return jnp.sin(x) @ jnp.cos(x)


def prepare(tier: str, **options):
    return prepare_program(product, (jnp.ones(4),), tier=tier, **options)


@pytest.mark.parametrize("background", [False, True])
def test_results_are_those_of_the_function(background):
    for tier in tiered_program.TIERS:
        program = prepare(tier, background=background).program
        for _ in range(2):
            np.testing.assert_allclose(program(jnp.ones(4)), EXPECTED, rtol=1e-14)


@pytest.mark.parametrize(("tier", "replaced"), [("auto", True), ("fast", False)])
def test_the_optimized_program_takes_over_once_it_is_worth_its_compilation(tier, replaced):
    program = prepare(tier).program
    if not replaced:
        assert not isinstance(program, ReplacedProgram)
        return
    first = program.program
    program.compile_seconds = 3600.0
    program(jnp.ones(4))
    assert program.program is first
    program.compile_seconds = 0.0
    program(jnp.ones(4))
    while tiered_program.is_compiling():
        time.sleep(0.01)
    assert program.program is not first
    np.testing.assert_allclose(program(jnp.ones(4)), EXPECTED, rtol=1e-14)


def test_options_of_jit_reach_the_program():
    x = jnp.ones(4)
    options = {"donate_argnums": 0}
    program = prepare_program(lambda x: 2 * x, (x,), options=options).program
    np.testing.assert_array_equal(program(x), 2.0)
    assert x.is_deleted()


def fail():
    raise RuntimeError("out of memory")


def test_an_error_of_the_compiler_reaches_the_caller():
    program = AwaitedProgram(tiered_program.start_in_thread(fail), "compile the fit")
    with pytest.raises(RuntimeError, match="out of memory"):
        program(jnp.ones(4))
    while tiered_program.is_compiling():
        time.sleep(0.01)


def test_the_quick_program_goes_on_if_the_optimized_one_fails():
    program = ReplacedProgram(jnp.sin, 0.0, fail, "compile the fit")

    def run_until_optimized():
        program(1.0)
        while tiered_program.is_compiling():
            time.sleep(0.01)

    with pytest.warns(RuntimeWarning, match="compile the fit: .* out of memory"):
        run_until_optimized()
    assert float(program(1.0)) == float(jnp.sin(1.0))


def test_an_unknown_tier_is_refused():
    with pytest.raises(
        ValueError, match="tier: expected one of auto, fast, optimized, got 'quick'"
    ):
        prepare("quick")
