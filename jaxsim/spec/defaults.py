"""Default classes: which `<default>` entries stand behind an element.

A class is found by name; nested classes inherit. An element uses the class it names, else the
`childclass` of the nearest enclosing body or frame, else `main`, the top-level class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jaxsim.spec.element import SpecElement
    from jaxsim.spec.spec import Spec

MAIN = "main"

# A class has one default for all actuators: each shortcut in it edits that one, in document order.
ACTUATORS = frozenset(
    "general motor position velocity intvelocity orientation pid damper cylinder muscle adhesion"
    " dcmotor plugin".split()
)

# Parents of elements that take defaults, and the tags of the entries that supply them;
# None stands for the element's own tag.
_KINEMATIC = dict.fromkeys(("joint", "geom", "site", "camera", "light"))
_FAMILIES: dict[str, dict[str, frozenset[str] | None]] = {
    "worldbody": _KINEMATIC,
    "body": _KINEMATIC,
    "frame": _KINEMATIC,
    "replicate": _KINEMATIC,
    "asset": dict.fromkeys(("mesh", "texture", "material")),
    "contact": {"pair": None},
    "equality": dict.fromkeys(
        ("connect", "weld", "joint", "tendon", "flex", "flexstrain"), frozenset({"equality"})
    ),
    "tendon": dict.fromkeys(("spatial", "fixed"), frozenset({"tendon"})),
    "actuator": dict.fromkeys(ACTUATORS, ACTUATORS),
}


def default_layers(element: SpecElement) -> list[SpecElement]:
    """The default entries behind an element, outermost class first, in document order."""
    if element.parent is None or element.spec is None:
        return []
    family = _FAMILIES.get(element.parent.tag, {})
    if element.tag not in family:
        return []
    tags = family[element.tag] or {element.tag}
    name = element.attrs.get("class") or element.childclass or MAIN
    return element.spec.default_entries(name, tags)


def class_elements(spec: Spec, name: str) -> list[SpecElement]:
    """The `<default>` elements that make up a class, outermost first; empty when there is none.

    Top-level `<default>` sections belong to `main`, whose name need not be written; one with
    another name is the root of the classes of an attached model.
    """
    top = spec.root.find_all("default")
    main = [section for section in top if section.attrs.get("class", MAIN) == MAIN]
    if name == MAIN:
        return main
    for section in top:
        for element in section.walk():
            if element.tag == "default" and element.attrs.get("class") == name:
                root = main if section in main else [section]
                lineage = [element, *element.ancestors()]
                return root + lineage[: lineage.index(section)][::-1]
    return []
