"""What the physics cannot run yet, found before the first step is traced.

A physics module that handles only a part of what MJCF can say has a function `refusals(m)`, which
yields one message for each thing it cannot simulate: the element with its name, and the remedy.
"""

from collections.abc import Callable, Iterable

from jaxsim.errors import ModelError, Place, Problem
from jaxsim.model import Model

REFUSALS: tuple[Callable[[Model], Iterable[str]], ...] = ()


def refuse_unsupported(m: Model, origin: str | None = None) -> None:
    """Raises ModelError with everything in the model that cannot be simulated."""
    place = Place(origin)
    problems = [Problem(place, message) for refusals in REFUSALS for message in refusals(m)]
    if problems:
        raise ModelError(problems)


def contact_capacity(m: Model) -> int:
    """Contacts a world has room for, if the caller does not say."""
    return 0
