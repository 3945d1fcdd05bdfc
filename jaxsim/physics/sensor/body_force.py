"""Body accelerations and the forces between bodies: the sums of `mj_rnePostConstraint`."""

import jax.numpy as jnp

from jaxsim.arrays.gather import gather_static
from jaxsim.math import Spatial, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.rne import base_acceleration, body_force
from jaxsim.physics.body.tree_sums import moving_sums, subtree_sums
from jaxsim.physics.solver.constraint_force import (
    contact_wrench,
    equality_wrench,
    net_contact_force,
)
from jaxsim.physics.tendon.force import tendon_wrench


def body_acceleration(m: Model, d: Data) -> Data:
    """Compute spatial accelerations of bodies about the centers of mass of their trees.

    cacc[b] = -gravity + sum(cdof_dot[i] qvel[i] + cdof[i] qacc[i]),   i moves b
    """
    drift = d.cdof_dot.scale(d.qvel) + d.cdof.scale(d.qacc)
    return d.replace(cacc=base_acceleration(m, moving_sums(m, drift)))


def body_forces(m: Model, d: Data) -> Data:
    """Compute wrenches on bodies, torque first, about the centers of mass of the trees.

        cfrc_ext[b] = applied wrench + wrenches of contacts, connects, welds and spatial tendons
        cfrc_int[b] = sum(I[c] a[c] + v[c] x* (I[c] v[c]) - cfrc_ext[c]),   c in the subtree of b

    `cfrc_int` is the wrench of the parent on the body through its joints. Requires `cacc`.
    """
    external = _external(m, d)
    # Net wrench of the inertial forces minus the external wrench, summed over each subtree.
    net = body_force(d, d.cacc) - external
    return d.replace(cfrc_ext=external, cfrc_int=subtree_sums(m, net))


def _external(m: Model, d: Data) -> Spatial:
    # Wrenches about the origin of the world: applied, contacts, equalities, tendons.
    x = d.xfrc_applied
    force, torque = Vec(*(x[:, k] for k in range(3))), Vec(*(x[:, k + 3] for k in range(3)))
    wrench = Spatial.of(torque + d.xipos.cross(force), force)
    touch = net_contact_force(d)
    if touch is not None:
        wrench = wrench + contact_wrench(m, d, touch)
    held = equality_wrench(m, d)
    if held is not None:
        wrench = wrench + held
    strung = tendon_wrench(m, d)
    if strung is not None:
        wrench = wrench + strung
    # Move from the world origin to the centers of mass of the trees; the world has no wrench.
    origin = gather_static(d.subtree_com, m.body_rootid)
    wrench = Spatial.of(wrench.rot - origin.cross(wrench.lin), wrench.lin)
    return wrench.map(lambda a: jnp.concatenate([jnp.zeros_like(a[:1]), a[1:]]))
