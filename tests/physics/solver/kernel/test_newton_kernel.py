"""Newton's method in a kernel of ours: every output of a step is that of the form XLA gets.

The kernel is interpreted here, operation by operation, which is what it computes on a device.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from programs import program_text

import jaxsim
from jaxsim.transforms.platform import for_platform

pytestmark = [pytest.mark.kernels, pytest.mark.long]

WORLDS = 7

# limits, dry friction, an equality, a tendon's limit, a ball joint's limit, contacts of all sizes
SCENE = """
<mujoco>
  <option cone="{cone}" iterations="5" ls_iterations="8"><flag warmstart="{warmstart}"/></option>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 1"><joint name="swing" axis="0 1 0" frictionloss=".2" limited="true"
      range="-20 20"/><geom type="capsule" size=".05" fromto="0 0 0 .4 0 0"/>
      <body pos=".4 0 0"><joint name="bend" axis="0 1 0"/>
        <geom size=".06" pos=".2 0 0" condim="1"/></body>
    </body>
    <body pos="0 1 .09"><freejoint/><geom type="box" size=".1 .1 .1" condim="4"/></body>
    <body pos=".3 1 .1"><freejoint/><geom size=".1" condim="6"/></body>
    <body pos="1 1 1"><joint type="ball" limited="true" range="0 3"/>
      <geom size=".1" pos="0 0 -.2"/></body>
  </worldbody>
  <tendon><fixed limited="true" range="-.02 .02">
    <joint joint="swing" coef=".5"/><joint joint="bend" coef="1"/></fixed></tendon>
  <equality><joint joint1="swing" polycoef=".1 0 0 0 0"/></equality>
</mujoco>
"""

# a limit, dry friction, an equality, contacts
SMALL = """
<mujoco>
  <option cone="{cone}" iterations="5" ls_iterations="8"><flag warmstart="{warmstart}"/></option>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 .1"><joint name="roll" type="slide" axis="1 0 0" frictionloss=".2"/>
      <joint name="rise" type="slide" axis="0 0 1"/><geom size=".1"/></body>
    <body pos=".3 1 .1"><joint name="turn" axis="0 1 0" limited="true" range="-2 2"/>
      <geom size=".1" pos="0 0 -.01"/></body>
  </worldbody>
  <equality><joint joint1="roll" joint2="turn" polycoef=".1 .5 0 0 0"/></equality>
</mujoco>
"""

# more dofs than lanes of a warp: limits, contacts
MANY = """
<mujoco>
  <option cone="{cone}" iterations="5" ls_iterations="8"><flag warmstart="{warmstart}"/></option>
  <worldbody>
    <geom type="plane" size="5 5 .1" condim="1"/>
    <body pos="0 1 1"><joint axis="0 1 0" limited="true" range="-2 2"/>
      <geom size=".1" pos=".1 0 0"/>
      <body pos=".3 0 0"><joint axis="1 1 0" limited="true" range="-2 2"/><geom size=".1"/></body>
    </body>
    <replicate count="5" offset=".19 0 0">
      <body pos="0 0 .1"><freejoint/><geom size=".1" condim="3"/></body>
    </replicate>
  </worldbody>
</mujoco>
"""

BALL = """
<mujoco>
  <option iterations="4" ls_iterations="8" integrator="implicitfast"/>
  <worldbody>
    <geom type="plane" size="5 5 .1" condim="1"/>
    <body pos="0 0 .1"><joint type="slide" axis="0 0 1" damping="1"/><geom size=".101"/></body>
  </worldbody>
