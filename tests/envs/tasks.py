"""A small task for the tests of adapters: a pendulum that is paid for being held aside."""

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

    def start(self, m, d, key):
        return d.replace(qpos=jax.random.uniform(key, d.qpos.shape, d.qpos.dtype, -1, 1))

    def reward(self, m, before, after, action):
        return jnp.exp(-4 * (after.qpos[0] - 1) ** 2)

    def terminal(self, m, d):
        return jnp.abs(d.qvel[0]) > 8.0

    def metrics(self, m, before, after, action):
        return {"speed": after.qvel[0]}


def hold() -> Hold:
    return Hold(jaxsim.load_model(XML), repeat=2)
