"""Products with the mass matrix, from the configuration alone."""

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.factor import solve_spd
from jaxsim.physics.arrays.products import apply
from jaxsim.physics.body.inertia import com_pos, crb
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.tendon.tendon import tendon


def full_m(m: Model, d: Data) -> Array:
    """The joint-space inertia M at `d.qpos`, (nv, nv) [kg, kg m, kg m^2]."""
    return crb(m, tendon(m, com_pos(m, kinematics(m, d)))).M


def mul_m(m: Model, d: Data, vec: Array) -> Array:
    """M times an acceleration, (nv,): a generalized force."""
    return apply(full_m(m, d), vec)


def solve_m(m: Model, d: Data, force: Array) -> Array:
    """M^-1 times a generalized force, (nv,): an acceleration."""
    return solve_spd(full_m(m, d), force)
