"""Programs written for MJX: the same text, run with MJX and with jaxsim in its place."""

from collections.abc import Iterator
from contextlib import contextmanager

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from mujoco import mjx as theirs
from mujoco.mjx._src import math as their_math

import jaxsim
from jaxsim import mjx as ours
from jaxsim.mjx import math

XML = """
<mujoco>
  <option timestep="0.004"/>
  <worldbody>
    <geom name="floor" type="plane" size="2 2 .1"/>
    <body name="ball" pos="0 0 .095"><freejoint/><geom size=".1" friction=".8"/></body>
    <body name="arm" pos="1 0 .6"><joint name="hinge" axis="0 1 0" damping=".1" range="-60 60"/>
      <geom name="rod" type="capsule" size=".04" fromto="0 0 0 .3 0 0"/><site name="tip"/></body>
    <body name="goal" mocap="true" pos="0 1 1"/>
  </worldbody>
  <actuator><motor joint="hinge" ctrlrange="-2 2"/></actuator>
  <sensor><framepos objtype="site" objname="tip"/><jointvel joint="hinge"/></sensor>
</mujoco>
"""
STATE = {"qpos": 1e-4, "qvel": 1e-3, "time": 1e-6, "sensordata": 1e-3, "xpos": 1e-4}
WORLDS = 3


@contextmanager
def as_mjx_is_used() -> Iterator[None]:
    """Without the strictness of these tests, which MJX does not stand."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        yield


def steps_of_many_worlds(mjx) -> dict:
    """The first program of MJX's documentation, with a loop, a mocap body and bits of a Model."""
    model = mujoco.MjModel.from_xml_string(XML)
    mjx_model = mjx.put_model(model)
    mjx_model = mjx_model.replace(opt=mjx_model.opt.replace(timestep=0.005))
    mjx_model = mjx_model.tree_replace({"dof_damping": mjx_model.dof_damping * 2})
    mjx_data = mjx.make_data(model)
    mjx_data = mjx_data.replace(mocap_pos=mjx_data.mocap_pos.at[0, 2].set(2.0))

    def batched(speed):
        data = mjx_data.replace(qvel=mjx_data.qvel.at[0].set(speed), time=0.0)

        def turn(data, _):
            data = data.replace(ctrl=jnp.ones(mjx_model.nu))
            return mjx.step(mjx_model, data), None

        return jax.lax.scan(turn, data, (), 20)[0]

    batch = jax.jit(jax.vmap(batched))(jnp.linspace(0.0, 1.0, WORLDS))
    found = {name: getattr(batch, name) for name in STATE}
    back = mjx.get_data(model, batch)
    found["read back"] = np.stack([d.qpos for d in back])
    found["one world"] = batch[1].qpos
    fresh = jax.tree.map(jnp.zeros_like, batch)
    done = jnp.array([True, False, True])
    found["chosen"] = jax.vmap(lambda d, done, new: d.where(done, new))(batch, done, fresh).qpos
    return found


def randomized_models(mjx) -> dict:
    """Domain randomisation as Playground does it: axes by `tree_replace` in a tree of None."""
    model = mjx.put_model(mujoco.MjModel.from_xml_string(XML))

    @jax.vmap
    def draw(key):
        damping = model.dof_damping * jax.random.uniform(key, (model.nv,), minval=1.0, maxval=5.0)
        return damping, model.opt.gravity * (1 + 0.1 * jax.random.normal(key, ()))

    damping, gravity = draw(jax.random.split(jax.random.PRNGKey(0), WORLDS))
    axes = jax.tree.map(lambda _: None, model)
    axes = axes.tree_replace({"dof_damping": 0, "opt.gravity": 0})
    models = model.tree_replace({"dof_damping": damping, "opt.gravity": gravity})
    data = mjx.make_data(mujoco.MjModel.from_xml_string(XML))
    data = data.replace(qvel=data.qvel.at[6].set(3.0))
    after = jax.jit(jax.vmap(mjx.step, in_axes=(axes, None)))(models, data)
    return {"qvel": after.qvel, "qpos": after.qpos}


@pytest.mark.parametrize("program", [steps_of_many_worlds, randomized_models])
def test_a_program_gives_what_mjx_gives(program):
    found = program(ours)
    with as_mjx_is_used():
        expected = program(theirs)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        tolerance = STATE.get(name, 1e-3)
        np.testing.assert_allclose(found[name], value, rtol=0, atol=tolerance, err_msg=name)
    assert np.ptp(np.asarray(expected["qvel"]), axis=0).max() > 1e-3  # the worlds differ


def test_many_worlds_are_chosen_at_once():
    d = jaxsim.make_data(jaxsim.put_model(mujoco.MjModel.from_xml_string(XML)))
    many = jax.tree.map(lambda a: jnp.stack([a] * WORLDS), d)
    done = jnp.array([True, False, True])
    chosen = many.where(done, many.replace(qvel=many.qvel + 1.0))
    np.testing.assert_array_equal(chosen.qvel[:, 0], [1, 0, 1])
    np.testing.assert_array_equal(many[done].qpos.shape[0], 2)


def test_the_root_package_runs_them_too():
    found = randomized_models(jaxsim)
    np.testing.assert_array_equal(found["qvel"], randomized_models(ours)["qvel"])


@pytest.fixture(scope="module")
def model() -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(XML)


