"""The compiler at a glance: its passes, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable

from jaxsim.compile.actuators import actuators
from jaxsim.compile.align import align_free
from jaxsim.compile.assets import assets
from jaxsim.compile.attach import attach, attached_keys
from jaxsim.compile.automatic import derive
from jaxsim.compile.bodies import bodies
from jaxsim.compile.cameras import cameras
from jaxsim.compile.classes import classes
from jaxsim.compile.contacts import contacts
from jaxsim.compile.context import Compilation
from jaxsim.compile.custom import custom
from jaxsim.compile.equalities import equalities
from jaxsim.compile.geoms import geoms
from jaxsim.compile.joints import joints
from jaxsim.compile.keyframes import keyframes
from jaxsim.compile.lights import lights
from jaxsim.compile.masses import masses
from jaxsim.compile.option import option, statistic
from jaxsim.compile.replicate import replicate
from jaxsim.compile.sensors import sensors
from jaxsim.compile.settings import settings
from jaxsim.compile.sites import sites
from jaxsim.compile.sleep import sleep
from jaxsim.compile.springs import springdamper
from jaxsim.compile.tendons import tendons
from jaxsim.compile.tree import frames, pattern, tree

Pass = Callable[[Compilation], None]


def freeze(c: Compilation) -> None:
    """From here on the tree does not change, and look-ups in it may be remembered."""
    c.spec.freeze()


PASSES: tuple[Pass, ...] = (
    # what the user sets for the model as a whole
    settings,
    option,
    classes,
    # elements that stand for others
    attach,
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
    # what connects and measures its parts
    tendons,
    actuators,
    frames,
    pattern,
    contacts,
    equalities,
    sensors,
    custom,
    sleep,
    # what follows from the reference pose
    derive,
    springdamper,
    attached_keys,
    keyframes,
    statistic,
)
