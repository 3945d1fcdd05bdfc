"""The checks of a state, one by one, count and reset as MuJoCo's do."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import inputs, random_state, stack, world
from tolerance import SOLVER

import jaxsim
from jaxsim.enums import WarningType
from jaxsim.model.data import Data

pytestmark = pytest.mark.kernels

# The second body is moved from outside; the joint of the third has an initial angle.
XML = """<mujoco><option><flag autoreset="{autoreset}"/></option><size nuserdata="2"/><worldbody>
  <geom type="plane" size="2 2 1"/>
  <body pos="0 0 .099"><freejoint/><geom size=".1"/><site name="s"/></body>
  <body name="hand" mocap="true" pos="0 1 1"/>
  <body name="arm" pos="1 0 1"><joint name="h" ref="20"/><geom size=".1" pos=".2 0 0"/></body>
  </worldbody>
<equality><weld body1="hand" body2="arm" active="false"/></equality>
<actuator><general joint="h" dyntype="filter" dynprm=".1"/></actuator>
<sensor><gyro site="s"/><jointpos joint="h"/></sensor></mujoco>"""
CHECKS = {
    "qpos": (jaxsim.stages.check_pos, mujoco.mj_checkPos, WarningType.BADQPOS),
    "qvel": (jaxsim.stages.check_vel, mujoco.mj_checkVel, WarningType.BADQVEL),
    "qacc": (jaxsim.stages.check_acc, mujoco.mj_checkAcc, WarningType.BADQACC),
}
VALUES = (np.nan, np.inf, -2e10, 9e9)  # the last one is valid, the others are bad
jit = partial(jax.jit, compiler_options={"xla_backend_optimization_level": 0})


@cache
def scene(autoreset: str):
    """Return the models, MuJoCo's states after the forward dynamics, and the same worlds here."""
    mj = mujoco.MjModel.from_xml_string(XML.format(autoreset=autoreset))
    m = jaxsim.put_model(mj)
    states = [random_state(mj, seed, spread=0.01) for seed in range(len(VALUES))]
    worlds = stack([inputs(m, s, "all") for s in states])
    return mj, m, states, jit(jax.vmap(jaxsim.forward, (None, 0)))(m, worlds)


def fields(d: Data, theirs: mujoco.MjData):
    """Yield the name, our value and MuJoCo's value of the fields that both have."""
    for name in Data.fields:
        ours, expected = getattr(d, name), getattr(theirs, name, None)
        if not isinstance(ours, jax.Array) or not isinstance(expected, np.ndarray | float | int):
            continue
        if np.size(expected) == ours.size:
            yield name, ours, np.reshape(expected, ours.shape)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n != "qacc" else n for n in CHECKS]
)
def test_bad_world_is_reset_as_in_mujoco(name):
    ours, theirs, kind = CHECKS[name]
    mj, m, states, d = scene("enable")
    bad = d.replace(**{name: getattr(d, name).at[:, -1].set(jnp.array(VALUES))})
    found = jit(jax.vmap(ours, (None, 0)))(m, bad)
    for k, (state, number) in enumerate(zip(states, VALUES, strict=True)):
        one, expected = world(found, k), mujoco.MjData(mj)
        mujoco.mj_copyData(expected, mj, state)
        getattr(expected, name)[-1] = number
        theirs(mj, expected)
        counts = np.array([w.number for w in expected.warning])
        np.testing.assert_array_equal(one.warning, counts)
        np.testing.assert_array_equal(one.warning_lastinfo, [w.lastinfo for w in expected.warning])
        assert counts[kind] == (number != VALUES[-1])
        if not counts[kind]:
            for a, b in zip(jax.tree.leaves(one), jax.tree.leaves(world(bad, k)), strict=True):
                np.testing.assert_array_equal(a, b)
            continue
        compared = set()
        for field, a, b in fields(one, expected):
            if field in NOT_COMPARED:
                continue
            np.testing.assert_allclose(a, b, rtol=0, atol=10 * SOLVER["atol"], err_msg=field)
            compared.add(field)
        assert compared >= {"qpos", "qvel", "time", "act", "ctrl", "mocap_pos", "userdata", "xpos"}
        assert compared >= {"qacc", "sensordata", "eq_active", "qfrc_applied", "ncon"}


# Diagnostics of the solver, fields stored in another form, fields that MuJoCo computes on request.
NOT_COMPARED = {
    *("solver_niter", "warning", "qLD", "M"),
    *("cacc", "cfrc_int", "cfrc_ext", "subtree_linvel", "subtree_angmom", "energy"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", CHECKS)
def test_without_autoreset_a_bad_world_is_only_counted(name):
    ours, theirs, kind = CHECKS[name]
    mj, m, states, d = scene("disable")
    one = world(d, 0)
    bad = one.replace(**{name: getattr(one, name).at[0].set(jnp.nan)})
    found, expected = jit(ours)(m, bad), mujoco.MjData(mj)
    mujoco.mj_copyData(expected, mj, states[0])
    getattr(expected, name)[0] = np.nan
    theirs(mj, expected)
    np.testing.assert_array_equal(found.warning, [w.number for w in expected.warning])
    assert found.warning[kind] == 1
    same = found.replace(warning=bad.warning, warning_lastinfo=bad.warning_lastinfo)
    for a, b in zip(jax.tree.leaves(same), jax.tree.leaves(bad), strict=True):
        np.testing.assert_array_equal(a, b)


def test_gradient_passes_a_valid_world_and_not_a_reset_one():
    _, m, _, d = scene("enable")
    one = world(d, 0)

    @jit
    @jax.grad
    def slope(qvel, last):
        new = jaxsim.stages.check_vel(m, one.replace(qvel=qvel.at[-1].set(last)))
        return jnp.sum(new.qvel)

    np.testing.assert_array_equal(slope(one.qvel, 1.0), [*[1] * (m.nv - 1), 0])
    np.testing.assert_array_equal(slope(one.qvel, jnp.nan), np.zeros(m.nv))
