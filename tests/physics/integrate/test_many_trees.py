"""Models of many trees, whose equations are solved tree by tree, in each integrator."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import pushed

import jaxsim
from jaxsim.linalg.choose import Form
from jaxsim.physics.partition import inertia_choice

pytestmark = pytest.mark.kernels

GEOM = '<geom size=".1 .2 .3" type="box" contype="0" conaffinity="0" pos=".1 0 0"/>'
ARM = f"""<body pos="{{k}} 0 0"><joint axis="0 1 .2" damping=".3" armature=".1"/>{GEOM}
  <body pos=".3 0 0"><joint type="slide" axis="1 0 0" stiffness="3"/>{GEOM}</body>
  <body pos="0 .3 0"><joint type="ball" damping=".1"/>{GEOM}</body></body>"""
FREE = f'<body pos="{{k}} 1 0"><freejoint/>{GEOM}</body>'
WORLDS = 3


def _model(integrator: str, free: int, flag: str = "") -> str:
    bodies = "".join(ARM.format(k=k) for k in range(4))
    bodies += "".join(FREE.format(k=k) for k in range(free))
    return f"""<mujoco><option integrator="{integrator}"><flag energy="enable" {flag}/></option>
      <worldbody>{bodies}</worldbody></mujoco>"""


@pytest.mark.short("Euler-2-", "implicit-2-")
@pytest.mark.parametrize(
    ("integrator", "free", "flag"),
    [
        ("Euler", 2, ""),
        ("implicitfast", 0, ""),
        ("implicitfast", 2, 'damper="disable"'),
        ("implicit", 2, ""),
    ],
)
def test_a_step_and_its_inverse_equal_those_of_mujoco(integrator, free, flag):
    text = _model(integrator, free, flag)
    mj, m = mujoco.MjModel.from_xml_string(text), jaxsim.load_model(text)
    assert inertia_choice(m).form is Form.BLOCK_DIAGONAL
    states, given = pushed(mj, WORLDS)
    start = jaxsim.make_data(m, keep=["qacc", "energy"])
    many = jax.vmap(lambda v: start.replace(**v))(given)
    found = jax.jit(jax.vmap(jaxsim.step, (None, 0)))(m, many)
    one = jax.jit(jaxsim.step)(m, jax.tree.map(lambda a: a[0], many))
    for k, mjd in enumerate(states):
        mujoco.mj_step(mj, mjd)
        for name in ("qacc", "qvel", "qpos", "energy"):
            expected = getattr(mjd, name)
            bound = 1e-10 * max(1, np.abs(expected).max())
            np.testing.assert_allclose(getattr(found, name)[k], expected, rtol=0, atol=bound)
            if k == 0:
                np.testing.assert_allclose(getattr(one, name), expected, rtol=0, atol=bound)


def test_products_with_the_inertia_equal_those_of_mujoco():
    text = _model("Euler", 2)
    mj, m = mujoco.MjModel.from_xml_string(text), jaxsim.load_model(text)
    mjd, vec = mujoco.MjData(mj), np.random.default_rng(1).standard_normal(mj.nv)
    mujoco.mj_forward(mj, mjd)
    product, solution = np.zeros(mj.nv), np.zeros((1, mj.nv))
    mujoco.mj_mulM(mj, mjd, product, vec)
    mujoco.mj_solveM(mj, mjd, solution, vec[None])
    d = jaxsim.make_data(m)
    functions = jax.jit(lambda v: (jaxsim.support.mul_m(m, d, v), jaxsim.support.solve_m(m, d, v)))
    for ours, theirs in zip(functions(jnp.asarray(vec)), (product, solution[0]), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-11, atol=1e-11)
