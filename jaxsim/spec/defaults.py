"""Default classes: which `<default>` entries stand behind an element.

A class is found by name; nested classes inherit. An element uses the class it names, else the
`childclass` of the nearest enclosing body or frame, else `main`, the top-level class.
"""

from __future__ import annotations

from jaxsim.spec.element import SpecElement

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


def default_class(element: SpecElement) -> tuple[str, frozenset[str]] | None:
    """Return the class of an element, and the tags of its entries that apply; None if it takes
    none."""
    if element.parent is None or element.spec is None:
        return None
    family = _FAMILIES.get(element.parent.tag, {})
    if element.tag not in family:
        return None
    tags = family[element.tag] or frozenset({element.tag})
    return element.attrs.get("class") or element.childclass or MAIN, tags


def class_elements(root: SpecElement, name: str) -> list[SpecElement]:
    """Return the `<default>` elements that make up a class, outermost first; empty when there is
    none.

    Top-level `<default>` sections belong to `main`, whose name need not be written; those with
    another name are the root of the classes of an attached model. A class inside a section inherits
    from that section and those before it: what a later one adds to the root comes too late for it.
    """
    top = root.find_all("default")
    whole = [section for section in top if section.attrs.get("class", MAIN) == name]
    if whole or name == MAIN:
        return whole
    for number, section in enumerate(top):
        for element in section.walk():
            if element.tag == "default" and element.attrs.get("class") == name:
                outermost = section.attrs.get("class", MAIN)
                so_far = [e for e in top[: number + 1] if e.attrs.get("class", MAIN) == outermost]
                lineage = [element, *element.ancestors()]
                return so_far + lineage[: lineage.index(section)][::-1]
    return []
