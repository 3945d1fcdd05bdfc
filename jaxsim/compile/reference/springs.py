"""`springdamper`: joint springs given by their time constant and damping ratio at `qpos0`."""

from __future__ import annotations

import numpy as np

from jaxsim.compile.context import Compilation
from jaxsim.compile.geometry.orientation import mjcf_numbers
from jaxsim.compile.step import declare_pass
from jaxsim.enums import MINVAL


@declare_pass(needs="joints derive", gives="dof jnt")
def springdamper(c: Compilation) -> None:
    """Set `jnt_stiffness` and `dof_damping` of joints with `springdamper`.

    A mass m on a spring k with damper b has the time constant T = 2 m / b and the damping ratio r =
    b / (2 sqrt(k m)); m is the inverse of the joint's mean `dof_invweight0`.
    """
    f = c.fields
    for i, joint in enumerate(c.elements["joint"]):
        given = joint.get("springdamper")
        if given is None or not np.any(given):
            continue
        timeconst, dampratio = given
        if not (timeconst > 0 and dampratio > 0):
            c.fault(joint, f"springdamper='{mjcf_numbers(given)}' must be two positive numbers")
            continue
        dofs = np.flatnonzero(f["dof_jntid"] == i)
        inertia = len(dofs) / max(MINVAL, f["dof_invweight0"][dofs].sum())
        f["jnt_stiffness"][i] = inertia / max(MINVAL, (timeconst * dampratio) ** 2)
        f["dof_damping"][dofs] = 2 * inertia / max(MINVAL, timeconst)
