"""Patches of flat contact: every point of them is the oracle's, in generic placements."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from optimized import OPTIMIZED

import jaxsim
from jaxsim.transforms import tuning

# vertices in no particular order, so that faces begin at any corner
_CUBE = "-1 -1 -1  1 -1 -1  1 1 -1  1 1 1  1 -1 1  -1 1 -1  -1 1 1  -1 -1 1"
XML = f"""
<mujoco>
  <asset>
    <mesh name="cube" vertex="{_CUBE}" scale=".05 .05 .05"/>
    <mesh name="mirrored" vertex="{_CUBE}" scale=".05 -.05 .05"/>
  </asset>
  <worldbody>
    <body><freejoint/><geom type="mesh" mesh="mirrored"/></body>
    <body><freejoint/><geom type="mesh" mesh="cube"/></body>
  </worldbody>
</mujoco>"""


def _placements(number: int) -> np.ndarray:
    """Two cubes of side 0.1 that overlap a little at a face, each turned by a few degrees."""
    rng = np.random.default_rng(3)
    qpos = np.zeros((number, 14))
    for q in qpos:
        q[7 + rng.integers(3)] = 0.099 * rng.choice([-1, 1])
        q[7:10] += 0.02 * rng.normal(size=3) * (np.abs(q[7:10]) < 0.05)
        for k in (3, 10):
            q[k : k + 4] = np.r_[1, 0.02 * rng.normal(size=3)]
    return qpos


def _rows(dist, pos, normal) -> np.ndarray:
    rows = np.concatenate([np.reshape(dist, (-1, 1)), pos, normal], axis=1)
    return rows[np.lexsort(np.round(rows[:, ::-1].T, 9))]


def test_points_of_hulls_equal_the_oracle():
    """Number, distance, position and normal: also where an edge is cut and one crossing is left."""
    mj = mujoco.MjModel.from_xml_string(XML)
    m = jaxsim.load_model(XML)
    qpos = _placements(200)
    contacts = jax.jit(
        jax.vmap(lambda q, d: jaxsim.forward(m, d.replace(qpos=q)).contact, in_axes=(0, None))
    )
    found = jax.tree.map(np.asarray, contacts(jnp.asarray(qpos), jaxsim.make_data(m)))
    d = mujoco.MjData(mj)
    four = double = 0
    for k, q in enumerate(qpos):
        d.qpos[:] = q
        mujoco.mj_forward(mj, d)
        expected = _rows(d.contact.dist, d.contact.pos, d.contact.frame[:, :3])
        here = found.dist[k] < found.includemargin[k]
        normal = found.frame[k][here].reshape(-1, 9)[:, :3]
        ours = _rows(found.dist[k][here], found.pos[k][here], normal)
        np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-7, err_msg=f"placement {k}")
        four += len(expected) == 4
        double += len(expected) == 2 and np.ptp(expected[:, 1:4], axis=0).max() < 1e-9
    assert four > 10
    assert double > 0


@pytest.mark.slow
@pytest.mark.parametrize("lanes", [3, pytest.param(64, marks=pytest.mark.slow)])
def test_contacts_do_not_depend_on_the_lanes_of_a_chunk(lanes):
    """Searches end together in a chunk; a lane by itself grows its polytope entry by entry."""
    m = jaxsim.load_model(XML)
    d, qpos = jaxsim.make_data(m), jnp.asarray(_placements(20))

    def touch(q):
        """The first stages of one world."""
        found = jaxsim.stages.fwd_position(m, d.replace(qpos=q))
        return found.contact, found.ncon

    usual, number = jax.jit(jax.vmap(touch))(qpos)
    names = ("gjk_lanes", "epa_lanes", "contact_lanes", "clip_lanes")
    with tuning.override(**dict.fromkeys(names, lanes)):
        other, number_of_other = jax.jit(jax.vmap(touch))(qpos)
    np.testing.assert_array_equal(number, number_of_other)
    assert int(number.min()) > 0
    for name in ("dist", "pos", "frame"):
        a, b = getattr(usual, name), getattr(other, name)
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12, err_msg=name)


SEVERAL = """<mujoco><asset><mesh name="m" vertex="0 0 0  .3 0 0  0 .3 0  .3 .3 0  0 0 .2  .3 0 .2
  0 .3 .2  .25 .28 .22  .1 .1 .26"/></asset>
<worldbody><geom type="box" size=".5 .5 .1" pos="0 0 -.1"/>
  <body><freejoint/><geom type="mesh" mesh="m"/></body>
  <body pos=".2 .1 .22" euler="0 0 20"><freejoint/><geom type="mesh" mesh="m"/></body>
  <body pos=".3 .1 .05"><freejoint/><geom type="cylinder" size=".1 .05"/></body>
  <body pos="-.3 .1 .05" euler="90 0 0"><freejoint/><geom type="capsule" size=".05 .1"/></body>
</worldbody></mujoco>"""


def test_contacts_are_traced_for_accelerators():
    m = jaxsim.load_model(SEVERAL)
    with jaxsim.for_platform("cuda", kernels=False):
        found = jax.eval_shape(
            lambda d: jaxsim.stages.collision(m, d), jaxsim.make_data(m, keep="all")
        )
    assert found.contact.dist.shape[0] > 8


@pytest.mark.slow
def test_lists_up_to_their_ends_equal_whole_lists():
    """Accelerators compare all items of lists at once, a CPU those that exist one by one."""
    m = jaxsim.load_model(SEVERAL)
    start = jaxsim.make_data(m, keep="all")
    rng = np.random.default_rng(0)
    qpos = (
        np.asarray(start.qpos) + 0.01 * rng.normal(size=(24, m.nq)) * (np.arange(24) % 3)[:, None]
    )

    def contacts(qpos):
        placed = jaxsim.stages.fwd_kinematics(m, start.replace(qpos=qpos))
        d = jaxsim.stages.collision(m, placed)
        return d.ncon, d.contact.dist, d.contact.pos, d.contact.frame

    # The form of accelerators has no protection against CPU compilers that evaluate values twice.
    program = jax.jit(jax.vmap(contacts), compiler_options=OPTIMIZED)
    here = program(qpos)
    with jaxsim.for_platform("cuda", kernels=False):
        there = jax.jit(lambda q: jax.vmap(contacts)(q), compiler_options=OPTIMIZED)(qpos)
    assert np.max(here[0]) > 8
    np.testing.assert_array_equal(here[0], there[0])
    found = np.arange(here[1].shape[1]) < np.asarray(here[0])[:, None]
    for one, other in zip(here[1:], there[1:], strict=True):
        np.testing.assert_allclose(np.asarray(one)[found], np.asarray(other)[found], atol=1e-11)
