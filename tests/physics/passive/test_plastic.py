"""Springs that yield beside MuJoCo, and the law of ideal plasticity."""

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

# The first joint and the first tendon do not yield.
MODEL = """
<mujoco><option timestep=".005" integrator="{integrator}"/>
<option><flag energy="enable" {flags}/></option>
<worldbody><site name="post" pos="0 .2 1"/>
  <body name="idle" pos="2 0 1"><joint name="idle" stiffness="2"/><geom size=".1" pos=".1 0 0"/></body>
  <body name="arm" pos="0 0 .5"><joint name="turn" axis="0 1 0" stiffness="8 1 2" springyield="9"
    springref="-5"/><geom type="capsule" size=".03 .1" pos=".1 0 0"/>
    <body pos=".2 0 0"><joint name="slide" type="slide" axis="1 0 .3" stiffness="40"
      springyield=".03"/><geom size=".05" pos=".1 0 0"/>
      <body pos=".2 0 0"><joint name="ball" type="ball" stiffness="3 1 1" springyield="12"/>
        <geom type="box" size=".05 .08 .03" pos=".1 0 0"/><site name="tip" pos=".1 .05 0"/></body>
    </body></body>
</worldbody>
<tendon>
  <fixed stiffness="2"><joint joint="idle" coef="1"/></fixed>
  <spatial name="cord" stiffness="20 5 3" springyield=".02"><site site="post"/><site site="tip"/>
  </spatial>
  <fixed name="slack" stiffness="9" springyield=".01" springlength="0 .01">
    <joint joint="slide" coef="2"/><joint joint="turn" coef=".5"/></fixed>
  <fixed name="band" stiffness="9" springyield=".03" springlength="-.02 .01">
    <joint joint="slide" coef="1"/><joint joint="idle" coef=".3"/></fixed>
</tendon>
<keyframe><key plastic=".1 .2 2 0 .1 0 1.1 1.2 0 .1 -.1 .3" qpos=".1 .3 .1 1 .3 .1 0"/></keyframe>
</mujoco>
"""
WORLDS, STEPS = 3, 60
FIELDS = ("plastic", "qfrc_spring", "energy", "qpos", "qvel", "qacc", "ten_length")


@cache
def oracle(integrator: str = "Euler", flags: str = "") -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(MODEL.format(integrator=integrator, flags=flags))


def begun(mj: mujoco.MjModel) -> list[mujoco.MjData]:
    out = []
    for k in range(WORLDS):
        d = mujoco.MjData(mj)
        if k == 1:
            mujoco.mj_resetDataKeyframe(mj, d, 0)
        d.qvel[:] = 3 * np.random.default_rng(k).normal(size=mj.nv)
        out.append(d)
    return out


def ours(m: jaxsim.Model, states: list[mujoco.MjData]) -> jaxsim.Data:
    empty = jaxsim.make_data(m, ["qfrc_spring", "energy", "qacc", "ten_length"])
    names = ("time", "qpos", "qvel", "plastic")
    given = [{n: jnp.asarray(getattr(s, n), empty.qpos.dtype) for n in names} for s in states]
    return stack([empty.replace(**values) for values in given])


@cache
def program(m: jaxsim.Model):
    def advance(d, _):
        d = jax.vmap(jaxsim.step, (None, 0))(m, d)
        return d, {name: getattr(d, name) for name in FIELDS}

    return jax.jit(lambda d: jax.lax.scan(advance, d, length=STEPS))


def compare(mj: mujoco.MjModel, tolerance: dict) -> None:
    m, states = put_model(mj), begun(mj)
    start = np.array([d.plastic for d in states])
    _, found = program(m)(ours(m, states))
    for step in range(STEPS):
        for k, d in enumerate(states):
            mujoco.mj_step(mj, d)
            for name in FIELDS:
                mine, at = found[name][step, k], f"{name}, step {step}, world {k}"
                np.testing.assert_allclose(mine, getattr(d, name), **tolerance, err_msg=at)
    moved = (np.asarray(found["plastic"][-1]) != start).any(axis=0)
    assert moved.all() != bool(mj.opt.disableflags)


@pytest.mark.parametrize("integrator", ["Euler", "RK4", "implicit", "implicitfast"])
def test_many_steps(integrator):
    compare(oracle(integrator), DYNAMICS)


@pytest.mark.parametrize("flags", ['spring="disable"', 'sleep="enable"'])
def test_flags(flags):
    compare(oracle("Euler", flags), DYNAMICS)
