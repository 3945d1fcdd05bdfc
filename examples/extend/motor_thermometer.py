"""A motor with a thermometer: an actuator and a sensor of one plugin instance, with a state.

Losses heat the winding, it cools towards the air, and a hot motor has less torque.
"""

import jax
import jax.numpy as jnp

import jaxsim

AIR = 20.0  # temperature at the start and around it [C]


@jaxsim.extend.register_plugin
class Motor(jaxsim.extend.Plugin):
    """torque = k(T) i;  C dT/dt = R i^2 - (T - air) / r, with the control as the current i [A]."""

    name = "lab.motor"
    settings = {"constant": "1", "resistance": "1", "capacity": "10", "cooling": "2"}

    def state(self, config):
        return [AIR]

    def params(self, config):
        return {key: float(text) for key, text in config.items()}

    def actuator(self, m, d, at, given):
        warm = at.state[0] - AIR
        return at.params["constant"] * (1 - 0.002 * warm) * given

    def sensor(self, m, d, at):
        return at.state[None]

    def next_state(self, m, d, at):
        loss = at.params["resistance"] * jnp.sum(d.ctrl[at.id] ** 2)
        flow = loss - (at.state[0] - AIR) / at.params["cooling"]
        return at.state + m.opt.timestep * flow / at.params["capacity"]


MODEL = """
<mujoco>
  <extension><plugin plugin="lab.motor"><instance name="left"/>
    <instance name="right"><config key="resistance" value="2"/></instance></plugin></extension>
  <worldbody>
    <body><joint name="l" axis="0 0 1" damping="1"/><geom size=".1"/></body>
    <body pos="1 0 0"><joint name="r" axis="0 0 1" damping="1"/><geom size=".1"/></body>
  </worldbody>
  <actuator><plugin instance="right" joint="r"/><plugin instance="left" joint="l"/></actuator>
  <sensor><plugin instance="left"/><plugin instance="right"/></sensor>
</mujoco>
"""


def main():
    m = jaxsim.load_model(MODEL)
    d = jaxsim.make_data(m).replace(ctrl=jnp.array([3.0, 3.0]))
    d, _ = jax.jit(jaxsim.rollout, static_argnames="steps")(m, d, steps=5000)
    left, right = d.sensordata
    print(
        f"after {float(d.time):.0f} s the windings have {float(left):.1f} and {float(right):.1f} C"
    )
    return d


if __name__ == "__main__":
    main()
