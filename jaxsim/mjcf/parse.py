"""XML text -> a plain tree of tags, attributes and line numbers. Nothing of MJCF is known here.

Only elements count; comments, a DTD and text between elements are passed over, and nothing outside
the text is ever read. What MuJoCo's reader allows and XML forbids is mended first (text.py).
Further elements and end tags may follow the outermost element; they have no effect.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from xml.parsers import expat

from jaxsim.errors import ModelError, Place, Problem
from jaxsim.mjcf.text import decoded, mended

_log = logging.getLogger(__name__)

# Depth of the deepest element; MuJoCo's reader has the same bound.
MAX_DEPTH = 499


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
    def place(self) -> Place:
        """File and line of the start tag."""
        return Place(self.file, self.line)

    @property
    def label(self) -> str:
        """The element as messages show it: `<joint name='elbow'>`."""
        name = self.attrs.get("name")
        return f"<{self.tag} name='{name}'>" if name else f"<{self.tag}>"


def parse(data: bytes, file: str) -> Node:
    """Parses one XML document.

    Args:
      data: the contents of the file.
      file: its name, for messages.

    Returns:
      The outermost element.

    Raises:
      ModelError: the text is not well-formed XML, or is something else altogether.
    """
    if not data.strip():
        raise _error(file, None, "the file is empty; a model needs at least <mujoco/>")
    text = decoded(data, file)
    try:
        return _Builder(file).read(text)
    except expat.ExpatError:
        pass  # once more, with the usual slips put right; the line numbers are the same
    builder = _Builder(file)
    try:
        return builder.read(mended(text, file))
    except expat.ExpatError as error:
        if builder.has_ended(error):
            return builder.outermost()
        raise _error(file, error.lineno, builder.describe(error, text)) from None


# Stands around the text, so that elements may follow the outermost one, and a DTD has no place.
_AROUND = "jaxsim-document"


class _Builder:
    """Receives the events of the parser and builds the tree."""

    def __init__(self, file: str):
        self.file = file
        self.root: Node | None = None
        self.follows: int | None = None  # the line of what stands after the outermost element
        self.open: list[Node] = []
        self.size = 0  # bytes of the text, with what stands before it
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.begin
        self.parser.EndElementHandler = self.end
        self.parser.StartCdataSectionHandler = self.start_cdata
        self.parser.EndCdataSectionHandler = self.end_cdata
        self.parser.ProcessingInstructionHandler = self.instruction

    def read(self, text: str) -> Node:
        """Parses the whole text; returns the outermost element."""
        data = f"<{_AROUND}>{text}".encode()
        self.size = len(data)
        self.parser.Parse(data + f"</{_AROUND}>".encode(), True)
        if self.root is not None and text[text.rfind(">") + 1 :].strip():
            line = text.rstrip().count("\n") + 1
            raise _error(self.file, line, "broken XML, text after the last element; remove it")
        return self.outermost()

    def outermost(self) -> Node:
        """The outermost element, when the text has been read."""
        if self.root is None:
            raise _error(self.file, None, f"this is no XML text; {_BEGINS}")
        if self.follows is not None:
            message = "%s: what follows the end of %s is ignored, as in MuJoCo"
            _log.warning(message, Place(self.file, self.follows), self.root.label)
        return self.root

    def has_ended(self, error: expat.ExpatError) -> bool:
        """Whether the parser has stopped at an end tag too many, which ends the text for MuJoCo."""
        if error.code != _CODES[expat.errors.XML_ERROR_TAG_MISMATCH] or self.open:
            return False
        self.follows = self.follows or error.lineno
        return self.root is not None

    def begin(self, tag: str, attrs: dict[str, str]) -> None:
        self.parser.StartElementHandler = self.start

    def start(self, tag: str, attrs: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        node = Node(tag, attrs, self.file, line)
        if self.open:
            self.open[-1].children.append(node)
        elif self.root is None:
            self.root = node
        else:
            self.follows = self.follows or line
        self.open.append(node)
        if len(self.open) > MAX_DEPTH:
            message = (
                f"{node.label} is nested more than {MAX_DEPTH} elements deep; flatten the model"
            )
            raise _error(self.file, line, message)

    def end(self, tag: str) -> None:
        if self.open:
            self.open.pop()

    def instruction(self, name: str, text: str) -> None:
        raise _error(self.file, self.parser.CurrentLineNumber, _MISPLACED.format(name))

    def start_cdata(self) -> None:
        if self.open:
            self.characters("")
            self.parser.CharacterDataHandler = self.characters

    def end_cdata(self) -> None:
        self.parser.CharacterDataHandler = None

    def characters(self, text: str) -> None:
        self.open[-1].cdata = (self.open[-1].cdata or "") + text

    def describe(self, error: expat.ExpatError, text: str) -> str:
        """What is wrong with the text, and where to look."""
        what = f"broken XML, {expat.errors.messages[error.code]}"
        if error.code == _CODES[expat.errors.XML_ERROR_MISPLACED_XML_PI]:
            return _MISPLACED.format("xml")
        if error.code == _CODES[expat.errors.XML_ERROR_TAG_MISMATCH] and self.open:
            node = self.open[-1]
            if self.parser.ErrorByteIndex >= self.size:
                return f"broken XML, the text ends inside {node.label}, opened in line {node.line}"
            return f"{what}; {node.label} of line {node.line} is not closed yet"
        if error.code == _CODES[expat.errors.XML_ERROR_INVALID_TOKEN]:
            what += '; write attributes as name="value" and close every tag with >'
        # what is no XML at all may be a file that is nobody's business
        if not text.lstrip().startswith("<"):
            return f"this is no XML text; {_BEGINS}"
        lines = text.split("\n")
        excerpt = lines[error.lineno - 1].strip() if error.lineno <= len(lines) else ""
        return f"{what} ({clip(excerpt)!r})" if excerpt else what


_CODES = expat.errors.codes
_BEGINS = "a model begins with <mujoco>"
_MISPLACED = "<?{}?> must stand before all else; move it to the first line"


def clip(text: str, length: int = 60) -> str:
    """The text, shortened for a message."""
    return text if len(text) <= length else text[: length - 3] + "..."


def _error(file: str, line: int | None, message: str) -> ModelError:
    return ModelError(Problem(Place(file, line), message))
