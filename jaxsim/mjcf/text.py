"""Bytes of a model file -> text that an XML parser reads, without what the format does not use.

MuJoCo's reader allows slips that XML forbids, and models in the wild have them: `--` in comments,
blank lines before the XML declaration, bare `&` and `<` in values, no space between attributes,
text between the elements. It passes over a DTD, so that defaults and entities declared there have
no effect. `mended` puts all this right; lines keep their numbers.
"""

from __future__ import annotations

import codecs
import logging
import re

from jaxsim.errors import ModelError, Place, Problem

_log = logging.getLogger(__name__)

_BOMS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_DECLARED = re.compile(rb"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)["']""")

# Character sets that extend ASCII. Python knows others under the same roof that are ways of
# escaping, such as unicode_escape.
_CHARACTER_SETS = re.compile(r"iso8859|latin|cp\d|gb|big5|shift_jis|euc_|koi8|mac-|tis-620|ptcp154")

_DECLARATION = re.compile(r"(\s*<\?.*?\?>)+", re.DOTALL)

# What a text consists of. What is not closed reaches to the end, so that no part is read twice; a
# start tag ends at its `>`, its quotes in pairs, or before the next one.
_PART = re.compile(
    r"""
      (?P<comment> <!--.*?--> )
    | (?P<cdata> <!\[CDATA\[.*?\]\]> )
    | (?P<instruction> <\?.*?\?> )
    | (?P<unclosed> <!--.* | <!\[CDATA\[.* | <\?.* | <![^>]*\Z )
    | (?P<declaration> <![^>]*> )
    | (?P<tag> <[^<>"']*(?:"[^"]*"[^<>"']*|'[^']*'[^<>"']*)*>? )
    | (?P<text> [^<]+ )
    """,
    re.DOTALL | re.VERBOSE,
)
_KEPT = ("cdata", "instruction")
_NO_WORD = re.compile(r"[^\w\s]+")
_QUOTED = re.compile(r""""[^"]*"|'[^']*'""")
_BARE_AMPERSAND = re.compile(r"&(?!(#\d+|#x[0-9a-fA-F]+|lt|gt|amp|quot|apos);)")


def decoded(data: bytes, file: str) -> str:
    """Text of a file: UTF-8 or UTF-16, else what its declaration says, else Latin-1.

    The declaration, which has served its purpose, is taken away.
    """
    text = _decoded(data, file)
    declaration = _DECLARATION.match(text)
    if declaration is None:
        return text
    return "\n" * declaration[0].count("\n") + text[declaration.end() :]


def mended(text: str, file: str) -> str:
    """The text with nothing but elements, their values in the form that XML asks for.

    Raises:
      ModelError: a comment or the like is not closed.
    """

    dropped: list[re.Match] = []

    def mend(part: re.Match) -> str:
        if part.lastgroup == "tag":
            return _QUOTED.sub(_escape, part[0])
        if part.lastgroup == "text":
            return _NO_WORD.sub("", part[0])
        if part.lastgroup == "unclosed":
            message = f"broken XML, {part[0][:4].strip()} is not closed; close it, or remove it"
            raise ModelError(Problem(_place(part, file), message))
        if part.lastgroup == "declaration":
            dropped.append(part)
        # an empty comment still ends the text before it
        return part[0] if part.lastgroup in _KEPT else "<!---->" + "\n" * part[0].count("\n")

    text = _PART.sub(mend, text)
    if dropped:
        name = dropped[0][0].split()[0]
        _log.warning("%s: %s...> has no effect, as in MuJoCo", _place(dropped[0], file), name)
    return text


def _place(part: re.Match, file: str) -> Place:
    return Place(file, part.string.count("\n", 0, part.start()) + 1)


def _escape(value: re.Match) -> str:
    """A value in its quotes, and a space that sets it apart from the next attribute."""
    return _BARE_AMPERSAND.sub("&amp;", value[0]).replace("<", "&lt;") + " "


def _decoded(data: bytes, file: str) -> str:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data.decode(encoding, errors="replace")
    data, zero, _ = data.partition(b"\0")  # which ends the text, as it does for MuJoCo
    if zero and b"<" not in data:
        message = "this is a binary file; an MJCF model is XML text"
        raise ModelError(Problem(Place(file), message))
    for encoding in ("utf-8", _declared(data)):
        try:
            return data.decode(encoding)
        except UnicodeError:
            continue
    return data.decode("latin-1")


def _declared(data: bytes) -> str:
    """The character set that the XML declaration names, or Latin-1."""
    found = _DECLARED.match(data)
    try:
        name = codecs.lookup(found[1].decode()).name if found else ""
    except LookupError:
        name = ""
    return name if _CHARACTER_SETS.match(name) else "latin-1"
