"""Run the passes of the compiler on a copy of a model."""

from __future__ import annotations

from jaxsim.compile.context import Compilation
from jaxsim.compile.passes import PASSES
from jaxsim.spec import Spec


def run_passes(spec: Spec) -> Compilation:
    """Return the compilation of a model after the last pass; the model itself is not changed.

    Raises:
      ModelError: the model cannot be compiled; it lists every fault found by the pass that failed.
    """
    c = Compilation(spec=spec.copy())
    for element, source in zip(c.spec.walk(), spec.walk(), strict=True):
        element.source = source
    for step in PASSES:
        step(c)
        # A later pass may rely on the checks of an earlier one.
        c.problems.raise_if_any()
    return c
