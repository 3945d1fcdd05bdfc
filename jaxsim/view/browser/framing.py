"""What the camera of a page is to see of a motion: all of it, but for what is lost far away."""

import numpy as np

from jaxsim.view.browser.draw.poses import Posing
from jaxsim.view.browser.draw.scene import Scene
from jaxsim.view.browser.motion import Motion
from jaxsim.view.browser.server import Balls

RECORDS = 48  # that are looked at, from the first to the last
LOST = 30.0  # what is farther away than this, in sizes of the first picture, is not waited for


def around_motion(scene: Scene, posing: Posing, motion: Motion, worlds: slice) -> Balls:
    """Balls around worlds that stand as in `scene`, in the course of their motion.

    Something that falls without end would leave the rest too small to be seen: places that are
    LOST sizes of the first picture away are left out.
    """
    number = min(motion.records, RECORDS)
    records = np.linspace(0, motion.records - 1, number).round().astype(int)
    first, *later = (scene.around(posing.of(motion.at(int(i), worlds))) for i in records)
    middle = (first.center.min(axis=0) + first.center.max(axis=0)) / 2
    size = float((np.linalg.norm(first.center - middle, axis=1) + first.radius).max())
    center = np.concatenate([first.center, *(b.center for b in later)])
    radius = np.concatenate([first.radius, *(b.radius for b in later)])
    near = np.linalg.norm(center - middle, axis=1) + radius <= LOST * size
    near[: len(first.center)] = True
    return Balls(center[near], radius[near])
