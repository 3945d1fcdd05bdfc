"""Functions that build a Data of their own, on every form of the joint-space inertia.

The inertia is one dense matrix, the blocks of trees that have none in common, or the entries
between dofs and their ancestors (`physics/partition.py`); what a function builds must do for each.
"""

import functools

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import world
from tolerance import DIFFERENCE, STAGE, STAGES

import jaxsim
from jaxsim.envs import randomize
from jaxsim.envs.tasks import make
from jaxsim.linalg.choose import Form
from jaxsim.model.model import Model
from jaxsim.physics.partition import inertia_choice

pytestmark = pytest.mark.kernels

GEOM = '<geom type="box" size=".1 .2 .3" pos=".1 .05 .02" euler="10 20 30"/>'
ARM = """<body pos="{k} 0 1"><joint name="a{k}" axis="0 1 0" armature=".1"/>{geom}
  <body pos=".4 0 0"><joint name="b{k}" axis="1 0 1"/>{geom}</body></body>"""
FREE = '<body pos="0 {k} 2" euler="0 30 {k}"><freejoint/>{geom}</body>'
SPOKE = """<body pos="{x} {y} 0"><joint axis="0 0 1"/>
  <geom size=".05" pos=".1 0 0" contype="0" conaffinity="0"/></body>"""


def xml(bodies: str, rest: str = "") -> str:
    return f"<mujoco><worldbody>{bodies}</worldbody>{rest}</mujoco>"


def arms(*k: int) -> str:
    return "".join(ARM.format(k=i, geom=GEOM) for i in k)


def free(count: int) -> str:
    return "".join(FREE.format(k=i, geom=GEOM) for i in range(count))


def star(count: int) -> str:
    """Return a body with many branches, which couple few dofs."""
    spokes = (SPOKE.format(x=np.cos(k), y=np.sin(k)) for k in range(count))
    return f"<body><joint type='slide' axis='1 0 0'/>{GEOM}{''.join(spokes)}</body>"


TENDON = """<tendon><fixed {armature}><joint joint="a0" coef="1"/><joint joint="b1" coef="-2"/>
  </fixed></tendon><actuator><motor joint="a2" gear="3" armature=".2"/></actuator>"""
# model text and form of the inertia
FORMS = {
    "one tree": (xml(arms(0)), Form.DENSE),
    "two trees of one dof": (
        xml(
            '<body><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0"/></body>'
            '<body pos="0 1 0"><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0"/></body>'
        ),
        Form.BLOCK_DIAGONAL,
    ),
    "many trees": (xml(arms(*range(4))), Form.BLOCK_DIAGONAL),
    "free bodies": (xml(free(3)), Form.BLOCK_DIAGONAL),
    "free bodies and arms": (xml(free(3) + arms(0, 1)), Form.BLOCK_DIAGONAL),
    "tendon": (xml(arms(0, 1, 2), TENDON.format(armature="")), Form.DENSE),
    "tendon with inertia": (
        xml(arms(0, 1, 2), TENDON.format(armature='armature=".3"')),
        Form.DENSE,
    ),
    "star": (xml(star(49)), Form.TREE_SPARSE),
    "no dofs": (xml(f"<body>{GEOM}</body>"), Form.DENSE),
    "empty": (xml(""), Form.DENSE),
}
each = pytest.mark.parametrize("name", FORMS)
KINDS = ("two trees of one dof", "tendon with inertia", "star")  # one of each form
some = pytest.mark.parametrize(
    "name", [n if n in KINDS else pytest.param(n, marks=pytest.mark.slow) for n in FORMS]
)
LEAVES = "body_mass body_inertia body_pos geom_size dof_armature actuator_armature".split()
COMPILER = {"xla_backend_optimization_level": 0}  # the programs run a few times


@functools.cache
def load(name: str) -> Model:
    return jaxsim.load_model(FORMS[name][0])


@functools.cache
def recomputed(name: str):
    """`set_const` of a model whose leaves were replaced, compiled once for all tests of it."""
    m = load(name)
    return jax.jit(lambda v: jaxsim.set_const(m.replace(**v)), compiler_options=COMPILER)


