"""Check a plain XML tree against the schema and convert it to an `Element` tree.

All problems are collected. Checked are properties of a single file: names of elements and
attributes, types, counts, keywords, nesting, required and repeated parts, mutually exclusive
attributes. References and value ranges, such as a positive mass, are checked by the compiler.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

import numpy as np

from jaxsim.cache import bounded_cache
from jaxsim.errors import Problems
from jaxsim.mjcf.element import AttrValue, Element
from jaxsim.mjcf.parse import Node
from jaxsim.mjcf.rules import broken_rules
from jaxsim.mjcf.schema import ROOT, Row, walk
from jaxsim.mjcf.values import BadValue, read_value
from jaxsim.spelling import is_misspelling, remedy, suggest

_log = logging.getLogger(__name__)

# Elements outside the world that MuJoCo checks and then ignores.
_STRAY_TAGS = ("body", "frame")


def validate_document(root: Node, problems: Problems) -> Element | None:
    """Check a whole document.

    Args:
      root: the root element, includes expanded.
      problems: collects the errors.

    Returns:
      The typed tree, without the wrong parts; None if it is no MJCF model at all.
    """
    if root.tag != ROOT.tag:
        problems.add(root.place, _foreign_root(root))
        return None
    for name in [n for n in root.attrs if n.startswith("xmlns") or ":" in n]:
        del root.attrs[name]  # namespaces and the schema's location, for editors
    _set_aside(root, problems)
    return check_element(root, ROOT, problems)


def _set_aside(root: Node, problems: Problems) -> None:
    """Check bodies outside the world, as in a part of a model, and drop them."""
    rows = ROOT.children["worldbody"].children
    lost = [child for child in root.children if child.tag in _STRAY_TAGS]
    for child in lost:
        check_element(child, rows[child.tag], problems)
        _log.warning(
            "%s: %s stands outside <worldbody> and is ignored, as in MuJoCo",
            child.place,
            child.label,
        )
    root.children = [child for child in root.children if child not in lost]


def _foreign_root(root: Node) -> str:
    if root.tag == "mujocoinclude":
        return "<mujocoinclude> is a part of a model; load the file that includes it"
    return f"<{root.tag}> is not an MJCF model; the outermost element must be <mujoco>"


def check_element(node: Node, row: Row, problems: Problems) -> Element:
    """Check one element and all below it against a row; return the typed element."""
    top = _check_one(node, row, problems, row.loose)
    # No recursion: elements may be nested to the depth limit of the parser.
    stack = [(top, _children(node, row, problems), row.loose)]
    while stack:
        element, below, loose = stack[-1]
        found = next(below, None)
        if found is None:
            stack.pop()
            continue
        loose = loose or found[1].loose
        child = _check_one(*found, problems, loose)
        element.children.append(child)
        stack.append((child, _children(*found, problems), loose))
    return top


def _check_one(node: Node, row: Row, problems: Problems, loose: bool) -> Element:
    """Check one element without its children.

    Args:
      node, row, problems: as in `check_element`.
      loose: whether it is in or below a loose row, where MuJoCo requires no attributes.
    """
    element = Element(node.tag, {}, [], node.place, row)
    _take_attributes(node, element, row, problems, loose)
    _check_attributes(node, element, row, problems)
    if row.tag in _SPECIAL:
        _SPECIAL[row.tag](node, element, problems)
    return element


def _take_attributes(
    node: Node, element: Element, row: Row, problems: Problems, loose: bool
) -> None:
    """Convert the attributes of a row to their types."""
    for name, text in node.attrs.items():
        attr = row.attrs.get(name)
        if attr is None and loose and not is_misspelling(name, row.attrs):
            _log.warning(
                "%s: %s: attribute '%s' is ignored, as in MuJoCo", node.place, node.label, name
            )
            continue
        if attr is None:
            problems.add(node.place, f"{node.label} {_unknown_attribute(name, row)}")
            continue
        try:
            value = read_value(attr, text)
        except BadValue as error:
            problems.add(node.place, f"{node.label}: {error}")
            continue
        if value is not None:
            element.attrs[name] = value
            _tell_undefined(node, name, value)
        elif attr.kind == "default" and row.tag != "default":
            problems.add(node.place, f"{node.label}: {name} is empty; name a class, or remove it")


def _tell_undefined(node: Node, name: str, value: AttrValue) -> None:
    """Log nan values: they compile, and all results that depend on them are undefined."""
    if isinstance(value, float | np.ndarray) and np.any(value != value):
        _log.warning(
            "%s: %s: %s has nan, which is no number; MuJoCo takes it too, but write one",
            *(node.place, node.label, name),
        )


def _check_attributes(node: Node, element: Element, row: Row, problems: Problems) -> None:
    """Check required attributes, and rules between attributes, whether or not their values are
    valid."""
    empty = {name for name, text in node.attrs.items() if not text.strip()}
    for name in row.required:
        if name not in element.attrs and not node.attrs.get(name, "").strip():
            problems.add(node.place, f"{node.label} needs the attribute '{name}'")
    for broken in broken_rules(row, node.attrs.keys(), empty):
        problems.add(node.place, f"{node.label}: {broken}")


def _children(node: Node, row: Row, problems: Problems) -> Iterator[tuple[Node, Row]]:
    """Yield the allowed children of an element, with their rows."""
    first: dict[str, Node] = {}
    for child in node.children:
        child_row = row.children.get(child.tag)
        if child_row is None:
            problems.add(child.place, _misplacement_reason(child, node, row))
            continue
        if child_row.instead:
            problems.add(child.place, f"{child.label} {child_row.instead}")
            continue
        if child_row.occurs == "?" and child.tag in first:
            place = first[child.tag].place
            message = f"{node.label} has more than one <{child.tag}>; merge it with that of {place}"
            problems.add(child.place, message)
        first.setdefault(child.tag, child)
        yield child, child_row


def _unknown_attribute(name: str, row: Row) -> str:
    if not row.attrs:
        return f"has no attributes, got '{name}'"
    otherwise = f"; remove it, or see the reference of <{row.tag}>"
    if len(row.attrs) <= 12:
        otherwise = f"; it has: {', '.join(row.attrs)}"
    return f"has no attribute '{name}'{remedy(name, row.attrs, otherwise)}"


def _misplacement_reason(child: Node, parent: Node, row: Row) -> str:
    """Return why a child is not allowed: it belongs elsewhere, or it does not exist."""
    homes = _possible_parents().get(child.tag)
    if homes:
        places = ", ".join(f"<{tag}>" for tag in homes[:4])
        return f"{child.label} cannot stand in <{parent.tag}>; it belongs in {places}"
    here = suggest(child.tag, row.children) or suggest(child.tag, _possible_parents())
    if here:
        return f"<{parent.tag}> has no element <{child.tag}>; did you mean <{here}>?"
    return f"<{parent.tag}> has no element <{child.tag}>; remove it"


@bounded_cache(1)
def _possible_parents() -> dict[str, list[str]]:
    """Return the tags of the possible parents of each tag."""
    homes: dict[str, list[str]] = {}
    for _, row in walk():
        for tag in row.children:
            if row.tag not in homes.setdefault(tag, []):
                homes[tag].append(row.tag)
    return homes


def _check_text(node: Node, element: Element, problems: Problems) -> None:
    """Check that the text is given once, as an attribute or as a CDATA section."""
    if node.cdata is not None and "data" in element.attrs:
        problems.add(node.place, f"{node.label} has its text twice, as data and as CDATA; keep one")
    elif node.cdata is not None:
        element.attrs["data"] = node.cdata
    if not element.attrs.get("data"):
        problems.add(node.place, f"{node.label} is empty; give data")


def _check_default(node: Node, element: Element, problems: Problems) -> None:
    """Check that nested default classes have names; only the outermost one has a predefined
    name."""
    for child in node.children:
        if child.tag == "default" and not child.attrs.get("class"):
            problems.add(child.place, "<default> inside another needs the attribute 'class'")


def _check_root(node: Node, element: Element, problems: Problems) -> None:
    for child in node.children:
        name = child.attrs.get("class") or "main"
        if child.tag == "default" and name != "main":
            message = f"<default class='{name}'> is the outermost class, which is called 'main';"
            problems.add(child.place, f"{message} put it inside a <default>")


def _check_compiler(node: Node, element: Element, problems: Problems) -> None:
    if element.attrs.get("coordinate") == "global":
        message = "coordinate='global' is gone; give poses relative to the parent"
        problems.add(node.place, f"{node.label}: {message}")


def _check_material(node: Node, element: Element, problems: Problems) -> None:
    if "texture" in element.attrs and any(child.tag == "layer" for child in node.children):
        message = "texture and <layer> exclude each other; make it a layer of role 'rgb'"
        problems.add(node.place, f"{node.label}: {message}")


def _check_sides(node: Node, element: Element, problems: Problems) -> None:
    """Check for empty names: a sensor without a name reads any contact, an empty name is an
    error."""
    for name, text in node.attrs.items():
        if name in _SIDES and not text:
            problems.add(node.place, f"{node.label}: {name} is empty; give a name, or remove it")


def _check_frame(node: Node, element: Element, problems: Problems) -> None:
    scale = element.attrs.get("scale")
    if isinstance(scale, np.ndarray) and len(scale) == 2:
        message = f"scale needs 1 or 3 numbers, got 2 ('{node.attrs['scale']}')"
        problems.add(node.place, f"{node.label}: {message}")


# Checks that the table cannot express.
_SPECIAL: dict[str, Callable[[Node, Element, Problems], None]] = {
    "mujoco": _check_root,
    "default": _check_default,
    "text": _check_text,
    "compiler": _check_compiler,
    "material": _check_material,
    "frame": _check_frame,
    "contact": _check_sides,
}
_SIDES = ("geom1", "geom2", "body1", "body2", "subtree1", "subtree2", "site")
