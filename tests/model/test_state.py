"""State vectors selected by MuJoCo's bits, copies of parts, and resets of some worlds."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.enums import State

MODEL = """<mujoco><size nuserdata="2"/><worldbody>
<body><joint name="a" stiffness="1" springyield=".1"/><geom size=".1"/></body>
<body pos="1 0 0"><freejoint/><geom size=".1"/></body><body mocap="true" pos="0 1 0"/></worldbody>
<equality><joint joint1="a" active="false"/></equality>
<actuator><general joint="a" dyntype="filter" dynprm=".1" nsample="3" delay=".01"/></actuator>
</mujoco>"""


def pair(seed: int):
    """Return a model and a random state of MuJoCo, and both as Model and Data."""
    mj = mujoco.MjModel.from_xml_string(MODEL)
    mjd, rng = mujoco.MjData(mj), np.random.default_rng(seed)
    spec = int(State.INTEGRATION)
    numbers = rng.normal(size=mujoco.mj_stateSize(mj, spec))
    mujoco.mj_setState(mj, mjd, numbers, spec)
    m = jaxsim.put_model(mj)
    d = jaxsim.set_state(m, jaxsim.make_data(m), jnp.asarray(numbers), spec)
    return mj, mjd, m, d


@pytest.mark.parametrize("spec", [*State, State.PHYSICS, State.FULLPHYSICS, State.USER])
def test_every_part_equals_mujoco(spec):
    mj, mjd, m, d = pair(0)
    theirs = np.zeros(mujoco.mj_stateSize(mj, int(spec)))
    mujoco.mj_getState(mj, mjd, theirs, int(spec))
    assert jaxsim.state_size(m, spec) == len(theirs)
    np.testing.assert_array_equal(jaxsim.get_state(m, d, spec), theirs)


def test_parts_are_copied_and_extracted():
    mj, mjd, m, d = pair(1)
    _, other, _, dst = pair(2)
    spec, part = State.INTEGRATION, State.HISTORY | State.PLASTIC | State.CTRL | State.MOCAP_QUAT
    mujoco.mj_copyState(mj, mjd, other, int(part))
    dst = jaxsim.copy_state(m, d, dst, part)
    theirs = np.zeros(mujoco.mj_stateSize(mj, int(spec)))
    mujoco.mj_getState(mj, other, theirs, int(spec))
    np.testing.assert_array_equal(jaxsim.get_state(m, dst, spec), theirs)
    taken = np.zeros(mujoco.mj_stateSize(mj, int(part)))
    mujoco.mj_extractState(mj, theirs, int(spec), taken, int(part))
    found = jaxsim.extract_state(m, jnp.asarray(theirs), spec, part)
    np.testing.assert_array_equal(found, taken)
    with pytest.raises(ValueError, match=r"dstspec: <State.QPOS: 2> is not in the vector; take it"):
        jaxsim.extract_state(m, found, part, State.QPOS)
    with pytest.raises(ValueError, match=r"src: expected shape"):
        jaxsim.extract_state(m, found[1:], part, State.CTRL)


def test_selected_worlds_are_reset():
    """Under jit too; the warning counters of the others are kept."""
    _, _, m, d = pair(3)
    worlds = jaxsim.replicate(d.replace(warning=d.warning.at[2].set(5)), 4)
    where = jnp.array([False, True, False, True])
    after = jax.jit(jaxsim.reset_data)(m, worlds, where)
    start = jaxsim.make_data(m)
    for k, begins in enumerate(where):
        expected = start if begins else worlds[k]
        jax.tree.map(np.testing.assert_array_equal, after[k], expected)
    one = jaxsim.reset_data(m, d, where=jnp.array(True))
    jax.tree.map(np.testing.assert_array_equal, one, start)