def changed(m: Model, seed: int) -> dict:
    """Leaves that differ from the model's; bodies that are simple keep their frames."""
    rng = np.random.default_rng(seed)
    noise = {n: 0.2 * rng.standard_normal(np.shape(getattr(m, n))) for n in LEAVES}
    return {n: jnp.asarray(np.array(getattr(m, n)) * np.exp(noise[n])) for n in LEAVES}


def same(got: Model, want: Model) -> None:
    for (path, a), b in zip(jax.tree.leaves_with_path(got), jax.tree.leaves(want), strict=True):
        np.testing.assert_allclose(a, b, **STAGES, err_msg=jax.tree_util.keystr(path))


@each
def test_the_models_have_the_forms_that_they_stand_for(name):
    m, form = load(name), FORMS[name][1]
    assert inertia_choice(m).form is form


@each
def test_set_const_is_the_compilers(name):
    same(recomputed(name)({}), load(name))


@each
def test_set_const_is_mujocos_after_changes(name):
    m, mj = load(name), mujoco.MjModel.from_xml_string(FORMS[name][0])
    new = changed(m, 0)
    for field, value in new.items():
        getattr(mj, field)[...] = np.reshape(value, getattr(mj, field).shape)
    mujoco.mj_setConst(mj, mujoco.MjData(mj))
    got = recomputed(name)(new)
    for field, f in Model.fields.items():
        value = getattr(got, field)
        if f.static or f.nested is not None or value is None or not hasattr(mj, field):
            continue
        want = np.reshape(np.array(getattr(mj, field), float), value.shape)
        np.testing.assert_allclose(
            value, want, rtol=STAGES["rtol"], atol=STAGE["atol"], err_msg=field
        )


@pytest.mark.short("two trees of one dof")
@some
def test_worlds_are_the_loop(name):
    m = load(name)
    new = [changed(m, seed) for seed in range(3)]
    stacked = jax.tree.map(lambda *a: jnp.stack(a), *new)
    many = jax.jit(jax.vmap(lambda v: jaxsim.set_const(m.replace(**v))), compiler_options=COMPILER)(
        stacked
    )
    for k, values in enumerate(new):
        same(world(many, k), recomputed(name)(values))


@pytest.mark.short("star")
@some
def test_gradient_is_the_difference_quotient(name):
    m = load(name)
    rng = np.random.default_rng(1)
    at = changed(m, 0)
    along = {n: v * rng.standard_normal(v.shape) for n, v in at.items()}
    weights = [rng.standard_normal(a.shape) for a in jax.tree.leaves(m)]

    def scalar(values):
        leaves = jax.tree.leaves(jaxsim.set_const(m.replace(**values)))
        return sum(jnp.sum(jnp.tanh(a) * w) for a, w in zip(leaves, weights, strict=True))

    both = jax.jit(jax.value_and_grad(scalar), compiler_options=COMPILER)  # one program
    gradient = both(at)[1]
    reverse = sum(jnp.vdot(gradient[n], along[n]) for n in LEAVES)
    h = 1e-6
    ahead, behind = (both({n: at[n] + s * h * along[n] for n in at})[0] for s in (1, -1))
    quotient = (ahead - behind) / (2 * h)
    np.testing.assert_allclose(reverse, quotient, **DIFFERENCE | {"rtol": 1e-6})


def test_the_constants_of_a_task_with_many_trees():
    jax.eval_shape(jaxsim.set_const, make("hand_cube").m)


@pytest.mark.slow
@some
def test_randomize_gives_each_world_its_constants(name):
    m = load(name)

    def heavier(m: Model, key: jax.Array) -> dict:
        factor = jax.random.uniform(key, (), m.body_mass.dtype, 0.5, 2.0)
        return {"body_mass": factor * m.body_mass, "body_inertia": factor * m.body_inertia}

    keys = jax.random.split(jax.random.key(0), 2)
    models, axes = randomize(m, keys, heavier)
    for k, key in enumerate(keys):
        own = jax.tree.map(lambda a, axis, k=k: a if axis is None else a[k], models, axes)
        same(own, recomputed(name)(heavier(m, key)))
