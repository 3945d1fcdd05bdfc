"""Recompiling a changed Spec keeps the state of the remaining objects, as `mj_recompile` does."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import ROUNDING

import jaxsim
from jaxsim.spec import Spec

XML = """
<mujoco>
  <option timestep="0.01"/>
  <size nuserdata="3"/>
  <worldbody>
    <body name="a" pos="0 0 1"><freejoint/><geom size=".1"/></body>
    <body name="b" pos="1 0 1"><joint name="jb" axis="0 1 0"/><geom size=".1" pos=".2 0 0"/></body>
    <body name="mo" mocap="true" pos="0 2 0"><geom size=".1"/></body>
    <body name="mp" mocap="true" pos="0 3 0"><geom size=".1"/></body>
    <body name="c" pos="3 0 1"><joint name="jc" type="ball"/><geom size=".1" pos=".2 0 0"/></body>
  </worldbody>
  <equality>
    <connect name="e1" body1="a" body2="b" anchor="0 0 0"/>
    <joint name="e2" joint1="jb" active="false"/>
  </equality>
  <actuator>
    <general name="u1" joint="jb" dyntype="integrator"/>
    <motor name="u2" joint="jb"/>
    <general name="u3" joint="jb" dyntype="filter" dynprm="1" delay=".03" nsample="4"/>
  </actuator>
  <sensor>
    <jointpos name="s1" joint="jb" delay=".05" nsample="6"/>
    <framequat name="s2" objtype="body" objname="c" delay=".02" nsample="3"/>
  </sensor>
