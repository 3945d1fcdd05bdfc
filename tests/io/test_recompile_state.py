"""A Spec that did not change, compiled again: steps go on to the bit, in single precision too."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.spec import Spec

# delays, sampled sensors, activations, springs that yield, mocap, userdata, a plugin, sleep
BODIES = """<mujoco><option timestep="0.003"/>{flag}<size nuserdata="2"/>
<extension><plugin plugin="mujoco.pid"><instance name="pid">
  <config key="kp" value="4"/><config key="ki" value="3"/><config key="kd" value=".1"/>
  <config key="imax" value="2"/></instance></plugin></extension>
<worldbody><geom type="plane" size="5 5 .1"/>
<body name="a" pos="0 0 1"><joint name="ja" axis="0 1 0" stiffness="20" springyield=".05"/>
  <geom size=".1" pos=".3 0 0"/><body pos=".4 0 0"><joint name="jb" axis="0 1 0" damping=".1"/>
  <geom size=".05" pos=".2 0 0"/></body></body>
<body name="free" pos="2 0 .099"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
<body name="mo" mocap="true" pos="0 2 0"><geom size=".1" contype="0" conaffinity="0"/></body>
</worldbody>
<actuator><general name="i" joint="ja" dyntype="filter" dynprm=".1" delay=".0105" nsample="6"
  interp="linear"/><plugin joint="jb" plugin="mujoco.pid" instance="pid" actdim="1"/></actuator>
<sensor><jointpos name="s" joint="jb" delay=".0105" nsample="7" interval=".006 0"/>
  <clock/></sensor></mujoco>"""
FLEX = """<mujoco><option timestep="0.002"/><worldbody><geom type="plane" size="1 1 .1"/>
<flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" pos="0 0 .2" radius=".01" dim="2">
<edge equality="true" damping=".1"/></flexcomp></worldbody></mujoco>"""
SLEEP = '<option><flag sleep="enable"/></option>'
MODELS = {"bodies": BODIES.format(flag=""), "flex": FLEX, "sleep": BODIES.format(flag=SLEEP)}
CARRIED = (
    *("time", "time_low", "qpos", "qvel", "act", "history", "history_low", "plastic"),
    *("plugin_state", "qacc_warmstart", "sensordata", "mocap_pos", "userdata", "tree_asleep"),
)


@pytest.mark.parametrize(
    "name",
    [
        "bodies",
        pytest.param("flex", marks=pytest.mark.slow),
        pytest.param("sleep", marks=pytest.mark.slow),
    ],
)
def test_an_unchanged_spec_goes_on_to_the_bit(name):
    with jax.enable_x64(False):
        spec = Spec.from_string(MODELS[name])
        m = jaxsim.load_model(spec)
        step = jax.jit(jaxsim.step)
        d = jaxsim.make_data(m)
        d = d.replace(time=jnp.float32(1000.0), qvel=d.qvel + 0.3)
        if m.nmocap:
            d = d.replace(mocap_pos=d.mocap_pos + 0.5, userdata=jnp.array([1.0, 2.0]))

        def go(m, d, first, last):
            for k in range(first, last):
                d = step(m, d.replace(ctrl=jnp.full(m.nu, np.sin(k), jnp.float32)))
            return d

        halfway = go(m, d, 0, 25)
        if name != "flex":
            assert halfway.time_low != 0  # what was lost
            assert np.any(halfway.history_low)
            assert np.any(halfway.plastic)
            assert np.all(halfway.act)
        new, again = jaxsim.recompile(spec, m, halfway)
        assert new.structure == m.structure
        whole, divided = go(m, halfway, 25, 60), go(new, again, 25, 60)
        for field in CARRIED:
            mine, theirs = getattr(divided, field), getattr(whole, field)
            np.testing.assert_array_equal(mine, theirs, err_msg=field)
