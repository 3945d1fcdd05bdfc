"""Which joints, actuators and mocap bodies the numbers of a keyframe belong to.

A keyframe is a list of numbers for the model as it was written. When elements come or go, the
elements that the numbers belong to are noted on it, and the compiler, which knows where each of
them ends up, spreads the numbers over the model as it is then.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from jaxsim.spec.element import SpecElement

if TYPE_CHECKING:
    from jaxsim.spec.spec import Spec


@dataclass(frozen=True, eq=False)
class Layout:
    """The model that a keyframe was written for: its elements, in order of their ids."""

    joints: tuple[SpecElement, ...]
    actuators: tuple[SpecElement, ...]
    mocaps: tuple[SpecElement, ...]


def record_layouts(spec: Spec) -> None:
    """Notes on each keyframe which elements its numbers are for, before the tree changes."""
    keys = [key for key in spec.section("keyframe") if key.layout is None]
    if not keys:
        return
    bodies = spec.bodies
    layout = Layout(
        joints=tuple(joint for body in bodies for joint in body.joints),
        actuators=tuple(spec.section("actuator")),
        mocaps=tuple(b.element for b in bodies if b.id and b.element.get("mocap") == "true"),
    )
    for key in keys:
        key.layout = layout


def copy_layouts(spec: Spec, copy: Spec) -> None:
    """Lets the keyframes of a copy refer to the elements of the copy."""
    keys = [key for key in copy.section("keyframe") if key.layout is not None]
    if not keys:
        return
    twin = dict(zip(spec.walk(), copy.walk(), strict=True))
    for key in keys:
        old: Layout = key.layout
        parts = (old.joints, old.actuators, old.mocaps)
        key.layout = Layout(*(tuple(twin.get(e, e) for e in part) for part in parts))
