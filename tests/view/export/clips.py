"""A model with all that is exported, a motion of it, and its poses by MuJoCo."""

import mujoco
import numpy as np

MODEL = """
<mujoco model="scene"><option timestep="0.01"/>
<asset>
  <texture name="grid" type="2d" builtin="checker" width="8" height="8" rgb1="1 0 0" rgb2="0 0 1"/>
  <material name="grid" texture="grid" texrepeat="4 4"/>
  <material name="glass" rgba=".2 .4 .6 .5" metallic="1" roughness=".3"/>
  <hfield name="hill" nrow="3" ncol="3" size="1 1 .2 .1" elevation="0 0 0 0 1 0 0 0 0"/>
  <mesh name="pad" builtin="sphere" params="1" scale=".2 .3 .1"/>
</asset>
<worldbody>
  <geom name="floor" type="plane" size="0 0 .1" material="grid"/>
  <geom name="hill" type="hfield" hfield="hill" pos="3 0 0"/>
  <body name="ball" pos="0 0 1"><freejoint/><geom name="ball" size=".2" material="glass"/>
    <site name="ball" size=".05" pos="0 0 .3" quat="1 1 0 0"/></body>
  <body name="arm/1" pos="1 0 1"><joint name="elbow" axis="0 1 0"/>
    <geom name="box" type="box" size=".1 .2 .3" pos=".2 0 0" euler="0 0 30"/>
    <geom name="pad" type="mesh" mesh="pad" pos=".5 0 0"/><geom name="hidden" size=".1" group="3"/>
  </body>
  <body name="post" pos="0 2 0"><geom type="cylinder" size=".1 .2"/></body>
  <flexcomp name="cloth" type="grid" count="3 3 1" spacing=".2 .2 .2" dim="2" pos="-1 0 1"
    radius=".01" rgba="0 1 0 1"><edge equality="true"/>
    <contact contype="0" conaffinity="0"/></flexcomp>
  <flexcomp name="rope" type="grid" count="4 1 1" spacing=".2 .2 .2" dim="1" pos="-1 1 1"
    radius=".02" rgba="1 1 0 1"><edge equality="true"/>
    <contact contype="0" conaffinity="0"/></flexcomp>
</worldbody>
<actuator><motor name="motor" joint="elbow"/></actuator>
<sensor><jointpos name="angle" joint="elbow"/></sensor>
</mujoco>"""
WORLDS, RECORDS, STEP = 2, 5, 0.02  # the step is that between records [s]
SOFT = ("flex cloth", "flex rope")


def motion() -> dict[str, np.ndarray]:
    """A motion in which all bodies but the post move; the quaternion of the ball changes sign."""
    m = mujoco.MjModel.from_xml_string(MODEL)
    time = STEP * np.arange(RECORDS)
    qpos = np.tile(m.qpos0, (RECORDS, WORLDS, 1))
    qpos[..., 0] += time[:, None]
    angle = time[:, None] * [30, 40]
    qpos[..., 3], qpos[..., 6] = np.cos(angle), np.sin(angle)
    qpos[RECORDS // 2 :, :, 3:7] *= -1
    qpos[..., 7] = time[:, None] * [5, -5]
    qpos[..., 8:] += (
        np.random.default_rng(0).standard_normal(qpos[..., 8:].shape) * time[:, None, None]
    )
    return {
        "time": 0.5 + np.repeat(time[:, None], WORLDS, axis=1),
        "qpos": qpos,
        "ctrl": np.sin(time)[:, None, None] + np.arange(WORLDS)[:, None],
        "sensordata": qpos[..., 7:8],
        "reward": np.where(qpos[..., 7] > 0.3, np.nan, qpos[..., 7]),
    }


def oracle(qpos: np.ndarray) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """MuJoCo's model, and its kinematics at a position."""
    m = mujoco.MjModel.from_xml_string(MODEL)
    d = mujoco.MjData(m)
    d.qpos = qpos
    mujoco.mj_kinematics(m, d)
    mujoco.mj_flex(m, d)
    return m, d


def names_of_bodies() -> list[str]:
    m = mujoco.MjModel.from_xml_string(MODEL)
    return [m.body(b).name for b in range(m.nbody)]


def triangles(m: mujoco.MjModel) -> dict[str, int]:
    """Number of triangles of the geoms whose shape is exact."""
    hill = 2 * 2 * 2 + 2 * 8 + 2  # top, sides and bottom of 3 x 3 points
    return {"floor": 2, "hill": hill, "box": 12, "pad": int(m.mesh_facenum[0])}
