"""Compile histories of controls and sensor readings: buffers of past samples, for delays."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.options.bounds import fits_bounds
from jaxsim.enums import Interpolation
from jaxsim.spec import SpecElement


def history(
    c: Compilation, kind: str, elements: list[SpecElement], width: np.ndarray, start: int
) -> int:
    """Add `<kind>_history` and addresses; a buffer has two numbers, and a time and values per
    sample.

    Returns:
      The end of the last buffer in `history`.
    """
    samples = np.array([_samples(c, e, n) for e, n in zip(elements, width, strict=True)], np.int32)
    order = np.array(
        [Interpolation[(e.get("interp") or "zoh").upper()] for e in elements], np.int32
    )
    for e, count in zip(elements, samples, strict=True):
        if (e.get("delay") or 0) > 0 and count <= 0:
            c.fault(e, "a delay needs a history; give nsample")
    size = np.where(samples > 0, 2 + samples * (1 + width), 0)
    adr = start + np.cumsum(size) - size
    c.fields[f"{kind}_history"] = np.stack([samples, order], axis=1).reshape(-1, 2)
    c.fields[f"{kind}_historyadr"] = np.where(size > 0, adr, -1).astype(np.int32)
    return start + int(size.sum())


def _samples(c: Compilation, e: SpecElement, width: int) -> int:
    samples = int(e.get("nsample") or 0)
    return samples if fits_bounds(c, e, "nsample", samples * (1 + int(width))) else 0
