"""Frame the camera of a page to a whole motion, ignoring objects that are lost far away."""

import numpy as np

from jaxsim.view.browser.draw.poses import Posing
from jaxsim.view.browser.draw.scene import BrowserScene
from jaxsim.view.browser.motion import RecordedMotion
from jaxsim.view.browser.server import Balls

_MAX_RECORDS = 48  # number of records that are examined, from the first to the last
_LOST_DISTANCE = 30.0  # distance beyond which objects are ignored, in sizes of the first frame


def around_motion(
    scene: BrowserScene, posing: Posing, motion: RecordedMotion, worlds: slice
) -> Balls:
    """Return bounding spheres of worlds arranged as in `scene`, over their motion.

    An object that falls forever would make everything else too small: positions that are
    _LOST_DISTANCE sizes of the first frame away are ignored.
    """
    number = min(motion.records, _MAX_RECORDS)
    records = np.linspace(0, motion.records - 1, number).round().astype(int)
    first, *later = (scene.bounding_balls(posing.of(motion.at(int(i), worlds))) for i in records)
    middle = (first.center.min(axis=0) + first.center.max(axis=0)) / 2
    size = float((np.linalg.norm(first.center - middle, axis=1) + first.radius).max())
    center = np.concatenate([first.center, *(b.center for b in later)])
    radius = np.concatenate([first.radius, *(b.radius for b in later)])
    near = np.linalg.norm(center - middle, axis=1) + radius <= _LOST_DISTANCE * size
    near[: len(first.center)] = True
    return Balls(center[near], radius[near])
