"""The compiler at a glance: its passes, in the order in which they run."""

from __future__ import annotations

from collections.abc import Callable

from jaxsim.compile.actuator.actuators import actuators
from jaxsim.compile.align import align_free
from jaxsim.compile.asset.assets import assets
from jaxsim.compile.asset.hfields import hfields
from jaxsim.compile.asset.materials import materials
from jaxsim.compile.asset.paths import paths
from jaxsim.compile.asset.skins import skins
from jaxsim.compile.asset.textures import textures
from jaxsim.compile.attach import attach, attached_keys
from jaxsim.compile.automatic import derive
from jaxsim.compile.bodies import bodies
from jaxsim.compile.cameras import cameras
from jaxsim.compile.classes import classes
from jaxsim.compile.contacts import contacts
from jaxsim.compile.context import Compilation
from jaxsim.compile.custom import custom
from jaxsim.compile.discard import discard_visual
from jaxsim.compile.equalities import equalities
from jaxsim.compile.flex.flexes import flexes
from jaxsim.compile.flex.weights import flex_weights
from jaxsim.compile.fuse import fuse_static
from jaxsim.compile.geoms import geoms
from jaxsim.compile.joints import joints
from jaxsim.compile.keyframes import keyframes
from jaxsim.compile.lights import lights
from jaxsim.compile.masses import masses
from jaxsim.compile.mesh.meshes import meshes
from jaxsim.compile.mesh.octrees import octrees
from jaxsim.compile.option import option, statistic
from jaxsim.compile.plugins import plugins
from jaxsim.compile.repeated import repeated_names
from jaxsim.compile.replicate import replicate
from jaxsim.compile.scale.actuators import scale_actuators, scale_controls
from jaxsim.compile.scale.frames import scale_frames
from jaxsim.compile.sensors import sensors
from jaxsim.compile.settings import settings
from jaxsim.compile.sites import sites
from jaxsim.compile.sleep import sleep
from jaxsim.compile.springs import springdamper
from jaxsim.compile.tendons import tendons
from jaxsim.compile.tree import frames, pattern, tree
from jaxsim.compile.written import written

Pass = Callable[[Compilation], None]


def freeze(c: Compilation) -> None:
    """From here on the tree does not change, and look-ups in it may be remembered."""
    c.spec.freeze()


PASSES: tuple[Pass, ...] = (
    written,
    # what the user sets for the model as a whole
    settings,
    classes,
    # elements that stand for others
    attach,
    replicate,
    option,
    scale_frames,
    repeated_names,
    # what the model can do without
    discard_visual,
    fuse_static,
    freeze,
    # the tree and what is fixed to it
    plugins,
    assets,
    bodies,
    textures,
    materials,
    hfields,
    meshes,
    octrees,
    skins,
    paths,
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
    scale_actuators,
    frames,
    pattern,
    contacts,
    flexes,
    equalities,
    sensors,
    custom,
    sleep,
    # what follows from the reference pose
    derive,
    flex_weights,
    springdamper,
    attached_keys,
    keyframes,
    scale_controls,
    statistic,
)
