"""All products of the passes, each with the pass that sets it and its meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from jaxsim.compile.asset.mesh.mesh import Mesh
from jaxsim.compile.flex.flex import Flex
from jaxsim.compile.options.instances import Instances
from jaxsim.compile.product import Product
from jaxsim.compile.reference.constants import Constants
from jaxsim.compile.scale.scales import KeyScales, Scales
from jaxsim.compile.settings import Settings
from jaxsim.model.derived import LengthRanges
from jaxsim.spec import Body, SpecElement


class Products:
    """Typed values that passes compute for later ones; absent until their pass has run."""

    settings = Product[Settings]("read_settings", "what `<compiler>` says")
    scales = Product[Scales | None](
        "scale_frames", "scales of the elements in frames; None if no frame has one"
    )
    stretched = Product[Mapping[SpecElement, np.ndarray]](
        "scale_frames", "maps (3, 3) of meshes that are stretched along axes other than their own"
    )
    instances = Product[Instances](
        "plugin_fields", "instances of plugins, and the elements they serve"
    )
    bodies = Product[Sequence[Body]]("bodies", "the bodies, by id")
    meshes = Product[Sequence[Mesh]]("meshes", "the meshes, by id")
    geom_mass = Product[np.ndarray]("geoms", "mass of each geom [kg], (ngeom,)")
    geom_inertia = Product[np.ndarray](
        "geoms", "principal moments of each geom about its center [kg m^2], (ngeom, 3)"
    )
    key_scales = Product[KeyScales | None](
        "scale_actuators", "factors of the numbers in keyframes; None if nothing is scaled"
    )
    flexes = Product[Sequence[Flex]]("flexes", "the flexes, by id")
    motors = Product[Sequence[tuple]](
        "actuators", "what `<dcmotor>` gives, by actuator (model/motor_constants.py); () for others"
    )
    damping_ratios = Product[Sequence[int]](
        "derive", "servos whose damping is given as a ratio, ids"
    )
    constants = Product[Constants]("derive", "quantities derived from the pose qpos0")
    length_ranges = Product[LengthRanges | None](
        "derive", "ranges of actuator lengths that need a simulation; None if there are none"
    )
