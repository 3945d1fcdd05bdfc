"""The passes of the compiler, in the order in which they run.

Each declares at its function what it needs and gives (step.py).
"""

from __future__ import annotations

from jaxsim.compile.actuator.actuators import actuators
from jaxsim.compile.asset.materials import materials
from jaxsim.compile.asset.mesh.octrees import octrees
from jaxsim.compile.asset.paths import paths
from jaxsim.compile.asset.skins import skins
from jaxsim.compile.asset.textures import textures
from jaxsim.compile.body.align import align_free
from jaxsim.compile.body.cameras import cameras
from jaxsim.compile.body.joints import joints
from jaxsim.compile.body.lights import lights
from jaxsim.compile.body.masses import masses
from jaxsim.compile.body.sites import sites
from jaxsim.compile.body.sleep import sleep
from jaxsim.compile.body.tree import frames, pattern, tree
from jaxsim.compile.context import Compilation
from jaxsim.compile.expand.attach import attach, attached_keys
from jaxsim.compile.expand.classes import classes
from jaxsim.compile.expand.discard import discard_visual
from jaxsim.compile.expand.fuse import fuse_static
from jaxsim.compile.expand.repeated import repeated_names
from jaxsim.compile.expand.replicate import replicate
from jaxsim.compile.expand.written import written
from jaxsim.compile.flex.flexes import flexes
from jaxsim.compile.flex.weights import flex_weights
from jaxsim.compile.reference.automatic import derive
from jaxsim.compile.reference.springs import springdamper
from jaxsim.compile.scale.actuators import scale_actuators, scale_controls
from jaxsim.compile.scale.frames import scale_frames
from jaxsim.compile.step import Step, step
from jaxsim.compile.tie.contacts import contacts
from jaxsim.compile.tie.equalities import equalities
from jaxsim.compile.tie.sensors import sensors
from jaxsim.compile.tie.tendons import tendons
from jaxsim.compile.weighing import WEIGHING
from jaxsim.compile.whole.custom import custom
from jaxsim.compile.whole.keyframes import keyframes
from jaxsim.compile.whole.option import option, statistic
from jaxsim.compile.whole.settings import settings


@step()
def freeze(c: Compilation) -> None:
    """Freeze the tree: it does not change any more, and queries of it may be cached."""
    c.spec.freeze()


PASSES: tuple[Step, ...] = (
    written,
    # settings of the whole model
    settings,
    classes,
    # elements that are expanded
    attach,
    replicate,
    option,
    scale_frames,
    repeated_names,
    # optional removal of parts of the model
    discard_visual,
    fuse_static,
    freeze,
    # the kinematic tree and its elements
    *WEIGHING,
    textures,
    materials,
    octrees,
    skins,
    paths,
    joints,
    sites,
    cameras,
    lights,
    masses,
    align_free,
    tree,
    # elements that connect and measure bodies
    tendons,
    actuators,
    scale_actuators,
    frames,
    pattern,
    contacts,
    flexes,
    equalities,
    sensors,
    custom,
    sleep,
    # quantities of the reference pose
    derive,
    flex_weights,
    springdamper,
    attached_keys,
    keyframes,
    scale_controls,
    statistic,
)
