"""Report duplicate names that the assignment of ids cannot detect.

Frames get no ids; discarded and fused elements are gone by then.
"""

from __future__ import annotations

from jaxsim.compile.context import Compilation
from jaxsim.compile.step import declare_pass
from jaxsim.spec import SpecElement
from jaxsim.spec.references import Name


@declare_pass(needs="read_settings")
def refuse_repeated_names(c: Compilation) -> None:
    """Report duplicate names, as MuJoCo does."""
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
