"""The steps of sliders."""

import math

STEPS = 100  # that a slider has at least


def step_of(span: float) -> float:
    """Return a step with one digit, of a slider over a span: a hundredth of it or less."""
    return float(10.0 ** math.floor(math.log10(max(span, 1e-6) / STEPS)))
