"""A task that is learned in seconds: a pendulum that is paid for being held aside."""

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.envs import Env

XML = """
<mujoco>
  <option timestep="0.02"/>
  <worldbody><body><joint name="hinge" axis="0 1 0" damping="2"/><geom size=".1" pos="0 0 -1"/>
  </body></worldbody>
  <actuator><motor joint="hinge" gear="60" ctrlrange="-1 1"/></actuator>
</mujoco>"""


class Hold(Env):
    """Ends when it is too fast."""

    def __init__(self, repeat=2):
        super().__init__(jaxsim.load_model(XML), repeat=repeat)

    def start(self, m, d, key):
        return d.replace(qpos=jax.random.uniform(key, d.qpos.shape, d.qpos.dtype, -1, 1))

    def reward(self, m, before, after, action):
        return jnp.exp(-4 * (after.qpos[0] - 1) ** 2)

    def terminal(self, m, d):
        return jnp.abs(d.qvel[0]) > 8.0


class Seen(Hold):
    """Sees a dict."""

    def observe(self, m, d):
        return {"place": d.qpos, "speed": d.qvel}


def number():
    """No task."""
    return 3
