"""The main paths as users run them, in a few minutes: `make smoke`.

Every stage of a step is compared with MuJoCo in a model with objects of most kinds, with the CPU
kernels and, under `make smoke`, with XLA's optimizer.
"""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import DYNAMICS, ROUGH_DIFFERENCE, STIFF

import jaxsim
from jaxsim.cli import main
from jaxsim.envs import VectorEnv
from jaxsim.envs.tasks import make

pytestmark = pytest.mark.kernels

SCENE = """
<mujoco><option integrator="implicitfast" timestep=".002" density="1.2"/>
<option><flag energy="enable"/></option>
<asset><mesh name="hull" vertex="0 0 0 .3 0 0 0 .3 0 0 0 .3"/></asset>
<worldbody><geom type="plane" size="3 3 1" contype="3" conaffinity="3"/>
  <camera name="eye" pos="2 0 2"/>
  <body name="box" pos="0 0 .099"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
  <body name="stone" pos="1 0 .1"><freejoint/>
    <geom type="mesh" mesh="hull" contype="2" conaffinity="2"/></body>
  <body name="arm" pos="0 1 1"><joint name="turn" axis="0 1 0" damping=".1" frictionloss=".05"/>
    <geom type="capsule" size=".04" fromto="0 0 0 .3 0 0"/><site name="tip" pos=".3 0 0"/>
    <body pos=".3 0 0"><joint name="bend" axis="0 1 0" range="-.1 .1" limited="true"/>
      <geom size=".05" pos=".1 0 0"/><site name="end" pos=".1 0 0"/></body></body>
  <body name="ball" pos="0 2 1"><joint type="ball" stiffness="2"/>
    <geom size=".1" pos=".2 0 0"/></body>
</worldbody>
<equality><connect body1="ball" anchor=".2 0 0"/></equality>
<tendon><spatial name="cord" stiffness="3"><site site="tip"/><site site="end"/></spatial></tendon>
<actuator><position name="servo" joint="turn" kp="5" kv=".2"/>
  <muscle joint="bend" lengthrange="-.2 .2"/></actuator>
<sensor><accelerometer site="end"/><gyro site="tip"/><tendonpos tendon="cord"/>
  <touch site="end"/><actuatorfrc actuator="servo"/><subtreecom body="arm"/></sensor>
</mujoco>
"""
FIELDS = (
    *("xpos", "xquat", "cam_xpos", "subtree_com", "cinert", "ten_length", "actuator_length"),
    *("cvel", "qfrc_passive", "qfrc_bias", "actuator_force", "qfrc_actuator", "qacc_smooth"),
    *("qfrc_constraint", "qacc", "sensordata", "energy"),
)


def worlds(m: jaxsim.Model) -> jaxsim.Data:
    """Three worlds with different speeds and controls."""
    rng = np.random.default_rng(0)
    d = jaxsim.replicate(jaxsim.make_data(m, "all"), 3)
    return d.replace(
        qvel=jnp.asarray(rng.normal(size=(3, m.nv)) * 0.2),
        ctrl=jnp.asarray(rng.normal(size=(3, m.nu))),
        act=jnp.full((3, m.na), 0.5),
    )


def test_every_stage_of_a_step_and_the_next_state_are_those_of_mujoco():
    """Several worlds, several steps; the model is compiled by both compilers."""
    mj = mujoco.MjModel.from_xml_string(SCENE)
    m = jaxsim.load_model(SCENE)
    start = worlds(m)
    step = jax.jit(jax.vmap(jaxsim.step, in_axes=(None, 0)))
    expected = []
    for k in range(3):
        d = mujoco.MjData(mj)
        d.qvel[:], d.ctrl[:], d.act[:] = start.qvel[k], start.ctrl[k], start.act[k]
        expected.append(d)
    d = start
    for _ in range(3):
        d = step(m, d)
        for k, theirs in enumerate(expected):
            mujoco.mj_step(mj, theirs)
            assert int(d.ncon[k]) == theirs.ncon > 0
            for name in FIELDS:
                ours = np.asarray(getattr(d, name)[k])
                scale = 1 + np.abs(ours).max(initial=0)
                np.testing.assert_allclose(
                    ours / scale, getattr(theirs, name).reshape(ours.shape) / scale, **STIFF
                )
            np.testing.assert_allclose(d.qpos[k], theirs.qpos, **DYNAMICS)


def test_the_gradient_of_a_rollout_through_contacts_is_that_of_differences():
    m = jaxsim.load_model(SCENE)
    d = jaxsim.make_data(m)

    @jax.jit
    @jax.value_and_grad
    def end(x):
        return jaxsim.rollout(m, d.replace(qvel=d.qvel.at[0].set(x)), 3)[0].qpos[0]

    (below, _), (_, slope), (above, _) = (end(0.3 + h) for h in (-1e-6, 0.0, 1e-6))
    np.testing.assert_allclose(slope, (above - below) / 2e-6, **ROUGH_DIFFERENCE)


def test_an_environment_runs_many_worlds():
    worlds = VectorEnv(make("cartpole_swingup"), length=10)
    state = jax.jit(worlds.reset)(jax.random.split(jax.random.key(0), 8))
    state = jax.jit(worlds.step)(state, jnp.zeros((8, 1)))
    assert np.isfinite(state.reward).all()
    assert state.reward.shape == (8,)


def test_commands_answer(capsys, tmp_path):
    path = tmp_path / "scene.xml"
    path.write_text(SCENE)
    assert main(["info", str(path)]) == 0
    assert "contacts    capacity" in capsys.readouterr().out
    assert main(["info", str(tmp_path / "none.xml")]) == 2
    assert "none.xml" in capsys.readouterr().err
