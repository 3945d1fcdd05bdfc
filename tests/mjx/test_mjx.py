"""Programs written for MJX: the same text, run with MJX and with jaxsim instead."""

import dataclasses
import importlib
import inspect
import pickle
import re
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from mjx.math_shapes import CASES, result_shapes
from mjx.relaxed import as_mjx_is_used
from mujoco import mjx as theirs
from mujoco.mjx import _src as their_inner
from mujoco.mjx._src import math as their_math

import jaxsim
from jaxsim import mjx as ours
from jaxsim.mjx import math
from jaxsim.mjx.inner.missing_names import MJX_REPLACEMENTS

XML = """
<mujoco>
  <option timestep="0.004"/>
  <asset><material name="grey"/></asset> <!-- the rays of MJX want one -->
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
    """Domain randomization as in Playground: axes by `tree_replace` in a tree of None."""
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


def sampled_controls(mjx) -> dict:
    """Predictive sampling as hydrax does it: plans around a mean, rolled out in models that differ.

    The cost reads sites, sensors and a mocap body whose pose is an array of integers.
    """
    model = mujoco.MjModel.from_xml_string(XML)
    m, d = mjx.put_model(model), mjx.make_data(model)
    d = d.replace(mocap_pos=jnp.array([[1, 0, 1]]))
    friction = jnp.stack([m.geom_friction, 0.5 * m.geom_friction])
    models = m.tree_replace({"geom_friction": friction})
    axes = jax.tree.map(lambda _: None, m).tree_replace({"geom_friction": 0})
    tip = mjx.name2id(m, mujoco.mjtObj.mjOBJ_SITE, "tip")

    def cost(d, u):
        off = d.site_xpos[tip] - d.mocap_pos[0]
        return off @ off + 0.01 * u @ u + 0.1 * d.sensordata[-1] ** 2

    def rollout(m, d, plan):
        def turn(d, u):
            d = mjx.step(m, d.replace(ctrl=u))
            return d, cost(d, u)

        return jnp.sum(jax.lax.scan(turn, d, plan)[1])

    def improve(mean, key):
        plans = mean[None] + 0.5 * jax.random.normal(key, (8, *mean.shape))
        of_models = jax.vmap(rollout, in_axes=(axes, None, None))
        costs = jax.vmap(lambda plan: of_models(models, d, plan).mean())(plans)
        weights = jax.nn.softmax(-costs / 0.1)
        return jnp.einsum("k,kij->ij", weights, plans), costs

    keys = jax.random.split(jax.random.PRNGKey(0), 3)
    mean, costs = jax.jit(lambda: jax.lax.scan(improve, jnp.zeros((10, 1)), keys))()
    return {"plan": mean, "costs": costs}


@pytest.mark.slow
@pytest.mark.parametrize("program", [randomized_models, steps_of_many_worlds, sampled_controls])
def test_a_program_gives_what_mjx_gives(program):
    found = program(ours)
    with as_mjx_is_used():
        expected = program(theirs)
    assert found.keys() == expected.keys()
    for name, value in expected.items():
        tolerance = STATE.get(name, 1e-3)
        np.testing.assert_allclose(found[name], value, rtol=0, atol=tolerance, err_msg=name)
    differ = expected.get("qvel", expected.get("costs"))
    assert np.ptp(np.asarray(differ), axis=0).max() > 1e-3  # the worlds differ


@pytest.mark.slow
def test_many_worlds_are_chosen_at_once():
    d = jaxsim.make_data(jaxsim.put_model(mujoco.MjModel.from_xml_string(XML)))
    many = jax.tree.map(lambda a: jnp.stack([a] * WORLDS), d)
    done = jnp.array([True, False, True])
    chosen = many.where(done, many.replace(qvel=many.qvel + 1.0))
    np.testing.assert_array_equal(chosen.qvel[:, 0], [1, 0, 1])
    np.testing.assert_array_equal(many[done].qpos.shape[0], 2)


@pytest.mark.slow
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
    """Tracing includes the construction of a state, as in the resets of environments."""

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


@pytest.mark.parametrize("jacobian", ["dense", "sparse"])
def test_rows_come_from_mujoco(jacobian):
    text = XML.replace("<option ", f'<option jacobian="{jacobian}" ')
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[7] = 1.1  # beyond its limit
    mujoco.mj_forward(model, data)
    d = ours.put_data(model, data, keep="all")
    matrix = np.zeros((data.nefc, model.nv))
    for k, unit in enumerate(np.eye(model.nv)):
        column = np.zeros(data.nefc)
        mujoco.mj_mulJacVec(model, data, column, unit)
        matrix[:, k] = column
    assert data.nefc == 5
    np.testing.assert_allclose(d.efc_J[:5], matrix, atol=1e-12)
    np.testing.assert_allclose(d.efc_aref[:5], data.efc_aref, atol=1e-6)
    assert (d.efc_type[5:] == -1).all()
    back = ours.get_data(model, d)
    np.testing.assert_allclose(back.efc_force, data.efc_force, atol=1e-6)


def test_every_field_of_mjx_is_there_or_has_a_remedy(model):
    d = ours.make_data(model)
    for record, theirs_of in ((d, theirs.Data), (d, theirs.DataJAX), (d.contact, theirs.Contact)):
        for field in dataclasses.fields(theirs_of):
            if not hasattr(record, field.name):
                with pytest.raises(AttributeError, match=f"no field '{field.name}': "):
                    getattr(record, field.name)
    with pytest.raises(AttributeError, match=r"Data has no field 'efc_AR': "):
        d.efc_AR  # noqa: B018
    with pytest.raises(AttributeError, match="Data has no field 'qposs'; did you mean 'qpos'"):
        d.qposs  # noqa: B018


def test_missing_name_has_a_message():
    with pytest.raises(AttributeError, match=r"has no 'stepp'; did you mean 'step'\?"):
        ours.stepp  # noqa: B018
    assert {"step", "math", "JointType", "rollout"} <= set(dir(ours))


rng = np.random.default_rng(0)
VECTORS = jnp.asarray(rng.normal(size=(5, 3)))
UNITS = VECTORS / jnp.linalg.norm(VECTORS, axis=1, keepdims=True)
QUATS = jnp.asarray(rng.normal(size=(5, 4)))
QUATS = QUATS / jnp.linalg.norm(QUATS, axis=1, keepdims=True)
MOTIONS = jnp.asarray(rng.normal(size=(5, 6)))
ANGLES = jnp.asarray(rng.uniform(-3, 3, 5))
ROTATIONS = jnp.asarray(np.linalg.qr(rng.normal(size=(5, 3, 3)))[0])
ENDS = tuple(jnp.asarray(rng.normal(size=(5, 3))) for _ in range(4))
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
    "inert_mul": (jnp.asarray(rng.normal(size=(5, 10))), MOTIONS),
    "transform_motion": (MOTIONS, VECTORS, ROTATIONS),
    "safe_div": (VECTORS, VECTORS.at[:, 1].set(0.0)),
    "matmul_unroll": (ROTATIONS, ROTATIONS[::-1]),
    "orthogonals": (UNITS.at[0].set(0.0),),
    "make_frame": (VECTORS,),
    "closest_segment_point": ENDS[:3],
    "closest_segment_point_and_dist": ENDS[:3],
    "closest_segment_to_segment_points": ENDS,
}


@pytest.mark.parametrize("name", CALLS)
def test_math_functions_equal_mjx(name):
    with as_mjx_is_used():
        expected = jax.vmap(getattr(their_math, name))(*CALLS[name])
    found = jax.vmap(getattr(math, name))(*CALLS[name])
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, atol=2e-6)


def test_shapes_of_math_are_theirs():
    """The shapes that test_math.py expects without MJX are those of the installed MJX."""
    assert [result_shapes(their_math, case) for case in CASES] == CASES


@pytest.mark.parametrize("name", CALLS)
def test_math_of_one_is_theirs(name):
    """One item, without `vmap`; angles and times of shape (1,), as programs have them."""
    args = [a[1:2] if a.ndim == 1 else a[1] for a in CALLS[name]]
    with as_mjx_is_used():
        expected = getattr(their_math, name)(*args)
        found = getattr(math, name)(*args)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, atol=2e-6)


def test_math_has_all_of_theirs():
    functions = {n for n, f in vars(their_math).items() if inspect.isfunction(f)}
    assert functions == CALLS.keys()


def test_every_name_of_mjx_is_there_or_says_what_to_write():
    names = {n for n in dir(theirs) if not n.startswith("_") and n not in MODULES}
    there = {n for n in names if hasattr(ours, n)}
    assert names - there <= MJX_REPLACEMENTS.keys()
    with pytest.raises(AttributeError, match=r"no 'DataCPP': one engine"):
        ours.DataCPP  # noqa: B018
    with pytest.raises(ImportError, match=r"jaxsim.mjx has no 'device_put': put_model\(model\)"):
        from jaxsim.mjx import device_put  # noqa: F401
    with pytest.raises(AttributeError, match=r"get_data_into\(data, model, d\)"):
        ours.device_get_into  # noqa: B018


INNER = sorted(p.stem for p in Path(their_inner.__file__).parent.glob("[a-z]*.py"))
INNER = [n for n in INNER if not n.endswith("_test")]


@pytest.mark.parametrize("module", INNER)
def test_inner_modules_have_the_names_of_mjx_or_say_what_to_write(module):
    their_module = importlib.import_module(f"mujoco.mjx._src.{module}")
    my_module = importlib.import_module(f"jaxsim.mjx._src.{module}")
    assert getattr(ours._src, module) is my_module
    for name, value in vars(their_module).items():
        if name.startswith("__") or getattr(value, "__module__", "") != their_module.__name__:
            continue  # what it imports
        if hasattr(my_module, name):
            continue
        with pytest.raises(ImportError, match=f"{module} has no '{name}': ."):
            exec(f"from jaxsim.mjx._src.{module} import {name}")


def test_modules_that_are_not_there_are_named():
    with pytest.raises(ImportError, match=r"jaxsim.mjx._src has no 'smoth'; did you mean 'smooth'"):
        import jaxsim.mjx._src.smoth  # noqa: F401


# what MJX imports for itself
MODULES = (
    "Any Tuple Union dataclasses enum jax mjxw_types mujoco np third_party warnings warp".split()
)


def test_names_are_those_of_mjx(model):
    m, joint = ours.put_model(model), mujoco.mjtObj.mjOBJ_JOINT
    for of in (m, model):
        assert ours.name2id(of, joint, "hinge") == 1
        assert ours.name2id(of, joint, "door") == ours.name2id(of, joint, None) == -1
        assert [ours.id2name(of, joint, k) for k in range(2)] == [None, "hinge"]


def test_fields_are_found_where_mjx_keeps_them(model):
    d = ours.make_data(model)
    changed = d.tree_replace({"_impl.contact.dist": d.contact.dist - 1.0, "_impl.ncon": 7})
    np.testing.assert_array_equal(changed.contact.dist, d.contact.dist - 1.0)
    assert changed.ncon == 7


STAGES = {
    "com_pos": ("cdof", "cinert"),
    "crb": ("crb", "M"),
    "factor_m": ("qLD", "qLDiagInv"),
    "com_vel": ("cvel", "cdof_dot"),
    "tendon": ("ten_J", "ten_wrapadr"),
    "transmission": ("actuator_moment",),
    "rne_postconstraint": ("cacc", "cfrc_int", "cfrc_ext"),
    "subtree_vel": ("subtree_linvel", "subtree_angmom"),
    "make_constraint": ("efc_J", "efc_aref", "efc_D", "efc_pos", "efc_type"),
}


@pytest.mark.slow
def test_what_a_stage_fills_can_be_read(model):
    data = mujoco.MjData(model)
    data.qpos[7], data.qvel[:] = 1.1, 0.3
    mujoco.mj_forward(model, data)
    m = ours.put_model(model)
    d = ours.make_data(m).replace(qpos=data.qpos.copy(), qvel=data.qvel.copy())
    d = jax.jit(ours.forward)(m, d)
    full = ours.put_data(model, data, keep="all")
    for stage, fields in STAGES.items():
        filled = getattr(ours, stage)(m, d)
        for name in fields:
            value = np.asarray(getattr(filled, name))
            same = name not in ("cacc", "cfrc_int", "cfrc_ext", "subtree_linvel", "subtree_angmom")
            assert value.shape == getattr(full, name).shape
            if same:  # MuJoCo finds the others when it needs them
                atol = 1e-5 * (1 + np.abs(value).max(initial=0))
                np.testing.assert_allclose(value, getattr(full, name), atol=atol, err_msg=name)
    mujoco.mj_subtreeVel(model, data)
    velocity = ours.subtree_vel(m, d).subtree_linvel
    np.testing.assert_allclose(velocity, data.subtree_linvel, atol=1e-6)
    assert d.cdof.shape == (model.nv, 6)
    assert d.cinert.shape == (model.nbody, 10)


def test_what_is_not_kept_says_so_where_mjx_keeps_it(model):
    d = ours.make_data(model)
    with pytest.raises(AttributeError, match=r"efc_J is not kept.*keep=\[..., 'efc_J'\]"):
        d._impl.efc_J  # noqa: B018
    assert ours.make_data(model, keep="all")._impl.efc_J.shape[1] == model.nv
    assert d._impl.cinert is d.cinert


def test_records_are_dataclasses(model):
    m, d = ours.put_model(model), ours.make_data(model)
    for record in (m, d, d.contact, m.opt):
        assert {f.name for f in dataclasses.fields(record)} == record.fields.keys()
        assert [f.name for f in record.fields()] == [*record.fields]
    fast = dataclasses.replace(d, qvel=np.ones(model.nv, int))
    assert fast.qvel.dtype == d.qvel.dtype
    assert jax.tree.structure(fast) == jax.tree.structure(d)
    damped = dataclasses.replace(m, opt=dataclasses.replace(m.opt, timestep=0.1))
    assert float(damped.opt.timestep) == pytest.approx(0.1)
    assert damped.structure == m.structure
    with pytest.raises(ValueError, match="qvel: expected shape"):
        dataclasses.replace(d, qvel=jnp.ones(3))
    with pytest.raises(TypeError, match="no field 'qvle'"):
        dataclasses.replace(d, qvle=1)


def test_names_are_one_text_too(model):
    m = ours.put_model(model)
    begin = model.names.index(b"\0")  # the name of the model is not kept
    assert m.names[0:] == model.names[begin:]
    for name in dir(model):
        if re.fullmatch("name_.*adr", name):
            np.testing.assert_array_equal(getattr(m, name), getattr(model, name) - begin)
    assert m.names[m.name_jntadr[1] :].decode().split("\0")[0] == "hinge"
    assert m.names["joint"] == ["", "hinge"]
    assert "joint" in m.names
    assert "junction" not in m.names
    assert dict(m.names)["site"] == ["tip"]
    assert pickle.loads(pickle.dumps(m.names))["geom"] == ["floor", "", "rod"]


def test_states_are_vectors(model):
    data = mujoco.MjData(model)
    mujoco.mj_step(model, data, 3)
    data.ctrl[:] = 0.7
    m, d = ours.put_model(model), ours.put_data(model, data)
    for spec in ("mjSTATE_FULLPHYSICS", "mjSTATE_INTEGRATION", "mjSTATE_CTRL"):
        bits = int(mujoco.mjtState.__members__[spec])
        expected = np.zeros(mujoco.mj_stateSize(model, bits))
        mujoco.mj_getState(model, data, expected, bits)
        assert ours.state_size(m, bits) == len(expected)
        np.testing.assert_allclose(ours.get_state(m, d, bits), expected, atol=1e-6)
        changed = ours.set_state(m, ours.make_data(m), jnp.asarray(expected), bits)
        np.testing.assert_allclose(ours.get_state(m, changed, bits), expected, atol=1e-6)
        assert changed.eq_active.dtype == bool
        assert changed.mocap_pos.shape == d.mocap_pos.shape
    with pytest.raises(ValueError, match=r"state: expected shape \(1,\), got \(2,\)"):
        ours.set_state(m, d, jnp.zeros(2), int(mujoco.mjtState.mjSTATE_CTRL))
    with pytest.raises(
        ValueError, match=r"expected bits of jaxsim.enums.State, below 32768, got 32768"
    ):
        ours.state_size(m, 1 << 15)


def test_functions_return_what_mjx_returns(model):
    data = mujoco.MjData(model)
    data.qvel[:] = 0.5
    mujoco.mj_forward(model, data)

    def program(mjx):
        m, d = mjx.put_model(model), mjx.put_data(model, data)
        push, turn, point = jnp.array([[1.0, 2, 3], [0.1, 0.2, 0.3], [1, 0, 0.5]])
        down = jnp.array([0.0, 0, -1])
        return {
            "rne": mjx.rne(m, d).qfrc_bias,
            "factor_m": mjx.factor_m(m, d).qpos,
            "tendon_armature": mjx.tendon_armature(m, d).qpos,
            "apply_ft": mjx.apply_ft(m, d, push, turn, point, body_id=2),
            "jac": mjx.jac(m, d, point, body_id=2),
            "ray": mjx.ray(m, d, point, down),
            "rays": mjx.ray(m, d, point, down, bodyexclude=[2, 0]),
        }

    found = program(ours)
    with as_mjx_is_used():
        expected = program(theirs)
    for name, value in expected.items():
        for a, b in zip(jax.tree.leaves(found[name]), jax.tree.leaves(value), strict=True):
            np.testing.assert_allclose(a, b, atol=1e-5, err_msg=name)
    m, d = ours.put_model(model), ours.put_data(model, data, keep="all")
    turned = d.replace(qpos=d.qpos.at[:4].add(0.1), M=2 * d.M)  # poses and M as they were
    J = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    mujoco.mj_jac(model, data, *J, np.ones(3), 1)
    held, new = (f(m, turned, jnp.ones(3), 1) for f in (ours.jac, jaxsim.support.jac))
    np.testing.assert_allclose(held, np.swapaxes(J, 1, 2), atol=1e-6)
    assert np.abs(held[0] - new[0]).max() > 1e-3
    np.testing.assert_array_equal(ours.full_m(m, turned), 2 * d.M)
    force, own = np.zeros(6), ours.contact_force(m, d, 0)
    mujoco.mj_contactForce(model, data, 0, force)
    np.testing.assert_allclose(own, force, rtol=1e-3, atol=1e-4)
    frame = data.contact.frame[0].reshape(3, 3)
    world = ours.contact_force(m, d, 0, to_world_frame=True).reshape(2, 3)
    np.testing.assert_allclose(world, own.reshape(2, 3) @ frame, rtol=1e-5, atol=1e-5)
    assert ours.is_sparse(m) is False
    hit = ours.ray(m, d, jnp.ones(3), jnp.ones(3), geomgroup=(0, 0, 0, 0, 0, 0))
    assert [float(a) for a in hit] == [-1.0, -1.0]


@pytest.mark.slow
def test_lengths_of_zero_have_a_derivative():
    zero = jnp.zeros(3)
    np.testing.assert_array_equal(jax.grad(math.norm)(zero), 0)
    np.testing.assert_array_equal(math.normalize(zero), 0)
    assert np.isfinite(jax.jacobian(math.normalize)(zero)).all()
