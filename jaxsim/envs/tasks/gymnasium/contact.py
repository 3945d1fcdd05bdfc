"""Wrenches of contacts on bodies, as Gymnasium's tasks read them from `cfrc_ext`.

Gymnasium evaluates them after the step. With RK4 they belong to its last stage, like all results
but the sensors; `Data.cfrc_ext`, which is computed with the sensors, belongs to its first.
"""

import jax
import jax.numpy as jnp

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.support import contact_forces


def contact_wrenches(m: Model, d: Data) -> jax.Array:
    """Return torque [N m] and force [N] of the contacts on each body, (nbody, 6).

        torque[b] = sum(side (R' f_rot + (p - c) x R' f)),   force[b] = sum(side R' f)

    The sum is over contacts of b, at p, with frame R and force f; `side` is 1 for the second body
    and -1 for the first; c is the center of mass of the tree of b. The wrenches of the world are
    zero, and so are all at the start of an episode, where Gymnasium has not computed them yet.
    """
    c = d.contact
    force = contact_forces(m, d)
    forces, torques = (jnp.einsum("nij,ni->nj", c.frame, f) for f in (force[:, :3], force[:, 3:]))

    center = d.subtree_com[m.body_rootid]
    wrenches = jnp.zeros((m.nbody, 6), d.qpos.dtype)
    for side, geom in ((-1.0, c.geom[:, 0]), (1.0, c.geom[:, 1])):
        body = jnp.asarray(m.geom_bodyid)[geom]
        torque = torques + jnp.cross(c.pos - center[body], forces)
        wrench = side * jnp.concatenate([torque, forces], axis=1)
        real = (geom >= 0) & (body > 0) & (d.time > 0)
        wrenches = wrenches.at[body].add(jnp.where(real[:, None], wrench, 0.0))
    return wrenches
