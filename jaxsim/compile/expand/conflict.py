"""Resolve `<compiler conflict>`: global settings of an attached model that differ from the model's.

Source: the table "Attribute Merging" of MuJoCo's chapter on model editing. Only settings that both
models have written can conflict. `warning` and `error` keep the model's own value, `merge` takes
the smaller, the larger or the union of both, and settings that only the attached model has.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.enums import DisableBit, EnableBit
from jaxsim.spec import Spec, SpecElement

_log = logging.getLogger(__name__)

# The merged value of two settings; None if they cannot be merged.
Merge = Callable[[Any, Any], Any]

_SECTIONS: dict[str, dict[Merge, str]] = {
    "option": {
        min: "timestep tolerance ls_tolerance noslip_tolerance ccd_tolerance sleep_tolerance",
        max: "iterations ls_iterations noslip_iterations ccd_iterations sdf_iterations"
        " sdf_initpoints",
        lambda own, other: None: "gravity wind magnetic density viscosity integrator cone jacobian"
        " solver impratio o_margin o_solref o_solimp o_friction",
    },
    "size": {
        max: "nkey nuserdata nuser_body nuser_jnt nuser_geom nuser_site nuser_cam nuser_tendon"
        " nuser_actuator nuser_sensor",
    },
    "visual/map": {min: "znear", max: "zfar"},
    "visual/global": {min: "realtime"},
}

# The word of a flag that takes precedence when both are merged.
_FLAGS = {bit.name.lower(): "disable" for bit in DisableBit if bit.name} | {
    bit.name.lower(): "enable" for bit in EnableBit if bit.name
}


def resolve_conflicts(c: Compilation, attach_element: SpecElement, child: Spec) -> None:
    """Resolve the global settings before a model is attached at an element."""
    policy = c.spec.setting("compiler", "conflict")
    for path, rules in _SECTIONS.items():
        merges = {attr: merge for merge, attrs in rules.items() for attr in attrs.split()}
        _settle(c, attach_element, child, path, merges, policy)
    flags: dict[str, Merge] = {name: partial(_merge_flag, word) for name, word in _FLAGS.items()}
    _settle(c, attach_element, child, "option/flag", flags, policy)
    if policy == "merge":
        _join_groups(c, child)


def _settle(
    c: Compilation,
    attach_element: SpecElement,
    child: Spec,
    path: str,
    merges: dict[str, Merge],
    policy: str,
) -> None:
    """Resolve the attributes of one section."""
    tag, _, inner = path.partition("/")
    own, other = (spec.settings(tag, inner or None) for spec in (c.spec, child))
    for attr in [attr for attr in other if attr in merges]:
        value = other[attr]
        if attr not in own:
            if policy == "merge":
                c.spec.at(path).attrs[attr] = value
            continue
        if np.array_equal(own[attr], value):
            continue
        both = (
            f"{attr} is {_format_value(own[attr])} here "
            f"and {_format_value(value)} in the attached model"
        )
        merged = merges[attr](own[attr], value) if policy == "merge" else None
        if merged is not None:
            c.spec.at(path).attrs[attr] = merged
        elif policy == "warning":
            _log.warning(
                "%s: %s: %s; the value here counts",
                attach_element.place,
                attach_element.label,
                both,
            )
        else:
            remedy = f"make them equal, or set <compiler conflict='{_CONFLICT_FALLBACK[policy]}'/>"
            c.fault(attach_element, f"{both}; {remedy}")


_CONFLICT_FALLBACK = {"merge": "warning", "error": "merge"}


def _merge_flag(word: str, own: str, other: str) -> str:
    """Return the merged flag of two models: the word that differs from the default, if either has
    it."""
    return word if word in (own, other) else own


def _join_groups(c: Compilation, child: Spec) -> None:
    """Set the union of the disabled actuator groups."""
    attr = "actuatorgroupdisable"
    groups = [spec.settings("option").get(attr, ()) for spec in (c.spec, child)]
    joined = np.unique(np.concatenate([np.atleast_1d(np.array(g, np.int64)) for g in groups]))
    if len(joined):
        c.spec.at("option").attrs[attr] = joined


def _format_value(value: Any) -> str:
    return (
        "'" + " ".join(f"{x:g}" if isinstance(x, float) else str(x) for x in np.ravel(value)) + "'"
    )
