"""Body velocities and the bias force: recursive Newton-Euler, about each tree's center of mass."""

import jax.numpy as jnp

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather_static
from jaxsim.enums import DisableBit
from jaxsim.math import Spatial
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.tree_sums import moving_and_carrying_sums, moving_sums, subtree_sums
from jaxsim.physics.tendon.bias import tendon_bias


def com_vel(m: Model, d: Data) -> Data:
    """Compute spatial velocities and the rate of change of the motion axes.

    cvel[b] = sum(cdof[i] qvel[i]),  i moves b cdof_dot[i] = v x cdof[i],       v the velocity of
    the frame that carries axis i

    Corresponds to `mj_comVel` in MuJoCo.
    """
    flow = d.cdof.scale(d.qvel)
    cvel, carrier = moving_and_carrying_sums(m, flow)
    return d.replace(cvel=cvel, cdof_dot=carrier.cross_motion(d.cdof))


def bias(m: Model, d: Data) -> Data:
    """Compute Coriolis, centrifugal and gravity forces: inverse dynamics at zero acceleration."""
    force, along = rne(m, d), tendon_bias(m, d)
    return d.replace(qfrc_bias=force if along is None else force + along)


def rne(m: Model, d: Data, qacc: Array | None = None) -> Array:
    """Compute inverse dynamics by recursive Newton-Euler, recursions as sums (Featherstone, ch. 5).

        a[b] = -gravity + sum(cdof_dot[i] qvel[i] + cdof[i] qacc[i]),   i moves b
        f[b] = I[b] a[b] + v[b] x* (I[b] v[b])
        tau[i] = cdof[i] . sum(f[b]),                                   i moves b

    Corresponds to `mj_rne` in MuJoCo.

    Args:
      m: model.
      d: data with cinert, cdof, cdof_dot, cvel.
      qacc: acceleration `[nv, *W]`, or None for zero.

    Returns:
      Generalized force `[nv, *W]`, without armature and tendon inertia.
    """
    # Outward pass: accelerations of bodies.
    drift = d.cdof_dot.scale(d.qvel)
    if qacc is not None:
        drift = drift + d.cdof.scale(qacc)
    # Forces on bodies, and inward pass: sums over subtrees, projected on the axes.
    force = body_force(d, base_acceleration(m, moving_sums(m, drift)))
    subtree = subtree_sums(m, force)
    return d.cdof.dot(gather_static(subtree, m.dof_bodyid))


def base_acceleration(m: Model, acc: Spatial) -> Spatial:
    """Add the upward acceleration of the world that represents gravity."""
    if m.opt.disableflags & DisableBit.GRAVITY:
        return acc
    return Spatial.of(acc.rot, acc.lin - m.opt.gravity)


def body_force(d: Data, acc: Spatial) -> Spatial:
    """Compute the force on each body from its acceleration; zero for the world."""
    force = d.cinert @ acc + d.cvel.cross_force(d.cinert @ d.cvel)
    return force.map(lambda a: jnp.concatenate([jnp.zeros_like(a[:1]), a[1:]]))
