"""Check default classes: unique declarations, and known names in all uses."""

from __future__ import annotations

from jaxsim.compile.context import Compilation
from jaxsim.compile.step import declare_pass
from jaxsim.spec import SpecElement
from jaxsim.spec.defaults import MAIN_CLASS
from jaxsim.spec.references import references
from jaxsim.spelling import remedy


@declare_pass()
def classes(c: Compilation) -> None:
    """Check the declarations of classes and the uses of their names."""
    declared: dict[str, SpecElement] = {}
    for section in c.spec.sections("default"):
        for element in section.walk():
            attached = element.own("class") not in (
                None,
                MAIN_CLASS,
            )  # the main class of another model
            if element.tag == "default" and (element is not section or attached):
                _declare(c, element, declared)
    known = [MAIN_CLASS, *declared]
    for element in c.spec.walk():
        if element.tag == "default":
            continue
        for attr, (kind, name) in references(element):
            if kind == "default" and name not in known:
                end = remedy(name, known)
                c.fault(element, f"{attr}='{name}' names no default class{end}")


def _declare(c: Compilation, element: SpecElement, declared: dict[str, SpecElement]) -> None:
    name = element.own("class")
    if name == MAIN_CLASS or not _may_define_class(c, element, declared.get(name)):
        c.fault(element, f"class '{name}' is declared already; rename one, or merge them")
    declared.setdefault(name, element)


def _may_define_class(c: Compilation, element: SpecElement, first: SpecElement | None) -> bool:
    """Return whether a class is new, or is the main class of one attached model, in several
    sections."""
    if first is None:
        return True
    sections = element.parent is first.parent is c.spec.root
    return sections and element.origin is not None and element.origin is first.origin
