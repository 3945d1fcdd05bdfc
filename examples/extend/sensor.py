"""A sensor of your own: how far a site leans from the vertical."""

import jax
import jax.numpy as jnp

import jaxsim
from jaxsim.enums import ObjType, Stage


@jaxsim.extend.register_plugin
class Tilt(jaxsim.extend.Plugin):
    """Angle between the z axis of a site and the vertical, times a gain [rad]."""

    name = "lab.tilt"
    settings = {"gain": "1"}
    stage = Stage.POS
    objtype = ObjType.SITE

    def sensor(self, m, d, at):
        up = d.site_xmat[at.objid, 2, 2]
        return float(at.config["gain"]) * jnp.arccos(jnp.clip(up, -1, 1))[:, None]


MODEL = """
<mujoco>
  <extension><plugin plugin="lab.tilt"/></extension>
  <worldbody>
    <body><joint axis="1 0 0"/><geom type="capsule" size=".02 .3"/><site name="top"/></body>
  </worldbody>
  <sensor>
    <plugin plugin="lab.tilt" objtype="site" objname="top"><config key="gain" value="2"/></plugin>
  </sensor>
</mujoco>
"""


def main():
    m = jaxsim.load_model(MODEL)
    d = jaxsim.make_data(m).replace(qpos=jnp.array([0.3]))
    d = jax.jit(jaxsim.forward)(m, d)
    print(f"the sensor reports {float(d.sensordata[0]):.3f}")
    return d.sensordata


if __name__ == "__main__":
    main()
