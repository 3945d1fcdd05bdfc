"""A passive force of your own: wind on some bodies."""

import jax.numpy as jnp

import jaxsim


@jaxsim.extend.register_plugin
class Wind(jaxsim.extend.Plugin):
    """A steady force along y at the center of mass of each body [N]."""

    name = "lab.wind"
    settings = {"force": "0"}

    def params(self, config):
        return {"force": float(config["force"])}

    def passive(self, m, d, at):
        push = jnp.array([0.0, 1.0, 0.0]) * at.params["force"]
        return sum(jaxsim.support.jac_body_com(m, d, int(body))[0] @ push for body in at.id)


MODEL = """
<mujoco>
  <extension><plugin plugin="lab.wind"><instance name="breeze"><config key="force" value=".2"/>
  </instance></plugin></extension>
  <worldbody>
    <body name="mast"><plugin instance="breeze"/><joint axis="1 0 0" damping=".1" stiffness="3"/>
      <geom type="capsule" size=".02 .3" pos="0 0 .3" mass=".1"/></body>
  </worldbody>
</mujoco>
"""


def main():
    m = jaxsim.load_model(MODEL)
    d, _ = jaxsim.rollout(m, jaxsim.make_data(m), steps=2000)
    print(f"the mast leans by {float(d.qpos[0]):.3f} rad")
    return d.qpos


if __name__ == "__main__":
    main()
