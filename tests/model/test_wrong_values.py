"""Values that no field of a model, an option or a state can have, and arguments that are no names.

Each is refused where it is given, or by the step, and the message names the field and what it may
be; none is taken silently.
"""

import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim

XML = """<mujoco><worldbody><body name="b"><joint name="j"/><geom size=".1"/></body></worldbody>
  <actuator><motor name="a" joint="j"/></actuator>
  <sensor><jointpos name="s" joint="j"/></sensor></mujoco>"""


@pytest.fixture(scope="module")
def world():
    m = jaxsim.load_model(XML)
    return m, jaxsim.make_data(m)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("solver", "CG", r"solver: expected one of SolverType \(PGS, CG, NEWTON\), got 'CG'"),
        ("cone", 7, r"cone: expected one of ConeType \(.*got 7"),
        ("integrator", "RK4", r"integrator: expected one of IntegratorType .*got 'RK4'; write"),
        ("integrator", 2.0, r"integrator: expected one of IntegratorType .*got 2\.0"),
        ("jacobian", None, "jacobian: expected one of JacobianType .*got None"),
        ("iterations", -3, "iterations: expected a whole number, at least 0, got -3"),
        ("ls_iterations", 3.5, "ls_iterations: expected a whole number, at least 0, got 3.5"),
        ("noslip_iterations", True, "noslip_iterations: expected a whole number"),
        ("sdf_initpoints", 2**40, "sdf_initpoints: expected a whole number"),
        ("disableflags", "contact", "disableflags: expected a sum of bits of DisableBit"),
        ("enableflags", -1, "enableflags: expected a sum of bits of EnableBit, at least 0, got -1"),
        ("enableflags", 1 << 40, "enableflags: expected a sum of bits of EnableBit"),
    ],
)
def test_options_that_mean_nothing_are_refused(world, name, value, message):
    m, _ = world
    with pytest.raises(ValueError, match=message):
        m.opt.replace(**{name: value})


def test_enums_of_any_package_are_the_same_option(world):
    m, _ = world
    for value in (jaxsim.enums.SolverType.CG, mujoco.mjtSolver.mjSOL_CG, np.int64(1), 1):
        new = m.opt.replace(solver=value, iterations=np.int32(7))
        assert type(new.solver) is int
        assert new.solver == 1
        assert type(new.iterations) is int
    flags = jaxsim.enums.DisableBit.CONTACT | jaxsim.enums.DisableBit.GRAVITY
    assert m.opt.replace(disableflags=flags).disableflags == int(flags)


@pytest.mark.parametrize(
    "value", [jnp.ones(2, complex), np.array(["a", "b"]), np.array([None, 1], object)], ids=str
)
def test_numbers_that_are_not_real_are_refused(world, value):
    m, d = world
    with pytest.raises(ValueError, match="body_mass: expected real numbers, got"):
        m.replace(body_mass=value)
    with pytest.raises(ValueError, match="qpos: expected real numbers, got"):
        d.replace(qpos=value[:1])


def test_a_step_names_what_is_none(world):
    m, d = world
    with pytest.raises(ValueError, match=r"step: m.body_mass: expected an array .*, got None"):
        jaxsim.step(m.replace(body_mass=None), d)
    with pytest.raises(ValueError, match=r"step: m.opt.timestep: expected an array .*, got None"):
        jaxsim.step(m.tree_replace({"opt.timestep": None}), d)
    with pytest.raises(ValueError, match=r"step: d.qvel: expected an array .*, got None"):
        jaxsim.step(m, d.replace(qvel=None))


def test_attributes_that_are_misspelled_have_a_neighbour(world):
    m, d = world
    with pytest.raises(AttributeError, match="no field 'body_mas'; did you mean 'body_mass'"):
        _ = m.body_mas
    with pytest.raises(AttributeError, match="no field 'nbodi'; did you mean 'nbody'"):
        _ = m.nbodi
    with pytest.raises(AttributeError, match="Data has no field 'qpso'; did you mean 'qpos'"):
        _ = d.qpso


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, d: jaxsim.sensor_data(m, d, 3), "sensor: expected a name or several, got 3"),
        (lambda m, d: jaxsim.qpos_index(m, None), "joint: expected a name or several, got None"),
        (lambda m, d: jaxsim.ctrl_index(m, ["a", 1]), "actuator: expected a name or several"),
        (lambda m, d: jaxsim.id2name(m, "body", "b"), "id2name: index: expected an integer id"),
        (lambda m, d: jaxsim.get_state(m, d, "qpos"), "spec: expected bits of jaxsim.enums.State"),
        (
            lambda m, d: jaxsim.state_size(m, 1.5),
            "spec: expected bits of jaxsim.enums.State, got 1.5",
        ),
        (
            lambda m, d: jaxsim.make_data(m, keep=jaxsim.stages.crb),
            "keep: expected .* list of names",
        ),
        (lambda m, d: jaxsim.rollout(m, d, jnp.zeros((5, 1))), "rollout: steps: expected a whole"),
        (
            lambda m, d: jaxsim.rollout(m, d, jnp.zeros(())),
            r"steps: expected a whole .*float64\[\]",
        ),
    ],
)
def test_arguments_of_another_kind_are_refused(world, call, message):
    with pytest.raises(ValueError, match=message):
        call(*world)
