"""Exchange of models and states with MuJoCo."""

from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import ROUNDING, SOLVER

from jaxsim.io.bridge import get_data, get_data_into, put_data, put_model
from jaxsim.io.load import load_model
from jaxsim.physics.public.api import forward, step

CONFIGS = sorted((Path(__file__).resolve().parents[2] / "configs").glob("*.xml"))

XML = """
<mujoco>
  <option timestep="0.003" gravity="0 0 -5" cone="elliptic"><flag energy="enable"/></option>
  <worldbody>
    <light name="sun" pos="0 0 3"/>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="ball" pos="0 0 0.05"><freejoint/><geom size="0.1" rgba="1 0 0 1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture(scope="module")
def oracle():
    return mujoco.MjModel.from_xml_string(XML)


def test_every_field_arrives(oracle):
    m = put_model(oracle)
    for record, theirs in ((m, oracle), (m.opt, oracle.opt), (m.stat, oracle.stat)):
        for name, field in record.fields.items():
            own = name in ("structure", "smooth", "plugin_state0", "plugin_params")
            if own or field.nested:
                continue
            np.testing.assert_array_equal(
                np.asarray(getattr(record, name)).reshape(-1),
                np.asarray(getattr(theirs, name)).reshape(-1),
                err_msg=name,
            )
    assert m.names["body"] == ["world", "ball"]
    assert m.names["light"] == ["sun"]
    assert m.nv == 6
    assert type(m.nv) is int


def test_equal_models_are_one_program(oracle):
    a, b = put_model(oracle), put_model(oracle)
    assert a.structure == b.structure
    assert hash(a.structure) == hash(b.structure)
    assert jax.tree.structure(a) == jax.tree.structure(b)
    assert all(x.dtype == jnp.float64 for x in jax.tree.leaves(a))


def test_state_goes_there_and_back(oracle):
    state = mujoco.MjData(oracle)
    mujoco.mj_step(oracle, state, 5)
    mujoco.mj_forward(oracle, state)
    d = put_data(oracle, state, contacts=4)
    assert state.ncon == 1
    np.testing.assert_array_equal(d.contact.geom[:2], [[0, 1], [-1, -1]])
    np.testing.assert_array_equal(d.contact.frame[0].ravel(), state.contact.frame[0])
    np.testing.assert_array_equal(d.xpos, state.xpos)
    np.testing.assert_array_equal(d.xmat.reshape(-1, 9), state.xmat)
    assert d.ncon == 1
    assert d.time == state.time

    assert d.solver_niter == state.solver_niter.max() > 0

    back = get_data(oracle, d)
    np.testing.assert_array_equal(back.qpos, state.qpos)
    np.testing.assert_array_equal(back.cvel, state.cvel)
    assert back.time == state.time


def test_later_changes_of_mjdata_do_not_change_data():
    oracle = mujoco.MjModel.from_xml_string(XML)
    state = mujoco.MjData(oracle)
    m, d = put_model(oracle), put_data(oracle, state)
    before, mass = np.array(state.qpos), np.array(oracle.body_mass)
    mujoco.mj_step(oracle, state, 10)
    oracle.body_mass[:] = 7
    np.testing.assert_array_equal(d.qpos, before)
    np.testing.assert_array_equal(m.body_mass, mass)


def test_many_worlds_become_many_states(oracle):
    d = put_data(oracle, mujoco.MjData(oracle))
    many = jax.vmap(lambda x: d.replace(qpos=d.qpos.at[2].set(x)))(jnp.array([0.5, 0.6]))
    assert [s.qpos[2] for s in get_data(oracle, many)] == [0.5, 0.6]


def test_writes_into_a_state(oracle):
    into = mujoco.MjData(oracle)
    d = put_data(oracle, into).replace(time=jnp.asarray(3.0))
    get_data_into(into, oracle, d)
    assert into.time == 3


# the same convex hulls, with vertices in another order
HULL = {"mesh_graph", "mesh_extrema"}

DRAWN = """
<mujoco>
  <asset>
    <texture name="t" type="2d" builtin="checker" width="4" height="4" rgb1="1 0 0"/>
    <material name="red" texture="t" reflectance="0.5"/>
    <mesh name="tetra" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
    <skin name="hide" material="red" vertex="0 0 0 1 0 0 0 1 0" face="0 1 2">
      <bone body="b" bindpos="0 0 0" bindquat="1 0 0 0" vertid="0 1 2" vertweight="1 1 1"/>
    </skin>
  </asset>
  <statistic extent="9"/>
  <custom><text name="note" data="hello"/><numeric name="n" data="1 2"/></custom>
  <worldbody>
    <geom type="plane" size="1 1 1" material="red"/>
    <body name="b" pos="0 0 2"><freejoint/>
      <geom type="mesh" mesh="tetra" material="red" contype="0" conaffinity="0"/>
    </body>
  </worldbody>
