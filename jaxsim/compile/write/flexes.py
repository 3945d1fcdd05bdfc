"""Write changed values of flexes to their elements; see `write_back`."""

from __future__ import annotations

from jaxsim.compile.context import Compilation
from jaxsim.compile.write.changes import Changes
from jaxsim.spec import SpecElement

_OF_FLEX = {"flex_radius": "radius", "flex_rgba": "rgba"}
# The points of a flex: the attribute, the fields, and their address and count.
_POINTS = {
    "flex_vert": ("vertex", "flex_vertadr", "flex_vertnum"),
    "flex_node": ("nodecoord", "flex_nodeadr", "flex_nodenum"),
}
FLEX_FIELDS = (*_OF_FLEX, *_POINTS, "flex_yield")


def write_flexes(c: Compilation, changes: Changes) -> None:
    """Write radii, colors, yield strains, and positions of points in their bodies."""
    new = changes.new
    elements: list[SpecElement] = c.elements["flex"]
    for field, attr in _OF_FLEX.items():
        for i in changes.rows(field):
            elements[i].set(attr, new[field][i])
    for i in changes.rows("flex_yield"):
        part = elements[i].find("elasticity") or elements[i].add("elasticity")
        part.set("yield", new["flex_yield"][i])
    for field, (attr, start, number) in _POINTS.items():
        rows = changes.rows(field)
        for i, element in enumerate(elements):
            adr, count = int(new[start][i]), int(new[number][i])
            if any(adr <= row < adr + count for row in rows):
                element.set(attr, new[field][adr : adr + count].ravel())
