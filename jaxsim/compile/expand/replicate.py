"""Expand `<replicate>` elements, and compute the poses of the copies."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.pose import FramePose
from jaxsim.compile.options.bounds import MAX_ELEMENTS
from jaxsim.compile.step import declare_pass
from jaxsim.math.quaternion import quat_from_euler, quat_rotate
from jaxsim.spec import SpecElement
from jaxsim.spec.replicate import expand_replicates


@declare_pass(needs="read_settings", gives="spec")
def replicate_elements(c: Compilation) -> None:
    """Expand the replicates of the model."""
    if _count_copies(c) > MAX_ELEMENTS:
        replicate_element = next(e for e in c.spec.walk() if e.tag == "replicate")
        c.fault(
            replicate_element,
            f"replicates create more than {MAX_ELEMENTS} elements; lower their counts",
        )
        return
    expand_replicates(c.spec, lambda element: _placement(c, element))


def _placement(c: Compilation, element: SpecElement) -> list[FramePose]:
    """Return the poses of the copies; the first one is unchanged.

    Copy i is rotated by i times the angles, and offset from copy i - 1 in its frame.
    """
    offset, angles = (_vector_or_zero(element.get(attr)) for attr in ("offset", "euler"))
    settings = c.settings_of(element)
    pos, poses = np.zeros(3), []
    for i in range(int(element.get("count"))):
        quat = quat_from_euler(i * settings.radians(angles), settings.eulerseq)
        poses.append(FramePose(pos, quat))
        pos = pos + quat_rotate(quat, offset)
    return poses


def _vector_or_zero(value: np.ndarray | None) -> np.ndarray:
    return np.zeros(3) if value is None else np.array(value, float)


def _count_copies(c: Compilation) -> int:
    """Return the number of elements that all replicates create.

    Inner ones are expanded first, even if the outer one makes no copy of them.
    """
    total, stack = 0, [(c.spec.root, 1)]
    while stack:
        element, times = stack.pop()
        if element.tag == "replicate":
            times = min(times * max(1, int(element.get("count"))), MAX_ELEMENTS + 1)
        total += times
        stack.extend((child, times) for child in element.children)
    return total
