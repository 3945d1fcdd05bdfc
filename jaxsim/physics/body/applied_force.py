"""Generalized force of forces and torques applied to bodies."""

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.math import Spatial, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.shaped import Float
from jaxsim.physics.body.tree_sums import subtree_sums


def xfrc_accumulate(m: Model, d: Data) -> Float[Array, "nv"]:
    """Compute J' of the applied forces `d.xfrc_applied`, which act at the bodies' centers of mass.

    tau[i] = cdof[i] . sum(torque[b] + (xipos[b] - com) x force[b], force[b]),   i moves b

    Corresponds to `mj_xfrcAccumulate` in MuJoCo.

    Returns:
      Generalized force `[nv, *W]` [N or N m].
    """
    x = d.xfrc_applied
    force, torque = Vec(*(x[:, k] for k in range(3))), Vec(*(x[:, k + 3] for k in range(3)))
    return wrench_force(m, d, force, torque, d.xipos)


def wrench_force(m: Model, d: Data, force: Vec, torque: Vec, point: Vec) -> Array:
    """Compute the generalized force `[nv, *W]` of one force, torque and point per body."""
    # Move the wrenches to the tree's center of mass, sum them over subtrees, project on cdof.
    arm = point - gather_static(d.subtree_com, m.body_rootid)
    wrench = Spatial.of(torque + arm.cross(force), force)
    subtree = subtree_sums(m, wrench)
    return d.cdof.dot(gather_static(subtree, m.dof_bodyid))
