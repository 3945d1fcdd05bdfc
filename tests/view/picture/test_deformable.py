"""Pictures of many worlds with flexes, skins and tendons; depth of a cloth as a function of it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from view.flex.models import SOFT

import jaxsim
from jaxsim.enums import ObjType
from jaxsim.view import default_free_camera

W, H = 12, 9
XML = SOFT.replace("<freejoint/>", "<freejoint/><site/>").replace(
    "</mujoco>",
    """<tendon><spatial name="line" width=".07"><site site="one"/><site site="two"/></spatial>
    </tendon></mujoco>""",
)
XML = XML.replace("<site/>", '<site name="one"/>', 1).replace(
    "<site/>", '<site name="two" pos=".6 -.7 .3"/>', 1
)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*contacts of flexes")
def test_many_worlds_are_as_one_and_depth_is_differentiable():
    m = jaxsim.load_model(XML)
    d = jaxsim.make_data(m)
    camera = default_free_camera(m).replace(lookat=jnp.array([0.5, 0.3, 0.5]))

    @jax.jit
    def drawn(qpos, radius):
        world = m.replace(flex_radius=radius)
        return jaxsim.render(world, d.replace(qpos=qpos), camera, W, H, what=("depth", "object"))

    rng = np.random.default_rng(0)
    qpos = jnp.asarray(np.asarray(d.qpos)[None] + 0.03 * rng.normal(size=(2, m.nq)))
    radius = jnp.stack([m.flex_radius, 2 * m.flex_radius])
    many = jax.jit(jax.vmap(drawn))(qpos, radius)
    for k in range(2):
        alone = drawn(qpos[k], radius[k])
        np.testing.assert_array_equal(many.object[k], alone.object)
        np.testing.assert_allclose(many.depth[k], alone.depth, atol=1e-12)
    kinds = set(np.asarray(many.object)[..., 1].ravel().tolist())
    assert {int(ObjType.FLEX), int(ObjType.SKIN), int(ObjType.TENDON)} <= kinds

    # along a random way of the state, in the pixels that go on seeing the same
    way = jnp.asarray(rng.normal(size=m.nq))
    _, slope = jax.jvp(lambda q: drawn(q, radius[0]).depth, (qpos[0],), (way,))
    step = 1e-6
    high, low = (drawn(qpos[0] + s * step * way, radius[0]) for s in (1, -1))
    same = np.all(np.asarray(high.object) == np.asarray(low.object), axis=-1)
    soft = same & (np.asarray(many.object)[0, ..., 1] > int(ObjType.GEOM))
    assert soft.sum() > 5
    difference = (high.depth - low.depth) / (2 * step)
    np.testing.assert_allclose(slope[soft], difference[soft], rtol=1e-4, atol=1e-5)
