"""Attach a part of a model to another model, together with the elements that it needs.

The part is a body, a frame, or the contents of the world. With it the classes and assets of its
model are added, and those elements outside the tree that refer to the part alone: sensors,
actuators, tendons. Elements keep the compiler settings of the model in which they were written
(`SpecElement.origin`).
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

from jaxsim.mjcf.write import to_xml
from jaxsim.spec.defaults import MAIN_CLASS
from jaxsim.spec.element import SpecElement
from jaxsim.spec.layout import record_layouts
from jaxsim.spec.origin import Origin
from jaxsim.spec.references import Name, definition, rename
from jaxsim.spec.referrers import (
    REFERRING_SECTIONS,
    WORLD,
    is_torn,
    names_defined_before,
    outside_references,
    referenced_names,
)
from jaxsim.spec.tree import Tree

# Sections whose elements are attached too, each after those that it may refer to.
_SECTIONS = (*REFERRING_SECTIONS, "keyframe")
_POSE = ("pos", "quat", "axisangle", "xyaxes", "zaxis", "euler")


def attach_spec(
    tree: Tree,
    child: Tree,
    to: SpecElement,
    part: SpecElement | None,
    prefix: str,
    suffix: str,
) -> SpecElement:
    """Attach a part of a model; see `Spec.attach`."""
    if to.spec is not tree:
        raise ValueError(f"{to.label} is not part of this model; attach to one of its elements")
    if part is not None and (part.spec is not child or part.tag not in ("body", "frame")):
        raise ValueError(f"{part.label} is no body or frame of the model that is attached")
    waiting = next((e for e in child.walk() if e.tag == "attach"), None)
    if waiting is not None:
        raise ValueError(f"{waiting.label} is not expanded; attach jaxsim.flatten(child)")
    path = None if part is None else list(_indices(part))
    child = child.copy()
    copied = None if path is None else _descend(child.root, path)
    parts = _take_part(child, copied, prefix, suffix)
    own = {name for e in tree.walk() if (name := definition(e))}
    for element in (e for tree in (parts.root, *parts.along) for e in tree.walk()):
        name = definition(element)
        if name in own and _same_asset(tree, element) is None:
            message = f"a {name[0]} named '{name[1]}' exists already; choose another prefix"
            raise ValueError(message)
    record_layouts(tree.root)
    return _put_parts(tree, _make_holder_frame(to), parts)


def attach_model(
    tree: Tree, target: SpecElement, child: Tree, part: SpecElement | None, prefix: str
) -> None:
    """Replace an element by a part of another model; `child` is consumed.

    Args:
      tree: the model to which the part is added.
      target: the element to replace, such as an `<attach>`.
      child: the model, without `<attach>` and `<replicate>` elements.
      part: its body or frame to attach; None for the whole world.
      prefix: prefix of the names of all attached elements.
    """
    _put_parts(tree, target, _take_part(child, part, prefix, ""))


class _Parts(NamedTuple):
    """Attached elements: the part of the tree, elements of other sections, and default classes."""

    root: SpecElement
    along: list[SpecElement]
    defaults: list[SpecElement]


def _take_part(child: Tree, part: SpecElement | None, prefix: str, suffix: str) -> _Parts:
    """Return the part and the elements attached with it, under their new names."""
    origin = Origin(child.settings("compiler"), child.path, child.files, prefix, suffix)
    origins: dict[Origin | None, Origin] = {None: origin}
    for element in child.walk():
        own = element.origin
        if own is not None and own not in origins:
            origins[own] = own.nested_in(origin)
        element.origin = origins[own]
    root = _world_frame(child) if part is None else part
    record_layouts(child.root)
    root.attrs.setdefault("childclass", root.childclass or MAIN_CLASS)
    _name_assets(child)
    inside = {name for e in root.walk() if (name := definition(e))}
    along = _elements_attached_with(child, inside)
    for element in along:
        if element.row.attribute("class") is not None and "class" not in element.attrs:
            element.attrs["class"] = MAIN_CLASS

    # All names of the child are changed, those of its classes included.
    names = {name for e in child.walk() if (name := definition(e))} - {WORLD}
    names |= {("default", name) for name in _default_classes(child)}
    new = {(kind, name): prefix + name + suffix for kind, name in names}
    if not prefix + suffix:
        # the main classes of the two models are distinct
        new["default", MAIN_CLASS] = f"{child.modelname} {MAIN_CLASS}"
    defaults = _named_defaults(child, origin)
    for tree in (root, *along, *defaults):
        rename(tree, new)
    return _Parts(root, along, defaults)


def _put_parts(tree: Tree, target: SpecElement, parts: _Parts) -> SpecElement:
    """Replace an element by the attached elements; return the part of the tree."""
    _replace(target, parts.root)
    for section in _new_defaults(tree, parts.defaults):
        tree.root.adopt(section)
    for element in parts.along:
        if _same_asset(tree, element) is None:
            tree.last_section(element.holder.tag).adopt(element)
    return parts.root


def _same_asset(tree: Tree, element: SpecElement) -> SpecElement | None:
    """Return the equal asset that an earlier part of the same model has added, or None."""
    kind = element.defined_kind
    if element.parent is None or element.parent.tag != "asset" or kind is None:
        return None
    there = tree.find(kind, element.name) if element.name else None
    same = there is not None and there is not element and to_xml(there) == to_xml(element)
    return there if same else None


def _new_defaults(tree: Tree, defaults: list[SpecElement]) -> list[SpecElement]:
    """Return the default sections that no earlier part of the same model has added."""
    there = {to_xml(section) for section in tree.sections("default")}
    return [section for section in defaults if to_xml(section) not in there]


def attach_copy(tree: Tree, target: SpecElement, part: SpecElement, prefix: str) -> None:
    """Replace an element by a copy of a part of the same model."""
    copy = part.copy()
    inside = {name for e in part.walk() if (name := definition(e))}
    users = []
    known = names_defined_before(tree, target)
    for section in REFERRING_SECTIONS:
        for element in tree.section(section):
            if not referenced_names(element) & inside:
                continue
            elsewhere = outside_references(element, inside)
            if elsewhere - known:
                continue
            if not elsewhere or not is_torn(section, element, inside, moved=False):
                users.append(element)
                inside |= {name for e in element.walk() if (name := definition(e))}
    new = {(kind, name): prefix + name for kind, name in inside}
    copy.attrs.setdefault("childclass", part.childclass or MAIN_CLASS)
    rename(_replace(target, copy), new)
    for user in users:
        rename(tree.last_section(user.holder.tag).adopt(user.copy()), new)


def _make_holder_frame(to: SpecElement) -> SpecElement:
    """Return a new frame that will hold the part: inside `to`, or next to it if it is a site."""
    if to.tag != "site":
        return to.add("frame")
    poses = {name: to.attrs[name] for name in _POSE if name in to.attrs}
    if "fromto" in to.attrs:
        raise ValueError(f"{to.label} has its pose from fromto; attach to a frame")
    around = SpecElement("frame", poses, place=to.place, row=to.holder.row.children["frame"])
    around.origin = to.origin
    to.holder.adopt(around, to.holder.children.index(to) + 1)
    return around.add("frame")


def _indices(element: SpecElement) -> list[int]:
    """Return the path from the root to an element, as child indices."""
    line = [element, *element.ancestors()][::-1]
    return [above.children.index(below) for above, below in pairwise(line)]


def _descend(element: SpecElement, path: list[int]) -> SpecElement:
    for index in path:
        element = element.children[index]
    return element


def _replace(target: SpecElement, part: SpecElement) -> SpecElement:
    """Replace an element by another one; return the new one."""
    parent = target.holder
    index = parent.children.index(target)
    target.remove()
    return parent.adopt(part, index)


def _elements_attached_with(child: Tree, inside: set[Name]) -> list[SpecElement]:
    """Return the elements outside the tree to attach; the names they define are added to
    `inside`."""
    along = list(child.section("asset"))
    for section in _SECTIONS:
        for element in child.section(section):
            names = referenced_names(element)
            if names - _shared_names(names) <= inside:
                along.append(element)
                inside |= {name for e in element.walk() if (name := definition(e))}
    return along


def _shared_names(names: set[Name]) -> set[Name]:
    """Return the names that exist in any case: the world, classes and assets."""
    kinds = ("default", "material", "texture", "mesh", "hfield", "plugin")
    return {name for name in names if name == WORLD or name[0] in kinds}


def _world_frame(child: Tree) -> SpecElement:
    """Return the contents of the world, in a frame of their own."""
    worlds = child.sections("worldbody")
    row = child.root.row.children["worldbody"].children["frame"]
    frame = SpecElement("frame", place=child.root.place, row=row)
    for element in [e for world in worlds for e in world.children]:
        frame.adopt(element)
    return (worlds[0] if worlds else child.root).adopt(frame)


def _name_assets(child: Tree) -> None:
    """Set the names that assets have from their files explicitly, so that they get the prefix."""
    for element in child.section("asset"):
        name = element.asset_name
        if name is not None:
            element.attrs["name"] = name


def _default_classes(child: Tree) -> set[str]:
    classes = {e.attrs["class"] for e in child.walk() if e.tag == "default" and "class" in e.attrs}
    return classes | {MAIN_CLASS}


def _named_defaults(child: Tree, origin: Origin) -> list[SpecElement]:
    """Return the default sections of a model, detached; those of its main class get the model's
    name."""
    sections = child.sections("default")
    if not sections:
        sections = [child.last_section("default")]
        sections[0].origin = origin
    for section in sections:
        section.attrs.setdefault("class", MAIN_CLASS)
        section.remove()
    return sections
