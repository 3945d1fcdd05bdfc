"""InvertedPendulum and InvertedDoublePendulum: one or two poles that a cart balances."""

import jax
import jax.numpy as jnp

from jaxsim.envs.tasks.gymnasium.base import GymnasiumTask
from jaxsim.model.data import Data
from jaxsim.model.model import Model


class InvertedPendulum(GymnasiumTask):
    """Task of one pole: reward 1, terminated at a tilt of 0.2 rad; an action takes 40 ms.

    Observations (4,): position of the cart [m], tilt of the pole [rad], and their velocities.
    """

    FILE, REPEAT, SPREAD, SPEED = "inverted_pendulum", 2, 0.01, 0.01

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return 1 while the pole is up."""
        return (~self.terminal(m, after)).astype(after.qpos.dtype)

    def terminal(self, m: Model, d: Data) -> jax.Array:
        """Return whether the pole is tilted too far."""
        return jnp.abs(d.qpos[1]) > 0.2


class InvertedDoublePendulum(GymnasiumTask):
    """Task of two poles, one on the other, terminated where their tip is below 1 m.

    An action takes 50 ms. Its reward, with the tip at (x, y), is

        10 (while it is up) - 0.01 x^2 - (y - 2)^2 - 0.001 w1^2 - 0.005 w2^2

    with the velocities w1 and w2 of the hinges [rad/s]. Observations (9,): position of the cart
    [m], sines and cosines of the angles, velocities and the constraint force on the cart [N], the
    latter two clipped to -10 and 10.
    """

    FILE, REPEAT, SPREAD, SPEED = "inverted_double_pendulum", 5, 0.1, 0.1
    NORMAL = True

    def observe(self, m: Model, d: Data) -> jax.Array:
        """Return the position of the cart, the angles, velocities and the force."""
        angle, force = d.qpos[1:], d.qfrc_constraint[:1]
        moving = jnp.clip(jnp.concatenate([d.qvel, force]), -10.0, 10.0)
        return jnp.concatenate([d.qpos[:1], jnp.sin(angle), jnp.cos(angle), moving])

    def reward(self, m: Model, before: Data, after: Data, action: jax.Array) -> jax.Array:
        """Return the reward of the class's documentation."""
        x, _, y = after.site_xpos[0]
        _, w1, w2 = after.qvel
        up = (~self.terminal(m, after)).astype(after.qpos.dtype)
        away = 0.01 * x**2 + (y - 2.0) ** 2
        return 10.0 * up - away - (1e-3 * w1**2 + 5e-3 * w2**2)

    def terminal(self, m: Model, d: Data) -> jax.Array:
        """Return whether the tip is too low."""
        return d.site_xpos[0, 2] <= 1.0
