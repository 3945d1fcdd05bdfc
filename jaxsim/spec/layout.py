"""Which joints, actuators and mocap bodies the numbers of a keyframe belong to.

A keyframe is a list of numbers for the model as it was written. When elements come or go, the
elements that the numbers belong to are noted on it, and the compiler, which knows where each of
them ends up, spreads the numbers over the model as it is then.
"""

from __future__ import annotations

from jaxsim.spec.body import bodies_of
from jaxsim.spec.element import Layout, SpecElement


def record_layouts(root: SpecElement) -> None:
    """Note on each keyframe which elements its numbers are for, before the tree changes."""
    keys = [key for key in _section(root, "keyframe") if key.layout is None]
    if not keys:
        return
    bodies = bodies_of(root)
    layout = Layout(
        joints=tuple(joint for body in bodies for joint in body.joints),
        actuators=tuple(_section(root, "actuator")),
        mocaps=tuple(b.element for b in bodies if b.id and b.element.get("mocap") == "true"),
    )
    for key in keys:
        key.layout = layout


def copy_layouts(root: SpecElement, copy: SpecElement) -> None:
    """Let the keyframes of a copied tree refer to the elements of the copy."""
    keys = [(key, key.layout) for key in _section(copy, "keyframe") if key.layout is not None]
    if not keys:
        return
    twin = dict(zip(root.walk(), copy.walk(), strict=True))
    for key, old in keys:
        parts = (old.joints, old.actuators, old.mocaps)
        key.layout = Layout(*(tuple(twin.get(e, e) for e in part) for part in parts))


def _section(root: SpecElement, tag: str) -> list[SpecElement]:
    return [element for section in root.find_all(tag) for element in section.children]
