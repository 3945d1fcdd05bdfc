"""One model for the tests of `view`, in random states, against MuJoCo's own scene."""

from functools import cache

import mujoco
import numpy as np

from jaxsim.io.bridge import put_model
from jaxsim.model.model import Model
from jaxsim.view import Camera, CameraType

CAMERAS = ("free", "flat", "tracking", "fixed", "lens", "fixed flat")
XML = """<mujoco><visual><global fovy="50"/></visual><worldbody>
  <camera name="fixed" pos="1 2 3" euler="20 30 40" fovy="60"/>
  <geom type="plane" size="5 5 1"/>
  <body pos="0 0 1"><freejoint/>
    <geom type="box" size=".3 .4 .5" pos=".05 .02 .03" euler="10 20 0" density="50"/>
    <camera name="fixed flat" projection="orthographic" fovy="2" pos="0 0 3"/>
    <body pos=".5 0 0"><joint axis="0 1 0"/>
      <geom type="capsule" size=".2 .3" pos=".1 0 .1" density="50" group="3"/></body></body>
  <body mocap="true" pos="1 1 1"><inertial pos=".1 .2 .3" euler="10 0 0" mass="1"
    diaginertia="1 2 3"/><geom size=".3" contype="0" conaffinity="0"/></body>
  <body pos="0 0 2"><joint axis="1 0 0"/><geom size=".1" pos="0 0 .2"/>
    <camera name="lens" pos="0 0 3" sensorsize=".02 .01" focal=".01 .012" principal=".001 .002"
      resolution="200 100"/></body>
</worldbody></mujoco>"""
BODIES = (1, 2, 3, 4)  # free, its child, mocap, on a hinge of the world


@cache
def model() -> tuple[mujoco.MjModel, Model]:
    mj = mujoco.MjModel.from_xml_string(XML)
    return mj, put_model(mj)


def state(seed: int) -> mujoco.MjData:
    """Moving and turned at random, after `mj_forward`."""
    mj, rng = model()[0], np.random.default_rng(seed)
    d = mujoco.MjData(mj)
    d.qpos[:3] += 0.5 * rng.normal(size=3)
    d.qpos[3:] = rng.normal(size=mj.nq - 3)
    d.qpos[3:7] /= np.linalg.norm(d.qpos[3:7])
    d.qvel[:] = rng.normal(size=mj.nv)
    d.mocap_pos[:] = rng.normal(size=3)
    quat = rng.normal(size=4)
    d.mocap_quat[:] = quat / np.linalg.norm(quat)
    d.xfrc_applied[:] = rng.normal(size=(mj.nbody, 6))
    mujoco.mj_forward(mj, d)
    return d


def camera(kind: str, seed: int) -> tuple[mujoco.MjvCamera, Camera]:
    """A camera of both, in a random pose where it has one of its own."""
    mj = model()[0]
    rng, theirs = np.random.default_rng(seed), mujoco.MjvCamera()
    mujoco.mjv_defaultFreeCamera(mj, theirs)
    theirs.lookat[:] += rng.normal(size=3)
    theirs.distance *= rng.uniform(0.5, 2)
    theirs.azimuth, theirs.elevation = rng.uniform(-180, 180), rng.uniform(-80, 80)
    theirs.orthographic = kind == "flat"
    if kind == "tracking":
        theirs.type, theirs.trackbodyid = mujoco.mjtCamera.mjCAMERA_TRACKING, 1
    elif kind.startswith(("fixed", "lens")):
        theirs.type, theirs.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, mj.camera(kind).id
    mine = Camera(
        np.array(theirs.lookat),
        np.float64(theirs.distance),
        np.float64(theirs.azimuth),
        np.float64(theirs.elevation),
        np.float64(50.0),
        CameraType(theirs.type),
        theirs.fixedcamid,
        theirs.trackbodyid,
        kind == "flat",
    )
    return theirs, mine


def scene_of(d: mujoco.MjData, camera: mujoco.MjvCamera) -> mujoco.MjvScene:
    """MuJoCo's scene, seen from a camera."""
    mj = model()[0]
    scene = mujoco.MjvScene(mj, 100)
    given = mujoco.MjvOption(), mujoco.MjvPerturb(), camera, mujoco.mjtCatBit.mjCAT_ALL
    mujoco.mjv_updateScene(mj, d, *given, scene)
    return scene
