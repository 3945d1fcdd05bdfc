"""Expand `<compiler fusestatic>`: a body without joints becomes a frame in its parent.

Its child bodies stay in that frame, in their order; geoms, sites, cameras and lights move to the
end of the parent's lists, in a frame of the same pose. Its inertia is added to the parent's. A body
is kept if fusing it would change the model: another element names it, a force is measured at one of
its sites, or forces on it depend on its identity.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.expand.known_inertia import KnownInertia
from jaxsim.compile.expand.original_inertia import known_inertia, weighing_geoms
from jaxsim.compile.geometry.orientation import mjcf_numbers
from jaxsim.compile.geometry.pose import FramePose
from jaxsim.compile.geometry.principal import principal_axes
from jaxsim.compile.step import declare_pass
from jaxsim.enums import MINVAL
from jaxsim.math.quaternion import quat_to_matrix
from jaxsim.spec import Body, SpecElement
from jaxsim.spec.references import references

# Sensors of the force transmitted through the body of their site.
_FORCE_SENSORS = ("force", "torque")


@declare_pass(needs="read_settings option scale_frames", gives="spec")
def fuse_static(c: Compilation) -> None:
    """Fuse the static bodies of the tree with their parents, if the model requests it."""
    if not c.settings.fusestatic:
        return
    bodies = c.spec.bodies
    known = known_inertia(c)
    if not known:
        return
    held = _Held(c)
    into: list[Body] = []  # by id: the body itself, or the one it is fused with
    for body in bodies:
        above = into[body.parent.id] if body.parent is not None else body
        into.append(body)
        if body.parent is None:
            continue
        if body.parent is not above:
            known[body.id].placed = known[body.parent.id].placed.apply(known[body.id].placed)
        if _is_fusible(c, body, above, known, held):
            into[body.id] = above
            if above.id:
                _add_inertia(c, known, above, body)
            _replace_body_by_frames(c, body, above, known[body.id].placed)


class _Held:
    """References from the rest of the model that prevent bodies from being fused.

    Attributes:
      bodies: names of bodies that other elements refer to.
      sites: names of sites with a force sensor.
      fluid: the model is in a medium.
    """

    def __init__(self, c: Compilation):
        self.fluid = bool(c.opt["density"] or c.opt["viscosity"])
        self.bodies, self.sites = set(), set()
        for element in c.spec.walk():
            for attr, (kind, name) in references(element):
                if kind == "body":
                    self.bodies.add(name)
                if element.tag in _FORCE_SENSORS and attr == "site":
                    self.sites.add(name)


def _is_fusible(
    c: Compilation, body: Body, above: Body, known: list[KnownInertia], held: _Held
) -> bool:
    element = body.element
    stays = (
        bool(body.joints)
        or element.get("mocap") == "true"
        or element.get("fuse") == "false"
        or element.get("sleep") != "auto"
        or bool(body.others)
        or body.name in held.bodies
        or any(site.name in held.sites for site in body.sites)
    )
    return not stays and (above.id == 0 or _same_forces(c, body, above, known, held))


def _same_forces(
    c: Compilation, body: Body, above: Body, known: list[KnownInertia], held: _Held
) -> bool:
    """Return whether gravity compensation, medium and inertia give the fused body the same
    forces."""
    if held.fluid and any(geom.get("fluidshape") == "ellipsoid" for geom in body.geoms):
        return False
    heavy = known[body.id].mass > 0
    if heavy and (body.element.get("gravcomp") != above.element.get("gravcomp") or held.fluid):
        return False
    from_geoms = c.settings_of(above.element).inertiafromgeom == "true"
    adjusted = known[body.id].adjusted or known[above.id].adjusted
    return not (from_geoms and adjusted and (heavy or body.geoms))


def _add_inertia(c: Compilation, known: list[KnownInertia], above: Body, body: Body) -> None:
    """Add the inertia of a body to the one it is fused with, as `<inertial>` unless the geoms imply
    it.

    Both inertias are about the common center of mass, in the frame of the upper body.
    """
    parent, child = known[above.id], known[body.id]
    moved = child.placed.apply(child.frame)
    if c.settings_of(above.element).inertiafromgeom == "true":
        return
    inferred = not (parent.explicit or parent.adjusted or child.adjusted or child.explicit)
    if child.mass > 0:
        total = parent.mass + child.mass
        com = (parent.mass * parent.frame.pos + child.mass * moved.pos) / total
        tensor = _inertia_about(parent.mass, parent.moments, parent.frame, com)
        tensor = tensor + _inertia_about(child.mass, child.moments, moved, com)
        parent.moments, quat = principal_axes(tensor)
        parent.mass, parent.frame = total, FramePose(com, quat)
    hidden = child.explicit and not parent.explicit and _shapes(c, body)
    if not ((child.mass > 0 and not _can_infer_inertia(c, above, inferred)) or hidden):
        return
    if child.mass > 0 and parent.moments[2] < MINVAL:
        given = mjcf_numbers(parent.moments)
        c.fault(
            body.element,
            f"fused with {above.element.label} it would have the principal moments '{given}', "
            "which must be positive; give it an inertia, or fuse='false'",
        )
    parent.write(above)


def _can_infer_inertia(c: Compilation, above: Body, inferred: bool) -> bool:
    return inferred and c.settings_of(above.element).inertiafromgeom == "auto"


def _shapes(c: Compilation, body: Body) -> bool:
    """Return whether geoms that an explicit inertia excludes would contribute in another body."""
    inertial, body.inertial = body.inertial, None
    counted = weighing_geoms(c, body)
    body.inertial = inertial
    return bool(counted)


def _inertia_about(
    mass: float, moments: np.ndarray, frame: FramePose, point: np.ndarray
) -> np.ndarray:
    """Return the inertia tensor about a point (parallel-axis theorem), (3, 3)."""
    R = quat_to_matrix(frame.quat)
    arm = frame.pos - point
    return R @ np.diag(moments) @ R.T + mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))


def _replace_body_by_frames(c: Compilation, body: Body, above: Body, placed: FramePose) -> None:
    """Replace a body by frames."""
    element = body.element
    if body.inertial is not None:
        body.inertial.remove()
    row = element.row.children["frame"]
    own = SpecElement(
        "frame", {"pos": placed.pos, "quat": placed.quat}, place=element.place, row=row
    )
    childclass = element.attrs.get("childclass") or element.childclass
    if childclass is not None:
        own.attrs["childclass"] = childclass
    _move_contents(element, own)

    kept = {k: v for k, v in element.attrs.items() if k in _OF_FRAMES}
    nested = SpecElement("frame", kept, place=element.place, row=row)
    nested.origin = element.origin
    holder = element.holder
    index = holder.children.index(element)
    for child in list(element.children):
        nested.adopt(child)
    element.remove()
    end = c.spec.last_section("worldbody") if above.id == 0 else above.element
    for frame, parent, place in ((nested, holder, index), (own, end, None)):
        frame.row = parent.row.children["frame"]
        if frame.children:
            parent.adopt(frame, place)


# Attributes of a body that move to its frame.
_OF_FRAMES = ("pos", "quat", "axisangle", "xyaxes", "zaxis", "euler", "childclass")


def _move_contents(source: SpecElement, target: SpecElement) -> None:
    """Move everything except bodies, and the frames that contain them, from one element to
    another."""
    for child in list(source.children):
        if child.tag == "body":
            continue
        if child.tag == "frame" and any(e.tag == "body" for e in child.walk()):
            twin = SpecElement("frame", dict(child.attrs), row=child.row, place=child.place)
            twin.origin = child.origin
            _move_contents(child, target.adopt(twin))
        else:
            target.adopt(child)
