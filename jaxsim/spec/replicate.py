"""Expand `<replicate>`: numbered copies of a part of the tree, and of the elements that refer to
it.

Each copy becomes a `<frame>` around the contents; the poses of the frames are computed by the
caller, which knows the angle units. An element outside the tree that refers to something inside,
such as a sensor or a tendon, is copied once for each copy and moves to the end of its section.

Of the elements that also refer to the rest of the tree (referrers.py), some are dropped, together
with their dependents, as in MuJoCo. An element that refers to something after the replicate is
kept, and is then rejected.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from jaxsim.spec.element import SpecElement
from jaxsim.spec.references import Name, definition, references, rename
from jaxsim.spec.referrers import (
    REFERRING_SECTIONS,
    is_torn,
    names_defined_before,
    outside_references,
    referenced_names,
)
from jaxsim.spec.tree import Tree

_log = logging.getLogger(__name__)

# Returns the poses (position, quaternion) of the copies of a replicate element.
_CopyPlacement = Callable[[SpecElement], Sequence[tuple[np.ndarray, np.ndarray]]]


def expand_replicates(tree: Tree, placement: _CopyPlacement) -> None:
    """Replace every `<replicate>` by its copies, inner ones first."""
    found = [element for element in _leaves_first(tree.root) if element.tag == "replicate"]
    for element in found:
        _expand(tree, element, placement(element))


def _leaves_first(root: SpecElement) -> Iterator[SpecElement]:
    """Return all elements below the root, each after its children."""
    order, stack = [], [root]
    while stack:
        element = stack.pop()
        order.append(element)
        stack.extend(element.children)
    return reversed(order)


def _expand(
    tree: Tree, element: SpecElement, poses: Sequence[tuple[np.ndarray, np.ndarray]]
) -> None:
    names = {name for inner in element.walk() if (name := definition(inner))}
    # a camera or light inside may target a body inside
    targets = {name for inner in element.walk() for _, name in references(inner)}
    targets = {name for name in targets if name[0] == "body"}
    users = _elements_to_copy(tree, element, names)
    separator, digits = element.attrs.get("sep", ""), len(str(len(poses)))
    suffixes = [f"{separator}{i:0{digits}d}" for i in range(len(poses))]
    renamings = [_suffix_names(names, suffix) for suffix in suffixes]

    # The first copy is the original itself, so that references to its elements stay valid.
    contents = [list(element.children)]
    contents += [[child.copy() for child in element.children] for _ in suffixes[1:]]
    parent = element.holder
    child_index = parent.children.index(element)
    del parent.children[child_index]
    for i, ((pos, quat), children) in enumerate(zip(poses, contents[: len(poses)], strict=True)):
        frame = parent.adopt(_frame(tree, element, pos, quat), child_index + i)
        for child in children:
            frame.adopt(child)
        rename(frame, renamings[i] | _suffix_names(targets, suffixes[i]))

    # Copy the users of the contents once for each copy, to the end of their sections.
    sections = [tree.last_section(user.holder.tag) for user in users]
    batches = [users, *([user.copy() for user in users] for _ in suffixes[1:])]
    for renaming, batch in zip(renamings, batches[: len(suffixes)], strict=True):
        for section, user in zip(sections, batch, strict=True):
            rename(section.adopt(user), renaming)


def _frame(tree: Tree, element: SpecElement, pos: np.ndarray, quat: np.ndarray) -> SpecElement:
    row = tree.root.row.children["worldbody"].children["frame"]
    attrs = {"pos": pos, "quat": quat}
    if "childclass" in element.attrs:
        attrs["childclass"] = element.attrs["childclass"]
    return SpecElement("frame", attrs, place=element.place, row=row)


def _suffix_names(names: set[Name], suffix: str) -> dict[Name, str]:
    return {(kind, name): name + suffix for kind, name in names}


def _elements_to_copy(tree: Tree, replicate: SpecElement, names: set[Name]) -> list[SpecElement]:
    """Return the elements to copy with a replicate, in order; drop those that cannot be copied.

    They refer to one of the names inside, or to an element that does; the names they define are
    added.
    """
    users, dropped = [], set[Name]()
    known: set[Name] | None = None
    for section in REFERRING_SECTIONS:
        for element in tree.section(section):
            if not referenced_names(element) & (names | dropped):
                continue
            elsewhere = outside_references(element, names)
            if elsewhere and known is None:
                known = names_defined_before(tree, replicate)
            if known is not None and elsewhere - known - dropped:
                continue
            defined = set(filter(None, [definition(element)]))
            torn = elsewhere and is_torn(section, element, names, moved=True)
            if torn or elsewhere & dropped:
                _drop_element(element, replicate)
                dropped |= defined
            else:
                users.append(element)
                names |= defined
    return users


def _drop_element(element: SpecElement, replicate: SpecElement) -> None:
    message = "%s: %s refers to the inside and the outside of <replicate> (%s); it is dropped"
    _log.warning(message, element.place, element.label, replicate.place)
    element.remove()
