"""Read the skin in an SKN file, and write its values to the element that names the file.

A file of an attached model names the bodies of that model: its bones get the prefix of the
attachment.
"""

from __future__ import annotations

from dataclasses import replace

from jaxsim.assets.read.decode import extension
from jaxsim.assets.read.skin import Skin, read_skin
from jaxsim.compile.asset.files import read_asset
from jaxsim.compile.context import Compilation
from jaxsim.errors import AssetError
from jaxsim.spec import SpecElement


def skin_file(c: Compilation, element: SpecElement) -> Skin | None:
    """Return the skin in the file that an element names; None, and a fault, if it cannot be read.

    Raises:
      AssetError: the file is no skin.
    """
    file = element.get("file")
    if extension(file) != ".skn":
        raise AssetError(f"file='{file}' is no skin; its name must end in .skn")
    data = read_asset(c, element, file, "skin")
    if data is None:
        return None
    skin, origin = read_skin(data), element.origin
    if origin is None:
        return skin
    return replace(skin, bones=tuple(replace(b, body=origin.name(b.body)) for b in skin.bones))


def write_out(c: Compilation, element: SpecElement) -> bool:
    """Write the values of a skin's file to its element, if the file can be read.

    Faults of the file are reported when skins are compiled; `c.written_out` stores its name.
    """
    try:
        skin = skin_file(c, element)
    except AssetError:
        return False
    if skin is None:
        return False
    name = element.asset_name
    c.written_out[element] = element.attrs.pop("file")
    element.attrs.update(vertex=skin.vertex.ravel(), face=skin.face.ravel())
    if name:
        element.attrs["name"] = name
    if len(skin.texcoord):
        element.attrs["texcoord"] = skin.texcoord.ravel()
    for bone in skin.bones:
        element.add(
            "bone",
            body=bone.body,
            bindpos=bone.pos,
            bindquat=bone.quat,
            vertid=bone.vertid,
            vertweight=bone.weight,
        )
    return True
