"""An actuator law of your own: a spring towards the setpoint that grows stiffer with the distance.

The setpoint follows the control slowly: the plugin keeps it as an activation of the actuator.
"""

import jax.numpy as jnp

import jaxsim


@jaxsim.extend.register_plugin
class StiffServo(jaxsim.extend.Plugin):
    """torque = kp e (1 + e^2), e = setpoint - length; the setpoint follows in `lag` [s]."""

    name = "lab.stiff_servo"
    settings = {"kp": "1", "lag": "0.1"}

    def check(self, config):
        return "" if float(config["lag"]) > 0 else "config 'lag' must be positive"

    def activations(self, config):
        return 1

    def params(self, config):
        return {"kp": float(config["kp"])}

    def act_dot(self, m, d, at, given):
        return (given[:, None] - at.act) / float(at.config["lag"])

    def actuator(self, m, d, at, given):
        error = at.act[:, 0] - d.actuator_length[at.id]
        return at.params["kp"] * error * (1 + error**2)


MODEL = """
<mujoco>
  <extension><plugin plugin="lab.stiff_servo"><instance name="servo"><config key="kp" value="40"/>
  </instance></plugin></extension>
  <worldbody>
    <body><joint name="hinge" axis="0 0 1" damping=".3"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".02"/></body>
  </worldbody>
  <actuator>
    <plugin instance="servo" joint="hinge" actdim="1" ctrlrange="-1 1"/>
  </actuator>
</mujoco>
"""


def main():
    m = jaxsim.load_model(MODEL)
    d = jaxsim.make_data(m).replace(ctrl=jnp.array([0.5]))
    d, _ = jaxsim.rollout(m, d, steps=500)
    print(f"after {float(d.time):.1f} s the joint is at {float(d.qpos[0]):.3f} rad")
    return d.qpos


if __name__ == "__main__":
    main()
