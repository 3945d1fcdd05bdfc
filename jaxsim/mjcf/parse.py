"""Parse XML text into a plain tree of tags, attributes and line numbers, independent of MJCF.

Only elements count; comments, a DTD and text between elements are skipped, and nothing outside the
text is ever read. Errors in the XML that MuJoCo's reader tolerates are repaired first (text.py).
Further elements and end tags after the root element have no effect.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field

from lxml import etree

from jaxsim.errors import LocatedProblem, ModelError, SourceLocation
from jaxsim.mjcf.text import (
    CDATA,
    REFUSED,
    Repaired,
    decode_text,
    original_name,
    repair,
    restore_names,
)

_log = logging.getLogger(__name__)

# Depth limit of elements, that of MuJoCo's reader.
MAX_XML_DEPTH = 499


@dataclass(eq=False, slots=True)
class Node:
    """An element as it was written."""

    tag: str
    attrs: dict[str, str]
    file: str
    line: int
    children: list[Node] = field(default_factory=list)
    cdata: str | None = None

    @property
    def place(self) -> SourceLocation:
        """Return the file and line of the start tag."""
        return SourceLocation(self.file, self.line)

    @property
    def label(self) -> str:
        """Return the element as shown in messages: `<joint name='elbow'>`."""
        name = self.attrs.get("name")
        return f"<{self.tag} name='{name}'>" if name else f"<{self.tag}>"


def parse(data: bytes, file: str) -> Node:
    """Parse one XML document.

    Args:
      data: the contents of the file.
      file: its name, for messages.

    Returns:
      The root element.

    Raises:
      ModelError: the text is not well-formed XML, or no XML at all.
    """
    if not data.strip():
        raise _error(file, None, "the file is empty; a model needs at least <mujoco/>")
    text = decode_text(data, file)
    document = repair(text, file)
    builder = _Builder(document, file)
    try:
        etree.fromstring(document.text.encode(), _parser(builder))
    except etree.XMLSyntaxError as error:
        if not builder.has_ended(error):
            line = min(error.lineno or 1, text.count("\n") + 1)
            raise _error(file, line, _explain_error(error, builder, text)) from None
    else:
        if builder.outermost and document.tail:
            message = "broken XML, text after the last element; remove it"
            raise _error(file, document.tail, message)
    if not builder.outermost:
        raise _error(file, None, f"this is no XML text; {_BEGINS}")
    root = builder.outermost[0]
    if builder.ignored:
        message = "%s: what follows the end of %s is ignored, as in MuJoCo"
        _log.warning(message, SourceLocation(file, builder.ignored), root.label)
    return root


def _parser(target: _Builder) -> etree.XMLParser:
    """Return a parser that reads its input and no other resource."""
    return etree.XMLParser(
        target=target,  # type: ignore[arg-type]  # the stubs ask for methods that may be absent
        encoding="utf-8",
        recover=False,  # report errors instead of silently dropping parts
        resolve_entities=False,  # no entity expansion into gigabytes, or from a file
        load_dtd=False,  # no DTD is loaded from a file
        dtd_validation=False,  # nor used for validation
        no_network=True,  # no network access
        # Without this flag libxml2 limits the depth to 256 and a value to ten million bytes, which
        # meshes written as text can exceed. The builder limits the depth; the size is that of the
        # file, because no entity can expand it.
        huge_tree=True,
    )


class _Builder:
    """Parser target that receives the events of the parser and builds the tree.

    The tree of libxml2 is not used: it counts lines up to 65,535 only, records the line where a
    start tag ends, and does not distinguish CDATA from other text. Here the line of each start tag
    is known in advance, and all remaining text is CDATA.
    """

    def __init__(self, document: Repaired, file: str):
        self.file = file
        self.plain = document.plain
        self.lines = iter(document.lines)
        self.open: list[Node] = []  # the first is the wrapper around the text
        self.outermost: list[Node] = []
        self.extra: int | None = None  # line of the first unmatched end tag

    def start(self, tag: str, attrs: Mapping[str, str]) -> None:
        tag, attrs = (tag, dict(attrs)) if self.plain else restore_names(tag, attrs)
        node = Node(tag, attrs, self.file, next(self.lines))
        if not self.open:
            self.outermost = node.children
        elif tag == REFUSED:
            raise _error(self.file, node.line, attrs["text"])
        elif tag == CDATA:
            self.open[-1].cdata = (self.open[-1].cdata or "") + attrs["text"]
        else:
            self.open[-1].children.append(node)
        self.open.append(node)
        if len(self.open) > MAX_XML_DEPTH + 1:
            message = (
                f"{node.label} is nested more than {MAX_XML_DEPTH} elements deep; flatten the model"
            )
            raise _error(self.file, node.line, message)

    def end(self, tag: str) -> None:
        self.open.pop()

    def close(self) -> None:
        """Do nothing; lxml calls this at the end of the text."""

    def has_ended(self, error: etree.XMLSyntaxError) -> bool:
        """Return whether the parser stopped at an unmatched end tag, which ends the text for
        MuJoCo."""
        named = "and unparsable" not in str(error.msg)
        if _is_mismatch(error) and named and len(self.open) == 1 and self.outermost:
            self.extra = error.lineno
        return self.extra is not None

    @property
    def ignored(self) -> int | None:
        """Return the line of the first tag after the root element."""
        return self.outermost[1].line if len(self.outermost) > 1 else self.extra


def _explain_error(error: etree.XMLSyntaxError, builder: _Builder, text: str) -> str:
    """Return the fault in the text and its location."""
    lines = text.split("\n")
    line = error.lineno or 1
    if _is_mismatch(error) and len(builder.open) > 1:
        node = builder.open[-1]
        if line > len(lines):
            return f"broken XML, the text ends inside {node.label}, opened in line {node.line}"
        return f"broken XML, mismatched tag; {node.label} of line {node.line} is not closed yet"
    # A file without any XML may not have been meant as a model at all.
    if not text.lstrip().startswith("<"):
        return f"this is no XML text; {_BEGINS}"
    if _is_mismatch(error):
        what = "an end tag that closes nothing; remove it"
    else:
        what = clip(original_name(str(error.msg).rpartition(", line ")[0]))
        what += "; " + _REMEDIES.get(error.code, _USUAL_REMEDY)  # type: ignore[attr-defined]
    excerpt = lines[min(line, len(lines)) - 1].strip()
    return f"broken XML, {what}" + (f" ({clip(excerpt)!r})" if excerpt else "")


def _is_mismatch(error: etree.XMLSyntaxError) -> bool:
    """Return whether the parser stopped at an end tag that does not match the open element."""
    return error.code == etree.ErrorTypes.ERR_TAG_NAME_MISMATCH  # type: ignore[attr-defined]


_REMEDIES = {
    etree.ErrorTypes.ERR_ATTRIBUTE_REDEFINED: "keep one",
    etree.ErrorTypes.ERR_INVALID_CHAR: "remove the character",
    etree.ErrorTypes.ERR_INVALID_CHARREF: "remove the character",
}
_USUAL_REMEDY = 'write attributes as name="value" and close every tag with >'
_BEGINS = "a model begins with <mujoco>"


def clip(text: str, length: int = 60) -> str:
    """Return the text, shortened for a message."""
    return text if len(text) <= length else text[: length - 3] + "..."


def _error(file: str, line: int | None, message: str) -> ModelError:
    return ModelError(LocatedProblem(SourceLocation(file, line), message))
