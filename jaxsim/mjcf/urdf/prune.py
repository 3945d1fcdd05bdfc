"""Remove elements and attributes of a URDF file that are not part of URDF, before it is checked.

Parts that the table lists as ignored are removed silently; the table gives the reasons. Unknown
parts are removed with a log message, one per name. A name that looks like a misspelling of a known
one is kept, so that the check rejects it.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable

from jaxsim.mjcf.parse import Node
from jaxsim.mjcf.schema import Row
from jaxsim.mjcf.urdf.table import IGNORED_ELEMENTS, REMOVED_COMPILER_ATTRIBUTES, ROBOT
from jaxsim.spelling import is_misspelling

_log = logging.getLogger(__name__)


def prune(root: Node) -> None:
    """Remove all parts that a URDF reader skips."""
    strange: dict[str, list[Node]] = {}
    stack: list[tuple[Node, Row]] = [(root, ROBOT)]
    while stack:
        node, row = stack.pop()
        node.cdata = None
        for name in [name for name in node.attrs if not _is_known(name, row.attrs)]:
            if name not in REMOVED_COMPILER_ATTRIBUTES and not _is_foreign(name):
                strange.setdefault(f"attribute '{name}' of <{node.tag}>", []).append(node)
            del node.attrs[name]
        children, node.children = node.children, []
        for child in children:
            if _is_known(child.tag, row.children):
                node.children.append(child)
            elif child.tag not in IGNORED_ELEMENTS and not _is_foreign(child.tag):
                strange.setdefault(f"<{child.tag}> in <{node.tag}>", []).append(child)
        stack.extend(
            (child, row.children[child.tag])
            for child in reversed(node.children)
            if child.tag in row.children
        )
    for what, nodes in strange.items():
        times = f" ({len(nodes)} times)" if len(nodes) > 1 else ""
        _log.warning("%s: %s%s is not part of URDF and is ignored", nodes[0].place, what, times)


def _is_known(name: str, known: Iterable[str]) -> bool:
    """Return whether the check decides about a name: a known name, or a misspelling of one."""
    if name in known:
        return True
    return (
        is_misspelling(name, known)
        and not _is_foreign(name)
        and name not in IGNORED_ELEMENTS
        and name not in REMOVED_COMPILER_ATTRIBUTES
    )


def _is_foreign(name: str) -> bool:
    """Return whether a name belongs to another namespace, or declares one."""
    return ":" in name or name.startswith("xmlns")
