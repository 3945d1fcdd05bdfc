"""Functions that ask of an object take its name, its number, or a number that is traced."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import program_text
from public import NAMESPACES, public

import jaxsim
from jaxsim import view

# the second of each kind
XML = """<mujoco><default><geom contype="0" conaffinity="0"/></default>
<asset><mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/>
  <hfield name="h" nrow="2" ncol="2" size="1 1 1 1"/></asset>
<worldbody>
  <body name="other"><joint axis="0 1 0"/><geom name="first" type="hfield" hfield="h"/>
    <site name="there"/><camera name="c0"/></body>
  <body name="here" pos="0 0 2"><joint name="j" axis="0 0 1"/>
    <geom name="here" type="mesh" mesh="m"/>
    <site name="here" pos="1 0 0"/><camera name="here" pos="0 -3 0" xyaxes="1 0 0 0 0 1"/></body>
</worldbody>
<actuator><motor joint="j" nsample="2"/><motor name="here" joint="j" nsample="2"/></actuator>
<sensor><jointpos joint="j" nsample="2"/><jointpos name="here" joint="j" nsample="2"/></sensor>
<keyframe><key/><key name="here" time="1"/></keyframe></mujoco>"""
P, Q = jnp.array([0.1, 0.2, 2.2]), jnp.array([1.0, 0, 0, 0])
# what each is given besides the object: `...` is where it stands
GIVEN = {
    "jac": (P, ...),
    "jac_body": (...,),
    "jac_body_com": (...,),
    "jac_dot": (P, ...),
    "jac_geom": (...,),
    "jac_site": (...,),
    "jac_point_axis": (P, P, ...),
    "jac_subtree_com": (...,),
    "angmom_mat": (...,),
    "apply_ft": (P, P, P, ..., jnp.zeros(2)),
    "local_to_global": (P, Q, ...),
    "geom_distance": (..., 0, 1.0),
    "geom_sdf": (..., P),
    "inside_site": (..., P),
    "object_velocity": ("geom", ...),
    "object_acceleration": ("camera", ...),
    "ray": (P, P, None, True, ...),
    "multi_ray": (P, P[None], None, True, ...),
    "ray_mesh": (..., P, -P),
    "ray_hfield": (..., P, -P),
    "read_ctrl": (..., 0.0),
    "read_sensor": (..., 0.0),
    "init_ctrl_history": (..., None, jnp.ones(2)),
    "init_sensor_history": (..., None, jnp.ones(2), 0.0),
    "reset_data_keyframe": (...,),
    "set_keyframe": (...,),
}
FIRST = {"ray_hfield"}  # what asks for the first object
STATIC = {"geom_sdf", "read_ctrl", "read_sensor", "init_ctrl_history", "init_sensor_history"}
# whose numbers are traced in the tests of distances and rays
TRACED = {"geom_distance", "ray", "multi_ray", "ray_mesh", "ray_hfield"}
OBJECTS = {"body", "geom", "geom1", "site", "objid", "actuator", "sensor", "key", "bodyexclude"}
NOT_OF_A_STATE = {"actuator_input_name"}  # tested in tests/model/test_names.py


@pytest.fixture(scope="module")
def world():
    m = jaxsim.load_model(XML)
    return m, jaxsim.forward(m, jaxsim.make_data(m, keep="all").replace(qvel=jnp.ones(2)))


def functions() -> set[str]:
    """Public functions with an argument that is an object."""
    found = set()
    for name in [name for space in NAMESPACES for name in space.__all__]:
        value = public(name)
        if inspect.isfunction(value):
            found |= {name} if OBJECTS & set(inspect.signature(value).parameters) else set()
    return found - NOT_OF_A_STATE


def test_all_query_functions_accept_names():
    assert functions() == set(GIVEN)


@pytest.mark.parametrize("name", GIVEN)
def test_a_name_is_its_number(world, name):
    m, d = world
    if name == "geom_sdf":
        pytest.skip("meshes here have no signed distance; tests/physics/query/test_geom_sdf.py")
    function, first = public(name), name in FIRST

    def ask(which):
        return function(m, d, *(which if a is ... else a for a in GIVEN[name]))

    number, called = (0, "first") if first else (1, "here")
    if name in ("ray", "multi_ray"):
        number = jaxsim.name2id(m, "body", "here")
    elif name in ("jac", "jac_body", "jac_body_com", "jac_dot", "jac_point_axis", "apply_ft") or (
        name in ("jac_subtree_com", "angmom_mat", "local_to_global")
    ):
        number = 2
    # the same program, which needs no run to show it
    programs = {program_text(lambda which=which: ask(which)) for which in (number, called)}
    assert len(programs) == 1
    if name not in STATIC | TRACED:
        found, expected = jax.jit(lambda which: (ask(which), ask(number)))(jnp.array(number))
        jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-12), found, expected)
    with pytest.raises(ValueError, match=r"no \w+ is named 'hero'; did you mean 'here'\?"):
        jax.eval_shape(lambda: ask("hero"))
    if name not in ("ray", "multi_ray"):  # -1 is none there
        with pytest.raises(ValueError, match=r"there is no|the model has"):
            jax.eval_shape(lambda: ask(7))


@pytest.mark.slow
def test_several_bodies_that_a_ray_does_not_meet(world):
    m, d = world

    @jax.jit
    def hits(exclude):
        numbers = jaxsim.support.ray(m, d, P, P, bodyexclude=exclude)
        return jaxsim.support.ray(m, d, P, P, bodyexclude=["other", 2]), numbers

    for hit in hits(jnp.array([1, 2])):
        assert hit.geomid == -1


@pytest.mark.slow
def test_a_body_that_is_held_with_the_mouse(world):
    m, d = world
    camera = view.default_free_camera(m)
    assert view.init_perturb(m, d, camera, "here", P).select == 2
