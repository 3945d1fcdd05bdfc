"""XML text -> a plain tree of tags, attributes and line numbers. Nothing of MJCF is known here.

Entities are refused and nothing outside the text is ever read. Comments and processing instructions
are skipped. Some slips that MuJoCo's reader allows, and models in the wild have, are allowed here:
`--` in comments, bytes that are not UTF-8, blank lines before the XML declaration, bare `&` and `<`
in values, no space between attributes, more end tags or elements after the last end tag.
"""

from __future__ import annotations

import codecs
import logging
import re
from dataclasses import dataclass, field
from xml.parsers import expat

from jaxsim.errors import ModelError, Place, Problem

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
    text = _blank_comments(_decode(data, file))
    try:
        return _Builder(file).read(text)
    except expat.ExpatError:
        pass  # once more, with the usual slips put right; the line numbers are the same
    builder = _Builder(file)
    text = _repair(text)
    try:
        return builder.read(text)
    except expat.ExpatError as error:
        if builder.ends_before(text):
            message = "%s: what follows the end of %s is ignored, as in MuJoCo"
            _log.warning(message, Place(file, error.lineno), builder.outermost.label)
            return builder.outermost
        raise _error(file, error.lineno, builder.describe(error, text)) from None


class _Builder:
    """Receives the events of the parser and builds the tree."""

    def __init__(self, file: str):
        self.file = file
        self.root: Node | None = None
        self.open: list[Node] = []
        self.in_cdata = False
        self.parser = expat.ParserCreate("utf-8")
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self.start
        self.parser.EndElementHandler = self.end
        self.parser.StartCdataSectionHandler = self.start_cdata
        self.parser.EndCdataSectionHandler = self.end_cdata
        self.parser.ProcessingInstructionHandler = self.instruction
        self.parser.XmlDeclHandler = lambda *_: self.instruction("xml", "")
        self.parser.StartDoctypeDeclHandler = self.doctype
        self.parser.EntityDeclHandler = self.entity

    def read(self, text: str) -> Node:
        """Parses the whole text; returns the outermost element."""
        self.parser.Parse(text.encode("utf-8"), True)
        return self.outermost

    @property
    def outermost(self) -> Node:
        """The outermost element, when the text has been read."""
        assert self.root is not None, "the parser accepts no text without an element"
        return self.root

    def ends_before(self, text: str) -> bool:
        """Whether the parser has stopped after the outermost element, at what is passed over.

        An end tag too many ends the file for MuJoCo; further elements must be well-formed.
        """
        if self.root is None or self.open:
            return False
        data, here = text.encode("utf-8"), self.parser.ErrorByteIndex
        here -= data.startswith(b"/", here)  # the parser wonders at the second byte of an end tag
        rest = data[here:].decode("utf-8", errors="replace")
        if _END_TAG.match(rest):
            return True
        another = _Builder(self.file)
        try:
            another.read(rest)
        except expat.ExpatError:
            return another.ends_before(rest)
        return True

    def start(self, tag: str, attrs: dict[str, str]) -> None:
        line = self.parser.CurrentLineNumber
        node = Node(tag, attrs, self.file, line)
        if self.open:
            self.open[-1].children.append(node)
        else:
            self.root = node
        self.open.append(node)
        if len(self.open) > MAX_DEPTH:
            message = (
                f"{node.label} is nested more than {MAX_DEPTH} elements deep; flatten the model"
            )
            raise _error(self.file, line, message)

    def end(self, tag: str) -> None:
        self.open.pop()

    def instruction(self, name: str, text: str) -> None:
        message = f"<?{name}?> must stand before all else; move it to the first line"
        raise _error(self.file, self.parser.CurrentLineNumber, message)

    def start_cdata(self) -> None:
        if self.open:
            self.characters("")
            self.parser.CharacterDataHandler = self.characters

    def end_cdata(self) -> None:
        self.parser.CharacterDataHandler = None

    def characters(self, text: str) -> None:
        self.open[-1].cdata = (self.open[-1].cdata or "") + text

    def doctype(self, name: str, system: str | None, public: str | None, internal: bool) -> None:
        if system is not None or public is not None:
            message = f"the external DTD '{system or public}' is not read; remove the DOCTYPE"
            raise _error(self.file, self.parser.CurrentLineNumber, message)

    def entity(self, name: str, *_: object) -> None:
        message = f"entity '{name}' is not expanded; write its text where it is used"
        raise _error(self.file, self.parser.CurrentLineNumber, message)

    def describe(self, error: expat.ExpatError, text: str) -> str:
        """What is wrong with the text, and where to look."""
        what = f"broken XML, {expat.errors.messages[error.code]}"
        if error.code == _CODES[expat.errors.XML_ERROR_NO_ELEMENTS] and self.open:
            node = self.open[-1]
            return f"broken XML, the text ends inside {node.label}, opened in line {node.line}"
        if error.code == _CODES[expat.errors.XML_ERROR_TAG_MISMATCH]:
            node = self.open[-1]
            return f"{what}; {node.label} of line {node.line} is not closed yet"
        lines = text.split("\n")
        excerpt = lines[error.lineno - 1].strip() if error.lineno <= len(lines) else ""
        if error.code == _CODES[expat.errors.XML_ERROR_INVALID_TOKEN]:
            what += '; write attributes as name="value" and close every tag with >'
        return f"{what} ({clip(excerpt)!r})" if excerpt else what


