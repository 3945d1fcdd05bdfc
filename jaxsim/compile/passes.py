"""The compiler at a glance: its passes, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable

from jaxsim.compile.align import align_free
from jaxsim.compile.assets import assets
from jaxsim.compile.bodies import bodies
from jaxsim.compile.cameras import cameras
from jaxsim.compile.context import Compilation
from jaxsim.compile.geoms import geoms
from jaxsim.compile.joints import joints
from jaxsim.compile.lights import lights
from jaxsim.compile.masses import masses
from jaxsim.compile.option import option, statistic
from jaxsim.compile.replicate import replicate
from jaxsim.compile.settings import settings
from jaxsim.compile.sites import sites
from jaxsim.compile.springs import springdamper
from jaxsim.compile.tree import frames, pattern, tree

Pass = Callable[[Compilation], None]


def freeze(c: Compilation) -> None:
    """From here on the tree does not change, and look-ups in it may be remembered."""
    c.spec.freeze()


PASSES: tuple[Pass, ...] = (
    # what the user sets for the model as a whole
    settings,
    option,
    # what stands for other elements
    replicate,
    freeze,
    # the tree and what is fixed to it
    assets,
    bodies,
    joints,
    geoms,
    sites,
    cameras,
    lights,
    masses,
    align_free,
    tree,
    frames,
    pattern,
    # what is derived at the reference pose
    statistic,
)
