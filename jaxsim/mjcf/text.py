"""Repair the bytes of a model file into strict XML, and record the line of every start tag.

MuJoCo's reader tolerates errors that XML forbids, and existing models have them: `--` in comments,
blank lines before the XML declaration, bare `&` and `<` in values, no space between attributes,
text between elements. It skips a DTD, so that defaults and entities declared there have no effect,
and has no namespaces. `repair` repairs all of these.

The recovery mode of libxml2 does not help: it accepts `--` in comments, but at other errors it
silently loses the following attributes, the `&`, or the elements after the first.
"""

from __future__ import annotations

import codecs
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from jaxsim.errors import LocatedProblem, ModelError, SourceLocation

_log = logging.getLogger(__name__)

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")

# Character sets that extend ASCII. Python's codec registry also has escape formats, such as
# unicode_escape, which are excluded.
_CHARACTER_SETS = re.compile(r"iso8859|latin|cp\d|gb|big5|shift_jis|euc_|koi8|mac-|tis-620|ptcp154")

_DECLARATION = re.compile(r"(\s*<\?.*?\?>)+", re.DOTALL)

# Grammar of the text. An unclosed part extends to the end, so that no part is scanned twice; a
# start tag ends at its `>`, with its quotes in pairs, or before the next tag. Most tags of a model
# are well-formed: they are matched many at a time.
_PART = re.compile(
    r"""
      (?P<fine> (?:
        </?[^\s<>"'=&:/!?]++
        (?:[ \t\n]++(?!xmlns)[^\s<>"'=&:/]++[ \t\n]*+=[ \t\n]*+(?:"[^"<&]*+"|'[^'<&]*+'))*+
        [ \t\n]*+/?>[ \t\n]*+
      )++ )
    | (?P<comment> <!--.*?--> )
    | (?P<cdata> <!\[CDATA\[.*?\]\]> )
    | (?P<instruction> <\?.*?\?> )
    | (?P<unclosed> <!--.* | <!\[CDATA\[.* | <\?.* | <![^>]*\Z )
    | (?P<declaration> <![^>]*> )
    | (?P<tag> <[^<>"']*(?:"[^"]*"[^<>"']*|'[^']*'[^<>"']*)*>? )
    | (?P<text> [^<]+ )
    """,
    re.DOTALL | re.VERBOSE,
)
_QUOTED = re.compile(r""""[^"]*"|'[^']*'""")
_BARE_AMPERSAND = re.compile(r"&(?!(#\d+|#x[0-9a-fA-F]+|lt|gt|amp|quot|apos);)")

# Namespace markers, and the letters that replace them while the text is parsed: libxml2 strips
# prefixes, and `<x:geom>` must not be read as a `<geom>`.
_STAND_INS = {":": "\ua789", "xmlns": "\ua78a"}
_VALUE_OR_PREFIX = re.compile("|".join((_QUOTED.pattern, *_STAND_INS)))

# Elements of our own, in a namespace that no name of the text can have. One wraps the text, so that
# elements may follow the root element and a DTD is not allowed; one represents a CDATA section,
# which lxml does not distinguish from text between elements; one represents a rejected part, which
# is reported only when the parser reaches it: earlier faults are reported first, and after an
# unmatched end tag it does not matter.
_DOCUMENT = '<j:document xmlns:j="jaxsim">{}\n</j:document>'
_REPLACEMENT_TEMPLATE = "<j:{} text={}/>"
CDATA = "{jaxsim}cdata"
REFUSED = "{jaxsim}refused"

_OPENING = re.compile(r"<!--|<!\[CDATA\[|<[!?][^\s?>]{0,20}")
_REFUSALS = {
    "unclosed": "broken XML, {} is not closed; close it, or remove it",
    "instruction": "{}?> must precede everything else; move it to the first line",
}


@dataclass(slots=True)
class Repaired:
    """A text repaired to well-formed XML, within one wrapper element.

    Attributes:
      text: its tags; other parts are our elements, or comments of the same number of lines.
      lines: the line of each start tag, in document order.
      plain: whether the parser returns all names and values unchanged, see `restore_names`.
      tail: the last line with text after the last tag; None if there is none.
    """

    text: str
    lines: list[int]
    plain: bool
    tail: int | None


def decode_text(data: bytes, file: str) -> str:
    """Return the text of a file: UTF-8 or UTF-16, else as its declaration specifies, else Latin-1.

    The declaration is removed afterwards; line breaks become line feeds.
    """
    text = _decode(data, file).replace("\r\n", "\n").replace("\r", "\n")
    declaration = _DECLARATION.match(text)
    if declaration is None:
        return text
    return "\n" * declaration[0].count("\n") + text[declaration.end() :]


