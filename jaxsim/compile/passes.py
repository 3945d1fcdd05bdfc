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
from jaxsim.compile.body.tree import frames, inertia_pattern, tree
from jaxsim.compile.constraints.contacts import contacts
from jaxsim.compile.constraints.equalities import equalities
from jaxsim.compile.constraints.sensors import sensors
from jaxsim.compile.constraints.tendons import tendons
from jaxsim.compile.context import Compilation
from jaxsim.compile.expand.attach import attach, attach_keys
from jaxsim.compile.expand.check_elements import check_written, refuse_repeated_names
from jaxsim.compile.expand.classes import classes
from jaxsim.compile.expand.discard import discard_visual
from jaxsim.compile.expand.fuse import fuse_static
from jaxsim.compile.expand.replicate import replicate_elements
from jaxsim.compile.flex.flexes import flexes
from jaxsim.compile.flex.weights import flex_weights
from jaxsim.compile.inertia_passes import INERTIA_PASSES
from jaxsim.compile.options.custom import custom
from jaxsim.compile.options.keyframes import keyframes
from jaxsim.compile.options.option import option, statistic
from jaxsim.compile.options.settings import read_settings
from jaxsim.compile.reference.automatic import derive
from jaxsim.compile.reference.springs import springdamper
from jaxsim.compile.scale.actuators import scale_actuators, scale_controls
from jaxsim.compile.scale.frames import scale_frames
from jaxsim.compile.step import Pass, declare_pass


@declare_pass()
def freeze(c: Compilation) -> None:
    """Freeze the tree: it does not change any more, and queries of it may be cached."""
    c.spec.freeze()


PASSES: tuple[Pass, ...] = (
    check_written,
    # settings of the whole model
    read_settings,
    classes,
    # elements that are expanded
    attach,
    replicate_elements,
    option,
    scale_frames,
    refuse_repeated_names,
    # optional removal of parts of the model
    discard_visual,
    fuse_static,
    freeze,
    # the kinematic tree and its elements
    *INERTIA_PASSES,
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
    inertia_pattern,
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
    attach_keys,
    keyframes,
    scale_controls,
    statistic,
)
