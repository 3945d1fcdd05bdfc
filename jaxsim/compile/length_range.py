"""Ranges of actuator lengths: from limits, or as a request to find them by simulation.

`<compiler><lengthrange>` says which actuators get `actuator_lengthrange` and how. The compiler has
no physics: what has to be simulated it leaves as a request, which loading fulfils
(`physics/constants/length_range.py`). MuJoCo's documentation, Modeling: Length range.
"""

from __future__ import annotations

from dataclasses import dataclass

from jaxsim.compile.context import Compilation
from jaxsim.enums import BiasType, GainType, TrnType
from jaxsim.errors import Place

_MODES = {
    "none": ((), ()),
    "muscle": ((GainType.MUSCLE,), (BiasType.MUSCLE,)),
    "muscleuser": ((GainType.MUSCLE, GainType.USER), (BiasType.MUSCLE, BiasType.USER)),
    "all": (tuple(GainType), tuple(BiasType)),
}

_LIMITS = {
    TrnType.JOINT: ("jnt_limited", "jnt_range"),
    TrnType.JOINTINPARENT: ("jnt_limited", "jnt_range"),
    TrnType.TENDON: ("tendon_limited", "tendon_range"),
}


@dataclass(frozen=True)
class Puller:
    """An actuator whose range is wanted: its force output, and how messages name it."""

    output: int
    label: str
    place: Place


@dataclass(frozen=True)
class LengthRanges:
    """Ranges to be found by simulation; the numbers are those of `<lengthrange>`.

    Attributes:
      pullers: the actuators.
      accel: joint acceleration that the pulling force aims at [m/s^2 or rad/s^2].
      maxforce: largest norm of the generalized force; 0: no bound.
      timeconst: time constant of the decay of velocities [s].
      timestep: step of the simulation [s]; 0: the model's own.
      inttotal: length of the simulation [s].
      interval: end of it over which the length is measured [s].
      tolrange: largest spread of a length that has settled, as a share of its range.
    """

    pullers: tuple[Puller, ...]
    accel: float
    maxforce: float
    timeconst: float
    timestep: float
    inttotal: float
    interval: float
    tolrange: float


def length_ranges(c: Compilation) -> None:
    """`actuator_lengthrange` from limits; `c.length_ranges` is what is left to be simulated."""
    f = c.fields

    def setting(attr: str):
        return c.spec.setting("compiler", attr, "lengthrange")

    gains, biases = _MODES[setting("mode")]
    pullers = []
    for actuator, e in enumerate(c.elements["actuator"]):
        if (
            f["actuator_gaintype"][actuator] not in gains
            and f["actuator_biastype"][actuator] not in biases
        ):
            continue
        output = int(f["actuator_outadr"][actuator])
        low, high = f["actuator_lengthrange"][output]
        if setting("useexisting") == "true" and low < high:
            continue
        limited, ranges = _LIMITS.get(f["actuator_trntype"][actuator], ("", ""))
        target = f["actuator_trnid"][actuator, 0]
        if setting("uselimit") == "true" and limited and f[limited][target]:
            f["actuator_lengthrange"][output] = f[ranges][target]
            continue
        pullers.append(Puller(output, e.label, e.place))
    if pullers:
        names = [name for name in LengthRanges.__dataclass_fields__ if name != "pullers"]
        numbers = {name: float(setting(name)) for name in names}
        c.length_ranges = LengthRanges(tuple(pullers), **numbers)
