"""Trees of many dofs, whose equations are solved by the entries of the inertia."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import pushed, world

import jaxsim
from jaxsim.linalg.choose import Form
from jaxsim.physics.partition import inertia_choice

pytestmark = pytest.mark.kernels

GEOM = '<geom type="capsule" fromto="0 0 0 .2 .05 0" size=".03" contype="0" conaffinity="0"/>'
HINGE = '<joint axis="0 {a} {b}" damping=".{c}" armature=".0{c}"/>'
HELD = '<joint axis="0 {a} {b}" damping=".{c}" range="-{c}0 10" frictionloss=".0{c}"/>'
TURNS = '<joint type="ball" damping=".2" range="0 20"/>'
BALL = '<joint type="ball" damping=".2"/>'
TWO = '<joint axis="1 0 0" stiffness="1"/><joint type="slide" axis="0 1 0" damping=".3"/>'
WORLDS = 3
OPTION = '<mujoco><option iterations="100" tolerance="1e-16"/>'


def _bodies(count: int, parent, joint, start: str = "") -> str:
    children: dict[int, list[int]] = {}
    for k in range(1, count):
        children.setdefault(parent(k), []).append(k)

    def body(k: int) -> str:
        own = start if k == 0 and start else joint(k).format(a=k % 2, b=1 - k % 2, c=1 + k % 5)
        inner = "".join(map(body, children.get(k, [])))
        return f'<body pos=".2 {0.1 * (k % 2)} .1">{own}{GEOM}{inner}</body>'

    return body(0)


def _hinges(k: int) -> str:
    return HINGE


def _held(k: int) -> str:
    return (HELD, HINGE, TURNS)[k % 3]


def _mixed(k: int) -> str:
    return (HINGE, BALL, TWO)[k % 3]


TREES = {
    "binary": _bodies(63, lambda k: (k - 1) // 2, _hinges),
    "free, of all joints": _bodies(40, lambda k: (k - 1) // 3, _mixed, "<freejoint/>"),
    # with rows, each of one joint
    "held": _bodies(45, lambda k: (k - 1) // 2, _held),
    # and small trees, one of which is between the dofs of a body without any
    "several": _bodies(7, lambda k: k - 1, _mixed)
    + f"<body>{GEOM}</body>"
    + _bodies(90, lambda k: k - 1 if k % 6 else 0, _hinges)
    + _bodies(1, None, None, "<freejoint/>"),
}


SIMILAR = ("binary", "free, of all joints")  # the others have their joints too


@pytest.fixture(
    scope="module",
    params=[pytest.param(t, marks=pytest.mark.slow) if t in SIMILAR else t for t in TREES],
)
def scene(request):
    text = f"{OPTION}<worldbody>{TREES[request.param]}</worldbody></mujoco>"
    mj = mujoco.MjModel.from_xml_string(text)
    m = jaxsim.load_model(text)
    assert inertia_choice(m).form is Form.TREE_SPARSE
    states, given = pushed(mj, WORLDS)
    many = jax.vmap(lambda v: jaxsim.make_data(m, keep=["qacc", "M"]).replace(**v))(given)
    return mj, m, states, many


def test_a_step_equals_that_of_mujoco_and_that_of_many_worlds_that_of_each(scene):
    mj, m, states, many = scene
    found = jax.jit(jax.vmap(jaxsim.step, (None, 0)))(m, many)
    one = jax.jit(jaxsim.step)
    for k, mjd in enumerate(states):
        alone = one(m, world(many, k))
        mujoco.mj_step(mj, mjd)
        for name in ("qacc", "qvel", "qpos"):
            expected = getattr(mjd, name)
            bound = 1e-10 * max(1, np.abs(expected).max())
            np.testing.assert_allclose(getattr(found, name)[k], expected, rtol=0, atol=bound)
            np.testing.assert_allclose(getattr(alone, name), expected, rtol=0, atol=bound)
        full = np.zeros((mj.nv, mj.nv))
        mujoco.mj_fullM(mj, mjd, full)
        np.testing.assert_allclose(found.M[k], full, rtol=0, atol=1e-10 * np.abs(full).max())


@pytest.mark.slow
def test_derivatives_of_a_step_are_those_of_finite_differences(scene):
    mj, m, _, many = scene
    d = world(many, 0)
    rng = np.random.default_rng(3)
    weights = jnp.asarray(rng.standard_normal(mj.nv))

    def objective(move, speed, mass):
        there = jaxsim.support.integrate_pos(m, d.qpos, move, 1.0)
        model = m.replace(body_mass=m.body_mass * mass)
        return weights @ jaxsim.step(model, d.replace(qpos=there, qvel=speed)).qvel

    at = (jnp.zeros(mj.nv), d.qvel, jnp.ones(()))
    direction = (*jnp.asarray(rng.standard_normal((2, mj.nv))), jnp.ones(()))

    def value(s):
        return objective(*(a + s * v for a, v in zip(at, direction, strict=True)))

    both, h = jax.jit(lambda s: jax.jvp(value, (s,), (1.0,))), 1e-4  # one program
    near, far = ((both(k * h)[0] - both(-k * h)[0]) / (2 * k * h) for k in (1, 2))
    expected = (4 * near - far) / 3
    gradient = jax.jit(jax.grad(objective, argnums=(0, 1, 2)))(*at)
    along = sum(jnp.vdot(g, v) for g, v in zip(gradient, direction, strict=True))
    np.testing.assert_allclose(along, expected, rtol=1e-6)
    np.testing.assert_allclose(both(0.0)[1], expected, rtol=1e-6)
