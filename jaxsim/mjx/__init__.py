"""Programs written for MJX: `import jaxsim.mjx as mjx` in the place of `from mujoco import mjx`.

Here are the names that differ; all others are those of `jaxsim`.
"""

import sys
from typing import Any

from jaxsim import enums
from jaxsim.mjx import math as math
from jaxsim.mjx.stages import apply_ft as apply_ft
from jaxsim.mjx.stages import contact_force as contact_force
from jaxsim.mjx.stages import factor_m as factor_m
from jaxsim.mjx.stages import full_m as full_m
from jaxsim.mjx.stages import id2name as id2name
from jaxsim.mjx.stages import is_sparse as is_sparse
from jaxsim.mjx.stages import jac as jac
from jaxsim.mjx.stages import name2id as name2id
from jaxsim.mjx.stages import ray as ray
from jaxsim.mjx.stages import rne as rne
from jaxsim.mjx.stages import tendon_armature as tendon_armature

CamLightType = enums.CamLight

# names of MJX that have no counterpart: why, or what takes their place
ABSENT = {
    **dict.fromkeys(
        ("DataJAX", "ModelJAX", "OptionJAX", "DataCPP", "ModelCPP"),
        "one engine: its fields are those of Data, Model and Option",
    ),
    "ConvexMesh": "hulls are tables of the model, m.hull_*",
    "PyTreeNode": "a record of one's own is a flax.struct or jax.tree_util dataclass",
    **dict.fromkeys(
        "render render_with_segmentation create_render_context refit_bvh get_rgb get_depth "
        "get_segmentation".split(),
        "MJX-Warp's renderer; jaxsim.render(m, d, camera, width, height) draws",
    ),
    "benchmark": "benchmarks/throughput.py",
    "deriv_smooth_vel": "jaxsim.derivative.transition has the derivatives of a step",
    "tree_path_to_attr_str": "jax.tree_util.keystr(path)",
}


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name in ABSENT:
        raise AttributeError(f"jaxsim.mjx has no {name!r}: {ABSENT[name]}")
    return getattr(sys.modules["jaxsim"], name)


def __dir__() -> list[str]:
    return sorted({*globals(), *dir(sys.modules["jaxsim"])})
