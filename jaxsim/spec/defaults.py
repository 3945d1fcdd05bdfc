"""Resolve default classes: the `<default>` entries that apply to an element.

Classes are identified by name; nested classes inherit. An element uses the class it names, else the
`childclass` of the nearest enclosing body or frame, else `main`, the top-level class.
"""

from __future__ import annotations

from jaxsim.spec.element import SpecElement

MAIN_CLASS = "main"

# A class has a single actuator default: every shortcut in it edits that one, in document order.
ACTUATOR_TAGS = frozenset(
    "general motor position velocity intvelocity orientation pid damper cylinder muscle adhesion"
    " dcmotor plugin".split()
)

# Parents of elements that take defaults, and the tags of the entries that supply them; None: the
# element's own tag.
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
    "actuator": dict.fromkeys(ACTUATOR_TAGS, ACTUATOR_TAGS),
}


def default_class(element: SpecElement) -> tuple[str, frozenset[str]] | None:
    """Return the class of an element, and the tags of its entries that apply; None if it takes no
    defaults."""
    if element.parent is None or element.spec is None:
        return None
    family = _FAMILIES.get(element.parent.tag, {})
    if element.tag not in family:
        return None
    tags = family[element.tag] or frozenset({element.tag})
    return element.attrs.get("class") or element.childclass or MAIN_CLASS, tags


def class_elements(root: SpecElement, name: str) -> list[SpecElement]:
    """Return the `<default>` elements that make up a class, outermost first; empty if there is
    none.

    Top-level `<default>` sections belong to `main`, whose name may be omitted; those with another
    name are the root of the classes of an attached model. A class inside a section inherits from
    that section and earlier ones, but not from later ones.
    """
    top = root.find_all("default")
    whole = [section for section in top if section.attrs.get("class", MAIN_CLASS) == name]
    if whole or name == MAIN_CLASS:
        return whole
    for number, section in enumerate(top):
        for element in section.walk():
            if element.tag == "default" and element.attrs.get("class") == name:
                outermost = section.attrs.get("class", MAIN_CLASS)
                so_far = [
                    e for e in top[: number + 1] if e.attrs.get("class", MAIN_CLASS) == outermost
                ]
                lineage = [element, *element.ancestors()]
                return so_far + lineage[: lineage.index(section)][::-1]
    return []
