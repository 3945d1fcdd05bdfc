"""A plugin: pure functions with a name and settings, which serve elements of a model.

The compiler reads what is said of its settings and sizes, the physics calls the functions.
`docs/extend.md` shows one of each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from jaxsim.assets.sdf.shapes import Shape, settings
from jaxsim.enums import ObjType, Stage
from jaxsim.errors import AssetError

Config = Mapping[str, str]  # the settings of an instance, as its <config> elements have them


@dataclass(frozen=True)
class Attached:
    """An instance of a plugin in one world, and elements of the model that it serves.

    Attributes:
      config: its settings; absent ones have the plugin's defaults.
      id: actuators, sensors or bodies, `(n,)`; where its state is asked for, its actuators.
      objtype, objid: of sensors, what they are attached to, `(n,)`; else UNKNOWN and -1.
      reftype, refid: of sensors, the frame they are seen from; else UNKNOWN and -1.
      params: its parameters, as `Plugin.params` made them; they can be differentiated.
      state: its state `(states,)`.
      act: of actuators, the activations that the plugin keeps for each, `(n, activations)`.
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
    """What a plugin is; a subclass says its `name` and has the functions of what it can do.

    One instance of it in a model may serve several elements of several kinds: a motor and the
    thermometer inside it. The object keeps nothing: what changes is the state of the world.

    The functions `actuator`, `sensor`, `passive`, `act_dot`, `next_act` and `next_state` take one
    world, with `m` and `d` as users have them, and are traced by JAX. Of `d` they may read what the
    stages before them have written: all of them for a sensor of stage `ACC`, which finds in
    `d.contact` the forces of contacts too; positions, velocities and inertias for forces. A
    subclass has those that it needs.

        actuator(m, d, at, given) -> (n,): forces before their limits [N or N m]; `given` `(n,)` is
          the control in its range or, of an actuator with a dyntype, the activation.
        sensor(m, d, at) -> (n, readings).
        passive(m, d, at) -> (nv,): generalized force of all bodies it serves [N or N m].
        act_dot(m, d, at, given) -> (n, activations): rates of the activations that it keeps, with
          `given` the control or, of an actuator with a dyntype, the activation of that.
        next_act(m, d, at) -> (n, activations): the same activations at the end of a step, instead
          of those that integration gives, which `at.act` has.
        next_state(m, d, at) -> (states,): the state at the end of a step. As in `next_act`, the
          state of `d` is the new one, and results are those of the step.

    Attributes:
      name: its identifier in `<plugin plugin="...">`.
      settings: its settings and their defaults, in their order in `plugin_attr`.
      stage: of sensors, when they are computed.
      objtype: of sensors, the kind of object they are attached to; None: any, or none.
      shape: of meshes and `sdf` geoms, their signed distance.
      idle: what is wrong with an instance that no element names, if it may not be so.

    Example:
      >>> class Servo(jaxsim.Plugin):
      ...     name = "lab.stiff_servo"
      ...     settings = {"kp": "1"}
      ...     def actuator(self, m, d, at, given):
      ...         return float(at.config["kp"]) * (given - d.actuator_length[at.id])
      >>> Servo = jaxsim.register_plugin(Servo)
      >>> jaxsim.unregister_plugin("lab.stiff_servo")
    """

    name: str = ""
    settings: Config = MappingProxyType({})
    stage: Stage = Stage.ACC
    objtype: ObjType | None = None
    shape: Shape | None = None
    idle: str = ""
    actuator: Callable | None = None
    sensor: Callable | None = None
    passive: Callable | None = None
    act_dot: Callable | None = None
    next_act: Callable | None = None
    next_state: Callable | None = None

    def check(self, config: Config) -> str:
        """What is wrong with the settings of an instance, or "".

        A ValueError, such as that of `float("x")`, is told in the same way: with file and line.
        """
        return ""

    def lacks(self, m: Any, body: int) -> str:
        """What a body has to have for its passive force and does not, or ""."""
        return ""

    def readings(self, config: Config) -> int:
        """How many numbers one of its sensors reports."""
        return 1

    def activations(self, config: Config) -> int:
        """How many activations it keeps for each actuator, before that of the dyntype."""
        return 0

    def state(self, config: Config) -> Any:
        """Return the state of an instance at the start of a world, `(states,)`."""
        return ()

    def params(self, config: Config) -> Any:
        """Return the parameters of an instance that can be changed, randomized and trained: a
        pytree of real numbers and arrays, such as the weights of a network."""
        return ()

    def serves(self) -> tuple[str, ...]:
        """What it can serve, in words."""
        return tuple(what for what, function in CAPABILITIES.items() if getattr(self, function))


# what an element asks of a plugin, and the attribute that answers
CAPABILITIES = {
    "actuator": "actuator",
    "sensor": "sensor",
    "passive force": "passive",
    "sdf": "shape",
}


class ShapePlugin(Plugin):
    """A plugin that is a shape: it makes meshes, and is the signed distance of geoms."""

    def __init__(self, name: str, shape: Shape):
        """A plugin of a name, with the settings of its shape."""
        self.name, self.shape = name, shape
        self.settings = dict.fromkeys(shape.settings, "")

    def check(self, config: Config) -> str:
        """What the shape says of its settings."""
        assert self.shape is not None
        try:
            settings(self.shape, config)
        except AssetError as error:
            return str(error)
        return ""


def settings_in(plugin: Plugin, texts: np.ndarray, start: int) -> Config:
    """Return the settings of an instance: those that a model gives, and the plugin's defaults.

    Args:
      plugin: its plugin.
      texts: `plugin_attr`: in the order of the settings, each ended by a zero byte.
      start: where those of the instance begin.
    """
    defaults = plugin.settings
    given = np.asarray(texts[start:]).astype(np.uint8).tobytes().split(b"\0", len(defaults))
    return {
        key: text.decode() or default
        for (key, default), text in zip(defaults.items(), given, strict=False)
    }
