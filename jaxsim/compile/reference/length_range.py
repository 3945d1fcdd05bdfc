"""Ranges of actuator lengths: from limits, or as a request for a simulation.

`<compiler><lengthrange>` specifies which actuators get `actuator_lengthrange` and how. The compiler
has no physics: ranges that need a simulation are left as requests, which loading fulfills
(`physics/constants/length_range.py`). MuJoCo's documentation, Modeling: Length range.
"""

from __future__ import annotations

from jaxsim.compile.context import Compilation
from jaxsim.enums import BiasType, GainType, TrnType
from jaxsim.model.derived import ActuatorOutput, LengthRanges

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


def length_ranges(c: Compilation) -> None:
    """Set `actuator_lengthrange` from limits, and `c.length_ranges` to the requests for a
    simulation."""
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
        pullers.append(ActuatorOutput(output, e.label, e.place))
    c.length_ranges = None
    if pullers:
        names = [name for name in LengthRanges.__dataclass_fields__ if name != "pullers"]
        numbers = {name: float(setting(name)) for name in names}
        c.length_ranges = LengthRanges(tuple(pullers), **numbers)
