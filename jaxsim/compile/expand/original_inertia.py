"""Compute the inertia of all bodies before the tree is simplified by discardvisual and fusestatic.

Both options change the tree and must preserve the inertia of its bodies. A copy of the model,
reduced to the elements that determine inertia, goes through the passes up to the geoms.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.body.masses import apply_inertia_bounds, inertia_of
from jaxsim.compile.context import Compilation
from jaxsim.compile.expand.known_inertia import KnownInertia
from jaxsim.compile.geometry.pose import FramePose
from jaxsim.compile.inertia_passes import INERTIA_PASSES
from jaxsim.spec import Body, Spec, SpecElement

# Sections that determine the inertia of bodies.
_KEPT_SECTIONS = ("compiler", "option", "size", "default", "asset", "worldbody", "extension")
_SHAPELESS = ("plane", "hfield")


def known_inertia(c: Compilation) -> list[KnownInertia]:
    """Return the inertia of every body, by id; empty, and problems, if the model is invalid."""
    if c.known_inertia is None:
        c.known_inertia = _measure(c)
    return c.known_inertia


def weighing_geoms(c: Compilation, body: Body) -> list[SpecElement]:
    """Return the geoms that the inertia of a body is inferred from."""
    settings = c.settings_of(body.element)
    inferred = settings.inertiafromgeom
    if body.id == 0 or inferred == "false" or (inferred == "auto" and body.inertial is not None):
        return []
    first, last = settings.inertiagrouprange
    return [g for g in body.geoms if first <= g.get("group") <= last and _has_mass(g)]


def _has_mass(geom: SpecElement) -> bool:
    mass = geom.get("mass")
    return (
        geom.get("type") not in _SHAPELESS and (geom.get("density") if mass is None else mass) != 0
    )


def _measure(c: Compilation) -> list[KnownInertia]:
    spec = c.spec.copy()
    twin = dict(zip(c.spec.walk(), spec.walk(), strict=True))
    _remove_massless_elements(c, spec)
    inner = Compilation(spec=spec.freeze(), problems=c.problems)
    inner.settings = c.settings
    inner.stretched = {twin[element]: linear for element, linear in c.stretched.items()}
    inner.opt.update(c.opt)
    for step in INERTIA_PASSES:
        step(inner)
        if len(c.problems):
            return []
    found = [_inertia_of_body(inner, body) for body in inner.bodies]
    return [] if len(c.problems) else found


def _inertia_of_body(inner: Compilation, body: Body) -> KnownInertia:
    placed = FramePose(inner.fields["body_pos"][body.id], inner.fields["body_quat"][body.id])
    if body.id == 0:
        return KnownInertia(0.0, np.zeros(3), placed, placed, False, False)
    own = inertia_of(inner, body)
    mass, moments, frame = apply_inertia_bounds(inner, body, own)
    adjusted = mass != own[0] or not np.array_equal(moments, own[1])
    return KnownInertia(mass, moments, frame, placed, body.inertial is not None, adjusted)


def _remove_massless_elements(c: Compilation, spec: Spec) -> None:
    """Remove everything except bodies, joints, inertials, and the geoms that contribute to
    inertia."""
    spec.root.children = [e for e in spec.root.children if e.tag in _KEPT_SECTIONS]
    for body in spec.bodies:
        weighing = set(weighing_geoms(c, body))
        for group in (body.geoms, body.sites, body.cameras, body.lights, body.others):
            for element in group:
                if element not in weighing:
                    element.remove()
    meshes = set()
    for element in spec.walk():
        element.attrs.pop("material", None)
        if element.tag == "geom" and element.holder.tag != "default":
            meshes.add(element.get("mesh"))
    for section in spec.sections("asset"):
        for asset in [e for e in section.children if e.tag != "mesh" or e.asset_name not in meshes]:
            asset.remove()
