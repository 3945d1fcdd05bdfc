"""Public physics functions by their name, whichever namespace has them."""

from collections.abc import Callable

import jaxsim

NAMESPACES = (jaxsim, jaxsim.stages, jaxsim.support)


def public(name: str) -> Callable:
    """Return the function of this name of `jaxsim`, `jaxsim.stages` or `jaxsim.support`."""
    home = next(space for space in NAMESPACES if name in space.__all__)
    return getattr(home, name)
