"""Cameras and lights follow and aim as MuJoCo's do."""

import jax
import mujoco
import numpy as np
from tolerance import ROUNDING

import jaxsim

MODES = ("fixed", "track", "trackcom", "targetbody", "targetbodycom")
CAMERAS = "".join(
    f'<camera name="{mode}" mode="{mode}" target="other" pos=".1 .2 .3" euler="10 20 30"/>'
    for mode in MODES
)
LIGHTS = "".join(
    f'<light mode="{mode}" target="other" pos=".3 .1 .2" dir="1 .2 -1"/>' for mode in MODES
)
XML = f"""
<mujoco>
  <worldbody>
    <camera mode="targetbody" target="other" pos="1 2 3"/>
    <body pos="0 0 1" euler="5 6 7"><freejoint/><geom size=".1" pos=".1 0 0"/>{CAMERAS}{LIGHTS}
      <body pos="1 0 0"><joint axis="0 1 1"/><geom size=".1" pos=".1 0 .1"/></body>
    </body>
    <body name="other" pos="1 2 0"><joint axis="1 0 0"/><geom size=".1" pos="0 .2 0"/>
      <body pos="0 .5 0"><joint axis="0 0 1"/><geom size=".1" pos=".1 0 0"/></body>
    </body>
  </worldbody>
  <sensor>
    <framepos objtype="camera" objname="trackcom"/>
    <framexaxis objtype="camera" objname="targetbody"/>
    <framelinvel objtype="camera" objname="fixed"/>
  </sensor>
</mujoco>
"""


def test_poses():
    mj = mujoco.MjModel.from_xml_string(XML)
    m = jaxsim.load_model(XML)
    forward = jax.jit(jaxsim.forward)
    rng = np.random.default_rng(0)
    for _ in range(3):
        theirs = mujoco.MjData(mj)
        mujoco.mj_integratePos(mj, theirs.qpos, rng.standard_normal(mj.nv), 1.0)
        theirs.qvel[:] = rng.standard_normal(mj.nv)
        mujoco.mj_forward(mj, theirs)
        d = forward(m, jaxsim.make_data(m, keep="all").replace(qpos=theirs.qpos, qvel=theirs.qvel))
        np.testing.assert_allclose(d.cam_xpos, theirs.cam_xpos, **ROUNDING)
        np.testing.assert_allclose(d.cam_xmat.reshape(-1, 9), theirs.cam_xmat, **ROUNDING)
        np.testing.assert_allclose(d.light_xpos, theirs.light_xpos, **ROUNDING)
        np.testing.assert_allclose(d.light_xdir, theirs.light_xdir, **ROUNDING)
        np.testing.assert_allclose(d.sensordata, theirs.sensordata, **ROUNDING)


def test_a_camera_above_its_target():
    """No direction is level there: MuJoCo's choice."""
    xml = """<mujoco><worldbody><body name="t"/>
      <camera mode="targetbody" target="t" pos="0 0 2"/></worldbody></mujoco>"""
    mj = mujoco.MjModel.from_xml_string(xml)
    theirs = mujoco.MjData(mj)
    mujoco.mj_forward(mj, theirs)
    m = jaxsim.load_model(xml)
    d = jax.jit(jaxsim.forward)(m, jaxsim.make_data(m))
    np.testing.assert_allclose(d.cam_xmat.reshape(-1, 9), theirs.cam_xmat, **ROUNDING)
