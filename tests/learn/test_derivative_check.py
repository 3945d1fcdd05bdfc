"""Parts of a task without a useful derivative are named."""

import jax
import jax.numpy as jnp
import pytest

import jaxsim
from jaxsim.envs.env import Env
from jaxsim.learn.derivative_check import check_task_derivatives

XML = """<mujoco><size nuserdata="1"/><worldbody>
  <body name="arm"><joint name="hinge" axis="0 1 0" damping=".1"/>
    <geom type="capsule" fromto="0 0 0 .4 0 0" size=".05"/></body>
</worldbody><actuator><motor joint="hinge" ctrlrange="-1 1"/></actuator></mujoco>"""


class Smooth(Env):
    def reward(self, m, before, after, action):
        speed = (after.qpos[0] - before.qpos[0]) / self.dt
        return jnp.cos(after.qpos[0]) - 0.1 * speed**2 - 0.01 * action @ action

    def start(self, m, d, key):
        return d.replace(userdata=jax.random.normal(key, (1,), d.qpos.dtype))

    def observe(self, m, d):
        angle = jnp.stack([jnp.cos(d.qpos[0]), jnp.sin(d.qpos[0])])
        return {"angle": angle, "command": d.userdata, "tip": d.xpos[1]}


class Jumps(Smooth):
    """A reward that counts, an observation that is rounded, one with a jump, one without slope."""

    def reward(self, m, before, after, action):
        return (after.qpos[0] > 0.1).astype(after.qpos.dtype)

    def observe(self, m, d):
        q = d.qpos[0]
        still = jnp.sqrt(jnp.maximum(q - q, 0.0))  # infinite slope at 0, times 0
        stopped = q + jax.lax.stop_gradient(jnp.sin(3 * q))
        return jnp.stack([jnp.round(10 * q), q, still + q, stopped])


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(XML)


@pytest.mark.slow
def test_smooth_tasks_with_a_command_have_no_fault(m):
    assert check_task_derivatives(Smooth(m)) == []


def test_parts_without_derivative_are_named(m):
    faults = check_task_derivatives(Jumps(m))
    assert [fault.partition(";")[0] for fault in faults] == [
        "observation[2]: the derivative is not finite in some states",
        "reward, observation[0]: the derivative is 0 although the value varies",
        "observation[3]: the derivative differs from finite differences",
    ]
    assert all(fault.endswith("a smooth function of the state") for fault in faults)
