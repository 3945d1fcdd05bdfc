"""Limits on sizes: excessive ones are rejected before memory is allocated.

A few characters of text can request more than any machine has: a count in `<replicate>`, which
nests, a model that attaches another twice, a `<numeric size>`.
"""

from __future__ import annotations

from jaxsim.compile.context import Compilation
from jaxsim.spec import SpecElement

# Number of elements of a model, after replicating and attaching; each takes about a kilobyte.
MAX_ELEMENTS = 250_000

# Entries of one table of the compiled model; 800 MB.
MAX_NUMBERS = 100_000_000


def fits_bounds(c: Compilation, element: SpecElement | None, what: str, count: int) -> bool:
    """Return whether a table of this size is within bounds; report a fault of the element
    otherwise."""
    if count <= MAX_NUMBERS:
        return True
    c.fault(element, f"{what} has {count} numbers; the limit is {MAX_NUMBERS}")
    return False


def count_elements(c: Compilation, element: SpecElement, by: int) -> bool:
    """Count elements added to the model; return False, and report a fault, if they are too many."""
    c.expansion.elements += by
    if c.expansion.elements <= MAX_ELEMENTS:
        return True
    c.fault(element, f"the model grows beyond {MAX_ELEMENTS} elements here; reduce the count")
    return False
