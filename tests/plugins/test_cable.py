"""The cable plugin against figures of MuJoCo 3.17, which had it, and the laws of rods."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from plugins.make_cable import CABLES, CAPSULE, STEPS, cable
from states import world
from tolerance import DIFFERENCE, DYNAMICS, ROUNDING, STAGE, STIFF

import jaxsim

FIGURES = np.load(Path(__file__).parent / "cable.npz")
LENGTH, PARTS = 0.1, 8  # of the links, and how many, of the rods below
YOUNG, RADIUS = 1e8, 0.01
CURVED = "euler='10 20 30'"
BENDING = YOUNG * np.pi * RADIUS**4 / 4 / LENGTH  # of a joint [N m / rad]


def rod(shape: str = "", config: str = "", options: str = "") -> str:
    """Return a rod that is held at one end; `shape` orients each link in the one before."""
    link = f'<plugin instance="rod"/><geom type="capsule" size="{RADIUS}" fromto="0 0 0 .1 0 0"/>'
    inner = f'<body pos="{LENGTH} 0 0" {shape}><joint type="ball"/>{link}'
    return f"""<mujoco><option timestep="1e-4" {options}><flag contact="disable"/></option>
    <extension><plugin plugin="mujoco.elasticity.cable"><instance name="rod">
      <config key="bend" value="{YOUNG}"/><config key="twist" value="{YOUNG}"/>{config}</instance>
    </plugin></extension>
    <worldbody><body>{link}{inner * (PARTS - 1)}{"</body>" * PARTS}</worldbody></mujoco>"""


@pytest.mark.short("flat")
@pytest.mark.parametrize("name", CABLES)
def test_forces_and_motion_are_those_of_mujoco_3(name):
    m = jaxsim.load_model(CABLES[name])
    given = {n: jnp.array(FIGURES[f"{name}_{n}"]) for n in ("qpos", "qvel")}
    many = jax.vmap(lambda q, v: jaxsim.make_data(m).replace(qpos=q, qvel=v))(*given.values())
    found = jax.jit(jax.vmap(jaxsim.forward, (None, 0)))(m, many)
    np.testing.assert_allclose(found.qfrc_passive, FIGURES[f"{name}_qfrc_passive"], **STAGE)
    scale = np.abs(FIGURES[f"{name}_qacc"]).max()
    np.testing.assert_allclose(found.qacc / scale, FIGURES[f"{name}_qacc"] / scale, **DYNAMICS)
    first = world(many, 0)
    end, _ = jax.jit(lambda m, d: jaxsim.rollout(m, d, steps=STEPS))(m, first)
    for field in ("qpos", "qvel"):
        np.testing.assert_allclose(getattr(end, field), FIGURES[f"{name}_{field}_end"], **STIFF)


@jax.jit
def force(m: jaxsim.Model, moved: jax.Array) -> jax.Array:
    """The passive force of a state that a velocity leads to in a second, (nv,)."""
    d = jaxsim.make_data(m, keep="all")
    d = d.replace(qpos=jaxsim.support.integrate_pos(m, m.qpos0, moved, 1.0))
    for stage in (
        jaxsim.stages.kinematics,
        jaxsim.stages.com_pos,
        jaxsim.stages.com_vel,
        jaxsim.stages.passive,
    ):
        d = stage(m, d)
    return d.qfrc_passive


stiffness = jax.jit(jax.jacfwd(force, 1))


def test_there_is_no_force_in_the_shape_without_stress():
    still = jnp.zeros(3 * (PARTS - 1))
    np.testing.assert_allclose(force(jaxsim.load_model(rod(CURVED)), still), 0, **ROUNDING)
    flat = jaxsim.load_model(rod(CURVED, '<config key="flat" value="true"/>'))
    assert np.abs(force(flat, still)).min() > 0.1 * BENDING


@pytest.mark.slow
def test_a_cantilever_bends_as_a_beam_does():
    """Euler and Bernoulli: a load F at the end of a beam of length l moves it by F l^3 / (3 E I).

    The first joint represents half a link on either side: there the beam is clamped.
    """
    m = jaxsim.load_model(rod())
    arm = LENGTH * np.arange(PARTS - 1, 0, -1)  # of the end, from each joint
    jacobian = np.zeros((PARTS - 1, 3, 3))
    jacobian[:, 1, 2], jacobian[:, 2, 1] = -arm, arm
    jacobian = jacobian.reshape(-1, 3)
    K = -stiffness(m, jnp.zeros(m.nv))
    for axis in (1, 2):
        moved = np.linalg.solve(K, jacobian[:, axis]) @ jacobian
        beam = ((PARTS - 0.5) * LENGTH) ** 3 / (3 * BENDING * LENGTH)
        np.testing.assert_allclose(moved[axis], beam, rtol=0.005)
        joints = (LENGTH**2 / BENDING) * np.sum(np.arange(PARTS) ** 2)
        np.testing.assert_allclose(moved, joints * np.eye(3)[axis], rtol=1e-9, atol=1e-12)


def test_a_twisted_rod_turns_by_its_torsion_constant():
    m = jaxsim.load_model(rod())
    angles = np.zeros((PARTS - 1, 3))
    angles[:, 0] = 0.1
    torque = np.asarray(force(m, jnp.array(angles.ravel()))).reshape(-1, 3)
    np.testing.assert_allclose(torque, -2 * BENDING * angles, **STAGE)


@pytest.mark.slow
def test_a_rod_in_a_plane_keeps_its_energy():
    """There the force of a joint has the potential E I / (2 L) (angle - angle0)^2."""
    xml = rod("euler='0 15 0'", options='gravity="0 0 0" integrator="RK4"')
    m = jaxsim.load_model(xml)
    bent = jnp.zeros((PARTS - 1, 3)).at[:, 1].set(0.3)
    start = jaxsim.make_data(m)
    start = start.replace(qpos=jaxsim.support.integrate_pos(m, m.qpos0, bent.ravel(), 1.0))
    end, _ = jax.jit(lambda m, d: jaxsim.rollout(m, d, steps=200))(m, start)
    elastic, kinetic = (elastic_energy(start), elastic_energy(end)), kinetic_energy(m, end)
    assert 0.1 * elastic[0] < kinetic < 0.9 * elastic[0]
    np.testing.assert_allclose(elastic[1] + kinetic, elastic[0], rtol=1e-6)


def elastic_energy(d: jaxsim.Data) -> float:
    quat = np.asarray(d.qpos).reshape(-1, 4)
    return BENDING / 2 * float(np.sum((2 * np.arctan2(quat[:, 2], quat[:, 0])) ** 2))


def kinetic_energy(m: jaxsim.Model, d: jaxsim.Data) -> float:
    return float(d.qvel @ jax.jit(jaxsim.support.mul_m)(m, d, d.qvel)) / 2


def test_gradients():
    m = jaxsim.load_model(rod(CURVED))
    rng = np.random.default_rng(4)
    at, along = (jnp.array(0.3 * rng.normal(size=m.nv)) for _ in range(2))
    slope = stiffness(m, at) @ along
    differ = (force(m, at + 1e-6 * along) - force(m, at - 1e-6 * along)) / 2e-6
    np.testing.assert_allclose(slope, differ, **DIFFERENCE)
    softer = jax.tree.map(lambda a: a / 2, jaxsim.support.get_plugin_params(m, "rod"))
    halved = force(jaxsim.support.set_plugin_params(m, "rod", softer), at)
    np.testing.assert_allclose(halved, force(m, at) / 2, **ROUNDING)


@pytest.mark.slow
def test_chains_that_share_an_instance_are_apart():
    one = rod(CURVED)
    chain = one[one.index("<worldbody>") + len("<worldbody>") : one.index("</worldbody>")]
    two = jaxsim.load_model(one.replace(chain, chain + chain))
    moved = 0.3 * jnp.array(np.random.default_rng(5).normal(size=(2, two.nv // 2)))
    single = jax.vmap(force, (None, 0))(jaxsim.load_model(one), moved)
    np.testing.assert_allclose(force(two, moved.ravel()), single.ravel(), **ROUNDING)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        (CAPSULE, '<geom size=".1"/>', "needs a capsule, a cylinder or a box as its first geom"),
        ('type="ball"', 'axis="0 1 0"', "needs a ball joint, as its last joint"),
        ('pos=".1 0.0 0"', "", "it is where its parent is"),
    ],
)
def test_bodies_that_are_no_cable_are_refused(refused, old, new, words):
    xml = cable(CAPSULE, bend="1").replace(old, new)
    (message, *_) = refused(lambda: jaxsim.load_model(xml))
    assert words in message
    assert "body 1: " in message or "body 2: " in message


@pytest.mark.parametrize(("key", "value"), [("bend", "1e6 Pa"), ("twist", "x"), ("flat", "yes")])
def test_settings_are_checked(key, value):
    with pytest.raises(jaxsim.ModelError, match=f"cable: config '{key}' must be .*, got '{value}'"):
        jaxsim.load_model(cable(CAPSULE, **{key: value}))
