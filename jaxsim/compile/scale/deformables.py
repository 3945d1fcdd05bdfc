"""Scale flexes and skins of bodies inside a `<frame>` with a scale."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.asset.skin_file import write_out
from jaxsim.compile.context import Compilation
from jaxsim.compile.scale.dimension import Scale
from jaxsim.compile.scale.factors import scale_attributes
from jaxsim.compile.scale.scales import UNIT_SCALE, Scales
from jaxsim.math.quaternion import quat_normalize, quat_to_matrix
from jaxsim.spec import SpecElement

_SAME_SCALE_TOLERANCE = 1e-14  # relative difference below which scales of bones are equal

# Children of a flex whose numbers are scaled even if none is written.
_PARTS = ("contact", "edge", "elasticity")


def flex_scale(c: Compilation, flex: SpecElement, scales: Scales) -> Scale:
    """Return the scale of a flex as a whole: that of the innermost body or frame shared by all its
    bodies."""
    names = str(flex.get("node") or flex.get("body") or "").split()
    found = [scales.named.get(("body", name)) for name in names]
    chains = []
    for body in found:
        if body is None or body.tag != "body":
            return UNIT_SCALE
        chains.append(_ancestors_and_self(body))
    shared: SpecElement | None = None
    for elements in zip(*chains, strict=False):
        if any(e is not elements[0] for e in elements):
            break
        shared = elements[0]
    return UNIT_SCALE if shared is None else scales.own.get(shared, UNIT_SCALE)


def _ancestors_and_self(body: SpecElement) -> list[SpecElement]:
    """Return the bodies and frames that contain a body, outermost first, and the body itself."""
    chain, skips = [body], body.unframed
    for element in body.ancestors():
        if element.tag == "frame" and skips:
            continue
        skips = element.unframed
        chain.append(element)
    return chain[::-1]


def scale_flex(c: Compilation, flex: SpecElement, scales: Scales) -> None:
    """Scale the flex's own numbers by its scale as a whole, and each point by that of its body."""
    scale = flex_scale(c, flex, scales)
    for places, bodies in (("vertex", "body"), ("nodecoord", "node")):
        given = flex.own(places)
        names = str(flex.get(bodies) or "").split()
        if given is None or len(given) % 3 or not names:
            continue
        point = np.reshape(given, (-1, 3)).astype(float)
        maps = [scales.of("body", name).linear for name in names]
        if len(maps) in (1, len(point)):
            flex.attrs[places] = np.matmul(np.array(maps), point[:, :, None]).ravel()
    if scale == UNIT_SCALE:
        return
    scale_attributes(flex, scale, but=("vertex", "nodecoord"))
    for tag in _PARTS:
        child = flex.find(tag)
        if child is None:
            child = flex.adopt(SpecElement(tag, place=flex.place, row=flex.row.children[tag]))
        scale_attributes(child, scale)


def scale_skin(c: Compilation, skin: SpecElement, scales: Scales) -> None:
    """Scale a skin whose bodies share one scale; the values of a file are written to the
    element."""
    if not any(scale != UNIT_SCALE for scale in scales.own.values()):
        return
    if skin.get("file") is not None and not write_out(c, skin):
        return
    bones = [bone for bone in skin.children if bone.tag == "bone"]
    maps = [_bind_map(bone, scales) for bone in bones]
    if not maps:
        return
    if any(np.abs(m - maps[0]).max() > _SAME_SCALE_TOLERANCE * np.abs(maps[0]).max() for m in maps):
        c.fault(skin, "its bones have different scales; put their bodies into one frame")
        return
    for element, attr in ((skin, "vertex"), *((bone, "bindpos") for bone in bones)):
        given = element.get(attr)
        if given is not None and len(given) % 3 == 0:
            element.attrs[attr] = (np.reshape(given, (-1, 3)) @ maps[0].T).ravel()
    scale_attributes(skin, scales.of("body", bones[0].get("body")), but=("vertex",))


def _bind_map(bone: SpecElement, scales: Scales) -> np.ndarray:
    """Return the linear map of a bone's body, in the axes of the skin when it was bound, (3, 3)."""
    scale = scales.of("body", bone.get("body"))
    if not scale.map:
        return scale.linear
    R = quat_to_matrix(quat_normalize(np.asarray(bone.get("bindquat"), float)))
    linear: np.ndarray = R @ scale.linear @ R.T
    return linear
