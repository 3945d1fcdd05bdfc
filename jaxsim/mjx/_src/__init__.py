"""Inner modules of MJX that programs import from: `jaxsim.mjx._src.math` and so on.

They are created from the table in `jaxsim.mjx.inner.names`, not from files.
"""

import sys
from typing import Any

from jaxsim.mjx.inner.missing_names import MODULES, missing_name_message
from jaxsim.mjx.inner.names import Inner

for _name in MODULES:
    _module = Inner(_name)
    sys.modules[_module.__name__] = globals()[_name] = _module


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(missing_name_message(__name__, name))
