"""Delays, histories and sampled sensors beside MuJoCo, over many steps of worlds at other times."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import stack, world
from tolerance import DIFFERENCE, DYNAMICS, FLOAT32, ROUNDING

import jaxsim
from jaxsim.io.bridge import put_model

# The timestep divides neither delays nor periods; the first of each kind has no history.
MODEL = """
<mujoco><option timestep=".004" integrator="{integrator}"/>
<option><flag {flags}/></option>
<worldbody><geom type="plane" size="3 3 .1"/>
  <body name="idle" pos="2 0 1"><joint name="idle"/><geom size=".1" pos=".1 0 0"/></body>
  <body name="arm" pos="0 0 .5"><joint name="lift" type="slide" axis="0 0 1" damping="1"/>
    <geom size=".1" mass="1"/>
    <body pos=".2 0 0"><joint name="turn" axis="0 1 0" damping=".1"/>
      <geom type="capsule" size=".03 .1" pos=".1 0 0"/><site name="tip" pos=".2 .1 0"/></body></body>
  <body name="ball" pos="1 0 .09"><freejoint/><geom size=".1"/><site name="under" size=".12"/></body>
</worldbody>
<actuator>
  <motor joint="idle"/>
  <motor name="held" joint="lift" nsample="4" delay=".01" ctrlrange="-.6 .6"/>
  <general joint="turn" dyntype="filter" dynprm=".03" gainprm="2" nsample="5" delay=".018"
    interp="linear"/>
  <motor joint="turn" nsample="3"/>
  <position joint="turn" kp="3" kv=".2" nsample="6" delay=".0135" interp="cubic"/>
  <motor joint="idle" nsample="2" delay=".008" gear=".3"/>
  <motor joint="lift" nsample="2" delay=".03" gear=".1"/>
  <motor joint="idle" nsample="3" delay=".0015" interp="linear"/>
</actuator>
<sensor>
  <jointpos joint="idle"/>
  <framepos objtype="site" objname="tip" nsample="4" delay=".0105"/>
  <jointpos joint="turn" nsample="3" interval=".01"/>
  <jointvel joint="lift" nsample="6" delay=".017" interp="cubic" interval=".006 -.002"/>
  <framelinvel objtype="site" objname="tip" nsample="3"/>
  <gyro site="tip" nsample="5" delay=".011" interp="linear" cutoff=".4"/>
  <touch site="under" nsample="3" delay=".008"/>
  <accelerometer site="tip" nsample="4" interval=".0101 -.003"/>
  <actuatorfrc actuator="held" nsample="2" delay=".004"/>
  <force site="tip" nsample="3" delay=".009" interp="linear"/>
  <clock nsample="4" delay=".013" interp="linear"/>
  <subtreelinvel body="arm" nsample="3" delay=".007"/>
  <framepos objtype="body" objname="ball" nsample="2" interval=".01"/>
  <velocimeter site="under" nsample="2"/>
  <velocimeter site="under" nsample="2" delay=".004"/>
</sensor>
<keyframe><key time=".1" qpos="0 .1 .2 1 0 .1 1 0 0 0" ctrl="1 2 3 4 5 6 7 8"/></keyframe></mujoco>
"""
WORLDS, STEPS = 3, 40
FIELDS = ("history", "sensordata", "actuator_force", "act", "qpos", "qvel", "qacc")


@cache
def oracle(integrator: str, flags: str = "") -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(MODEL.format(integrator=integrator, flags=flags))


def controls(nu: int) -> np.ndarray:
    return np.random.default_rng(0).normal(size=(STEPS, WORLDS, nu))


def begun(mj: mujoco.MjModel) -> list[mujoco.MjData]:
    """Worlds in motion: one as reset, one from a key frame, one whose time was put back."""
    out = []
    for k in range(WORLDS):
        d = mujoco.MjData(mj)
        if k == 1:
            mujoco.mj_resetDataKeyframe(mj, d, 0)
        d.qvel[:3] = np.random.default_rng(k).normal(size=3)
        if k == 2:
            for _ in range(9):
                d.ctrl[:] += 0.3
                mujoco.mj_step(mj, d)
            d.time -= 0.0222
        out.append(d)
    return out


def ours(m: jaxsim.Model, states: list[mujoco.MjData]) -> jaxsim.Data:
    names = ("time", "qpos", "qvel", "act", "history", "qacc_warmstart", "ctrl", "sensordata")
    empty = jaxsim.make_data(m)
    given = [{n: jnp.asarray(getattr(s, n), empty.qpos.dtype) for n in names} for s in states]
    return stack([empty.replace(**values) for values in given])


@cache
def program(m: jaxsim.Model):
    def advance(d, ctrl):
        d = jax.vmap(jaxsim.step, (None, 0))(m, d.replace(ctrl=ctrl))
        return d, {name: getattr(d, name) for name in FIELDS}

    return jax.jit(lambda d, ctrl: jax.lax.scan(advance, d, ctrl))


def compare(mj: mujoco.MjModel, tolerance: dict, dtype=jnp.float64) -> None:
    m, states, ctrl = put_model(mj), begun(mj), controls(mj.nu)
    _, found = program(m)(ours(m, states), jnp.asarray(ctrl, dtype))
    for step in range(STEPS):
        for k, d in enumerate(states):
            d.ctrl[:] = ctrl[step, k]
            mujoco.mj_step(mj, d)
            for name in FIELDS:
                mine = found[name][step, k]
                at = f"{name}, step {step}, world {k}"
                np.testing.assert_allclose(mine, getattr(d, name), **tolerance, err_msg=at)


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicit", "implicitfast"])
def test_many_steps(integrator):
    compare(oracle(integrator), DYNAMICS)


@pytest.mark.parametrize("flags", ['sensor="disable"', 'actuation="disable"', 'sleep="enable"'])
def test_flags(flags):
    """Buffers are filled whatever is switched off; and where some trees may sleep."""
    compare(oracle("Euler", flags), DYNAMICS)