_CODES = expat.errors.codes
_END_TAG = re.compile(r"</[A-Za-z_][^<>\s]*\s*>")


def clip(text: str, length: int = 60) -> str:
    """The text, shortened for a message."""
    return text if len(text) <= length else text[: length - 3] + "..."


def _error(file: str, line: int | None, message: str) -> ModelError:
    return ModelError(Problem(Place(file, line), message))


_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")


def _decode(data: bytes, file: str) -> str:
    """Text of the file: UTF-8 or UTF-16, else what the declaration says, else Latin-1."""
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data.decode(encoding, errors="replace")
    data, zero, _ = data.partition(b"\0")  # which ends the text, as it does for MuJoCo
    if zero and b"<" not in data:
        raise _error(file, None, "this is a binary file; an MJCF model is XML text")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        declared = _DECLARED.match(data)
    try:
        return data.decode(declared[1].decode() if declared else "latin-1")
    except (LookupError, UnicodeDecodeError):
        return data.decode("latin-1")


_SKIPPED = re.compile(r"<!\[CDATA\[.*?\]\]>|<!--.*?-->", re.DOTALL)
_DECLARATION = re.compile(r"(\s*<\?.*?\?>)+", re.DOTALL)


def _blank_comments(text: str) -> str:
    """The text with comments and what is declared before it replaced by their line breaks.

    XML forbids `--` in comments and blank lines before the declaration; many models have both. The
    encoding in the declaration has been dealt with.
    """

    def blank(match: re.Match) -> str:
        found = match[0]
        return found if found.startswith("<![") else "\n" * found.count("\n")

    declaration = _DECLARATION.match(text)
    if declaration:
        text = "\n" * declaration[0].count("\n") + text[declaration.end() :]
    return _SKIPPED.sub(blank, text) if "<!--" in text else text


# A start tag up to its end or to the next one, quotes in pairs.
_TAG = re.compile(r"""<[A-Za-z_][^<>"']*(?:"[^"]*"[^<>"']*|'[^']*'[^<>"']*)*""")
_QUOTED = re.compile(r""""[^"]*"|'[^']*'""")
_BARE_AMPERSAND = re.compile(r"&(?!(#\d+|#x[0-9a-fA-F]+|lt|gt|amp|quot|apos);)")


def _repair(text: str) -> str:
    """The text with bare `&` and `<` in values escaped, and attributes set apart by spaces.

    XML forbids the first and asks for the second; MuJoCo's reader does neither.
    """

    def escape(value: re.Match) -> str:
        return _BARE_AMPERSAND.sub("&amp;", value[0]).replace("<", "&lt;") + " "

    return _TAG.sub(lambda tag: _QUOTED.sub(escape, tag[0]), text)
