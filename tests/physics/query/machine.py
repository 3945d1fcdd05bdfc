"""A small machine with every kind of joint, for the query functions of a state.

Two trees and a body fixed to the world; a branch whose second arm comes after a deeper one, two
joints in one body, a body without mass, and objects that are not in their bodies' frames.
"""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
from states import inputs, random_state, stack

from jaxsim.io.bridge import put_model

XML = """
<mujoco>
  <option gravity="0.3 -0.2 -9.8" timestep="0.004"><flag contact="disable"/></option>
  <worldbody>
    <body name="fixed" pos="0.5 0 0" euler="10 20 30"><geom size="0.1"/><site name="w"/></body>
    <body name="arm" pos="0 0 1">
      <joint name="a" axis="0 1 0" armature="0.01" damping="0.1"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0.3 0 0.1"/>
      <body name="hand" pos="0.3 0 0.1" euler="0 30 0">
        <joint name="b" type="ball" damping="0.02"/>
        <geom type="box" size="0.1 0.05 0.02" pos="0.1 0 0"/>
        <site name="s" pos="0.1 0.1 0" euler="40 0 10"/>
        <body name="tip" pos="0.2 0 0"/>
      </body>
      <body name="rail" pos="0 0.2 0">
        <joint name="c" type="slide" axis="1 0 1" stiffness="5"/>
        <joint name="e" axis="0 0 1" pos="0.05 0 0" range="-30 30"/>
        <geom size="0.06" pos="0 0.1 0"/>
        <camera name="cam" pos="0.1 0 0.1" mode="targetbody" target="hand"/>
      </body>
    </body>
    <body name="free" pos="1 1 1">
      <freejoint/>
      <geom type="ellipsoid" size="0.1 0.2 0.15" pos="0.1 0 0.05" euler="20 10 0"/>
      <body name="tail" pos="0.2 0 0">
        <joint name="f" axis="1 1 0" frictionloss="0.1"/><geom size="0.05" pos="0.1 0.1 0"/>
      </body>
    </body>
  </worldbody>
  <tendon>
    <fixed name="t" armature="0.1"><joint joint="a" coef="1"/><joint joint="c" coef="2"/></fixed>
  </tendon>
  <equality><joint joint1="a" joint2="f" polycoef="0.1 0.5 0.2 0 0"/></equality>
  <actuator>
    <motor joint="a" gear="2" ctrlrange="-1 1"/>
    <position joint="e" kp="3" timeconst="0.05"/>
    <motor joint="b" gear="1 2 3"/>
  </actuator>
  <sensor><gyro site="s"/><accelerometer site="s"/><jointactuatorfrc joint="e"/></sensor>
</mujoco>
"""
STATES = 3


def oracle() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(XML)


def machine():
    """The oracle's model and states, ours, and the worlds of these states."""
    mj = oracle()
    states = [random_state(mj, seed) for seed in range(STATES)]
    for state in states:
        # forces of the dynamics make the acceleration; a random one tests what depends on it
        state.qacc[:] = np.random.default_rng(7).normal(size=mj.nv)
        mujoco.mj_rnePostConstraint(mj, state)
    m = put_model(mj)
    worlds = [inputs(m, s).replace(qacc=jnp.asarray(s.qacc)) for s in states]
    return mj, states, m, stack(worlds)


def in_all_worlds(function, *axes):
    """A function `(m, d, ...)` of all worlds, compiled once."""
    return jax.jit(jax.vmap(function, (None, 0, *axes)))
