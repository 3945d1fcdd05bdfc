"""Sizes that no sensible model has: they are refused before memory is spent on them.

A few characters of text can ask for more than any machine has: a count in `<replicate>`, which
nests, a model that attaches another twice, a `<numeric size>`.
"""

from __future__ import annotations

from jaxsim.compile.context import Compilation
from jaxsim.spec import SpecElement

# Elements of a model, after replicating and attaching; each takes about a kilobyte.
MAX_ELEMENTS = 250_000

# Numbers in one table of the compiled model; 800 MB.
MAX_NUMBERS = 100_000_000


def fits(c: Compilation, element: SpecElement | None, what: str, count: int) -> bool:
    """Return whether a table of so many numbers is within bounds; a fault of the element if not."""
    if count <= MAX_NUMBERS:
        return True
    c.fault(element, f"{what} asks for {count} numbers; the most is {MAX_NUMBERS}")
    return False


def grows(c: Compilation, element: SpecElement, by: int) -> bool:
    """Counts elements put into the model; a fault of the element when they are too many."""
    c.growth.elements += by
    if c.growth.elements <= MAX_ELEMENTS:
        return True
    c.fault(element, f"the model grows beyond {MAX_ELEMENTS} elements here; ask for fewer")
    return False
