"""Dynamics, gain and bias of an actuator, with their parameters: the part that shortcuts set."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from jaxsim.enums import BiasType, DynType, GainType

NPRM = 10  # length of each parameter vector

GENERAL, PLUGIN = "general", "plugin"


def parameter_vector(*values: float) -> np.ndarray:
    """Return a parameter vector that begins with `values`, (10,)."""
    out = np.zeros(NPRM)
    out[: len(values)] = values
    return out


@dataclass
class ActuatorType:
    """Dynamics, gain and bias of an actuator, the part that shortcuts set.

    `written` is the tag that set it last. A positive `biasprm[2]` is a damping ratio that is not
    yet converted to damping; damping itself is stored as a negative number.
    """

    written: str = GENERAL
    dyntype: int = DynType.NONE
    gaintype: int = GainType.FIXED
    biastype: int = BiasType.NONE
    dynprm: np.ndarray = field(default_factory=lambda: parameter_vector(1.0))
    gainprm: np.ndarray = field(default_factory=lambda: parameter_vector(1.0))
    biasprm: np.ndarray = field(default_factory=parameter_vector)
    ctrlspec: int = 0
    actearly: bool = False
    inheritrange: float = 0.0
    velrange: np.ndarray = field(default_factory=lambda: np.zeros(2))
    ffrange: np.ndarray = field(default_factory=lambda: np.zeros(2))
    forcerange: np.ndarray | None = None  # also set by the saturation of a dcmotor
    inherited: np.ndarray | None = None  # the range that inheritrange requests
    # of a dcmotor: its constants before the first element, and the attributes of each element
    motor: tuple | None = None

    def copy(self) -> ActuatorType:
        """Return a copy with its own parameter vectors."""
        vectors = ("dynprm", "gainprm", "biasprm", "velrange", "ffrange")
        return replace(self, **{name: getattr(self, name).copy() for name in vectors})
