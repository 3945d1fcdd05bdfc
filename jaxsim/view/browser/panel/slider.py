"""Step sizes of sliders."""

import math

_MIN_SLIDER_STEPS = 100  # smallest number of steps of a slider


def step_of(span: float) -> float:
    """Return a one-digit step for a slider over a span, at most a hundredth of it."""
    return float(10.0 ** math.floor(math.log10(max(span, 1e-6) / _MIN_SLIDER_STEPS)))