</mujoco>
"""
FIELDS = (
    *("time", "qpos", "qvel", "act", "ctrl", "history", "mocap_pos", "mocap_quat", "eq_active"),
    *("qfrc_applied", "xfrc_applied", "qacc_warmstart", "userdata"),
)


def state(m):
    """Return a state of MuJoCo whose numbers all differ."""
    d = mujoco.MjData(m)
    chance = np.random.default_rng(0)
    for _ in range(12):
        d.ctrl = chance.normal(size=m.nu)
        mujoco.mj_step(m, d)
    d.mocap_pos += chance.normal(size=d.mocap_pos.shape)
    d.mocap_quat = chance.normal(size=d.mocap_quat.shape)
    d.eq_active = [0, 1]
    for name in ("qfrc_applied", "xfrc_applied", "userdata", "qacc_warmstart"):
        value = getattr(d, name)
        value[...] = chance.normal(size=value.shape)
    return d


def ours(m, d):
    """Return the same state as a Data."""
    here = jaxsim.make_data(m)
    return here.replace(**{n: jnp.asarray(getattr(d, n), getattr(here, n).dtype) for n in FIELDS})


# Each function makes the same change to a Spec and to an MjSpec.
def add_body(spec, theirs):
    body = spec.at("worldbody").add("body", name="n", pos=[5, 5, 5])
    body.add("joint")
    body.add("geom", size=0.1)
    body = theirs.worldbody.add_body(name="n", pos=[5, 5, 5])
    body.add_joint()
    body.add_geom(size=[0.1, 0, 0])


def add_joint(spec, theirs):
    spec["body", "b"].add("joint", type="slide", axis=[0, 0, 1])
    theirs.body("b").add_joint(type=mujoco.mjtJoint.mjJNT_SLIDE, axis=[0, 0, 1])


def delete_mocap_and_actuator(spec, theirs):
    spec.delete(spec["body", "mo"])
    spec.delete(spec["actuator", "u1"])
    theirs.delete(theirs.body("mo"))
    theirs.delete(theirs.actuator("u1"))


def delete_body(spec, theirs):
    spec.delete(spec["body", "a"])
    theirs.delete(theirs.body("a"))


def delete_sensor_and_equality(spec, theirs):
    spec.delete(spec["sensor", "s1"])
    spec.delete(spec["equality", "e1"])
    theirs.delete(theirs.sensor("s1"))
    theirs.delete(theirs.equality("e1"))


def change_numbers(spec, theirs):
    spec["body", "b"].set("pos", [7, 0, 1])
    spec["body", "a"].find("geom").set("size", 0.2)
    theirs.body("b").pos = [7, 0, 1]
    theirs.body("a").geoms[0].size = [0.2, 0, 0]


CHANGES = (
    *(add_body, add_joint, delete_mocap_and_actuator, delete_body, delete_sensor_and_equality),
    change_numbers,
)


@pytest.mark.short("add_body", "delete_mocap_and_actuator", "delete_sensor_and_equality")
@pytest.mark.parametrize("change", CHANGES)
def test_recompiled_state_equals_mujoco(change):
    theirs, spec = mujoco.MjSpec.from_string(XML), Spec.from_string(XML)
    m0, m = theirs.compile(), jaxsim.load_model(spec)
    d0 = state(m0)
    d = ours(m, d0)
    change(spec, theirs)
    m1, d1 = theirs.recompile(m0, d0)
    new, after = jaxsim.recompile(spec, m, d)
    assert new.nq == m1.nq
    for name in FIELDS:
        there = np.asarray(getattr(d1, name), float)
        here = np.asarray(getattr(after, name), float)
        np.testing.assert_allclose(here, there, **ROUNDING, err_msg=name)
    if change is add_joint:
        mujoco.mj_step(m1, d1)
        end = jax.jit(jaxsim.step)(new, after)
        np.testing.assert_allclose(end.qpos, d1.qpos, atol=1e-9)


def test_names_may_change_and_the_spec_may_be_copied():
    spec = Spec.from_string(XML)
    m = jaxsim.load_model(spec)
    d = jaxsim.make_data(m).replace(qpos=jnp.arange(float(m.nq)))
    copy = spec.copy()
    for changed in (spec, copy):
        changed.rename("joint", "jb", "other")
        changed.delete(changed["body", "a"])
        _, after = jaxsim.recompile(changed, m, d)
        np.testing.assert_array_equal(after.qpos, d.qpos[7:])


def test_objects_without_names_are_known_by_their_elements():
    spec = Spec()
    world = spec.at("worldbody")
    bodies = [world.add("body", pos=[x, 0, 0]) for x in range(3)]
    for body in bodies:
        body.add("joint")
        body.add("geom", size=0.1)
    m = jaxsim.load_model(spec)
    d = jaxsim.make_data(m).replace(qpos=jnp.array([1.0, 2, 3]))
    spec.delete(bodies[0])
    world.adopt(bodies[1].copy())  # a copy starts again
    _, after = jaxsim.recompile(spec, m, d)
    np.testing.assert_array_equal(after.qpos, [2, 3, 0])


def test_copies_of_a_replicate_are_told_apart():
    text = """<mujoco><worldbody><replicate count="2" offset="0 1 0">
      <body><joint/><geom size=".1"/></body></replicate></worldbody></mujoco>"""
    spec = Spec.from_string(text)
    m = jaxsim.load_model(spec)
    d = jaxsim.make_data(m).replace(qpos=jnp.array([1.0, 2]))
    next(e for e in spec.walk() if e.tag == "replicate").set("count", 3)
    _, after = jaxsim.recompile(spec, m, d)
    np.testing.assert_array_equal(after.qpos, [1, 2, 0])


def test_another_spec_is_matched_by_names():
    m = jaxsim.load_model(XML.replace("<freejoint/>", '<freejoint name="ja"/>'))
    d = jaxsim.make_data(m).replace(qvel=jnp.arange(float(m.nv)))
    spec = Spec.from_string(XML.replace("<freejoint/>", '<freejoint name="ja"/>'))
    spec.delete(spec["joint", "jb"])
    _, after = jaxsim.recompile(spec, m, d)
    np.testing.assert_array_equal(after.qvel, [0, 1, 2, 3, 4, 5, 7, 8, 9])
    with pytest.raises(ValueError, match="its joint 0 has no name to find it by; load_model"):
        jaxsim.recompile(Spec.from_string(XML), jaxsim.load_model(XML), d)


def test_an_object_of_another_size_starts_again():
    spec = Spec.from_string(XML)
    m = jaxsim.load_model(spec)
    d = jaxsim.make_data(m).replace(qpos=jnp.arange(float(m.nq)))
    spec["joint", "jc"].set("type", "hinge")
    _, after = jaxsim.recompile(spec, m, d)
    np.testing.assert_array_equal(after.qpos, [*range(8), 0])


def test_many_worlds_and_kept_fields():
    spec = Spec.from_string(XML)
    m = jaxsim.load_model(spec, contacts=7)
    d = jaxsim.replicate(jaxsim.make_data(m, keep=["cinert"]), 4)
    d = d.replace(qpos=d.qpos + jnp.arange(4.0)[:, None])
    spec.delete(spec["body", "a"])
    new, after = jaxsim.recompile(spec, m, d, contacts=7)
    assert after.cinert.shape[0] == 4
    assert new.ncontact == 7
    np.testing.assert_array_equal(after.qpos, d.qpos[:, 7:])
    assert {a.shape[0] for a in jax.tree.leaves(after)} == {4}


PILE = """
<mujoco><option><flag sleep="enable"/></option><worldbody>
  <geom type="plane" size="5 5 1"/>
  <body name="a" pos="0 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body name="b" pos="0 0 .3"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body name="c" pos="2 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
</worldbody></mujoco>
"""


@pytest.mark.parametrize(("gone", "left"), [("c", [1, 0]), ("a", [-11, 1]), (None, [1, 0, 2])])
def test_trees_sleep_on_with_all_that_sleep_with_them(gone, left):
    spec = Spec.from_string(PILE)
    m = jaxsim.load_model(spec)
    d = jaxsim.make_data(m)
    d = d.replace(tree_asleep=jnp.array([1, 0, 2], d.tree_asleep.dtype))
    if gone:
        spec.delete(spec["body", gone])
    _, after = jaxsim.recompile(spec, m, d)
    np.testing.assert_array_equal(after.tree_asleep, left)
