"""Decode `data:` URIs, which contain a file, such as `data:model/obj;base64,diAwIDAgMA==`.

The format is that of RFC 2397. Files of a model are binary, so base64 is the only supported
encoding.
"""

from __future__ import annotations

import base64
import urllib.parse

_EXAMPLE = "data:model/obj;base64,diAwIDAgMA=="


def decode(uri: str) -> bytes:
    """Return the bytes in a `data:` URI.

    Raises:
      ValueError: it is not one in base64; the message gives the expected form.
    """
    header, comma, text = uri.partition(":")[2].partition(",")
    if not comma:
        raise ValueError(f"it has no comma before the data; expected a form such as {_EXAMPLE}")
    encoding = header.rpartition(";")[2].strip() if ";" in header else ""
    if encoding.lower() != "base64":
        given = f"';{encoding}'" if encoding else "no encoding"
        raise ValueError(f"it has {given}; the data must be ';base64', as in {_EXAMPLE}")
    # XML replaces line breaks of an attribute by blanks; '+' and '/' may be written as %2B and %2F
    text = "".join(urllib.parse.unquote(text).split())
    try:
        return base64.b64decode(text, validate=True)
    except ValueError as error:
        raise ValueError(f"the data after the comma are not base64: {error}") from None


def content_type(uri: str) -> str | None:
    """Return the media type in a `data:` URI, such as `model/obj`; None if there is none.

    Parameters such as `;charset=utf-8` are removed.
    """
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme.lower() != "data":
        return None
    return rest.partition(",")[0].partition(";")[0].strip().lower() or None