def test_choices_among_engines_are_answered(model):
    with pytest.warns(UserWarning, match="impl='warp' has no effect") as said:
        ours.put_model(model, impl="warp")
    assert said[0].filename == __file__
    for name in ("nconmax", "naconmax", "naccdmax", "njmax"):
        with pytest.warns(UserWarning, match=f"make_data: {name}=9 has no effect"):
            ours.make_data(model, **{name: 9})
        with pytest.warns(UserWarning, match=f"put_data: {name}=9 has no effect"):
            ours.put_data(model, mujoco.MjData(model), **{name: 9})
    with pytest.raises(TypeError, match="unexpected keyword argument 'nconmx'"):
        ours.make_data(model, nconmx=9)


@pytest.mark.filterwarnings("error")
def test_the_engine_of_jax_is_the_one_there_is(model):
    m = ours.put_model(model, impl=theirs.Impl.JAX)
    d = ours.make_data(m, impl="jax", device=jax.devices()[0], njmax=None)
    assert m.impl is d.impl is ours.Impl.JAX
    assert m.impl.value == "jax"
    assert d._impl.contact is d.contact
    assert jax.tree.leaves(m)[0].devices() == {jax.devices()[0]}


def test_a_state_is_made_while_a_program_is_traced(model):
    """As environments do, in their resets."""

    def start(x):
        return ours.make_data(model).replace(qvel=x).qpos

    begun = jax.jit(start)(jnp.zeros(model.nv))
    np.testing.assert_allclose(begun, model.qpos0, atol=1e-6)


def test_numbers_in_place_of_arrays_compile_nothing_again(model):
    d = jaxsim.make_data(ours.put_model(model))
    changed = d.replace(time=0.5, qpos=d.qpos * jnp.asarray(1.0))
    assert changed.time.dtype == d.time.dtype
    assert not changed.time.weak_type
    assert not d.replace(time=jnp.asarray(2.0)).time.weak_type
    assert jax.eval_shape(lambda: changed).time.weak_type is False


def test_dotted_names_are_checked(model):
    m = ours.put_model(model)
    for name, message in (
        ("opt.gravitation", "Option has no field 'gravitation'"),
        ("option.gravity", "option.gravity: 'option' is no field of Model"),
        ("body_mass.x", "body_mass.x: 'body_mass' is no record of Model"),
    ):
        with pytest.raises(TypeError, match=message):
            m.tree_replace({name: jnp.zeros(3)})
    with pytest.raises(ValueError, match="gravity: expected shape"):
        m.tree_replace({"opt.gravity": jnp.zeros(2)})


def test_enumerations_have_mjx_names_and_values():
    missing = []
    for name in dir(theirs):
        enum = getattr(theirs, name)
        if isinstance(enum, type) and issubclass(enum, __import__("enum").Enum):
            mine = getattr(ours, name, None)
            if mine is None:
                missing.append(name)
                continue
            for member in set(enum.__members__) & set(mine.__members__):
                assert mine[member].value == enum[member].value or name == "Impl"
    assert not missing


def test_what_is_not_there_is_said():
    with pytest.raises(AttributeError, match="no attribute 'stepp'"):
        ours.stepp  # noqa: B018
    assert {"step", "math", "JointType", "rollout"} <= set(dir(ours))


rng = np.random.default_rng(0)
VECTORS = jnp.asarray(rng.normal(size=(5, 3)))
UNITS = VECTORS / jnp.linalg.norm(VECTORS, axis=1, keepdims=True)
QUATS = jnp.asarray(rng.normal(size=(5, 4)))
QUATS = QUATS / jnp.linalg.norm(QUATS, axis=1, keepdims=True)
MOTIONS = jnp.asarray(rng.normal(size=(5, 6)))
ANGLES = jnp.asarray(rng.uniform(-3, 3, 5))
CALLS = {
    "norm": (VECTORS,),
    "normalize": (VECTORS,),
    "normalize_with_norm": (VECTORS,),
    "rotate": (VECTORS, QUATS),
    "quat_inv": (QUATS,),
    "quat_mul": (QUATS, QUATS[::-1]),
    "quat_mul_axis": (QUATS, VECTORS),
    "quat_sub": (QUATS, QUATS[::-1]),
    "quat_to_mat": (QUATS,),
    "quat_to_axis_angle": (QUATS,),
    "axis_angle_to_quat": (UNITS, ANGLES),
    "quat_integrate": (QUATS, VECTORS, ANGLES),
    "sign": (VECTORS,),
    "motion_cross": (MOTIONS, MOTIONS[::-1]),
    "motion_cross_force": (MOTIONS, MOTIONS[::-1]),
}


@pytest.mark.parametrize("name", CALLS)
def test_math_is_theirs(name):
    with as_mjx_is_used():
        expected = jax.vmap(getattr(their_math, name))(*CALLS[name])
    found = jax.vmap(getattr(math, name))(*CALLS[name])
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b.reshape(a.shape), atol=2e-6)


def test_lengths_of_zero_have_a_derivative():
    zero = jnp.zeros(3)
    np.testing.assert_array_equal(jax.grad(math.norm)(zero), 0)
    np.testing.assert_array_equal(math.normalize(zero), 0)
    assert np.isfinite(jax.jacobian(math.normalize)(zero)).all()
