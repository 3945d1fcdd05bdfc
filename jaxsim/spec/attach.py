"""Attachment: a part of a model becomes part of another, with all that belongs to it.

The part is a body, a frame, or the contents of the world. With it come the classes and assets of
its model, and those elements outside the tree that refer to nothing but the part: sensors,
actuators, tendons. Elements keep the compiler settings of the model they were written in
(`SpecElement.settings`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxsim.spec.defaults import MAIN
from jaxsim.spec.element import SpecElement
from jaxsim.spec.references import Name, definition, references, rename

if TYPE_CHECKING:
    from jaxsim.spec.spec import Spec

# Sections that come along, each after those whose elements it may refer to.
_ASSETS = ("asset",)
_SECTIONS = (
    "deformable",
    "tendon",
    "contact",
    "equality",
    "actuator",
    "sensor",
    "custom",
    "keyframe",
)
_WORLD: Name = ("body", "world")


@dataclass(frozen=True, eq=False)
class Layout:
    """The model that a keyframe was written for: its elements, in order of their ids."""

    joints: tuple[SpecElement, ...]
    actuators: tuple[SpecElement, ...]
    mocaps: tuple[SpecElement, ...]


def attach_model(place: SpecElement, child: Spec, part: SpecElement | None, prefix: str) -> None:
    """Puts a part of another model in the place of an element; `child` is used up.

    Args:
      place: the element that gives way to the part, such as an `<attach>`.
      child: the model, without `<attach>` and `<replicate>` elements.
      part: its body or frame that is attached; None for all it has.
      prefix: put before the names of everything that comes along.
    """
    spec = place.spec
    root = _world_frame(child, place) if part is None else part
    _record_layouts(child)
    root.attrs.setdefault("childclass", root.childclass or MAIN)
    _name_assets(child)
    inside = {name for e in root.walk() if (name := definition(e))}
    along = _belonging(child, inside)
    for element in along:
        if element.row.attribute("class") is not None and "class" not in element.attrs:
            element.attrs["class"] = MAIN

    # All names of the child get the prefix, those of its classes included.
    names = {name for e in child.walk() if (name := definition(e))} - {_WORLD}
    classes = _default_classes(child)
    new = {(kind, name): prefix + name for kind, name in names}
    new |= {("default", name): prefix + name for name in classes}
    defaults = _main_class(child)
    for tree in (root, *along, defaults):
        rename(tree, new)

    _replace(place, root)
    spec.root.adopt(defaults)
    for element in along:
        spec.last_section(element.parent.tag).adopt(element)


def attach_copy(place: SpecElement, part: SpecElement, prefix: str) -> None:
    """Puts a copy of a part of the same model in the place of an element."""
    spec = place.spec
    copy = part.copy()
    inside = {name for e in part.walk() if (name := definition(e))}
    users = []
    for section in _SECTIONS[:-1]:
        for element in spec.section(section):
            referred = {name for e in element.walk() for _, name in references(e)}
            if referred & inside and referred - _untouched(referred) <= inside:
                users.append(element)
                inside |= {name for e in element.walk() if (name := definition(e))}
    new = {(kind, name): prefix + name for kind, name in inside}
    copy.attrs.setdefault("childclass", part.childclass or MAIN)
    rename(_replace(place, copy), new)
    for user in users:
        rename(spec.last_section(user.parent.tag).adopt(user.copy()), new)


def _replace(place: SpecElement, part: SpecElement) -> SpecElement:
    """Puts an element where another is, which goes; returns it."""
    parent, index = place.parent, place.parent.children.index(place)
    place.remove()
    return parent.adopt(part, index)


def _belonging(child: Spec, inside: set[Name]) -> list[SpecElement]:
    """The elements outside the tree that come along; `inside` gains what they define."""
    along = list(child.section("asset"))
    for section in _SECTIONS:
        for element in child.section(section):
            referred = {name for e in element.walk() for _, name in references(e)}
            if referred - _untouched(referred) <= inside:
                along.append(element)
                inside |= {name for e in element.walk() if (name := definition(e))}
    return along


def _untouched(names: set[Name]) -> set[Name]:
    """Names that are there in any case: the world, classes and assets."""
    kinds = ("default", "material", "texture", "mesh", "hfield", "plugin")
    return {name for name in names if name == _WORLD or name[0] in kinds}


def _world_frame(child: Spec, place: SpecElement) -> SpecElement:
    """The contents of the world, in a frame of their own."""
    worlds = child.sections("worldbody")
    frame = SpecElement(
        "frame", place=place.place, row=child.root.row.child("worldbody").child("frame")
    )
    for element in [e for world in worlds for e in world.children]:
        frame.adopt(element)
    return (worlds[0] if worlds else child.root).adopt(frame)


def _record_layouts(child: Spec) -> None:
    """Notes on each keyframe which joints, actuators and mocap bodies its numbers are for."""
    keys = [key for key in child.section("keyframe") if key.layout is None]
    if not keys:
        return
    bodies = child.bodies
    layout = Layout(
        joints=tuple(joint for body in bodies for joint in body.joints),
        actuators=tuple(child.section("actuator")),
        mocaps=tuple(b.element for b in bodies if b.id and b.element.get("mocap") == "true"),
    )
    for key in keys:
        key.layout = layout


def _name_assets(child: Spec) -> None:
    """Writes out the names that assets have from their files, so that they get the prefix."""
    for element in child.section("asset"):
        name = element.asset_name
        if name is not None:
            element.attrs["name"] = name


def _default_classes(child: Spec) -> set[str]:
    classes = {e.attrs["class"] for e in child.walk() if e.tag == "default" and "class" in e.attrs}
    return classes | {MAIN}


def _main_class(child: Spec) -> SpecElement:
    """All default sections of a model as one class that has a name."""
    main = SpecElement("default", {"class": MAIN}, row=child.root.row.child("default"))
    for section in child.sections("default"):
        main.place = section.place
        for element in list(section.children):
            main.adopt(element)
    return main