</mujoco>
"""


def started(m: jaxsim.Model, worlds: int) -> jaxsim.Data:
    """Worlds that differ."""
    d = jaxsim.make_data(m)
    noise = 0.3 * np.random.default_rng(0).standard_normal((2, worlds, m.nv))

    def one(v, a):
        qpos = jaxsim.support.integrate_pos(m, d.qpos, v, 0.05)
        return d.replace(qvel=v, qpos=qpos, qacc_warmstart=10 * a)

    return jax.vmap(one)(*noise)


def both(m: jaxsim.Model, d: jaxsim.Data) -> tuple[jaxsim.Data, jaxsim.Data]:
    """A step as XLA gets it and with kernels."""
    step = jax.vmap(jaxsim.step, (None, 0))
    plain = jax.jit(step)(m, d)
    with for_platform("cpu", kernels=True):
        assert program_text(step, m, d).count("pallas_call") == 1
        return plain, jax.jit(step)(m, d)


@pytest.mark.parametrize(
    ("scene", "cone", "warmstart"),
    [
        (SMALL, "elliptic", "enable"),
        pytest.param(SMALL, "pyramidal", "enable", marks=pytest.mark.slow),
        pytest.param(MANY, "elliptic", "enable", marks=pytest.mark.slow),
        pytest.param(SCENE, "pyramidal", "enable", marks=pytest.mark.slow),
        pytest.param(SCENE, "elliptic", "disable", marks=pytest.mark.slow),
    ],
    ids=["small", "small pyramidal", "many", "pyramidal", "elliptic"],
)
def test_a_step_is_the_same(scene, cone, warmstart):
    m = jaxsim.load_model(scene.format(cone=cone, warmstart=warmstart))
    plain, ours = both(m, started(m, WORLDS))
    assert plain.ncon.max() > (1 if scene == SMALL else 2)
    for (path, a), b in zip(
        jax.tree_util.tree_leaves_with_path(ours), jax.tree.leaves(plain), strict=True
    ):
        scale = max(1.0, float(jnp.abs(b).max())) if b.size else 1.0
        np.testing.assert_allclose(
            a, b, rtol=1e-8, atol=1e-9 * scale, err_msg=jax.tree_util.keystr(path)
        )


@pytest.mark.slow
def test_one_world():
    m = jaxsim.load_model(SMALL.format(cone="pyramidal", warmstart="enable"))
    many = started(m, 3)
    d = jax.tree.map(lambda a: a[1], many)
    with for_platform("cpu", kernels=True):
        assert program_text(jaxsim.step, m, d).count("pallas_call") == 1
        found = jax.jit(jaxsim.step)(m, d)
    wanted = jax.jit(jax.vmap(jaxsim.step, (None, 0)))(m, many)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b[1], rtol=1e-8, atol=1e-9)


def test_a_tree_kept_by_its_entries_is_left_to_xla():
    limb = """<body pos=".1 0 0"><joint axis="0 1 0" range="-20 20"/><geom size=".05"/>{}</body>"""
    limbs = limb.format(limb.format(limb.format(""))) * 20
    contact = '<flag contact="disable"/>'
    m = jaxsim.load_model(
        f"<mujoco><option>{contact}</option><worldbody><body><freejoint/><geom size='.1'/>{limbs}"
        "</body></worldbody></mujoco>"
    )
    d = jax.vmap(lambda _: jaxsim.make_data(m))(jnp.arange(WORLDS))
    with for_platform("cpu", kernels=True):
        program = program_text(jax.vmap(jaxsim.step, (None, 0)), m, d)
    assert "pallas_call" not in program


@pytest.mark.slow
def test_gradient_is_the_same():
    m = jaxsim.load_model(BALL)
    d = jaxsim.make_data(m)
    many = jax.vmap(lambda v: d.replace(qvel=v))(
        0.3 * np.random.default_rng(1).standard_normal((WORLDS, m.nv))
    )

    def loss(qvel):
        new = jax.vmap(jaxsim.step, (None, 0))(m, many.replace(qvel=qvel))
        return jnp.sum(new.qvel**2) + jnp.sum(new.qpos)

    plain = jax.jit(jax.grad(loss))(many.qvel)
    with for_platform("cpu", kernels=True):
        ours = jax.jit(jax.grad(loss))(many.qvel)
    np.testing.assert_allclose(ours, plain, rtol=1e-8, atol=1e-9 * float(jnp.abs(plain).max()))