def repair(text: str, file: str) -> Repaired:
    """Return the text repaired to well-formed XML that consists of elements only."""
    pieces: list[str] = []
    lines = [0]
    line, plain = 1, True
    dtd, tail = None, None
    for part in _PART.finditer(text):
        kind, written = part.lastgroup, part[0]
        breaks = written.count("\n")
        if kind == "fine":
            pieces.append(written)
            for i, row in enumerate(written.split("\n")):
                lines += [line + i] * (row.count("<") - row.count("</"))
        elif kind == "tag":
            pieces.append(_VALUE_OR_PREFIX.sub(_repair_value, written))
            plain = False
            if not written.startswith("</"):
                lines.append(line)
        elif kind == "cdata" or kind in _REFUSALS:
            pieces.append(_replacement_element(kind, written) + _blank(breaks))
            plain = False
            lines.append(line)
        else:
            pieces.append(_blank(breaks))
            if kind == "declaration":
                dtd = dtd or f"{SourceLocation(file, line)}: {_opening_text(written)}"
            elif kind == "text" and part.end() == len(text) and not written.isspace():
                tail = text.rstrip().count("\n") + 1
        line += breaks
    if dtd:
        _log.warning("%s...> has no effect, as in MuJoCo", dtd)
    return Repaired(_DOCUMENT.format("".join(pieces)), lines, plain, tail)


def restore_names(tag: str, attrs: Mapping[str, str]) -> tuple[str, dict[str, str]]:
    """Return the original name and attributes of an element of a repaired text.

    libxml2, with entity expansion disabled, returns every `&` of a value as a reference.
    """
    values = {original_name(name): value.replace("&#38;", "&") for name, value in attrs.items()}
    return original_name(tag), values


def original_name(name: str) -> str:
    """Return the original form of a name of a repaired text."""
    for written, stand_in in _STAND_INS.items():
        name = name.replace(stand_in, written)
    return name


def _opening_text(part: str) -> str:
    """Return the beginning of a comment, declaration or instruction, for a message."""
    found = _OPENING.match(part)
    return found[0] if found else part[:1]


def _replacement_element(kind: str, written: str) -> str:
    """Return the element that represents a CDATA section, or a rejected part."""
    if kind == "cdata":
        return _REPLACEMENT_TEMPLATE.format(
            "cdata", quoteattr(written[len("<![CDATA[") : -len("]]>")])
        )
    return _REPLACEMENT_TEMPLATE.format(
        "refused", quoteattr(_REFUSALS[kind].format(_opening_text(written)))
    )


def _blank(breaks: int) -> str:
    """Return a comment that replaces a skipped part; it still ends the text before it."""
    return "<!--" + "\n" * breaks + "-->"


def _repair_value(part: re.Match) -> str:
    """Return a value in its quotes with a space after it, or the replacement of a namespace
    marker."""
    if part[0] in _STAND_INS:
        return _STAND_INS[part[0]]
    return _BARE_AMPERSAND.sub("&amp;", part[0]).replace("<", "&lt;") + " "


# First bytes of files that are mistaken for a model: offset, kind, remedy.
_UNPACK = "pack its files into a zip archive (.mjz, .zip), which is read, or unpack it"
_OTHER_FORMATS = (
    (0, b"\x1f\x8b", "a gzip archive", _UNPACK),
    (0, b"BZh", "a bzip2 archive", _UNPACK),
    (0, b"\xfd7zXZ\0", "an xz archive", _UNPACK),
    (0, b"\x28\xb5\x2f\xfd", "a zstandard archive", _UNPACK),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive", _UNPACK),
    (0, b"Rar!\x1a\x07", "a RAR archive", _UNPACK),
    (257, b"ustar", "a tar archive", _UNPACK),
)


def _decode(data: bytes, file: str) -> str:
    for start, magic, kind, cure in _OTHER_FORMATS:
        if data[start : start + len(magic)] == magic:
            raise ModelError(LocatedProblem(SourceLocation(file), f"this is {kind}; {cure}"))
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data.decode(encoding, errors="replace")
    data, zero, _ = data.partition(b"\0")  # a zero byte ends the text, as in MuJoCo
    if zero and b"<" not in data:
        message = "this is a binary file; an MJCF model is XML text"
        raise ModelError(LocatedProblem(SourceLocation(file), message))
    for encoding in ("utf-8", _declared_charset(data)):
        try:
            return data.decode(encoding)
        except UnicodeError:
            continue
    return data.decode("latin-1")


def _declared_charset(data: bytes) -> str:
    """Return the character set that the XML declaration names, or Latin-1."""
    found = _DECLARED.match(data)
    try:
        name = codecs.lookup(found[1].decode()).name if found else ""
    except LookupError:
        name = ""
    return name if _CHARACTER_SETS.match(name) else "latin-1"
