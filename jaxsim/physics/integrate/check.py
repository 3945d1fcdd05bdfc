"""Checks of an invalid state, which `step` performs before and after the dynamics.

MuJoCo's documentation, Programming: Simulation loop, and Modeling: Option flags (autoreset).
"""

from jaxsim.enums import DisableBit, WarningType
from jaxsim.math import select_where
from jaxsim.model.data import ALWAYS_KEPT, Data
from jaxsim.model.model import Model
from jaxsim.physics.forward import forward
from jaxsim.physics.integrate.step import RESULT_FIELDS, clear_results, reset_worlds
from jaxsim.physics.warning import Trouble, find_bad_worlds


def check_pos(m: Model, d: Data) -> Data:
    """Reset worlds whose `qpos` is not finite, or too large, and count them in `d.warning`.

    The reset state is that of `make_data`. With the flag autoreset disabled they are only counted.
    Corresponds to `mj_checkPos` in MuJoCo.
    """
    return _reset_worlds(m, d, find_bad_worlds(d.qpos), WarningType.BADQPOS)


def check_vel(m: Model, d: Data) -> Data:
    """Reset worlds whose `qvel` is not finite, or too large, and count them in `d.warning`.

    The reset state is that of `make_data`. With the flag autoreset disabled they are only counted.
    Corresponds to `mj_checkVel` in MuJoCo.
    """
    return _reset_worlds(m, d, find_bad_worlds(d.qvel), WarningType.BADQVEL)


def check_acc(m: Model, d: Data) -> Data:
    """Reset worlds whose `qacc` is not finite, or too large, and count them in `d.warning`.

    The reset state is that of `forward` at the initial state, with the results that `d` keeps. With
    the flag autoreset disabled they are only counted. Corresponds to `mj_checkAcc` in MuJoCo.
    """
    # Count and reset, then recompute the results of the reset worlds.
    bad = find_bad_worlds(d.qacc)
    new = _reset_worlds(m, d, bad, WarningType.BADQACC)
    if m.opt.disableflags & DisableBit.AUTORESET:
        return new
    found = forward(m, new)
    names = [
        n for n in Data.fields if n in {*ALWAYS_KEPT, *RESULT_FIELDS} and getattr(d, n) is not None
    ]
    old, now = ({name: getattr(a, name) for name in names} for a in (new, found))
    return new.replace(**select_where(bad.where, now, old))


def _reset_worlds(m: Model, d: Data, bad: Trouble, warning: WarningType) -> Data:
    d = reset_worlds(m, bad, d, warning)
    return d if m.opt.disableflags & DisableBit.AUTORESET else clear_results(m, bad.where, d)
