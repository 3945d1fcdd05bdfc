"""Jacobians of points fixed in bodies, from the configuration alone.

The body or object may differ from world to world. Of points whose bodies are known when the model
is compiled, `body/point_motion.py` takes care.
"""

import jax.numpy as jnp
import numpy as np

from jaxsim.math import Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.arrays.array import Array
from jaxsim.physics.arrays.select import column, pick, take, weighted_sum
from jaxsim.physics.body.inertia import com_pos
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.topology import ancestors


def jac(m: Model, d: Data, point: Array, body: Array) -> tuple[Array, Array]:
    """Jacobian of a point that moves with a body.

    Args:
      m: model.
      d: data, of which qpos (and the poses of mocap bodies) count.
      point: position in the world, (3,) [m].
      body: id of the body.

    Returns:
      jacp (nv, 3), jacr (nv, 3): velocity of the point and angular velocity of the body in world
      axes, per unit speed of each dof.
    """
    d = com_pos(m, kinematics(m, d))
    return _columns(m, d, Vec(*(point[k : k + 1] for k in range(3))), body)


def jac_body(m: Model, d: Data, body: Array) -> tuple[Array, Array]:
    """Jacobian of the origin of a body's frame; returns as `jac`."""
    return _of_object(m, d, "xpos", np.arange(m.nbody), body)


def jac_body_com(m: Model, d: Data, body: Array) -> tuple[Array, Array]:
    """Jacobian of a body's center of mass; returns as `jac`."""
    return _of_object(m, d, "xipos", np.arange(m.nbody), body)


def jac_geom(m: Model, d: Data, geom: Array) -> tuple[Array, Array]:
    """Jacobian of a geom's center; returns as `jac`."""
    return _of_object(m, d, "geom_xpos", m.geom_bodyid, geom)


def jac_site(m: Model, d: Data, site: Array) -> tuple[Array, Array]:
    """Jacobian of a site; returns as `jac`."""
    return _of_object(m, d, "site_xpos", m.site_bodyid, site)


def _of_object(
    m: Model, d: Data, positions: str, bodies: np.ndarray, index: Array
) -> tuple[Array, Array]:
    d = com_pos(m, kinematics(m, d))
    body = pick(jnp.asarray(column(bodies.astype(np.int32), index)), index)
    return _columns(m, d, pick(getattr(d, positions), index), body)


def _columns(m: Model, d: Data, point: Vec, body: Array) -> tuple[Array, Array]:
    """jacp and jacr `[nv, 3, *W]` of a point `[1, *W]` of a body, int `[1, *W]`."""
    here = column(np.arange(m.nbody, dtype=np.int32), body) == body
    moves = weighted_sum(ancestors(m).T, here.astype(point.x.dtype))
    arm = point - take(d.subtree_com, m.body_rootid[m.dof_bodyid])
    linear, angular = d.cdof.at(arm), d.cdof.rot
    jacp, jacr = (jnp.stack(v.scale(moves).parts, axis=1) for v in (linear, angular))
    return jacp, jacr
