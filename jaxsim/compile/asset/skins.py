"""Compile skins: `skin_*`, surfaces that deform with the bodies, without effect on the physics."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from jaxsim.assets.read.skin import Bone, Skin
from jaxsim.compile.asset import assets
from jaxsim.compile.asset.skin_file import skin_file
from jaxsim.compile.context import Compilation
from jaxsim.compile.step import declare_pass
from jaxsim.errors import AssetError
from jaxsim.spec import SpecElement

MAXGROUP = 5

_DATA = ("vertex", "texcoord", "face")
_EMPTY_SKIN = Skin(np.zeros((0, 3)), np.zeros((0, 2)), np.zeros((0, 3), np.int32), ())


@declare_pass(needs="read_settings assets bodies", gives="skin")
def skins(c: Compilation) -> None:
    """Add all fields of skins; the numbers have single precision, as in MuJoCo."""
    elements = c.elements["skin"]
    made = [_skin(c, element) for element in elements]
    bones = [bone for skin in made for bone in skin.bones]
    textured = np.array([len(s.texcoord) > 0 for s in made], bool)
    c.fields.update(
        skin_matid=np.array([assets.material(c, e) for e in elements], np.int32),
        skin_group=np.array([_group(c, e) for e in elements], np.int32),
        skin_rgba=np.array([e.get("rgba") for e in elements], np.float32).reshape(-1, 4),
        skin_inflate=np.array([e.get("inflate") for e in elements], np.float32),
        skin_vertadr=_part_addresses(len(s.vertex) for s in made),
        skin_vertnum=np.array([len(s.vertex) for s in made], np.int32),
        skin_texcoordadr=np.where(
            textured, _part_addresses(len(s.texcoord) for s in made), -1
        ).astype(np.int32),
        skin_faceadr=_part_addresses(len(s.face) for s in made),
        skin_facenum=np.array([len(s.face) for s in made], np.int32),
        skin_boneadr=_part_addresses(len(s.bones) for s in made),
        skin_bonenum=np.array([len(s.bones) for s in made], np.int32),
        skin_vert=_concatenate((s.vertex for s in made), np.float32, 3),
        skin_texcoord=_concatenate((s.texcoord for s in made), np.float32, 2),
        skin_face=_concatenate((s.face for s in made), np.int32, 3),
        skin_bonevertadr=_part_addresses(len(b.vertid) for b in bones),
        skin_bonevertnum=np.array([len(b.vertid) for b in bones], np.int32),
        skin_bonebindpos=_concatenate((b.pos for b in bones), np.float32, 3),
        skin_bonebindquat=_concatenate((_normalize_quat(b.quat) for b in bones), np.float32, 4),
        skin_bonebodyid=np.array([c.ids["body"].get(b.body, -1) for b in bones], np.int32),
        skin_bonevertid=_concatenate((b.vertid for b in bones), np.int32),
        skin_bonevertweight=_concatenate((_weights(s) for s in made), np.float32),
    )
    c.fields.update(
        nskinvert=len(c.fields["skin_vert"]),
        nskintexvert=len(c.fields["skin_texcoord"]),
        nskinface=len(c.fields["skin_face"]),
        nskinbone=len(bones),
        nskinbonevert=len(c.fields["skin_bonevertid"]),
    )


def _part_addresses(counts: Iterable[int]) -> np.ndarray:
    """Return the addresses of concatenated parts of these lengths."""
    counts = np.array(list(counts), np.int32)
    return (np.cumsum(counts) - counts).astype(np.int32)


def _concatenate(parts: Iterable[np.ndarray], dtype: type, width: int | None = None) -> np.ndarray:
    """Return concatenated tables, row-wise, or concatenated lists."""
    flat = [np.zeros(0), *(np.ravel(part) for part in parts)]
    joined: np.ndarray = np.concatenate(flat).astype(dtype)
    return joined if width is None else joined.reshape(-1, width)


def _normalize_quat(quat: np.ndarray) -> np.ndarray:
    """Return a quaternion normalized to length 1; a zero quaternion is unchanged."""
    length = np.linalg.norm(quat)
    return quat / length if length > 0 else quat


def _weights(skin: Skin) -> np.ndarray:
    """Return the weights of all bones, normalized so that those of a vertex sum to 1."""
    if not skin.bones:
        return np.zeros(0, np.float32)
    vertid = np.concatenate([bone.vertid for bone in skin.bones])
    weight = np.concatenate([bone.weight for bone in skin.bones]).astype(np.float64)
    return weight / np.bincount(vertid, weight, minlength=len(skin.vertex))[vertid]


def _group(c: Compilation, element: SpecElement) -> int:
    group = int(element.get("group"))
    if not 0 <= group <= MAXGROUP:
        c.fault(element, f"group='{group}' must be between 0 and {MAXGROUP}")
    return group


def _skin(c: Compilation, element: SpecElement) -> Skin:
    """Return a consistent skin; an empty one, and a fault, if its parts contradict each other."""
    file, bones = element.get("file"), [e for e in element.children if e.tag == "bone"]
    if file and (bones or any(element.get(attr) is not None for attr in _DATA)):
        c.fault(element, f"both file='{file}' and data are given; remove one of them")
        return _EMPTY_SKIN
    try:
        skin = skin_file(c, element) if file else _inline_skin(element, bones)
        if skin is not None:
            _check(c, element, skin)
            return skin
    except AssetError as error:
        c.fault(element, str(error))
    return _EMPTY_SKIN


def _inline_skin(element: SpecElement, bones: list[SpecElement]) -> Skin:
    return Skin(
        vertex=_read_table(element, "vertex", 3),
        texcoord=_read_table(element, "texcoord", 2),
        face=_read_table(element, "face", 3),
        bones=tuple(
            Bone(
                body=bone.get("body"),
                pos=bone.get("bindpos"),
                quat=bone.get("bindquat"),
                vertid=np.atleast_1d(bone.get("vertid")),
                weight=np.atleast_1d(bone.get("vertweight")),
            )
            for bone in bones
        ),
    )


def _read_table(element: SpecElement, attr: str, width: int) -> np.ndarray:
    numbers = element.get(attr)
    numbers = np.zeros(0) if numbers is None else np.atleast_1d(numbers)
    if len(numbers) % width:
        raise AssetError(f"{attr} has {len(numbers)} numbers; it needs {width} for each")
    return numbers.reshape(-1, width)


def _check(c: Compilation, element: SpecElement, skin: Skin) -> None:
    nvertex = len(skin.vertex)
    if not (nvertex and len(skin.face) and skin.bones):
        raise AssetError("a skin needs vertices, faces and bones")
    if len(skin.texcoord) not in (0, nvertex):
        raise AssetError(
            f"{len(skin.texcoord)} texture coordinates are given for {nvertex} vertices"
        )
    if np.any((skin.face < 0) | (skin.face >= nvertex)):
        raise AssetError(f"a face has a vertex that is none of its {nvertex}, counted from 0")
    total = np.zeros(nvertex)
    for bone in skin.bones:
        if bone.body not in c.ids["body"]:
            c.resolve_name("body", bone.body, element, "a bone's body")
            continue
        if len(bone.vertid) != len(bone.weight) or not len(bone.vertid):
            raise AssetError(
                f"bone '{bone.body}' has {len(bone.vertid)} vertices and {len(bone.weight)} weights"
            )
        if np.any((bone.vertid < 0) | (bone.vertid >= nvertex)):
            raise AssetError(f"bone '{bone.body}' moves a vertex that is none of the {nvertex}")
        np.add.at(total, bone.vertid, bone.weight)
    if not c.problems and not np.all(total > 0):
        raise AssetError(f"no bone moves vertex {int(np.argmin(total > 0))}; give it a weight")
