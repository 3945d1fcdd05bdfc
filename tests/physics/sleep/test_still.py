"""Steps through which everything sleeps: a shorter program, which nobody can tell from the other."""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sleepers import Twins, of_text

import jaxsim
from jaxsim.physics.arrays.native import worlds
from jaxsim.physics.integrate import step as step_file
from jaxsim.physics.sleep.still import may_skip, nothing_stirs

ROOM = """
<mujoco>
  <option {option}><flag sleep="enable" energy="enable"/></option>
  <worldbody>
    <geom name="floor" type="plane" size="3 3 .1"/>
    <site name="nail" pos="3 0 2"/><site name="spot" size=".5"/>
    <geom name="fixed" pos="0 2 .5" size=".1"/>
    <body name="low" pos="0 0 .1005"><joint type="slide" axis="0 0 1"/><geom size=".1"/>
      <site name="low" size=".2"/></body>
    <body name="high" pos="0 0 .301"><joint type="slide" axis="0 0 1"/><geom size=".1"/></body>
    <body name="arm" pos="2 0 1" sleep="allowed"><joint name="arm" axis="0 1 0" damping=".2"/>
      <geom size=".1" pos="0 0 -.2"/><site name="arm" pos="0 0 -.2"/></body>
    <body name="left" pos="-1 0 1"><joint name="left" axis="0 1 0" damping=".1"/>
      <geom size=".1" pos="0 0 -.2"/></body>
    <body name="right" pos="-1 1 1" sleep="init"><joint name="right" axis="0 1 0" damping=".1"/>
      <geom size=".1" pos="0 0 -.2"/></body>
    <body name="hand" mocap="true" pos="0 -2 1"><geom name="hand" size=".1"/>
      <site name="hand"/></body>
  </worldbody>
  <contact><pair geom1="fixed" geom2="hand"/></contact>
  <tendon>
    <fixed name="rope" range="-.2 .02" limited="true">
      <joint joint="left" coef="1"/><joint joint="right" coef="1"/></fixed>
    <spatial name="wire" stiffness=".2" damping=".1" springlength=".5">
      <site site="nail"/><site site="arm"/></spatial>
    <spatial name="line" stiffness=".2"><site site="nail"/><site site="hand"/></spatial>
  </tendon>
  <equality>
    <connect name="grip" body1="high" body2="hand" anchor="0 0 0" active="false" solref=".1 1"/>
  </equality>
  <actuator>
    <general name="slow" joint="arm" dyntype="filter" dynprm=".5" gainprm="1e-4"/>
    <position joint="arm" kp=".01" nsample="3" delay=".004"/>
    <general tendon="line" dyntype="integrator" actlimited="true" actrange="0 1"/>
  </actuator>
  <sensor>
    <clock/> <accelerometer site="arm"/> <touch site="low"/> <velocimeter site="arm"/>
    <jointpos joint="left" nsample="4" delay=".006"/> <tendonpos tendon="line"/>
    <actuatorfrc actuator="slow"/> <framepos objtype="body" objname="hand"/>
    <contact geom1="floor" data="found force"/> <contact site="spot" data="found dist normal"/>
    <distance geom1="fixed" geom2="hand" cutoff="9"/> <e_potential/>
    <force site="arm"/> <subtreelinvel body="arm"/>
  </sensor>
</mujoco>
"""
HIGH, ARM = 1, 2


@cache
def room(option: str = "") -> Twins:
    return of_text(ROOM.format(option=option), keep="all")


@cache
def longer():
    """A step that has no shorter program."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(step_file, "may_skip", lambda m: False)
        whole = jax.jit(worlds(step_file.step))
        whole(room().m, room().d)
    return whole


@jax.jit
def sleeps_on(m, d):
    core = worlds(lambda m, d: nothing_stirs(m, d).astype(jnp.int32)[None])
    return core(m, d)[0]


# what is done at which step: a field, an index, a value
STORY = {
    60: ("ctrl", 2, 0.5),  # the actuator of what is no part of a tree goes on
    64: ("ctrl", 0, 2.0),  # that of the arm sleeps with it
    68: ("mocap_pos", (0, 0), 0.5),
    72: ("mocap_pos", (0, slice(None)), (0.0, 1.85, 0.5)),  # touches the fixed geom
    76: ("mocap_pos", (0, slice(None)), (0.0, -1.0, 0.5)),
    80: ("ctrl", 1, np.nan),  # a bad control, which is put back
    82: ("ctrl", 1, 0.0),
    84: ("xfrc_applied", (2, 2), 1e-3),
    85: ("xfrc_applied", (2, 2), 0.0),
    110: ("mocap_pos", (0, slice(None)), (0.0, 0.15, 0.35)),  # touches "high"
    111: ("mocap_pos", (0, slice(None)), (0.0, -1.0, 0.35)),
    140: ("eq_active", 0, True),
}


def test_a_story_of_sleep():
    """Equal to MuJoCo at every step, and to the longer program in everything that is kept."""
    twins, asleep = room(), []
    assert may_skip(twins.m)
    for i in range(150):
        if i in STORY:
            twins.change(*STORY[i])
        before = twins.d
        asleep.append(bool(sleeps_on(twins.m, before)))
        twins.run(1)
        if i % 4 == 0 or i in STORY or asleep[-1] != asleep[i - 1]:
            same_in_everything(twins.d, longer()(twins.m, before))
    print([i for i in range(1, 150) if asleep[i] != asleep[i - 1]])
    assert 20 < sum(asleep[:84]) and 5 < sum(asleep[86:110]) and 5 < sum(asleep[112:140])
    assert not (asleep[72] or asleep[84] or asleep[110] or asleep[140])
    assert asleep[60] and asleep[64] and asleep[68] and asleep[80]


def same_in_everything(d, other):
    """Only the longer program asks the solver, which may look once at what is solved, and looks for
    contacts, whose places past the last it leaves as it finds them."""
    assert int(other.ncon) == int(d.ncon)
    contact = other.contact if int(d.ncon) else d.contact
    other = other.replace(solver_niter=d.solver_niter, contact=contact)
    for path, a in jax.tree_util.tree_leaves_with_path(d):
        b = dict(jax.tree_util.tree_leaves_with_path(other))[path]
        np.testing.assert_allclose(a, b, err_msg=jax.tree_util.keystr(path), rtol=0, atol=1e-13)
