"""The products of the passes: values for later passes that are no fields of the model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np

from jaxsim.compile.asset.mesh.mesh import Mesh
from jaxsim.compile.flex.flex import Flex
from jaxsim.compile.options.instances import Instances
from jaxsim.compile.reference.constants import Constants
from jaxsim.compile.scale.scales import KeyScales, Scales
from jaxsim.compile.settings import Settings
from jaxsim.model.derived import LengthRanges
from jaxsim.spec import Body, SpecElement

T = TypeVar("T")


class Product(Generic[T]):
    """Attribute that is absent until a pass sets it; reading it too early raises."""

    def __init__(self, by: str, doc: str):
        """Declare a product: the name of the pass that sets it, and its meaning."""
        self.by = by
        self.doc = self.__doc__ = doc
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    @overload
    def __get__(self, c: None, owner: type) -> Self: ...

    @overload
    def __get__(self, c: object, owner: type) -> T: ...

    def __get__(self, c: Any, owner: type) -> Any:
        if c is None:
            return self
        if self.name not in c.__dict__:
            raise AssertionError(f"c.{self.name} is read before the pass '{self.by}' has made it")
        return c.__dict__[self.name]

    def __set__(self, c: Any, value: T) -> None:
        c.__dict__[self.name] = value


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
