"""Collision masks and shapes that differ between worlds, as of models compiled apart."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import DYNAMICS, STORED_SINGLE

import jaxsim
from jaxsim.envs import randomize, with_masks

XML = """<mujoco><worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 .09"><freejoint/><geom size=".1"/><geom size=".1" pos=".05 0 0"/></body>
  <body pos="0 0 .28"><freejoint/><geom type="box" size=".1 .1 .1"/></body>
</worldbody></mujoco>"""
# contype and conaffinity of floor, two balls and a box, in each world
MASKS = np.array(
    [
        ((1, 1, 1, 1), (1, 1, 1, 1)),
        ((1, 0, 1, 1), (1, 0, 1, 1)),
        ((2, 1, 3, 1), (1, 2, 1, 1)),
        ((0, 1, 1, 0), (0, 1, 0, 0)),
    ]
)


def test_contacts_of_worlds_are_mujocos_with_their_masks():
    m = jaxsim.load_model(XML)
    d = jaxsim.make_data(m)

    def moved(masks):
        own = with_masks(m, *masks)
        return jaxsim.forward(own, d)

    many = jax.jit(jax.vmap(moved))(jnp.asarray(MASKS))
    mj = mujoco.MjModel.from_xml_string(XML)
    for k, (contype, conaffinity) in enumerate(MASKS):
        mj.geom_contype[:], mj.geom_conaffinity[:] = contype, conaffinity
        for geom, body in enumerate(mj.geom_bodyid):
            mj.body_contype[body] |= contype[geom]
            mj.body_conaffinity[body] |= conaffinity[geom]
        theirs = mujoco.MjData(mj)
        mujoco.mj_forward(mj, theirs)
        assert many.ncon[k] == theirs.ncon
        dist = np.sort(np.asarray(many.contact.dist[k]))[: theirs.ncon]
        np.testing.assert_allclose(dist, np.sort(theirs.contact.dist), **STORED_SINGLE)
        np.testing.assert_allclose(many.qacc[k], theirs.qacc, rtol=1e-5, atol=1e-5)


def test_randomize_takes_masks():
    base = with_masks(jaxsim.load_model(XML))

    def change(m, key):
        on = jax.random.bernoulli(key, 0.5, (m.ngeom,)).astype(np.int32)
        return {"callbacks": with_masks(m, contype=on, conaffinity=on).callbacks}

    keys = jax.random.split(jax.random.key(0), 3)
    models, axes = randomize(base, keys, change)
    assert [a.shape for a in models.callbacks.contactfilter.args] == [(3, 4)] * 2
    assert jax.tree.leaves(axes) == [0, 0]
    for k, key in enumerate(keys):
        own = change(base, key)["callbacks"].contactfilter.args[0]
        assert (models.callbacks.contactfilter.args[0][k] == own).all()


SHAPES = """<mujoco><asset>
  <mesh name="a" builtin="sphere" params="1" scale=".1 .1 .1"/>
  <mesh name="b" builtin="sphere" params="1" scale=".2 .1 .05"/></asset><worldbody>
  <geom type="plane" size="1 1 1"/>
  <body pos="0 0 .04"><freejoint/>{}</body></worldbody></mujoco>"""
GEOM = '<geom type="mesh" mesh="{}"/>'


@pytest.mark.slow
def test_meshes_that_differ_between_worlds():
    """All in one body; each world masks all but one, and has the mass of that one."""
    m = jaxsim.load_model(SHAPES.format(GEOM.format("a") + GEOM.format("b")))
    d = jaxsim.make_data(m)
    weight = [np.asarray(_alone(name).body_mass)[1] for name in "ab"]

    def chosen(which):
        here = jnp.concatenate([jnp.ones(1, bool), jnp.arange(2) == which])
        own = with_masks(m, contype=here.astype(np.int32), conaffinity=here.astype(np.int32))
        mass = jnp.where(here, jnp.asarray([0.0, *weight]), 0)
        own = jaxsim.set_const(jaxsim.support.set_inertia(own, mass=mass))
        return jaxsim.forward(own, d)

    many = jax.jit(jax.vmap(chosen))(jnp.arange(2))
    for k, name in enumerate("ab"):
        theirs = mujoco.MjData(_alone(name))
        mujoco.mj_forward(_alone(name), theirs)
        assert many.ncon[k] == theirs.ncon
        np.testing.assert_allclose(
            np.sort(many.contact.dist[k])[: theirs.ncon], np.sort(theirs.contact.dist), atol=1e-6
        )
        np.testing.assert_allclose(many.qacc_smooth[k], theirs.qacc_smooth, **DYNAMICS)


def _alone(name: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(SHAPES.format(GEOM.format(name)))


def test_unsupported_masks_are_rejected():
    m = jaxsim.load_model(XML)
    with pytest.raises(ValueError, match=r"contype: expected integers of shape \(4,\)"):
        with_masks(m, contype=jnp.ones(4))
    with pytest.raises(ValueError, match=r"conaffinity: expected integers of shape \(4,\)"):
        with_masks(m, conaffinity=jnp.ones(3, int))
    other = jaxsim.Callbacks(contactfilter=lambda m, d, a, b: a < 0)
    with pytest.raises(ValueError, match="has a callback contactfilter"):
        with_masks(m.replace(callbacks=other))
