"""Names that MJX has in one module, and jaxsim in several namespaces."""

import sys
from types import ModuleType

from jaxsim import enums, stages, support
from jaxsim.cache import bounded_cache


@bounded_cache(1)
def namespaces_by_name() -> dict[str, ModuleType]:
    """Return the namespace of each public name of `jaxsim`, `stages`, `support` and `enums`."""
    classes = [
        n for n, v in vars(enums).items() if isinstance(v, type) and v.__module__ == enums.__name__
    ]
    found = dict.fromkeys(classes, enums)
    for namespace in (support, stages, sys.modules["jaxsim"]):
        found |= dict.fromkeys(namespace.__all__, namespace)
    return found
