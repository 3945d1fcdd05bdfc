"""Plugin: named pure functions with settings that serve elements of a model.

The compiler reads the declared settings and sizes, the physics calls the functions.
`docs/extend.md` shows one of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from jaxsim.assets.sdf.shapes import SdfShape, shape_settings
from jaxsim.enums import ObjType, Stage
from jaxsim.errors import AssetError

Config = Mapping[str, str]  # settings of an instance, from its <config> elements


@dataclass(frozen=True)
class Attached:
    """An instance of a plugin in one world, and the elements of the model that it serves.

    Attributes:
      config: its settings; absent ones have the plugin's defaults.
      id: actuators, sensors or bodies, `(n,)`; for `next_state`, its actuators.
      objtype, objid: of sensors, the objects they are attached to, `(n,)`; else UNKNOWN and -1.
      reftype, refid: of sensors, their reference frames; else UNKNOWN and -1.
      params: its parameters, from `Plugin.params`; they can be differentiated.
      state: its state `(states,)`.
      act: of actuators, the activations that the plugin adds to each, `(n, activations)`.
    """

    config: Config
    id: np.ndarray
    objtype: ObjType = ObjType.UNKNOWN
    objid: np.ndarray | None = None
    reftype: ObjType = ObjType.UNKNOWN
    refid: np.ndarray | None = None
    params: Any = None
    state: Any = None
    act: Any = None


class Plugin:
    """Base class of plugins; a subclass defines its `name` and the functions it supports.

    One instance in a model may serve several elements of several kinds, such as a motor and the
    thermometer inside it. The object is stateless: all state is in the world.

    The functions `actuator`, `sensor`, `passive`, `act_dot`, `next_act` and `next_state` take one
    world, with `m` and `d` in their public form, and are traced by JAX. They may read the fields of
    `d` that earlier stages have written: all of them for a sensor of stage `ACC`, including the
    forces of contacts in `d.contact`; positions, velocities and inertias for forces. A subclass
    defines the functions that it needs.

        actuator(m, d, at, given) -> (n,): forces before their limits [N or N m]; `given` `(n,)` is
          the clamped control or, for an actuator with a dyntype, the activation.
        sensor(m, d, at) -> (n, readings).
        passive(m, d, at) -> (nv,): generalized force of all bodies it serves [N or N m].
        act_dot(m, d, at, given) -> (n, activations): rates of the added activations, with `given`
          the control or, for an actuator with a dyntype, the activation of the dyntype.
        next_act(m, d, at) -> (n, activations): the added activations at the end of a step, which
          replace the integrated ones in `at.act`.
        next_state(m, d, at) -> (states,): the state at the end of a step. As in `next_act`, the
          state of `d` is the new one, and results are those of the step.

    Attributes:
      name: its identifier in `<plugin plugin="...">`.
      settings: its settings and their defaults, in their order in `plugin_attr`.
      stage: of sensors, the stage after which they are computed.
      objtype: of sensors, the kind of object they are attached to; None: any, or none.
      shape: of meshes and `sdf` geoms, their signed distance.
      idle: error message for an instance that no element uses; empty if that is allowed.

    Example:
      >>> class Servo(jaxsim.extend.Plugin):
      ...     name = "lab.stiff_servo"
      ...     settings = {"kp": "1"}
      ...     def actuator(self, m, d, at, given):
      ...         return float(at.config["kp"]) * (given - d.actuator_length[at.id])
      >>> Servo = jaxsim.extend.register_plugin(Servo)
      >>> jaxsim.extend.unregister_plugin("lab.stiff_servo")
    """

    name: str = ""
    settings: Config = MappingProxyType({})
    stage: Stage = Stage.ACC
    objtype: ObjType | None = None
    shape: SdfShape | None = None
    idle: str = ""
    actuator: Callable | None = None
    sensor: Callable | None = None
    passive: Callable | None = None
    act_dot: Callable | None = None
    next_act: Callable | None = None
    next_state: Callable | None = None

    def check(self, config: Config) -> str:
        """Return the fault in the settings of an instance, or "".

        A ValueError, such as that of `float("x")`, is reported in the same way, with file and line.
        """
        return ""

    def lacks(self, m: Any, body: int) -> str:
        """Return the property that a body lacks for the passive force, or ""."""
        return ""

    def readings(self, config: Config) -> int:
        """Return the number of values of one of its sensors."""
        return 1

    def activations(self, config: Config) -> int:
        """Return the number of activations that it adds to each actuator, before that of the
        dyntype."""
        return 0

    def state(self, config: Config) -> Any:
        """Return the initial state of an instance, `(states,)`."""
        return ()

    def params(self, config: Config) -> Any:
        """Return the parameters of an instance that can be changed, randomized and trained.

        They are a pytree of real numbers and arrays, such as the weights of a network.
        """
        return ()

    def serves(self) -> tuple[str, ...]:
        """Return the kinds of elements that it supports, in words."""
        return tuple(what for what, function in CAPABILITIES.items() if getattr(self, function))


# Capabilities of a plugin, and the function that implements each.
CAPABILITIES = {
    "actuator": "actuator",
    "sensor": "sensor",
    "passive force": "passive",
    "sdf": "shape",
}


class ShapePlugin(Plugin):
    """Plugin that defines a shape: it generates meshes, and is the signed distance of geoms."""

    def __init__(self, name: str, shape: SdfShape):
        """Create a plugin with the settings of its shape."""
        self.name, self.shape = name, shape
        self.settings = dict.fromkeys(shape.settings, "")

    def check(self, config: Config) -> str:
        """Return the fault that the shape reports for the settings, or ""."""
        assert self.shape is not None
        try:
            shape_settings(self.shape, config)
        except AssetError as error:
            return str(error)
        return ""


def settings_in(plugin: Plugin, texts: np.ndarray, start: int) -> Config:
    """Return the settings of an instance: those in the model, completed by the plugin's defaults.

    Args:
      plugin: its plugin.
      texts: `plugin_attr`: values in the order of the settings, each terminated by a zero byte.
      start: address of the values of the instance.
    """
    defaults = plugin.settings
    given = np.asarray(texts[start:]).astype(np.uint8).tobytes().split(b"\0", len(defaults))
    return {
        key: text.decode() or default
        for (key, default), text in zip(defaults.items(), given, strict=False)
    }
