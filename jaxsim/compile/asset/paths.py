"""The file paths of assets: `paths`, and the address of each asset's path in it."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.asset.files import asset_path
from jaxsim.compile.context import Compilation
from jaxsim.compile.step import declare_pass
from jaxsim.spec import SpecElement

_PREFIX = {"hfield": "hfield", "mesh": "mesh", "skin": "skin", "texture": "tex"}


@declare_pass(needs="read_settings assets", gives="hfield mesh paths skin tex")
def paths(c: Compilation) -> None:
    """Add the zero-terminated paths of all files; an asset without one has the address -1.

    The media type of a texture, if it is given, follows its path.
    """
    texts = _Texts()
    for kind, prefix in _PREFIX.items():
        of_kind = [
            (texts.add(_path(c, e, kind)), texts.add(_media_type(e, kind)))
            for e in c.elements[kind]
        ]
        c.fields[f"{prefix}_pathadr"] = np.array([path for path, _ in of_kind], np.int32)
        if kind == "texture":
            c.fields["tex_contenttypeadr"] = np.array([media for _, media in of_kind], np.int32)
    # An empty list still has one zero byte, as in MuJoCo.
    c.fields.update(paths=texts.data or b"\0", npaths=max(1, len(texts.data)))


def _path(c: Compilation, element: SpecElement, kind: str) -> str:
    file = element.get("file") or c.written_out.get(element)
    return asset_path(c, element, file, kind) if file else ""


def _media_type(element: SpecElement, kind: str) -> str:
    return (element.get("content_type") or "") if kind == "texture" else ""


class _Texts:
    """Concatenated zero-terminated texts."""

    def __init__(self) -> None:
        self.data = b""

    def add(self, text: str) -> int:
        """Append a text; return its address, -1 for an empty one."""
        address = len(self.data) if text else -1
        self.data += text.encode() + b"\0" if text else b""
        return address
