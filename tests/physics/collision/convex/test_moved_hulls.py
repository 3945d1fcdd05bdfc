"""Contacts of meshes whose vertices were changed, however the leaves came into the model."""

import flax.serialization
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import STORED_SINGLE

import jaxsim
from jaxsim.envs import randomize
from jaxsim.physics.collision.convex.hull.hulls import hulls
from jaxsim.transforms.layout import unpack_record

XML = """<mujoco><asset><mesh name="a" builtin="sphere" params="1" scale=".1 .1 .1"/></asset>
<worldbody><geom type="plane" size="1 1 1"/>
  <body pos="0 0 .05" euler="20 30 40"><freejoint/><geom type="mesh" mesh="a"/></body>
</worldbody></mujoco>"""
STRETCH = np.array([[1.3, 0.4, 0.8]])  # vertices that were not the lowest become so


def replaced(m, vertex):
    return m.replace(mesh_vert=vertex)


def swapped(m, vertex):
    """Put other leaves into the old structure, as `eqx.tree_at` and steps of optimizers do."""
    leaves = jax.tree.leaves(replaced(m, vertex))
    return jax.tree.unflatten(jax.tree.structure(m), leaves)


def restored(m, vertex):
    return flax.serialization.from_bytes(m, flax.serialization.to_bytes(replaced(m, vertex)))


def randomized(m, vertex):
    """The first of two worlds."""
    keys = jax.random.split(jax.random.key(0), 2)
    models, axes = randomize(m, keys, lambda m, key: {"mesh_vert": _same(key, vertex)})
    return jax.tree.map(lambda a, axis: a if axis is None else a[0], models, axes)


def _same(key, vertex):
    """The vertices, of which it is not known that they do not depend on the key."""
    return vertex + 0 * jax.random.uniform(key, (), vertex.dtype)


@pytest.fixture(scope="module")
def scene():
    mj = mujoco.MjModel.from_xml_string(XML)
    mj.mesh_vert[:] *= STRETCH
    theirs = mujoco.MjData(mj)
    mujoco.mj_forward(mj, theirs)
    assert theirs.ncon
    m = jaxsim.load_model(XML)
    d = jaxsim.make_data(m, keep="all")
    found = jax.jit(
        lambda m: jaxsim.stages.collision(m, jaxsim.stages.fwd_kinematics(m, d)).contact.dist
    )
    return m, found, theirs.contact.dist.min()


def test_the_stretch_changes_which_vertex_is_lowest():
    mj = mujoco.MjModel.from_xml_string(XML)
    theirs = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, theirs)
    up = theirs.geom_xmat[1].reshape(3, 3)[2]
    assert np.argmin(mj.mesh_vert @ up) != np.argmin(mj.mesh_vert * STRETCH @ up)


@pytest.mark.parametrize("way", [replaced, swapped, restored, randomized], ids=lambda f: f.__name__)
def test_contacts_are_those_of_the_leaves(scene, way):
    m, found, expected = scene
    moved = way(m, m.mesh_vert * STRETCH)
    np.testing.assert_allclose(jnp.min(found(moved)), expected, **STORED_SINGLE)


def test_leaves_that_change_inside_a_program(scene):
    m, found, expected = scene

    def stretched(scale):
        changed = jax.tree.map(lambda a: a, m).replace_unchecked(
            {"mesh_vert": m.mesh_vert * scale}, False
        )
        return found(changed)

    got = jax.jit(jax.vmap(stretched))(jnp.asarray([np.ones((1, 3)), STRETCH]))
    np.testing.assert_allclose(got[0], found(m), **STORED_SINGLE)
    np.testing.assert_allclose(jnp.min(got[1]), expected, **STORED_SINGLE)


def test_what_may_move_is_chosen_at_load(scene):
    """Check the mark of `free` where a program does not compare vertices, and that it stays."""
    m, *_ = scene
    with jaxsim.for_platform("cuda", kernels=False):
        for free in ((), ("mesh_vert",)):
            loaded = swapped(jaxsim.load_model(XML, free=free), m.mesh_vert)
            assert hulls(unpack_record(loaded, 0)).climbs == bool(free)
        for way in (replaced, restored, randomized):
            assert hulls(unpack_record(way(m, m.mesh_vert * STRETCH), 0)).climbs, way
