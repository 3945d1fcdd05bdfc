"""Compatibility module for programs written for MJX: replaces `from mujoco import mjx`.

    import jaxsim.mjx as mjx

Names whose functions differ are defined here; all others are those of `jaxsim`, `jaxsim.stages`,
`jaxsim.support` and `jaxsim.enums`.
"""

import sys
from typing import Any

from jaxsim import enums
from jaxsim.mjx import _src as _src
from jaxsim.mjx import math as math
from jaxsim.mjx.inner.brax import warn_about_pipeline_env
from jaxsim.mjx.inner.flat_names import namespaces_by_name
from jaxsim.mjx.inner.missing_names import (
    MJX_PACKAGE,
    MJX_REPLACEMENTS,
    Finder,
    missing_name_message,
)
from jaxsim.mjx.inner.pytree_node import PyTreeNode as PyTreeNode
from jaxsim.mjx.stages import apply_ft as apply_ft
from jaxsim.mjx.stages import com_pos as com_pos
from jaxsim.mjx.stages import contact_force as contact_force
from jaxsim.mjx.stages import crb as crb
from jaxsim.mjx.stages import factor_m as factor_m
from jaxsim.mjx.stages import full_m as full_m
from jaxsim.mjx.stages import id2name as id2name
from jaxsim.mjx.stages import is_sparse as is_sparse
from jaxsim.mjx.stages import jac as jac
from jaxsim.mjx.stages import make_constraint as make_constraint
from jaxsim.mjx.stages import make_data as make_data
from jaxsim.mjx.stages import name2id as name2id
from jaxsim.mjx.stages import put_data as put_data
from jaxsim.mjx.stages import ray as ray
from jaxsim.mjx.stages import rne as rne
from jaxsim.mjx.stages import rne_postconstraint as rne_postconstraint
from jaxsim.mjx.stages import subtree_vel as subtree_vel
from jaxsim.mjx.stages import tendon as tendon
from jaxsim.mjx.stages import tendon_armature as tendon_armature
from jaxsim.mjx.stages import transmission as transmission
from jaxsim.model.data import DataJAX as DataJAX
from jaxsim.model.model import Model
from jaxsim.model.option import Option
from jaxsim.model.record.record import Impl as Impl

CamLightType = enums.CamLight
# there is one engine: fields that MJX keeps in a record of an engine are in the record itself
ModelJAX, OptionJAX = Model, Option

sys.meta_path.append(Finder())
warn_about_pipeline_env()


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    if name not in MJX_REPLACEMENTS and name in namespaces_by_name():
        return getattr(namespaces_by_name()[name], name)
    raise AttributeError(missing_name_message(MJX_PACKAGE, name))


def __dir__() -> list[str]:
    own = {*globals()} - {
        "Any",
        "Finder",
        "MJX_REPLACEMENTS",
        "MJX_PACKAGE",
        "absent",
        "enums",
        "namespaces_by_name",
        "sys",
        "watch",
    }
    return sorted(own | namespaces_by_name().keys() - MJX_REPLACEMENTS.keys())
