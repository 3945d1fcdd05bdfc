"""Automatic values that the compiler computes, and the constants of the reference pose.

    springlength = -1     the length of the tendon in `qpos_spring`
    dampratio             damping of a servo, from its gain and the inertia it drives at `qpos0`
    lengthrange           of a muscle, from limits (length_range.py)

The first two use no constant that depends on them, so one pass suffices; as in MuJoCo, they are not
recomputed when the model changes later.
"""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.reference.constants import Constants
from jaxsim.compile.reference.length_range import length_ranges
from jaxsim.compile.reference.pose import reference_pose
from jaxsim.compile.reference.statistics import statistics
from jaxsim.compile.reference.tendon_path import tendon_stretches
from jaxsim.compile.step import declare_pass
from jaxsim.enums import GainType
from jaxsim.model.derived import AUTOMATIC_LENGTH


@declare_pass(
    needs="bodies geoms joints sites cameras lights masses align_free tree tendons actuators "
    "scale_actuators frames contacts flexes equalities",
    gives="actuator body cam constants damping_ratios dof eq flg length_ranges light stat tendon",
)
def derive(c: Compilation) -> None:
    """Add spring lengths, servo damping, length ranges, constants at `qpos0`, and statistics."""
    spring_lengths(c)
    constants = c.constants = Constants(c.fields)
    damping_ratios(c, constants)
    length_ranges(c)
    c.fields.update(constants.all())
    c.stat.update(statistics(constants))
    c.fields.update(
        flg_gravcomp=c.fields["ngravcomp"] > 0,
        flg_surfacevel=bool(c.fields["geom_surfacevel"].any()),
        flg_adhesion=bool(c.fields["geom_adhesion"].any() or c.fields["pair_adhesion"].any()),
    )


def spring_lengths(c: Compilation) -> None:
    """Replace spring lengths (-1, -1) by the tendons' lengths where their joints' springs rest."""
    spring = c.fields["tendon_lengthspring"]
    automatic = (spring == AUTOMATIC_LENGTH).all(axis=1)
    if automatic.any():
        at_rest = reference_pose(c.fields, c.fields["qpos_spring"])
        lengths = np.array([tendon.length for tendon in tendon_stretches(at_rest)])
        spring[automatic] = lengths[automatic, None]


def damping_ratios(c: Compilation, constants: Constants) -> None:
    """Replace damping ratios, the positive `biasprm[2]` of servos, by minus the damping.

    kv = ratio 2 sqrt(kp m),   1/m the mean of J M^-1 J^T over the force outputs
    """
    f = c.fields
    kp, ratio = -f["actuator_biasprm"][:, 1], f["actuator_biasprm"][:, 2]
    servo = (f["actuator_gainprm"][:, 0] == kp) | (f["actuator_gaintype"] == GainType.PID)
    wanted = np.flatnonzero(servo & (ratio > 0))
    c.damping_ratios = tuple(map(int, wanted))
    if not len(wanted):
        return
    mobility = constants.actuator_mobility()
    for actuator in wanted:
        if kp[actuator] < 0:
            c.fault(c.elements["actuator"][actuator], "dampratio needs a kp that is not negative")
            continue
        adr, num = f["actuator_outadr"][actuator], f["actuator_outnum"][actuator]
        inverse = mobility[adr : adr + num].mean()
        mass = 1.0 / inverse if inverse > 0 else 0.0
        f["actuator_biasprm"][actuator, 2] = -ratio[actuator] * 2.0 * np.sqrt(kp[actuator] * mass)
