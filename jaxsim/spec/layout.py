"""Record the joints, actuators and mocap bodies to which the numbers of a keyframe belong.

A keyframe is a list of numbers for the model as it was written. When elements are added or deleted,
the elements to which the numbers belong are recorded on it, and the compiler, which knows the final
addresses, scatters the numbers into the new layout.
"""

from __future__ import annotations

from jaxsim.spec.body import bodies_of
from jaxsim.spec.element import Layout, SpecElement


def record_layouts(root: SpecElement) -> None:
    """Record the present layout on each keyframe, before the tree changes."""
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
    """Translate the layouts of copied keyframes to the elements of the copy."""
    keys = [(key, key.layout) for key in _section(copy, "keyframe") if key.layout is not None]
    if not keys:
        return
    twin = dict(zip(root.walk(), copy.walk(), strict=True))
    for key, old in keys:
        parts = (old.joints, old.actuators, old.mocaps)
        key.layout = Layout(*(tuple(twin.get(e, e) for e in part) for part in parts))


def _section(root: SpecElement, tag: str) -> list[SpecElement]:
    return [element for section in root.find_all(tag) for element in section.children]
