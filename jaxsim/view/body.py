"""Pose and velocity of one body, whose id may be traced, and conversion of points to its frame."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather
from jaxsim.enums import ObjType
from jaxsim.math import Components, Vec
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.body.inertia import com_pos
from jaxsim.physics.body.kinematics import kinematics
from jaxsim.physics.body.object_frame import object_velocities
from jaxsim.physics.body.rne import com_vel
from jaxsim.transforms.layout import batched
from jaxsim.transforms.program_cache import ProgramCache


class MovingBody(NamedTuple):
    """A body in the world.

    Attributes:
      xpos, xquat, xmat: pose of its frame, (3,) [m], (4,), (3, 3).
      xipos, xiquat: pose of its inertial frame.
      angular, linear: velocities, of its rotation [rad/s] and of its center of mass [m/s], (3,).
    """

    xpos: jax.Array
    xquat: jax.Array
    xmat: jax.Array
    xipos: jax.Array
    xiquat: jax.Array
    angular: jax.Array
    linear: jax.Array


def in_body(m: Model, d: Data, body: Array, point: Array) -> jax.Array:
    """Return a point in the frame of a body, (3,) [m].

    Args:
      m: the model.
      d: data, of which qpos (and the poses of mocap bodies) are used.
      body: id of the body, ().
      point: the point in the world, (3,) [m].
    """
    return _in_body(m, d, jnp.asarray(body, jnp.int32)[None], point)


def _to_local(m: Model, d: Data, body: Array, point: Array) -> Array:
    d = kinematics(m, d)
    offset = Vec(*(point[k : k + 1] for k in range(3))) - gather(d.xpos, body)
    return _item_components(gather(d.xquat, body).conj.rotate(offset))


def moving_body(m: Model, d: Data, body: Array) -> MovingBody:
    """Return the pose and velocity of a body.

    Args:
      m: the model.
      d: data, of which qpos and qvel (and the poses of mocap bodies) are used.
      body: id of the body, ().
    """
    return _moving_program(m, d, jnp.asarray(body, jnp.int32)[None])


def _body_velocity(m: Model, d: Data, body: Array) -> MovingBody:
    d = com_vel(m, com_pos(m, kinematics(m, d)))
    velocity = gather(object_velocities(m, d, ObjType.BODY, np.arange(m.nbody)), body)
    quat = gather(d.xquat, body)
    rows = [jnp.stack([x[0] for x in row.parts]) for row in gather(d.xmat, body).rows]
    return MovingBody(
        xpos=_item_components(gather(d.xpos, body)),
        xquat=_item_components(quat),
        xmat=jnp.stack(rows),
        xipos=_item_components(gather(d.xipos, body)),
        xiquat=_item_components(quat * gather(m.body_iquat, body)),
        angular=_item_components(velocity.rot),
        linear=_item_components(velocity.lin),
    )


_in_body = ProgramCache(batched(_to_local), inline=True)
_moving_program = ProgramCache(batched(_body_velocity), inline=True)


def _item_components(value: Components) -> Array:
    """Return the components of one item, as an array `[k, *W]`."""
    return jnp.stack([x[0] for x in value.parts])
