"""Humanoid and HumanoidStandup: a body of 17 joints that walks along x, or stands up.

Observations (348,): positions without x and y (22,) [m, rad], velocities (23,) [m/s, rad/s],
inertias (130,) and velocities (78,) of the bodies, torques of the joints (17,) [N m], and wrenches
of contacts on the bodies (78,): MuJoCo's `cinert`, `cvel`, `qfrc_actuator` and `cfrc_ext`, about
the center of mass of the body. The file sets the solver PGS with 50 iterations, which is not
converged; these tasks use Newton's method, which converges.
"""

from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.envs.tasks.gymnasium.base import GymnasiumTask, effort
from jaxsim.envs.tasks.gymnasium.contact import contact_wrenches
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.stages import kinematics

_KEPT_FIELDS = (*(n for n, f in Data.fields.items() if f.keep), "cinert")


class HumanoidBody(GymnasiumTask):
    """Observations and costs that both tasks share."""

    REPEAT, SPREAD, SPEED = 5, 0.01, 0.01

    def __init__(self, **given: Any):
        super().__init__(**{"keep": _KEPT_FIELDS} | given)

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return the observation of the module's documentation."""
        bodies = [x[1:].ravel() for x in (d.cinert, d.cvel, contact_wrenches(m, d))]
        inertia, velocity, touch = bodies
        force = d.qfrc_actuator[6:]
        return jnp.concatenate([d.qpos[2:], d.qvel, inertia, velocity, force, touch])

    def cost(self, m: Model, d: Data) -> jax.Array:
        """Return 0.1 sum(ctrl^2) + 5e-7 sum(wrench^2), the latter at most 10."""
        touch = contact_wrenches(m, d)
        return 0.1 * effort(d.ctrl) + jnp.minimum(5e-7 * jnp.sum(touch * touch), 10.0)


class Humanoid(HumanoidBody):
    """Task to walk: actions of 15 ms, terminated where the root is not within 1 and 2 m.

    The reward of an action is

        1.25 (x after - x before) / dt + 5 (unless it has fallen) - cost

    with x the center of mass in the results.
    """

    FILE = "humanoid"
    MEMORY = 1  # x of the center of mass before the action

    def start(self, m: Model, d: Data, key: jax.Array) -> Data:
        """Return a state near upright; remember the center of mass."""
        d = super().start(m, d, key)
        return d.replace(userdata=_center(m, kinematics(m, d)))

    def control(self, m: Model, d: Data, action: jax.Array) -> Data:
        """Apply the action as the control; remember the center of mass."""
        # at the first action of an episode there are no results
        here = jnp.where(d.time > 0, _center(m, d), d.userdata)
        return d.replace(ctrl=action, userdata=here)

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return the reward of the class's documentation."""
        alive = (~self.terminal(m, after)).astype(after.qpos.dtype)
        return 1.25 * self._speed(m, after) + 5.0 * alive - self.cost(m, after)

    def terminal(self, m: Model, d: Data) -> jax.Array:
        """Return whether the humanoid has fallen."""
        return (d.qpos[2] <= 1.0) | (d.qpos[2] >= 2.0)

    def metrics(self, m: Model, before: Data, after: Data, action: jax.Array) -> dict[str, Any]:
        """Return the speed along x [m/s]."""
        return {"speed": self._speed(m, after)}

    def _speed(self, m: Model, after: Data) -> jax.Array:
        return (_center(m, after) - after.userdata)[0] / (m.opt.timestep * self.repeat)


class HumanoidStandup(HumanoidBody):
    """Task to stand up from lying: actions of 15 ms, never terminated.

    The reward is height / h + 1 - cost, with the height of the root [m] and the physics' time step
    h [s].
    """

    FILE = "humanoidstandup"

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return the reward of the class's documentation."""
        return after.qpos[2] / m.opt.timestep + 1.0 - self.cost(m, after)


def _center(m: Model, d: Data) -> jax.Array:
    """Return x of the center of mass, (1,) [m]."""
    return (m.body_mass @ d.xipos[:, :1]) / jnp.sum(m.body_mass)
