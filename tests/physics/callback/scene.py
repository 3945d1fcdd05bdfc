"""Models with what callbacks serve, and the same callbacks for MuJoCo and for us."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax.numpy as jnp
import mujoco
import numpy as np

import jaxsim

MODEL = """
<mujoco><option timestep=".004" integrator="{integrator}" {option}><flag energy="enable" {flag}/>
</option><size nuserdata="2"/>
<worldbody>
  <geom name="floor" type="plane" size="5 5 1"/><site name="post" pos="0 0 2"/>
  <body name="idle" pos="3 0 2"><joint name="spin" type="ball"/><geom size=".1 .2 .3" type="box"
    contype="0" conaffinity="0" pos=".1 0 0"/></body>
  <body name="arm" pos="0 0 1">
    <joint name="turn" axis="0 1 0" stiffness="3" damping=".2"/>
    <geom type="capsule" size=".04 .2" pos=".2 0 0" euler="0 90 0"/>
    <body name="fore" pos=".4 0 0"><joint name="bend" axis=".1 1 0" range="-60 30" damping=".1"/>
      <geom name="fist" size=".08" pos=".3 0 0"/><site name="tip" pos=".3 0 0"/></body></body>
  <body name="ball" pos=".7 0 .09"><freejoint/><geom name="ball" size=".1"/></body>
  <body name="hand" mocap="true" pos="-1 0 1"/>
</worldbody>
<tendon><spatial name="cord"><site site="post"/><site site="tip"/></spatial></tendon>
<equality><joint joint1="turn" joint2="bend" active="false"/></equality>
<actuator>
  <motor name="drive" joint="turn" ctrlrange="-2 2" nsample="3" delay=".008"/>
  <general name="own" joint="bend" dyntype="user" gaintype="user" biastype="user" actdim="1"
    actlimited="true" actrange="-.8 .75"/>
  <general name="filtered" joint="turn" dyntype="filter" dynprm=".03" gaintype="user"/>
  <general name="cord" tendon="cord" biastype="user" forcerange="-3 3"/>
  <general name="slow" joint="bend" dyntype="user" actearly="true" actdim="1"/>
</actuator>
<sensor>
  <jointpos joint="turn"/><user name="v" dim="2" needstage="vel" cutoff=".4"/>
  <user name="p" dim="1" needstage="pos"/><actuatorfrc actuator="own"/>
  <user name="n" dim="1" needstage="none"/><user name="a" dim="3" needstage="acc"/>
  <user name="q" dim="1" needstage="pos"/><jointvel joint="bend"/>
</sensor></mujoco>"""


def model(integrator: str = "Euler", option: str = "", flag: str = "") -> mujoco.MjModel:
    """The model of these options."""
    return mujoco.MjModel.from_xml_string(
        MODEL.format(integrator=integrator, option=option, flag=flag)
    )


# the laws, of numbers alone: `x` is numpy or jax.numpy


def controls(d, x):
    """Feedback of what is known only after positions and velocities."""
    tip, speed = d.site_xpos[1], d.qvel[4]
    return x.stack(
        [-3 * tip[2] + d.time, tip[0], d.ten_length[0] - speed, d.cvel[3, 1], d.energy[1]]
    )


def push(d, x):
    """A passive force by velocities and by the passive force that there is already."""
    return x.sin(d.qpos[: len(d.qvel)]) - 0.1 * d.qvel + 0.5 * d.qfrc_passive


OURS = jaxsim.Callbacks(
    control=lambda m, d: d.replace(
        ctrl=controls(d, jnp),
        qfrc_applied=d.qfrc_applied.at[4].set(0.3 * d.xpos[3, 2]),
        xfrc_applied=d.xfrc_applied.at[3, 0].set(d.qvel[4]),
        userdata=d.userdata.at[1].add(d.qpos[4]),
        eq_active=d.eq_active.at[0].set(d.time > 0.011),
        mocap_pos=d.mocap_pos.at[0, 2].add(0.01),
    ),
    passive=lambda m, d: push(d, jnp),
    act_dyn=lambda m, d, id: 2 * d.ctrl[id] - d.act[jnp.array([0, 2])] + 0.1 * id,
    act_gain=lambda m, d, id: 1 + d.actuator_velocity[id] ** 2 + 1.0 * id,
    act_bias=lambda m, d, id: -3 * d.actuator_length[id] - d.act_dot[0],
    sensor=lambda m, d, stage, id: (
        jnp.repeat(d.sensordata[0] + (10.0 * stage + id), m.sensor_dim[id]) * d.qvel[4]
    ),
)


def _control(m, d):
    d.ctrl[:] = controls(d, np)
    d.qfrc_applied[4] = 0.3 * d.xpos[3, 2]
    d.xfrc_applied[3, 0] = d.qvel[4]
    d.userdata[1] += d.qpos[4]
    d.eq_active[0] = d.time > 0.011
    d.mocap_pos[0, 2] += 0.01


def _passive(m, d):
    d.qfrc_passive[:] += push(d, np)


def _sensor(m, d, stage):
    user = np.flatnonzero((m.sensor_type == 48) & (m.sensor_needstage == stage))
    first = d.sensordata[0]
    for i in user:
        at = m.sensor_adr[i] + np.arange(m.sensor_dim[i])
        d.sensordata[at] = (first + 10.0 * stage + i) * d.qvel[4]


THEIRS = {
    "control": _control,
    "passive": _passive,
    "act_dyn": lambda m, d, i: 2 * d.ctrl[i] - d.act[m.actuator_actadr[i]] + 0.1 * i,
    "act_gain": lambda m, d, i: 1 + d.actuator_velocity[i] ** 2 + i,
    "act_bias": lambda m, d, i: -3 * d.actuator_length[i] - d.act_dot[0],
    "sensor": _sensor,
}


@contextmanager
def installed(callbacks: dict) -> Iterator[None]:
    """MuJoCo with callbacks, which are those of the whole process."""
    for name, function in callbacks.items():
        getattr(mujoco, f"set_mjcb_{name}")(function)
    try:
        yield
    finally:
        for name in callbacks:
            getattr(mujoco, f"set_mjcb_{name}")(None)
