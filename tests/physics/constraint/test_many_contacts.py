"""In a batch of worlds with no, some and many contacts each has MuJoCo's acceleration.

Contacts are processed in chunks, up to the last one that exists in any world (arrays/products.py).
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import STIFF

import jaxsim
from jaxsim.physics.collision.candidates.plan import collision_layout
from jaxsim.transforms.materialize import is_unbatched
from jaxsim.transforms.tuning import tuning

PILE = Path(jaxsim.__file__).parent.parent / "configs" / "pile.xml"
STEPS = (0, 60, 100, 300, 600)  # in the air, the first ones down, ..., at rest


def test_worlds_with_different_numbers_of_contacts():
    mj = mujoco.MjModel.from_xml_path(str(PILE))
    mj.opt.iterations, mj.opt.tolerance = 100, 1e-14
    m = jaxsim.put_model(mj)
    states, state = [], mujoco.MjData(mj)
    for step in range(max(STEPS) + 1):
        if step in STEPS:
            mujoco.mj_forward(mj, state)
            states.append((state.qpos.copy(), state.qvel.copy(), state.qacc.copy(), state.ncon))
        mujoco.mj_step(mj, state)
    qpos, qvel, qacc, ncon = (np.array(column) for column in zip(*states, strict=True))
    assert ncon[0] == 0
    assert ncon[-1] > tuning().contacts_per_chunk
    assert not is_unbatched(qpos.T)

    d = jaxsim.make_data(m)
    worlds = jax.vmap(lambda q, v: d.replace(qpos=q, qvel=v))(jnp.array(qpos), jnp.array(qvel))
    found = jax.jit(jax.vmap(jaxsim.forward, in_axes=(None, 0)))(m, worlds)
    np.testing.assert_array_equal(found.ncon, ncon)
    np.testing.assert_allclose(found.qacc, qacc, **STIFF)


SLABS = """
<mujoco>
  <option tolerance="1e-14" iterations="100" cone="elliptic"/>
  <worldbody>
    <body name="slab" pos="0 0 1"><freejoint/><geom type="box" size=".2 .1 .05"/></body>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="arm" pos="1 0 .1"><joint axis="0 1 0"/><joint type="slide" axis="0 0 1"/>
      <geom type="capsule" size=".1 .2" pos="0 .5 0"/><geom type="box" size=".1 .2 .1"/></body>
  </worldbody>
  <contact><exclude body1="slab" body2="arm"/></contact>
</mujoco>
"""


@pytest.mark.slow
def test_contacts_with_a_slot_for_each_candidate():
    """The capacity covers all candidates, more than a chunk: existing contacts are compacted."""
    mj = mujoco.MjModel.from_xml_string(SLABS)
    m, state = jaxsim.put_model(mj), mujoco.MjData(mj)
    plan = collision_layout(m)
    assert plan.fits_all_points
    assert plan.points > tuning().contacts_per_chunk
    rng, states = np.random.default_rng(0), []
    for height, lower in ((1, 0.5), (0.04, 0.5), (1, -0.03), (0.045, -0.01), (0.06, 0), (0.03, 0)):
        mujoco.mj_resetData(mj, state)
        state.qpos[2], state.qpos[-1] = height, lower
        state.qpos[3:7] += 0.02 * rng.standard_normal(4)
        state.qvel[:] = rng.standard_normal(mj.nv)
        mujoco.mj_forward(mj, state)
        geom, dist = np.full((plan.points, 2), -1), np.zeros(plan.points)
        geom[: state.ncon], dist[: state.ncon] = state.contact.geom, state.contact.dist
        states.append((state.qpos.copy(), state.qvel.copy(), state.qacc.copy(), geom, dist))
    qpos, qvel, qacc, geom, dist = (np.array(column) for column in zip(*states, strict=True))
    ncon = (geom[..., 0] >= 0).sum(axis=1)
    assert ncon.min() == 0
    assert ncon.max() > 4

    d = jaxsim.make_data(m)
    worlds = jax.vmap(lambda q, v: d.replace(qpos=q, qvel=v))(jnp.array(qpos), jnp.array(qvel))
    assert not is_unbatched(qpos.T)
    found = jax.jit(jax.vmap(jaxsim.forward, in_axes=(None, 0)))(m, worlds)
    np.testing.assert_array_equal(found.ncon, ncon)
    np.testing.assert_array_equal(found.contact.geom, geom)
    there = np.arange(plan.points) < ncon[:, None]
    np.testing.assert_allclose(np.where(there, found.contact.dist, 0), dist, **STIFF)
    np.testing.assert_allclose(found.qacc, qacc, **STIFF)


@pytest.mark.slow
def test_derivative_with_pgs_uses_the_forces_of_its_own_contacts():
    """Test PGS, where the derivative reads the forces of the contacts from the forward pass."""
    xml = SLABS.replace("<option ", '<option solver="PGS" ').replace(
        "</mujoco>",
        '<sensor><touch site="under"/></sensor></mujoco>',
    )
    xml = xml.replace(
        'type="box" size=".2 .1 .05"/>',
        'type="box" size=".2 .1 .05"/><site name="under" size="1"/>',
    )
    m = jaxsim.load_model(xml)
    d = jaxsim.make_data(m)
    height = jnp.array([1, 0.04, 0.045, 0.048, 0.06, 0.03])

    def touch(z):
        return jaxsim.forward(m, d.replace(qpos=d.qpos.at[2].set(z).at[-1].set(-0.03))).sensordata[
            0
        ]

    many = jax.jit(jax.vmap(jax.value_and_grad(touch)))(height)
    for world, z in enumerate(height[:2]):
        alone = jax.jit(jax.value_and_grad(touch))(z)
        np.testing.assert_allclose([a[world] for a in many], alone, rtol=1e-6, atol=1e-9)
    assert many[1][1] < -1


def test_jacobian_products_of_many_vectors_keep_the_order_of_rows():
    m = jaxsim.load_model(SLABS)
    d = jaxsim.make_data(m)
    d = d.replace(qpos=d.qpos.at[2].set(0.03))
    rows = jaxsim.support.constraint_rows(m, d)
    vel = jnp.asarray(np.random.default_rng(0).standard_normal((6, m.nv)))
    many = jax.jit(jax.vmap(lambda v: jaxsim.support.mul_jac_vec(m, d, v)))(vel)
    expected = jnp.where(rows.active, vel @ rows.efc_J.T, 0)
    assert rows.active.sum() > 4
    np.testing.assert_allclose(many, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.slow
def test_trees_of_six_dofs_and_a_smaller_one():
    """Test 49 dofs, where the last block of the Hessian is not full."""
    balls = "".join(f'<body pos="{k} 0 .09"><freejoint/><geom size=".1"/></body>' for k in range(8))
    xml = f"""<mujoco><worldbody><geom type="plane" size="9 9 1"/>{balls}
      <body pos="0 3 1"><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0"/></body>
    </worldbody></mujoco>"""
    m = jaxsim.load_model(xml)
    worlds = jaxsim.replicate(jaxsim.make_data(m), 6)
    found = jax.eval_shape(jax.vmap(jaxsim.forward, (None, 0)), m, worlds)
    assert found.qacc.shape == (6, 49)
    jax.jit(jax.vmap(jaxsim.forward, (None, 0))).lower(m, worlds)
