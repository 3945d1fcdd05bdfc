"""Check elements before compilation: required attributes, rules between attributes, and names.

A file is checked when it is read; elements made or changed in Python are checked here.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.step import declare_pass
from jaxsim.mjcf.rules import broken_rules
from jaxsim.spec import SpecElement
from jaxsim.spec.references import Name


@declare_pass()
def check_written(c: Compilation) -> None:
    """Check every element of the model against its row of the schema."""
    for element in c.spec.walk():
        for name in element.row.required:
            if name not in element.attrs:
                c.fault(element, f"it needs the attribute '{name}'")
        quat = element.attrs.get("quat")
        if quat is not None and not np.any(quat) and not element.row.attrs["quat"].no_effect:
            c.fault(element, "quat must not be zero; '1 0 0 0' is no rotation")
        vertices = element.attrs.get("maxhullvert", -1)
        if element.parent is not None and element.parent.tag == "default" and -1 != vertices < 4:
            c.fault(element, f"maxhullvert='{vertices}' must be -1, or more than 3")
        if element.row.rules:
            for broken in broken_rules(element.row, element.attrs.keys()):
                c.fault(element, broken)


@declare_pass(needs="read_settings")
def refuse_repeated_names(c: Compilation) -> None:
    """Report duplicate names that the assignment of ids cannot detect, as MuJoCo does.

    Frames get no ids; discarded and fused elements are gone by then.
    """
    everything = c.settings.discardvisual or c.settings.fusestatic
    first: dict[Name, SpecElement] = {}
    for element in c.spec.walk():
        if not (everything or element.tag == "frame"):
            continue
        kind, own = element.defined_kind, element.asset_name
        if kind is None or own is None:
            continue
        known = first.setdefault((kind, own), element)
        if known is not element:
            message = f"a {kind} named '{own}' exists already (first at {known.place})"
            c.fault(element, f"{message}; rename one of them")
