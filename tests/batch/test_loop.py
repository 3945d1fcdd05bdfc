"""A world advanced in place is the world that its steps give."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import DYNAMICS

import jaxsim

pytestmark = pytest.mark.kernels

MODEL = """
<mujoco><option timestep=".005"/><size nuserdata="2"/><worldbody>
  <geom name="floor" type="plane" size="3 3 1"/>
  <body pos="0 0 3"><joint name="far" axis="0 1 0" damping=".1"/>
    <geom size=".1" pos=".2 0 0" contype="0" conaffinity="0"/></body>
  <body name="hand" mocap="true" pos="2 0 1"/>
  <body name="ball" pos="0 0 .099"><freejoint/><geom size=".1"/><site name="on" size=".15"/></body>
</worldbody>
<actuator><motor joint="far"/><general joint="far" dyntype="filter" dynprm=".1"/></actuator>
<sensor><jointvel joint="far"/><touch site="on"/></sensor></mujoco>
"""
SOON = "qpos qvel act time sensordata qacc qfrc_constraint xpos xquat actuator_force".split()


def pushed(k: int) -> np.ndarray:
    return np.array([np.sin(0.3 * k), 1 - 0.1 * k])


@pytest.mark.parametrize("keep", ["default", pytest.param("all", marks=pytest.mark.slow)])
def test_control_loop_equals_mujoco(keep):
    mj, m = mujoco.MjModel.from_xml_string(MODEL), jaxsim.load_model(MODEL)
    theirs = mujoco.MjData(mj)
    loop = jaxsim.ControlLoop(m, jaxsim.make_data(m, keep))
    d, arrays = loop.data, jax.tree.leaves(loop.data)
    for k in range(12):
        for one in (theirs, d):
            one.ctrl[:] = pushed(k)
            one.qfrc_applied[1] = 0.2 * k
            one.mocap_pos[0, 2] = 1 + k
            one.userdata[1] = k
        mujoco.mj_step(mj, theirs)
        loop.step()
        for name in (*SOON, "mocap_pos", "userdata"):
            value = getattr(d, name)
            np.testing.assert_allclose(value, getattr(theirs, name), err_msg=name, **DYNAMICS)
    assert d.ncon == theirs.ncon == 1
    assert d.sensordata[1] > 0
    assert all(a is b for a, b in zip(arrays, jax.tree.leaves(loop.data), strict=True))


@pytest.mark.slow
def test_every_array_is_that_of_a_step():
    """And no other state of the caller is touched."""
    m = jaxsim.load_model(MODEL)
    start = jaxsim.make_data(m, "all")
    before = jax.tree.map(np.array, start)
    loop = jaxsim.ControlLoop(m, start.replace(time=0.25))
    loop.data.qvel[0] = 0.5
    loop.step(3)
    d = start.replace(time=0.25, qvel=start.qvel.at[0].set(0.5))
    step = jax.jit(jaxsim.step)
    for _ in range(3):
        d = step(m, d)
    for (path, a), b in zip(
        jax.tree_util.tree_leaves_with_path(loop.data), jax.tree.leaves(d), strict=True
    ):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-10, err_msg=jax.tree_util.keystr(path))
    jax.tree.map(np.testing.assert_array_equal, before, start)


def test_loops_of_a_kind_have_one_program():
    traced = []

    def step(m, d):
        traced.append(m)
        return d.replace(time=d.time + m.opt.timestep, userdata=2 * d.userdata)

    m = jaxsim.load_model(MODEL)
    slow = m.replace(opt=m.opt.replace(timestep=jnp.asarray(0.5)))
    loops = [jaxsim.ControlLoop(one, jaxsim.make_data(one), step) for one in (m, slow)]
    for loop in loops:
        loop.data.userdata[:] = 1
        loop.step(3)
    assert [float(loop.data.time) for loop in loops] == pytest.approx([0.015, 1.5])
    assert all((loop.data.userdata == 8).all() for loop in loops)
    assert len(traced) == 1


def test_unsupported_fields_of_the_loop_are_rejected():
    m = jaxsim.load_model(MODEL)
    d = jaxsim.make_data(m)
    with pytest.raises(ValueError, match="ControlLoop"):
        jaxsim.ControlLoop(m, jaxsim.replicate(d, 3))
    half, other = jnp.float16, jnp.zeros_like(d.time)
    for change, message in (
        (
            lambda d: d.replace_unchecked({"qacc": d.qacc.astype(half)}, native=False),
            r"qacc: float16\[7\] instead of float64",
        ),
        (lambda d: jaxsim.make_data(m, ()), r"xpos: nothing instead of float64\[4, 3\]"),
        (lambda d: other, "time: nothing"),
    ):
        loop = jaxsim.ControlLoop(m, d, lambda _, d, change=change: change(d))
        with pytest.raises(TypeError, match=message):
            loop.step()
    with pytest.raises((TypeError, ValueError), match="count"):
        loop.step(-1)
