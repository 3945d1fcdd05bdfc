"""Sizes and densities of geoms: a fit changes what the compiler makes of them."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from tolerance import DYNAMICS, ROUNDING

import jaxsim
from jaxsim.identify import linear, log, parameters, scale

ARM = """<mujoco><worldbody><geom name="floor" type="plane" size="3 3 .1" pos="0 0 -3"/>
<body name="arm"><joint name="a" axis="0 1 0" armature=".01"/>
  <geom name="rod" type="capsule" size=".03 {half}" pos="0 0 -.3" density="{density}"/>
  <geom name="end" type="box" size=".05 {width} .08" pos=".02 .03 -.6" euler="10 20 30"/>
  <body name="tool" pos="0 0 -.7"><joint name="b" axis="1 0 0"/>
    <geom name="tip" type="cylinder" size="{radius} .1" pos="0 0 -.1"/>
    <geom name="written" size=".02" pos=".03 0 0" mass=".3"/></body></body>
<body name="other" pos="1 0 0"><freejoint/><geom size=".1" mass="2"/>
  <geom size=".1" pos="0 .3 0"/></body>
<body name="told" pos="2 0 0"><freejoint/><inertial pos="0 0 0" mass="2" diaginertia="1 1 1"/>
  <geom name="of told" size=".1"/></body>
</worldbody></mujoco>"""
BASE = {"half": 0.2, "density": 1500, "width": 0.06, "radius": 0.04}
NAMES = {
    "half": "geom:rod/size[1]",
    "density": "geom:rod/density",
    "width": "geom:end/size[1]",
    "radius": "geom:tip/size[0]",
}
NEW = {"half": 0.27, "density": 2100, "width": 0.11, "radius": 0.05}


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(ARM.format(**BASE))


@pytest.fixture(scope="module")
def searched(m):
    """The parameters, and the program of their model."""
    P = parameters(m, {name: log(1e-3, 1e5) for name in NAMES.values()})
    return P, jax.jit(lambda theta: P.model(m, theta))


def tensors(m):
    """Inertia of each body in its own frame: principal axes may be half turned, (nbody, 3, 3)."""
    axes = Rotation.from_quat(m.body_iquat, scalar_first=True).as_matrix()
    return axes * np.asarray(m.body_inertia)[:, None, :] @ axes.swapaxes(1, 2)


@pytest.mark.parametrize("which", [*([n] for n in NAMES), list(NAMES)], ids=[*NAMES, "all"])
def test_a_size_or_density_is_that_of_the_file(m, searched, which):
    """Derived constants of MuJoCo's compiler included."""
    P, model = searched
    np.testing.assert_allclose(P.numbers(P.nominal()), [BASE[n] for n in NAMES], **ROUNDING)
    new = model(P.vector({NAMES[n]: NEW[n] for n in which}))
    text = ARM.format(**BASE | {n: NEW[n] for n in which})
    mj = mujoco.MjModel.from_xml_string(text)
    for field in (
        *("geom_size", "geom_rbound", "body_mass", "body_inertia", "body_ipos"),
        *("body_subtreemass", "dof_M0", "body_invweight0", "dof_invweight0"),
    ):
        np.testing.assert_allclose(
            getattr(new, field), getattr(mj, field), err_msg=field, **DYNAMICS
        )
    np.testing.assert_allclose(tensors(new), tensors(mj), **DYNAMICS)
    # bodies of other geoms keep their numbers to the bit
    for field in ("body_mass", "body_inertia", "body_ipos", "body_iquat"):
        np.testing.assert_array_equal(getattr(new, field)[3:], getattr(m, field)[3:])


@pytest.mark.slow
def test_the_derivative_by_sizes_and_densities_is_that_of_differences(m):
    P = parameters(m, {name: scale(0.5, 2) for name in NAMES.values()})
    theta = P.nominal() + 0.1

    @jax.jit
    def f(theta):
        new = P.model(m, theta)
        return jnp.concatenate([new.dof_M0, new.body_inertia.ravel(), new.dof_invweight0])

    slopes = jax.jit(jax.jacfwd(f))(theta)
    steps = 1e-6 * np.eye(len(theta))
    difference = [(f(theta + e) - f(theta - e)) / 2e-6 for e in steps]
    np.testing.assert_allclose(slopes, np.stack(difference, -1), rtol=1e-6, atol=1e-7)


def test_a_mass_that_is_searched_too_holds(m):
    P = parameters(m, {"body:arm/mass": linear(), "geom:rod/size[1]": linear()})
    model = jax.jit(lambda theta: P.model(m, theta))
    new = model(P.vector({"body:arm/mass": 9.0, "geom:rod/size[1]": 0.25}))
    assert new.body_mass[1] == pytest.approx(9)
    assert new.geom_size[1, 1] == pytest.approx(0.25)


def test_a_shared_factor_multiplies_the_inertia_that_follows_from_a_size(m):
    """The model equals MuJoCo's whose inertia is multiplied after it was compiled."""
    forms = {"body:arm/inertia": scale(0.5, 3, share=True), "geom:rod/size[1]": linear()}
    P = parameters(m, forms | {"body:arm/mass": scale(0.5, 3, share=True)})
    values = {"body:arm/inertia": 1.5, "geom:rod/size[1]": 0.27, "body:arm/mass": 1.2}

    def model(theta):
        new = P.model(m, theta)
        return new.body_inertia[1], new

    slope, new = jax.jit(jax.jacfwd(model, has_aux=True))(P.vector(values))
    mj = mujoco.MjModel.from_xml_string(ARM.format(**BASE | {"half": 0.27}))
    mj.body_inertia[1] *= 1.5
    mj.body_mass[1] *= 1.2
    mujoco.mj_setConst(mj, mujoco.MjData(mj))
    for field in ("body_mass", "dof_M0", "body_invweight0", "dof_invweight0"):
        np.testing.assert_allclose(
            getattr(new, field), getattr(mj, field), err_msg=field, **DYNAMICS
        )
    np.testing.assert_allclose(tensors(new), tensors(mj), **DYNAMICS)
    # the derivative by the factor, of the logistic function of its logarithm
    u = P.vector(values)[0]
    logistic = np.log(3 / 0.5) * jax.nn.sigmoid(u) * jax.nn.sigmoid(-u)
    np.testing.assert_allclose(slope[:, 0], logistic * new.body_inertia[1], **DYNAMICS)


def test_a_body_with_an_inertial_keeps_it(m):
    P = parameters(m, {"geom:of told/size[0]": linear()})
    new = jax.jit(lambda theta: P.model(m, theta))(P.vector({"geom:of told/size[0]": 0.2}))
    np.testing.assert_array_equal(new.body_mass, m.body_mass)
    assert new.geom_rbound[-1] == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("geom:written/density", "the mass of geom 'written' is written, not its density"),
        ("geom:of told/density", "its body has an <inertial>"),
        ("geom:floor/density", "no mass follows from geom 'floor'"),
    ],
)
def test_densities_that_are_none_are_told(m, name, message):
    with pytest.raises(ValueError, match=f"^{name}: .*{message}"):
        parameters(m, {name: linear()})


def test_model_from_put_model_has_no_inferred_inertias():
    put = jaxsim.put_model(mujoco.MjModel.from_xml_string(ARM.format(**BASE)))
    with pytest.raises(ValueError, match=r"geom:tip/size.*load it from MJCF"):
        parameters(put, {"geom:tip/size[0]": linear()})
