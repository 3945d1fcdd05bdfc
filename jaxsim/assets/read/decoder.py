"""Registry of mesh decoders that are not built in, by extension and content type.

    jaxsim.extend.register_decoder(".mine", decode, content_type="model/mine")

Registered here, through trimesh (the extra `meshes`): GLB, glTF, COLLADA, PLY and OFF.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from jaxsim.assets.read.scene import read_scene
from jaxsim.assets.surface import Surface
from jaxsim.errors import AssetError

Decode = Callable[[bytes], Any]
BUILT_IN = (".stl", ".obj", ".msh", ".gmsh")


@dataclass(frozen=True)
class Decoder:
    """A reader of the files of one extension.

    Attributes:
      extension: in lower case, with its dot.
      decode: contents -> Surface, or vertices (n, 3) and faces (k, 3).
      content_type: media type for names without the extension; "": none.
    """

    extension: str
    decode: Decode
    content_type: str = ""

    def surface(self, data: bytes) -> Surface:
        """Return the surface in a file.

        Raises:
          AssetError: the decoder fails, or what it returns is no surface.
        """
        try:
            found = self.decode(data)
        except AssetError:
            raise
        except Exception as error:
            reason = str(error) or type(error).__name__
            raise AssetError(f"the decoder of {self.extension} files fails: {reason}") from error
        return _validate_surface(found, self.extension)


_decoders: dict[str, Decoder] = {}


def register_decoder(extension: str, decode: Decode, *, content_type: str = "") -> None:
    """Register a decoder of mesh files, for all models loaded from now on.

    Args:
      extension: file extension, such as ".ply"; case-insensitive.
      decode: contents (bytes) -> vertices (n, 3) in meters and faces (k, 3), counter-clockwise seen
        from outside; or a `jaxsim.assets.surface.Surface`. Its exceptions become a ModelError.
      content_type: media type, such as "model/ply", for `data:` URIs and the attribute of this
        name; "": none.

    Raises:
      ValueError: the extension is invalid, built in, or has another decoder.
    """
    extension = extension.lower()
    if not extension.startswith(".") or len(extension) < 2:
        raise ValueError(
            f"extension: expected a dot and letters, such as '.ply', got {extension!r}"
        )
    if extension in BUILT_IN:
        raise ValueError(f"extension: {extension} is built in")
    if not callable(decode):
        raise ValueError(f"decode: expected a function of bytes, got {type(decode).__name__}")
    decoder = Decoder(extension, decode, content_type.strip().lower())
    # registering the same decoder again, as in a reloaded module, has no effect
    if _decoders.setdefault(extension, decoder) != decoder:
        raise ValueError(f"extension: {extension} has a decoder; unregister_decoder removes it")


def unregister_decoder(extension: str) -> None:
    """Unregister a decoder, including those of trimesh, so that another can be registered.

    Raises:
      KeyError: there is none for this extension.
    """
    del _decoders[extension.lower()]


def decoder_of(extension: str, content_type: str | None = None) -> Decoder | None:
    """Return the decoder of an extension, else of a content type; None if there is none."""
    if extension in _decoders:
        return _decoders[extension]
    wanted = (content_type or "").strip().lower()
    return next((d for d in _decoders.values() if wanted and d.content_type == wanted), None)


def extensions() -> tuple[str, ...]:
    """Return the extensions that have a decoder."""
    return tuple(_decoders)


def _validate_surface(found: Any, extension: str) -> Surface:
    """Return the result of a decoder as a surface."""
    try:
        if not isinstance(found, Surface):
            vertex, face = found
            found = Surface(np.asarray(vertex, float), np.asarray(face))
        vertex, face = found.vertex, found.face
        if face.size == 0:
            face = np.zeros((0, 3), int)
        right = vertex.ndim == 2 and vertex.shape[1] == 3 and len(vertex) > 0
        right = right and face.ndim == 2 and face.shape[1] == 3 and face.dtype.kind in "iu"
    except (TypeError, ValueError, AttributeError):
        right = False
    if not right:
        raise AssetError(
            f"the decoder of {extension} files returned {type(found).__name__}; expected vertices "
            "(n, 3) and faces (k, 3) of integers"
        )
    if face.size and not (face.min() >= 0 and face.max() < len(vertex)):
        raise AssetError(f"a face names a vertex beyond the {len(vertex)} that there are")
    return Surface(vertex, face.astype(int), *(getattr(found, name) for name in _OPTIONAL_FIELDS))


_OPTIONAL_FIELDS = ("normal", "face_normal", "texcoord", "face_texcoord")

for _extension, _type in (
    (".glb", "model/gltf-binary"),
    (".gltf", "model/gltf+json"),
    (".dae", "model/vnd.collada+xml"),
    (".ply", "model/ply"),
    (".off", "model/off"),
):
    register_decoder(_extension, partial(read_scene, kind=_extension[1:]), content_type=_type)