</mujoco>
"""


@pytest.mark.parametrize("source", [*CONFIGS, DRAWN], ids=lambda s: getattr(s, "stem", "drawn"))
def test_a_model_of_theirs_is_the_same_program(source):
    """A model is the same program whichever way it comes, but for masses before compilation."""
    xml = source.read_text() if isinstance(source, Path) else source
    mine, theirs = load_model(xml), put_model(mujoco.MjModel.from_xml_string(xml))
    # what `set_inertia` reads: MuJoCo's compiled model does not have it
    assert set(mine.structure) - set(theirs.structure) == {"body_matter"}
    theirs = theirs.replace(structure=theirs.structure.replace(body_matter=mine.body_matter))
    for name in set(mine.structure) - HULL - {"body_matter"}:
        ours, other = (getattr(x.structure, name) for x in (mine, theirs))
        if isinstance(ours, tuple):
            assert ours == other, name
        else:
            np.testing.assert_array_equal(ours, other, err_msg=name)
    assert mine.nmesh or jax.tree.structure(mine) == jax.tree.structure(theirs)


SCENE = """
<mujoco>
  <option integrator="{}" cone="{}" jacobian="{}" tolerance="0"><flag energy="enable"/></option>
  <worldbody>
    <geom type="plane" size="1 1 1" adhesion="2" surfacevel=".1 .2 0 0 0 .3"/>
    <site name="s0"/>
    <body name="a" pos="0 0 .09"><freejoint/><geom size=".1"/><site name="s1"/></body>
    <body pos="2 0 1">
      <joint name="h" range="0 1" limited="true" frictionloss=".1" damping=".3"/>
      <geom size=".1" pos=".2 0 0"/>
      <body pos="1 0 0">
        <joint name="g" type="ball"/><geom size=".1" pos=".2 0 0"/><site name="s2"/>
      </body>
    </body>
  </worldbody>
  <tendon><spatial name="t"><site site="s0"/><site site="s2"/></spatial></tendon>
  <equality><connect body1="world" body2="b" anchor="0 0 0" active="false"/></equality>
  <actuator>
    <motor joint="h"/><motor tendon="t"/><general joint="g" gear="1 2 3" dyntype="integrator"/>
    <adhesion body="a" ctrlrange="0 1" gain="3"/>
  </actuator>
