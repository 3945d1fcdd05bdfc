"""The solver's systems in one kernel: the numbers are those of NumPy and of the form XLA gets.

The kernel is interpreted here, operation by operation, which is what it computes on a device.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import ROUNDING

import jaxsim
from jaxsim.physics.arrays.platform import for_platform
from jaxsim.physics.arrays.system.normal_kernel import LANES, Contacts, serves, solve_normal

SCENE = """
<mujoco>
  <option cone="{cone}" iterations="5" ls_iterations="8"/>
  <worldbody>
    <geom type="plane" size="5 5 .1"/>
    <body pos="0 0 1"><joint name="swing" axis="0 1 0" frictionloss=".2" limited="true"
      range="-20 20"/><geom type="capsule" size=".05" fromto="0 0 0 .4 0 0"/>
      <body pos=".4 0 0"><joint axis="0 1 0"/><geom size=".06" pos=".2 0 0" condim="1"/></body>
    </body>
    <body pos="0 1 .09"><freejoint/><geom type="box" size=".1 .1 .1" condim="4"/></body>
    <body pos=".3 1 .1"><freejoint/><geom size=".1" condim="6"/></body>
  </worldbody>
  <equality><joint joint1="swing" polycoef=".1 0 0 0 0"/></equality>
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


def system(n: int, ncon: int, basis: int, worlds: int):
    """A matrix, a right-hand side, contacts of which each world has its own number, the sum."""
    rng = np.random.default_rng(n)
    root = rng.standard_normal((n, n, worlds))
    base = np.einsum("ikw,jkw->ijw", root, root) + n * np.eye(n)[:, :, None]
    J = rng.standard_normal((basis, ncon, n, worlds))
    root = rng.standard_normal((basis, basis, ncon, worlds))
    last = rng.integers(0, ncon + 1, (1, worlds))
    root = root * (np.arange(ncon)[:, None] < last)
    weight = np.einsum("pscw,qscw->pqcw", root, root)
    lower = [jnp.asarray(weight[p, q]) for p in range(basis) for q in range(p + 1)]
    contacts = Contacts(jnp.asarray(J), lower, jnp.asarray(last, jnp.int32))
    total = base + np.einsum("pcnw,pqcw,qcmw->nmw", J, weight, J)
    return jnp.asarray(base), jnp.asarray(rng.standard_normal((n, worlds))), contacts, total


@pytest.mark.parametrize(("n", "ncon", "basis"), [(1, 2, 1), (6, 5, 3), (11, 3, 6)])
def test_solutions(n, ncon, basis):
    """Sizes that fill blocks and sizes that do not; two programs of 32 worlds."""
    base, b, contacts, total = system(n, ncon, basis, 2 * LANES)
    x = jax.jit(solve_normal)(base, b, contacts)
    np.testing.assert_allclose(np.einsum("ijw,jw->iw", total, x), b, **ROUNDING)
    alone = jax.jit(lambda A, b: solve_normal(A, b, None))(base, b)
    np.testing.assert_allclose(np.einsum("ijw,jw->iw", base, alone), b, **ROUNDING)


def test_one_matrix_may_serve_all_worlds():
    base, b, _, _ = system(4, 1, 1, LANES)
    x = jax.jit(lambda A, b: solve_normal(A, b, None))(base[..., :1], b)
    np.testing.assert_allclose(np.einsum("ij,jw->iw", base[..., 0], x), b, **ROUNDING)


def test_worlds_that_do_not_fill_the_lanes_are_left_to_xla():
    assert serves(jnp.ones((3, 64)))
    assert not serves(jnp.ones((3, 33)))
    assert not serves(jnp.ones(3))
    assert not serves(jnp.ones((0, 64)))


@pytest.mark.parametrize("cone", ["pyramidal", "elliptic"])
def test_a_step_is_the_same(cone):
    """Every output of worlds that differ, with limits, friction, an equality and all condims."""
    m = jaxsim.load_model(SCENE.format(cone=cone))
    d = jaxsim.make_data(m)
    rng = np.random.default_rng(0)
    noise = 0.3 * rng.standard_normal((LANES, m.nv))
    many = jax.vmap(lambda v: d.replace(qvel=v, qpos=jaxsim.integrate_pos(m, d.qpos, v, 0.05)))(
        noise
    )
    step = jax.vmap(jaxsim.step, (None, 0))
    plain = jax.jit(step)(m, many)
    with for_platform("cpu", kernels=True):
        assert "pallas_call" in str(jax.make_jaxpr(step)(m, many))
        ours = jax.jit(step)(m, many)
    assert plain.ncon.max() > 2
    for (path, a), b in zip(
        jax.tree_util.tree_leaves_with_path(ours), jax.tree.leaves(plain), strict=True
    ):
        scale = max(1.0, float(jnp.abs(b).max())) if b.size else 1.0
        np.testing.assert_allclose(
            a, b, rtol=1e-8, atol=1e-9 * scale, err_msg=jax.tree_util.keystr(path)
        )


def test_gradient_is_the_same():
    m = jaxsim.load_model(BALL)
    d = jaxsim.make_data(m)
    many = jax.vmap(lambda v: d.replace(qvel=v))(
        0.3 * np.random.default_rng(1).standard_normal((LANES, m.nv))
    )

    def loss(qvel):
        new = jax.vmap(jaxsim.step, (None, 0))(m, many.replace(qvel=qvel))
        return jnp.sum(new.qvel**2) + jnp.sum(new.qpos)

    plain = jax.jit(jax.grad(loss))(many.qvel)
    with for_platform("cpu", kernels=True):
        ours = jax.jit(jax.grad(loss))(many.qvel)
    np.testing.assert_allclose(ours, plain, rtol=1e-8, atol=1e-9 * float(jnp.abs(plain).max()))
