"""Select the reader of a mesh file, and read its surface."""

from __future__ import annotations

import posixpath
from collections.abc import Callable

import numpy as np

from jaxsim.assets.read.decoder import decoder_of, extensions
from jaxsim.assets.read.gmsh import read_gmsh_surface
from jaxsim.assets.read.msh import read_msh
from jaxsim.assets.read.obj import read_obj
from jaxsim.assets.read.stl import read_stl
from jaxsim.assets.source import data_uri
from jaxsim.assets.surface import Surface
from jaxsim.errors import AssetError

_READERS: dict[str, Callable[[bytes], Surface]] = {
    ".stl": read_stl,
    ".obj": read_obj,
    ".msh": read_msh,
    ".gmsh": read_gmsh_surface,
}

_TYPES = {
    "model/stl": ".stl",
    "model/obj": ".obj",
    "model/vnd.mujoco.msh": ".msh",
    "model/vnd.gmsh": ".gmsh",
}


def read_surface(name: str, data: bytes, content_type: str | None = None) -> Surface:
    """Return the surface in a mesh file.

    Args:
      name: its name. As in MuJoCo, a known extension decides the reader.
      data: its contents.
      content_type: media type, for a name without a known extension.

    Raises:
      AssetError: it is of an unknown kind, or its contents are invalid.
    """
    surface = _find_reader(name, content_type or data_uri.content_type(name))(data)
    bad = np.argwhere(~np.isfinite(surface.vertex))
    if len(bad):
        raise AssetError(f"'{name}': a coordinate of vertex {bad[0][0]} is not a finite number")
    return surface


def extension(name: str) -> str:
    """Return the extension of a file in lower case, with its dot; a name like ".obj" has it too."""
    base = posixpath.basename(name.replace("\\", "/"))
    return base[base.rfind(".") :].lower() if "." in base else ""


def _find_reader(name: str, content_type: str | None) -> Callable[[bytes], Surface]:
    kind = extension(name)
    decoder = None if kind in _READERS else decoder_of(kind, content_type)
    if kind not in _READERS and content_type is not None and kind not in extensions():
        kind = _TYPES.get(content_type.strip().lower(), kind)
    if kind in _READERS:
        return _READERS[kind]
    if decoder is not None:
        return decoder.surface
    types = ", ".join(_TYPES)
    raise AssetError(
        f"'{name}' is no mesh file that can be read; convert it to one of "
        f"{', '.join((*_READERS, *extensions()))}, name one of {types}, or add a decoder: "
        "jaxsim.extend.register_decoder"
    )
