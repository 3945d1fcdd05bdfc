"""A plugin: one row that says how a thing is written in MJCF and how it is computed.

The compiler reads the first half, the physics the second. `docs/extend.md` shows one of each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from jaxsim.enums import ObjType, Stage

Config = Mapping[str, str]  # the settings of an instance, as its <config> elements have them

SERVES = ("actuator", "sensor", "passive force", "sdf")


class Attached(NamedTuple):
    """The elements of a model that one instance of a plugin serves.

    Attributes:
      config: the settings of the instance; absent ones have the plugin's defaults.
      id: actuators, sensors or bodies, `(n,)`.
      objtype, objid: of sensors, what they are attached to, `(n,)`; else UNKNOWN and -1.
      reftype, refid: of sensors, the frame they are seen from; else UNKNOWN and -1.
    """

    config: Config
    id: np.ndarray
    objtype: ObjType
    objid: np.ndarray
    reftype: ObjType
    refid: np.ndarray


@dataclass(frozen=True, eq=False)
class Plugin:
    """What is known of a plugin.

    Attributes:
      name: its identifier in `<plugin plugin="...">`.
      serves: "actuator", "sensor", "passive force" or "sdf".
      settings: its settings and their defaults, in their order in `plugin_attr`.
      check: what is wrong with the settings of an instance, or "".
      compute: how it is computed, a function of one world in the form in which the user has it,
        traced by JAX; None: it compiles, and is not simulated. By what it serves:
          sensor: `(m, d, Attached) -> (n, readings)`;
          actuator: `(m, d, Attached, input) -> (n,)` forces [N or N m] before their limits, with
            `input` the control or, of an actuator with dynamics, the activation;
          passive force: `(m, d, Attached) -> (nv,)` generalized force [N or N m].
        Of `d` it may read what the stages before it have written: all of them for a sensor of its
        `stage`, positions, velocities and inertias for the others.
      readings: of a sensor, how many numbers it reports.
      stage: of a sensor, when it is computed.
      objtype: of a sensor, the kind of object it is attached to; None: any, or none.
      activations: of an actuator, how many it keeps by itself.
    """

    name: str
    serves: str
    settings: Mapping[str, str]
    check: Callable[[Config], str] = lambda _: ""
    compute: Callable | None = None
    readings: Callable[[Config], int] = lambda _: 1
    stage: Stage = Stage.ACC
    objtype: ObjType | None = None
    activations: Callable[[Config], int] = lambda _: 0


def without_defaults(keys: Sequence[str]) -> Mapping[str, str]:
    """Settings that are empty where a model does not give them."""
    return dict.fromkeys(keys, "")
