"""Fields that are zero at load become live where they are drawn, in every way that draws them."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import STIFF

import jaxsim
from jaxsim.envs import Env, VectorEnv, randomize
from jaxsim.identify import fit, linear
from jaxsim.identify.study import read_study
from jaxsim.io.config import read_config
from jaxsim.learn.config import Training
from jaxsim.learn.worlds import make_worlds
from jaxsim.model.switch.switches import FREEABLE_FIELDS

CHAIN = """<mujoco><option timestep=".01"/><worldbody>
<body name="upper"><joint name="a" axis="0 1 0"/><geom size=".05" pos=".3 0 0"/>
<body pos=".3 0 0"><joint name="b" axis="0 1 0"/><geom size=".05" pos=".2 0 0"/></body></body>
</worldbody><actuator><motor name="m" joint="a"/></actuator></mujoco>"""
# one item at least of each field that can be compiled out
ITEMS = """<mujoco><worldbody><geom name="floor" type="plane" size="9 9 1" pos="0 0 -9"/>
<body><joint name="a" axis="0 1 0" range="-1 1"/><geom name="ball" size=".05" pos=".3 0 0"/>
</body></worldbody><tendon><fixed name="rope" range="0 1"><joint joint="a" coef="1"/></fixed>
</tendon><actuator><motor joint="a"/></actuator>
<contact><pair geom1="ball" geom2="floor"/></contact></mujoco>"""
WORLDS, STEPS = 3, 60
KEYS = jax.random.split(jax.random.key(2), WORLDS)
FRICTION = {"dof_frictionloss": linear(0.05, 0.4)}


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(CHAIN)


def drawn(m, key):
    """Draw the ranges above by a function."""
    u = jax.random.uniform(key, m.dof_frictionloss.shape, minval=0.05, maxval=0.4)
    return {"dof_frictionloss": u}


def of_mujoco(friction):
    """Angles after some steps of a model that was given its friction in C, (2,)."""
    mj = mujoco.MjModel.from_xml_string(CHAIN)
    mj.dof_frictionloss[:] = friction
    d = mujoco.MjData(mj)
    mujoco.mj_step(mj, d, STEPS)
    return d.qpos


def run(models, axes):
    """Angles after some steps of many worlds, (worlds, 2)."""

    def rolled(m):
        return jaxsim.rollout(m, jaxsim.make_data(m), steps=STEPS)[0].qpos

    return jax.jit(jax.vmap(rolled, in_axes=(axes,)))(models)


def compare(found, models):
    friction = np.asarray(models.dof_frictionloss)
    assert friction.shape == (WORLDS, 2)
    assert friction.min() >= 0.05
    np.testing.assert_allclose(found, [of_mujoco(f) for f in friction], **STIFF)
    assert np.abs(np.asarray(found) - of_mujoco(np.zeros(2))).min() > 1e-3


@pytest.mark.parametrize(
    "change",
    [pytest.param(FRICTION, marks=pytest.mark.slow), drawn],
    ids=["ranges", "function"],
)
def test_friction_that_is_drawn_from_zero_is_that_of_a_loop_of_models(m, change):
    models, axes = randomize(m, KEYS, change)
    compare(run(models, axes), models)


@pytest.mark.short("True")
@pytest.mark.parametrize("every_episode", [False, True])
def test_worlds_of_a_training_feel_friction_that_is_drawn_from_zero(m, tmp_path, every_episode):
    file = tmp_path / "t.toml"
    file.write_text(
        f"""task = "arm_lift"\nsteps = 1
        [worlds]\ncount = {WORLDS}\nevery_episode = {str(every_episode).lower()}
        [worlds.randomize_value]\ndof_frictionloss = [0.05, 0.4]"""
    )
    training, locations = read_config(file, Training, ())
    worlds = make_worlds(Env(m), training, locations, exploring=True)
    assert isinstance(worlds, VectorEnv)
    state = jax.jit(worlds.reset)(KEYS)
    models, _ = worlds.models(state)

    @jax.jit
    def rolled(state):
        action = jnp.zeros((WORLDS, 1))
        return jax.lax.fori_loop(0, STEPS, lambda _, s: worlds.step(s, action), state)

    compare(rolled(state).data.qpos, models)


@pytest.fixture(scope="module")
def items():
    return jaxsim.load_model(ITEMS)


@pytest.mark.parametrize("field", sorted(FREEABLE_FIELDS))
def test_each_field_of_a_switch_is_live_in_models_that_draw_it(items, field):
    """The structure is that of a model loaded with free=, whatever way the leaf is given."""
    free = jaxsim.load_model(ITEMS, free=(field,)).structure
    assert free != items.structure
    owner, _, name = field.rpartition(".")

    def change(m, key):
        old = getattr(m.opt if owner else m, name)
        return {field: old + jax.random.uniform(key, old.shape)}

    def whole(m, key):
        return {"opt": m.opt.replace(**{name: change(m, key)[field]})}

    for way in (change, whole) if owner else (change,):
        models, axes = randomize(items, KEYS, way, derive=False)
        assert models.structure == free
        VectorEnv(Env(items), model=models, axes=axes)


def test_models_of_another_file_are_refused_still(m):
    other = jaxsim.load_model(CHAIN.replace('axis="0 1 0"', 'type="slide"', 1))
    models, axes = randomize(other, KEYS, FRICTION, derive=False)
    with pytest.raises(ValueError, match="has another structure than that of env"):
        VectorEnv(Env(m), model=models, axes=axes)


@pytest.mark.slow
def test_a_fit_of_a_file_finds_friction_of_a_model_that_has_none(tmp_path):
    mj = mujoco.MjModel.from_xml_string(CHAIN)
    mj.dof_frictionloss[:] = 0.13
    d, rows = mujoco.MjData(mj), []
    for _ in range(STEPS):
        rows.append([d.time, *d.qpos])
        mujoco.mj_step(mj, d)
    head = "time,qpos:a,qpos:b"
    np.savetxt(tmp_path / "m.csv", rows, "%.17g", ",", header=head, comments="")
    (tmp_path / "chain.xml").write_text(CHAIN)
    (tmp_path / "s.toml").write_text(
        """model = "chain.xml"\nsigmas = { "qpos:*" = 0.001 }
        [parameters.dof_frictionloss]\nlow = 0.01\nhigh = 1\nnominal = 0.1\nshare = true
        [[data]]\nmeasured = "m.csv\""""
    )
    study = read_study(tmp_path / "s.toml")
    found = fit(study.m, study.parameters, study.data, starts=1)
    np.testing.assert_allclose(found.values, 0.13, atol=1e-6)
    # the model of the fit has the rows of dry friction
    rolled = jaxsim.rollout(found.model, jaxsim.make_data(found.model), steps=STEPS)[0].qpos
    np.testing.assert_allclose(rolled, of_mujoco(0.13), atol=1e-5)
