"""Bias force of tendon armature.

A tendon with armature a has the kinetic energy a (ten_J qvel)^2 / 2. Its Jacobian rotates with the
legs, which gives an inertial force without any acceleration of the dofs. MuJoCo's documentation,
XML reference: tendon/spatial/armature; corresponds to `mj_tendonBias`.
"""

import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static, weighted_sum
from jaxsim.enums import ObjType
from jaxsim.math import safe_divide
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.structure import Structure, cache_by_structure
from jaxsim.physics.actuator.reflected_inertia import has_drive, tendon_armature
from jaxsim.physics.body.object_frame import object_accelerations, object_velocities
from jaxsim.physics.body.tree_sums import moving_sums
from jaxsim.physics.tendon.path import Legs, inverse_divisor, tendon_legs, tendon_pattern


def tendon_bias(m: Model, d: Data) -> Array | None:
    """Compute ten_J' armature (d ten_J/dt qvel), `[nv, *W]`; None without such tendons."""
    drift = tendon_drift(m, d)
    if drift is None:
        return None
    pattern = tendon_pattern(m)
    return pattern.apply_transpose(pattern.entries(d.ten_J), tendon_armature(m) * drift)


def tendon_drift(m: Model, d: Data) -> Array | None:
    """Compute d ten_J/dt qvel, the length acceleration at qacc = 0, `[ntendon, *W]`; or None.

    A leg of length l along u, whose ends have relative velocity w and, at zero acceleration of the
    dofs, relative acceleration b, contributes

        u . b + (w - u (u . w)) . w / l    [m/s^2]

    A fixed tendon has a constant Jacobian. A tendon that wraps around a geom cannot have armature.
    """
    group = _straight_legs(m)
    if not len(group):
        return None
    still = d.replace(cacc=moving_sums(m, d.cdof_dot.scale(d.qvel)))
    # Relative motion of the ends of each leg, along and across it.
    ends = group.site0, group.site1
    x0, x1 = (gather_static(d.site_xpos, site) for site in ends)
    v0, v1 = (object_velocities(m, d, ObjType.SITE, site).lin for site in ends)
    a0, a1 = (object_accelerations(m, still, ObjType.SITE, site).lin for site in ends)
    line, apart = x1 - x0, v1 - v0
    along = line.normalize()
    across = apart - along.scale(along.dot(apart))
    rate = along.dot(a1 - a0) + safe_divide(across.dot(apart), line.norm())
    owner = 1.0 * (np.arange(m.ntendon)[:, None] == group.tendon)
    return weighted_sum(owner, rate * inverse_divisor(m, group))


@cache_by_structure
def _straight_legs(s: Structure) -> Legs:
    """Return the legs between two bodies of tendons with armature, which do not wrap."""
    # Sum of the legs of each tendon, weighted by their pulleys.
    every = tendon_legs(s)
    wrapping = every.tendon[every.geom >= 0]
    apart = s.site_bodyid[every.site0] != s.site_bodyid[every.site1]
    inert = s.tendon_hasarmature | has_drive(s)
    return every.where(apart & inert[every.tendon] & ~np.isin(every.tendon, wrapping))