</mujoco>
""".replace('<body pos="2 0 1">', '<body name="b" pos="2 0 1">')

# diagnostics of MuJoCo, and what it computes only if a sensor needs it
HOW = {"solver_niter", "solver_nnz", "solver_fwdinv", "signature", "qH", "qHDiagInv", "qLU"}
HOW |= {"cacc", "cfrc_ext", "cfrc_int", "subtree_linvel", "subtree_angmom", "qDeriv"}
# its solver and its mj_constraintUpdate give a sliding row of dry friction opposite signs
HOW |= {"efc_state", "iefc_state"}
HOW |= {"parena", "pstack", "pbase", "maxuse_arena", "maxuse_stack", "maxuse_con", "maxuse_efc"}
# layouts that are written for sparse matrices only, and memory elsewhere
SPARSE = {f"efc_{m}_{n}" for m in "JYA" for n in ("colind", "rowadr", "rownnz", "rowsuper")}
SPARSE |= {"efc_AR_colind", "efc_AR_rowadr", "efc_AR_rownnz"}


def assert_same_data(mine, theirs, sparse):
    """Compare every number of two MjData that belongs to the state."""
    compared = 0
    for a, b in ((mine, theirs), (mine.contact, theirs.contact)):
        for name in dir(b):
            x, y = getattr(a, name), getattr(b, name)
            told = not name.startswith("_") and isinstance(y, np.ndarray | int | float)
            if not told or name in HOW or (name in SPARSE and not sparse):
                continue
            np.testing.assert_allclose(x, y, rtol=1e-6, atol=1e-6, err_msg=name)
            compared += 1
    assert compared > 150
    assert [w.number for w in mine.warning] == [w.number for w in theirs.warning]


def pair(integrator="implicitfast", cone="pyramidal", jacobian="dense"):
    """A scene of contacts, limits, friction, tendons and actuators in both engines."""
    xml = SCENE.format(integrator, cone, jacobian)
    oracle = mujoco.MjModel.from_xml_string(xml)
    state = mujoco.MjData(oracle)
    rng = np.random.default_rng(0)
    state.qpos[7] = 0.4
    state.qvel[:] = 0.3 * rng.normal(size=oracle.nv)
    state.ctrl[:] = 0.5
    mujoco.mj_forward(oracle, state)
    return oracle, state


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
@pytest.mark.parametrize("jacobian", ["dense", "sparse"])
def test_everything_of_a_state_comes_back(cone, jacobian):
    """Contacts, rows with their forces, the mass matrix and its factors."""
    oracle, state = pair(cone=cone, jacobian=jacobian)
    assert state.ncon == 1
    assert state.nefc > 3
    for keep in ("default", "all", ["contact", "ncon", "qacc"]):
        back = get_data(oracle, put_data(oracle, state, keep=keep))
        assert_same_data(back, state, jacobian == "sparse")


@pytest.mark.parametrize(
    "integrator", ["Euler", pytest.param("implicitfast", marks=pytest.mark.slow)]
)
def test_everything_of_a_step_is_there(integrator):
    """After a step, MuJoCo's results and ours are those of the state before it."""
    oracle, state = pair(integrator)
    m, d = put_model(oracle), put_data(oracle, state)
    d = step(m, d)
    mujoco.mj_step(oracle, state)
    back = get_data(oracle, d)
    assert_same_data(back, state, False)
    ours, theirs = np.zeros((2, 6))
    mujoco.mj_contactForce(oracle, back, 0, ours)
    mujoco.mj_contactForce(oracle, state, 0, theirs)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=SOLVER["atol"])
    assert theirs[0] > 1


def test_results_of_no_known_state_come_without_rows():
    """A step of Runge-Kutta ends with the results of a stage inside it."""
    oracle, state = pair("RK4")
    d = put_data(oracle, state)
    d = d.replace(xpos=d.xpos + 0.01)
    back = get_data(oracle, d)
    assert back.ncon == 1
    assert (back.nefc, back.contact.efc_address[0]) == (0, -1)
    np.testing.assert_array_equal(back.xpos, d.xpos)
    np.testing.assert_array_equal(back.qpos, d.qpos)


@pytest.mark.slow
def test_sparse_matrices_arrive():
    oracle, state = pair()
    d = put_data(oracle, state, keep="all")
    full = np.zeros((oracle.nv, oracle.nv))
    mujoco.mj_fullM(oracle, state, full)
    np.testing.assert_array_equal(d.M, full)
    f = forward(put_model(oracle), d)
    for name in ("ten_J", "actuator_moment"):
        assert np.any(getattr(d, name))
        np.testing.assert_allclose(
            getattr(d, name), getattr(f, name), atol=ROUNDING["atol"], err_msg=name
        )


def test_a_state_of_another_model_is_refused(oracle):
    other = mujoco.MjModel.from_xml_string("<mujoco><worldbody><body/></worldbody></mujoco>")
    d = put_data(oracle, mujoco.MjData(oracle))
    with pytest.raises(ValueError, match=r"MjData is one of another model: it has nq=0, .* nq=7"):
        get_data_into(mujoco.MjData(other), oracle, d)
    with pytest.raises(ValueError, match="put_data: the MjData is one of another model"):
        put_data(oracle, mujoco.MjData(other))
    with pytest.raises(ValueError, match=r"qpos: has shape \(7,\), expected for one world \(0,\)"):
        get_data(other, d)
