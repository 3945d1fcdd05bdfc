"""Numbers that reach a model without `replace` are refused where its program would ignore them."""

import copy
import pickle

import flax.serialization
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.envs import Env, VectorEnv
from jaxsim.model.switch.switches import FREEABLE_FIELDS

XML = """<mujoco><worldbody><geom name="floor" type="plane" size="9 9 1" pos="0 0 -9"/>
<body><joint name="a" axis="0 1 0" range="-1 1"/><geom name="ball" size=".05" pos=".3 0 0"/>
</body></worldbody><tendon><fixed name="rope" range="0 1"><joint joint="a" coef="1"/></fixed>
</tendon><actuator><motor joint="a"/></actuator>
<contact><pair geom1="ball" geom2="floor"/></contact></mujoco>"""
FIELDS = sorted(FREEABLE_FIELDS)
NAME = "dof_frictionloss"


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(XML)


@pytest.fixture(scope="module")
def free():
    return jaxsim.load_model(XML, free="all")


def with_number(free, field):
    """Return the model with all fields traced, with numbers in one of them."""
    owner, _, name = field.rpartition(".")
    old = getattr(free.opt if owner else free, name)
    return free.tree_replace({field: jnp.full_like(old, 0.5)})


def restored(m, new):
    """Restore the values by our dicts."""
    return jaxsim.from_state_dict(m, jaxsim.state_dict(new))


def through_flax(m, new):
    """In a tree of something else."""
    data = flax.serialization.to_bytes({"step": 3, "model": new})
    return flax.serialization.from_bytes({"step": 0, "model": m}, data)["model"]


def with_leaves(m, new):
    """The old tree with new leaves, as many libraries restore."""
    return jax.tree.unflatten(jax.tree.structure(m), jax.tree.leaves(new))


def unflattened(m, new):
    """Unflatten the model, which is then used."""
    model = with_leaves(m, new)
    jaxsim.make_data(model)
    return model


WAYS = {"dict": restored, "flax": through_flax, "unflatten": unflattened}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("field", FIELDS)
def test_numbers_of_a_field_that_was_compiled_out_are_refused(m, free, way, field):
    new = with_number(free, field)
    with pytest.raises(ValueError, match=rf"{field}: was 0 when .* free=\('{field}',\)"):
        WAYS[way](m, new)
    model = WAYS[way](free, new)  # a traced field keeps its values
    jax.tree.map(np.testing.assert_array_equal, model, new)
    jax.tree.map(np.testing.assert_array_equal, WAYS[way](m, m), m)


USES = {
    "make_data": lambda m: jaxsim.make_data(m),
    "forward": lambda m: jaxsim.stages.kinematics(m, DATA),
    "rollout": lambda m: jaxsim.ControlLoop(m, DATA),
    "Env": Env,
}
DATA = jaxsim.make_data(jaxsim.load_model(XML))


@pytest.mark.parametrize("use", USES)
def test_each_function_that_takes_a_model_refuses_such_numbers(m, free, use):
    USES[use](m)  # which is not remembered for the next object
    wrong = with_leaves(m, with_number(free, NAME))
    for model in (wrong, pickle.loads(pickle.dumps(wrong)), copy.copy(wrong)):
        with pytest.raises(ValueError, match=f"{NAME}: was 0 when"):
            USES[use](model)


def test_a_checked_model_is_checked_again_when_its_structure_changes(m, free):
    new = with_number(free, NAME)
    jaxsim.make_data(new)
    with pytest.raises(ValueError, match=f"make_data: m.{NAME}: was 0 when"):
        jaxsim.make_data(new.replace(structure=m.structure))


def test_models_of_worlds_are_checked(m, free):
    worlds = jax.tree.map(lambda x: jnp.stack([x, x]), m)
    axes = jax.tree.map(lambda _: 0, m)
    VectorEnv(Env(m), model=worlds, axes=axes)
    new = with_leaves(m, with_number(free, NAME))
    lost = jax.tree.map(lambda old, x: jnp.stack([old, x]), m, new)
    with pytest.raises(ValueError, match=f"model: {NAME}: was 0 when"):
        VectorEnv(Env(m), model=lost, axes=axes)


def test_shapes_and_traced_numbers_are_not_looked_at(m):
    """A restore into shapes, under `jit`; tangents are models with any numbers."""
    shapes = jax.eval_shape(lambda: m)
    state = jaxsim.state_dict(m)
    jaxsim.from_state_dict(shapes, state)
    jax.jit(lambda x: jaxsim.make_data(m).qpos + x)(0.0)  # known numbers inside a program
    again = jax.jit(lambda state: jaxsim.from_state_dict(m, state).qpos0)(state)
    np.testing.assert_array_equal(again, m.qpos0)
    tangent = jax.tree.map(jnp.ones_like, m)
    total = jax.jvp(lambda m: m.dof_damping.sum() + m.dof_frictionloss.sum(), (m,), (tangent,))[1]
    assert total == 2
