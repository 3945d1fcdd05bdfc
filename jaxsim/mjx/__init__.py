"""Programs written for MJX: `import jaxsim.mjx as mjx` in the place of `from mujoco import mjx`.

Here are the names that differ; all others are those of `jaxsim`.
"""

import sys
from typing import Any

from jaxsim import enums
from jaxsim.mjx import math as math

CamLightType = enums.CamLight


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(sys.modules["jaxsim"], name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(sys.modules["jaxsim"])})
