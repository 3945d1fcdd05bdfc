"""A program in tiers: quick at first, optimized after it has run for a while."""

import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxsim.batch import tiered_program
from jaxsim.batch.tiered_program import ReplacedProgram, TieredProgram


def lowered():
    return jax.jit(lambda x: jnp.sin(x) @ jnp.cos(x)).lower(jnp.ones(4))


def test_results_are_those_of_the_function():
    expected = 4 * np.sin(1) * np.cos(1)
    for tier in tiered_program.TIERS:
        program = TieredProgram(lowered(), "compile", tier)
        np.testing.assert_allclose(program(jnp.ones(4)), expected, rtol=1e-14)


@pytest.mark.parametrize(("tier", "replaced"), [("auto", True), ("fast", False)])
def test_the_optimized_program_takes_over_once_it_is_worth_its_compilation(tier, replaced):
    program = TieredProgram(lowered(), "compile", tier)
    first = program._program
    if not replaced:
        assert not isinstance(first, ReplacedProgram)
        return
    first, program = first.program, first
    program.compile_seconds = 3600.0
    program(jnp.ones(4))
    assert program.program is first
    program.compile_seconds = 0.0
    program(jnp.ones(4))
    while tiered_program.is_compiling():
        time.sleep(0.01)
    assert program.program is not first
    np.testing.assert_allclose(program(jnp.ones(4)), 4 * np.sin(1) * np.cos(1), rtol=1e-14)


@pytest.mark.parametrize("tier", tiered_program.TIERS)
def test_a_program_compiled_in_the_background_is_waited_for(tier):
    program = TieredProgram(lowered(), "compile", tier, background=True)
    np.testing.assert_allclose(program(jnp.ones(4)), 4 * np.sin(1) * np.cos(1), rtol=1e-14)
    assert program.compile_seconds > 0


def test_an_error_of_the_compiler_reaches_the_caller():
    class Broken:
        def compile(self, options):
            raise RuntimeError("out of memory")

    program = TieredProgram(Broken(), "compile", background=True)
    with pytest.raises(RuntimeError, match="out of memory"):
        program(jnp.ones(4))
    while tiered_program.is_compiling():
        time.sleep(0.01)


def test_the_quick_program_goes_on_if_the_optimized_one_fails():
    class Half:
        def compile(self, options=None):
            if options is None:
                raise RuntimeError("out of memory")
            return jnp.sin

    program = TieredProgram(Half(), "compile the fit")
    program._program.compile_seconds = 0.0

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
        TieredProgram(lowered(), "compile", "quick")
