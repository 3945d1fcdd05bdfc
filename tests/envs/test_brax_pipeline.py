"""Brax's PipelineEnv on jaxsim: environments that are written for its backends."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim

# Brax and what it imports warn of their own affairs
pytestmark = pytest.mark.filterwarnings("ignore")

XML = """
<mujoco>
  <option timestep="0.01"/>
  <worldbody>
    <geom type="plane" size="2 2 .1"/>
    <body pos="0 0 .5"><freejoint/><geom size=".1"/>
      <body pos=".3 0 0"><joint name="knee" axis="0 1 0" damping=".1"/>
        <geom size=".05" pos=".1 0 0"/></body></body>
  </worldbody>
  <actuator><motor joint="knee"/></actuator>
</mujoco>
"""
STEPS = 5


@pytest.fixture(autouse=True)
def promotion_as_brax_needs_it():
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture
def pipeline():
    """Brax is left as it was."""
    base = pytest.importorskip("brax.envs.base")
    from jaxsim.envs import brax_pipeline

    make, theirs = base.PipelineEnv.__init__, base.m_pipeline
    brax_pipeline.register()
    yield brax_pipeline
    base.PipelineEnv.__init__, base.m_pipeline = make, theirs


def swing(sys, backend: str):
    """An environment written for Brax, which looks at Brax's fields and at MuJoCo's."""
    from brax.envs.base import PipelineEnv, State

    class Swing(PipelineEnv):
        def __init__(self):
            super().__init__(sys, backend=backend, n_frames=STEPS)

        def reset(self, rng):
            q = self.sys.init_q + 0.01 * jax.random.normal(rng, (self.sys.nq,))
            state = self.pipeline_init(q, 0.1 * jnp.ones(self.sys.nv))
            return State(state, state.q, jnp.zeros(()), jnp.zeros(()))

        def step(self, state, action):
            new = self.pipeline_step(state.pipeline_state, action)
            obs = jnp.concatenate([new.q, new.qd, new.x.pos[0], new.xd.vel[1], new.xd.ang[1]])
            return state.replace(pipeline_state=new, obs=obs, reward=new.qfrc_actuator[6])

    return Swing()


@pytest.mark.slow
def test_environments_of_brax_run_on_jaxsim(pipeline):
    from brax.io import mjcf

    env = swing(mjcf.loads(XML), "jaxsim")
    assert (env.backend, env.action_size) == ("jaxsim", 1)
    state = jax.jit(env.reset)(jax.random.PRNGKey(0))
    assert isinstance(state.pipeline_state.data, jaxsim.Data)
    after = jax.jit(env.step)(state, jnp.full(1, 0.3))
    model = mujoco.MjModel.from_xml_string(XML)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = state.pipeline_state.q, 0.1, 0.3
    mujoco.mj_step(model, data, STEPS)
    velocity = np.zeros(6)
    mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, 2, velocity, 0)
    expected = [data.qpos, data.qvel, data.xpos[1], velocity[3:], velocity[:3]]
    np.testing.assert_allclose(after.obs, np.concatenate(expected), atol=1e-5)
    np.testing.assert_allclose(after.reward, data.qfrc_actuator[6], atol=1e-6)
    assert jax.tree.structure(after) == jax.tree.structure(state)


def test_what_an_environment_changed_in_its_system_counts(pipeline):
    from brax.io import mjcf

    sys = mjcf.loads(XML)
    same = pipeline.model_of_system(sys)
    assert float(same.opt.timestep) == pytest.approx(0.01)
    assert same is pipeline.model_of_system(sys)
    changed = sys.tree_replace({"opt.timestep": 0.002, "opt.iterations": 3})
    changed = changed.replace(geom_friction=2 * sys.geom_friction)
    m = pipeline.model_of_system(changed)
    assert float(m.opt.timestep) == pytest.approx(0.002)
    assert m.opt.iterations == 3
    np.testing.assert_allclose(m.geom_friction, 2 * same.geom_friction)
    batched = jax.vmap(
        lambda f: pipeline.model_of_system(sys.replace(geom_friction=f)).geom_friction
    )
    many = jnp.stack([sys.geom_friction, 3 * sys.geom_friction])
    np.testing.assert_allclose(batched(many), many)
    with pytest.raises(ValueError, match=r"mj_model: None; load the System by brax.io.mjcf"):
        pipeline.model_of_system(sys.replace(mj_model=None))


@pytest.mark.filterwarnings("default:PipelineEnv")
def test_the_backend_of_mjx_says_that_it_is_not_jaxsim(pipeline):
    from brax.io import mjcf

    import jaxsim.mjx  # noqa: F401  # which makes PipelineEnv warn

    sys = mjcf.loads(XML)
    with pytest.warns(UserWarning, match=r"runs on MJX, not on jaxsim: call .*take_mjx_backend"):
        swing(sys, "mjx")
    pipeline.take_mjx_backend()
    env = swing(sys, "mjx")
    assert env._pipeline is pipeline


def test_states_are_changed_by_brax_names_and_by_those_of_a_data(pipeline):
    from brax.io import mjcf

    sys = mjcf.loads(XML)
    state = pipeline.init(sys, jnp.asarray(sys.init_q), jnp.zeros(sys.nv))
    changed = state.replace(q=state.q + 1, qvel=jnp.ones(sys.nv, int))
    assert float(changed.q[0]) == float(state.q[0]) + 1
    assert changed.data.qvel.dtype == state.qvel.dtype
    assert changed.qvel.any()
    with pytest.raises(AttributeError, match="Data has no field 'qposs'"):
        state.qposs  # noqa: B018
