"""Write changed values of cameras, materials and skins to their elements; see `write_back`."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.asset.skin_file import write_out
from jaxsim.compile.context import Compilation
from jaxsim.compile.write.changes import Changes
from jaxsim.spec import SpecElement

CAMERA_FIELDS = ("cam_fovy", "cam_sensorsize", "cam_intrinsic")


def write_cameras(c: Compilation, changes: Changes) -> None:
    """Write the field of view, or the sensor that determines it, with its optics."""
    new = changes.new
    for i in changes.rows(*CAMERA_FIELDS):
        element: SpecElement = c.elements["camera"][i]
        sensor, intrinsic = new["cam_sensorsize"][i], new["cam_intrinsic"][i]
        if not np.all(sensor > 0):
            element.set("fovy", new["cam_fovy"][i])
            continue
        for attr in ("fovy", "focalpixel", "principalpixel"):
            element.unset(attr)
            if element.is_set(attr) and attr != "fovy":  # set by a class: zeros count as unset
                element.set(attr, [0, 0])
        element.update(sensorsize=sensor, focal=intrinsic[:2], principal=intrinsic[2:])


_MATERIAL = (
    *("emission", "specular", "shininess", "reflectance", "metallic", "roughness"),
    *("texrepeat", "rgba"),
)
MATERIAL_FIELDS = tuple(f"mat_{attr}" for attr in _MATERIAL)


def write_materials(c: Compilation, changes: Changes) -> None:
    """Write all values of materials."""
    for field, attr in zip(MATERIAL_FIELDS, _MATERIAL, strict=True):
        for i in changes.rows(field):
            c.elements["material"][i].set(attr, changes.new[field][i])


# Attribute of each field of a skin: by vertex, by bone, and of the skin itself.
_POINTS = {"skin_vert": "vertex", "skin_texcoord": "texcoord"}
_BONES = {"skin_bonebindpos": "bindpos", "skin_bonebindquat": "bindquat"}
_OF_SKIN = {"skin_rgba": "rgba", "skin_inflate": "inflate"}
_WEIGHT = "skin_bonevertweight"
SKIN_FIELDS = (*_POINTS, *_BONES, *_OF_SKIN, _WEIGHT)


def write_skins(c: Compilation, changes: Changes) -> None:
    """Write all values of skins; those of a file are written to the element if they have
    changed."""
    new = changes.new
    inside = bool(changes.rows(*_POINTS, *_BONES, _WEIGHT))
    first = 0
    for i, element in enumerate(c.elements["skin"]):
        for field, attr in _OF_SKIN.items():
            if i in changes.rows(field):
                element.set(attr, new[field][i])
        bones = range(first, first + int(new["skin_bonenum"][i]))
        first = bones.stop
        from_file = element.get("file") is not None
        if not inside or (from_file and not write_out(c, element)):
            continue
        adr, count = new["skin_vertadr"][i], new["skin_vertnum"][i]
        element.set("vertex", new["skin_vert"][adr : adr + count].ravel())
        adr = new["skin_texcoordadr"][i]
        if adr >= 0:
            element.set("texcoord", new["skin_texcoord"][adr : adr + count].ravel())
        children = [child for child in element.children if child.tag == "bone"]
        for row, child in zip(bones, children, strict=True):
            for field, attr in _BONES.items():
                child.set(attr, new[field][row])
            adr, count_of_bone = new["skin_bonevertadr"][row], new["skin_bonevertnum"][row]
            child.set("vertweight", new[_WEIGHT][adr : adr + count_of_bone])
