"""The plugin `mujoco.pid` equals MuJoCo's, with all settings and dyntypes, alone and shared."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.derivative import transition
from jaxsim.errors import ModelError

MODEL = """
<mujoco><option timestep=".004" integrator="{integrator}"><flag clampctrl="{clamp}"/></option>
<extension><plugin plugin="mujoco.pid"><instance name="both"><config key="kp" value="2"/>
  <config key="ki" value="1"/><config key="imax" value=".1"/></instance></plugin></extension>
<worldbody>
  <body><joint name="a" damping=".1" axis="0 1 0"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
    <body pos=".3 0 0"><joint name="b" damping=".1" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/></body></body>
</worldbody>
<actuator>
  <position joint="b" kp="2" timeconst=".1"/>
  <plugin plugin="mujoco.pid" joint="b" actdim="3" dyntype="filter" dynprm=".2" ctrlrange="-2 2"
    actearly="true" forcerange="-3 3"><config key="kp" value="3"/><config key="ki" value="4"/>
    <config key="kd" value=".2"/><config key="slewmax" value=".5"/>
    <config key="imax" value=".3"/></plugin>
  <plugin plugin="mujoco.pid" joint="a" ctrlrange="-.5 .5" group="2"><config key="kp" value="3"/>
  </plugin>
  <plugin instance="both" joint="b" actdim="1"/>
  <plugin plugin="mujoco.pid" joint="a" actdim="2" dyntype="integrator" actrange="-.3 .3" gear="2">
    <config key="kp" value="3"/><config key="kd" value=".1"/><config key="slewmax" value="2"/>
  </plugin>
  <plugin instance="both" joint="a" actdim="1" gear=".5"/>
  <plugin plugin="mujoco.pid" joint="a" actdim="1" dyntype="filterexact" dynprm=".1"/>
</actuator>
</mujoco>
"""
FIELDS = ("qpos", "qvel", "act", "act_dot", "actuator_force", "qfrc_actuator", "qacc")


@pytest.mark.short("RK4-disable-0")
@pytest.mark.parametrize(
    ("integrator", "clamp", "off"),
    [("Euler", "enable", 0), ("RK4", "disable", 0), ("implicitfast", "enable", 4)],
)
def test_motion_is_that_of_mujoco(integrator, clamp, off):
    """Also in a group that is switched off, which MuJoCo does not ask about for plugins."""
    xml = MODEL.format(integrator=integrator, clamp=clamp)
    mj = mujoco.MjModel.from_xml_string(xml)
    mj.opt.disableactuator = off
    theirs = mujoco.MjData(mj)
    m = jaxsim.load_model(xml).tree_replace({"opt.disableactuator": off})
    d, step = jaxsim.make_data(m), jax.jit(jaxsim.step)
    rng = np.random.default_rng(0)
    for _ in range(30):
        theirs.ctrl[:] = rng.uniform(-3, 3, mj.nu)
        mujoco.mj_step(mj, theirs)
        d = step(m, d.replace(ctrl=theirs.ctrl))
        for field in FIELDS:
            np.testing.assert_allclose(
                getattr(d, field), getattr(theirs, field), rtol=1e-9, atol=1e-9, err_msg=field
            )
    assert np.abs(theirs.act).min() > 1e-3


@pytest.mark.slow
def test_transition_matrices_see_the_activations_of_a_plugin():
    """MuJoCo has them by differences of its own plugin."""
    xml = MODEL.format(integrator="Euler", clamp="enable")
    mj = mujoco.MjModel.from_xml_string(xml)
    theirs = mujoco.MjData(mj)
    theirs.ctrl[:] = np.linspace(-0.3, 0.4, mj.nu)
    for _ in range(5):
        mujoco.mj_step(mj, theirs)
    n = 2 * mj.nv + mj.na
    A, B = np.zeros((n, n)), np.zeros((n, mj.nu))
    mujoco.mjd_transitionFD(mj, theirs, 1e-6, 1, A, B, None, None)
    m = jaxsim.load_model(xml)
    fields = ("time", "qpos", "qvel", "act", "ctrl", "qacc_warmstart")
    d = jaxsim.make_data(m).replace(**{f: jnp.asarray(getattr(theirs, f)) for f in fields})
    ours = jax.jit(transition)(m, d)
    np.testing.assert_allclose(ours.A, A, atol=2e-7)
    np.testing.assert_allclose(ours.B, B, atol=2e-7)
    of_act = slice(2 * mj.nv, n)
    assert np.abs(A[of_act, of_act] - np.eye(mj.na)).max() > 1e-3


@pytest.mark.slow
def test_gains_are_derived_and_differ_from_world_to_world():
    m = jaxsim.load_model(MODEL.format(integrator="Euler", clamp="enable"))
    d = jaxsim.make_data(m).replace(ctrl=jnp.linspace(0.1, 0.4, m.nu))

    def end(gains):
        new = jaxsim.support.set_plugin_params(m, "both", gains)
        return jaxsim.step(new, jaxsim.step(new, d)).qvel[1]

    gains = jaxsim.support.get_plugin_params(m, "both")
    assert {key: float(value) for key, value in gains.items()} == {
        "kp": 2, "ki": 1, "kd": 0, "imax": 0.1,
    }  # fmt: skip
    many = {key: value + jnp.linspace(0, 1, 5) for key, value in gains.items()}
    ends, slopes = jax.jit(jax.vmap(jax.value_and_grad(end)))(many)
    one = jax.jit(end)
    for k in (0, 4):
        alone = {key: value[k] for key, value in many.items()}
        np.testing.assert_allclose(ends[k], one(alone), rtol=1e-12)
        for key in ("kp", "ki", "kd"):
            high, low = (one({**alone, key: alone[key] + h}) for h in (1e-5, -1e-5))
            np.testing.assert_allclose(slopes[key][k], (high - low) / 2e-5, rtol=1e-6, atol=1e-12)
            assert slopes[key][k] != 0


def test_an_instance_without_actuator_is_refused():
    alone = """<mujoco><extension><plugin plugin="mujoco.pid">
      <instance name="idle"><config key="kp" value="4"/></instance></plugin></extension></mujoco>"""
    with pytest.raises(ValueError, match="actuator not found"):
        mujoco.MjModel.from_xml_string(alone)
    with pytest.raises(ModelError, match="no actuator names this instance"):
        jaxsim.load_model(alone)
