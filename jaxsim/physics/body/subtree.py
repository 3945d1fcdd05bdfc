"""Momentum of subtrees: velocity of their centers of mass, angular momentum about these."""

import jax.numpy as jnp

from jaxsim.arrays.gather import gather_static, weighted_sum
from jaxsim.enums import MINVAL
from jaxsim.math import Spatial
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.tree_sums import subtree_sums


def subtree_vel(m: Model, d: Data) -> Data:
    """Compute velocities and angular momenta of all subtrees; corresponds to `mj_subtreeVel`.

    (H, P) = sum(cinert[i] cvel[i]),      i in the subtree; H about the com of the tree
    subtree_linvel = P / mass subtree_angmom = H - (subtree_com - com of the tree) x P
    """
    # Momenta of bodies, summed over subtrees.
    momentum, mass = subtree_sums(m, (d.cinert @ d.cvel, m.body_mass))
    offset = d.subtree_com - gather_static(d.subtree_com, m.body_rootid)
    if m.nbody > 1:
        # The world's subtree spans several trees, whose reference points differ.
        momentum = _world_about_its_com(m, d, momentum)
        offset = offset.map(lambda a: jnp.concatenate([jnp.zeros_like(a[:1]), a[1:]]))
    H, P = momentum.rot, momentum.lin
    return d.replace(
        subtree_linvel=P.scale(1 / jnp.maximum(mass, MINVAL)),
        subtree_angmom=H - offset.cross(P),
    )


def _world_about_its_com(m: Model, d: Data, momentum: Spatial) -> Spatial:
    """Replace the world's entry by the momenta of all trees, about the common center of mass."""
    roots = (m.body_parentid == 0) & (m.body_rootid != 0)
    center = gather_static(d.subtree_com, m.body_rootid) - d.subtree_com[:1].map(
        lambda a: jnp.broadcast_to(a, (m.nbody, *a.shape[1:]))
    )
    shift = center.cross(momentum.lin)
    angular = momentum.rot + shift
    whole = weighted_sum(1.0 * roots[None], angular)
    parts = [
        jnp.concatenate([w, a[1:]]) for w, a in zip(whole.parts, momentum.rot.parts, strict=True)
    ]
    return type(momentum)(*parts, *momentum.lin.parts)
