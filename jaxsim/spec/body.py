"""The kinematic tree of a Spec as a list of bodies in MuJoCo's order; frames are transparent."""

from __future__ import annotations

from dataclasses import dataclass, field

from jaxsim.spec.element import SpecElement

_GROUPS = {
    "joint": "joints",
    "freejoint": "joints",
    "geom": "geoms",
    "site": "sites",
    "camera": "cameras",
    "light": "lights",
}


@dataclass(eq=False)
class Body:
    """View of one body: its parent, children and attached elements; created on each request.

    `element` is the `<body>`; for the world it is the first `<worldbody>`, or an empty one if there
    is none. `others` are children with other tags, such as `<plugin>`. Contents of frames belong to
    the body around the frames, which `SpecElement.frames` returns.
    """

    element: SpecElement
    id: int
    parent: Body | None
    depth: int = 0
    joints: list[SpecElement] = field(default_factory=list)
    geoms: list[SpecElement] = field(default_factory=list)
    sites: list[SpecElement] = field(default_factory=list)
    cameras: list[SpecElement] = field(default_factory=list)
    lights: list[SpecElement] = field(default_factory=list)
    inertial: SpecElement | None = None
    bodies: list[Body] = field(default_factory=list)
    others: list[SpecElement] = field(default_factory=list)

    @property
    def name(self) -> str | None:
        """Return the body's name; the world is always called `world`."""
        return "world" if self.parent is None else self.element.name


def bodies_of(root: SpecElement) -> list[Body]:
    """Return all bodies of a tree, depth first, the world first."""
    worlds = root.find_all("worldbody")
    if not worlds:
        row = root.row.children["worldbody"]
        worlds = [SpecElement("worldbody", row=row, place=root.place)]
    world = Body(element=worlds[0], id=0, parent=None)
    order = [world]
    nested = [child for element in worlds for child in _sort_contents(world, element)]
    stack = [(world, child) for child in reversed(nested)]
    while stack:
        parent, element = stack.pop()
        body = Body(element=element, id=len(order), parent=parent, depth=parent.depth + 1)
        parent.bodies.append(body)
        order.append(body)
        stack.extend((body, child) for child in reversed(_sort_contents(body, element)))
    return order


def _sort_contents(body: Body, element: SpecElement) -> list[SpecElement]:
    """Sort the contents of a body into its groups; return its child `<body>` elements."""
    nested = []
    stack = list(reversed(element.children))
    while stack:
        child = stack.pop()
        if child.tag == "frame":
            stack.extend(reversed(child.children))
        elif child.tag == "body":
            nested.append(child)
        elif child.tag == "inertial":
            body.inertial = child
        elif child.tag in _GROUPS:
            getattr(body, _GROUPS[child.tag]).append(child)
        else:
            body.others.append(child)
    return nested
