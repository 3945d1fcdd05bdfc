"""Flexes and skins as they are drawn, against the triangles of MuJoCo's own scene."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from view.flex.models import SOFT

from jaxsim.enums import ObjType
from jaxsim.io.bridge import put_model
from jaxsim.view.browser.draw.deformable import body_at, deformables_of
from jaxsim.view.browser.draw.poses import Posing
from jaxsim.view.flex.topology import surface_topology

SINGLE = 2e-7  # MuJoCo's scene has single precision


@cache
def both():
    mj = mujoco.MjModel.from_xml_string(SOFT)
    m = put_model(mj)
    return mj, m, Posing(m)


def states(mj):
    """Random states in which everything is bent, after `mj_forward`."""
    rng = np.random.default_rng(3)
    for size in (0.05, 0.1):
        d = mujoco.MjData(mj)
        d.qpos += size * rng.normal(size=mj.nq)
        mujoco.mj_forward(mj, d)
        yield d


@pytest.mark.filterwarnings("ignore:.*contacts of flexes")
def test_triangles_are_those_of_the_scene():
    mj, m, posing = both()
    plan = surface_topology(m.structure)
    kinds = [(int(t), int(i)) for t, i in zip(plan.type, plan.id, strict=True)]
    assert kinds == [(ObjType.FLEX, 1), (ObjType.FLEX, 2), (ObjType.SKIN, 0), (ObjType.SKIN, 1)]
    found = posing.of({"qpos": np.stack([d.qpos for d in states(mj)])}).soft
    for d, point in zip(states(mj), found, strict=True):
        scene = mujoco.MjvScene(mj, 100)
        option, camera = mujoco.MjvOption(), mujoco.MjvCamera()
        mujoco.mjv_updateScene(mj, d, option, None, camera, mujoco.mjtCatBit.mjCAT_ALL, scene)
        for k, (kind, number) in enumerate(kinds):
            if kind == ObjType.SKIN:
                own = slice(
                    mj.skin_vertadr[number], mj.skin_vertadr[number] + mj.skin_vertnum[number]
                )
                theirs = scene.skinvert.reshape(-1, 3)[own]
                np.testing.assert_allclose(point[plan.first :][own], theirs, atol=SINGLE)
                continue
            mine = point[plan.corner[:, plan.owner == k].T].reshape(-1, 9)
            own = slice(scene.flexfaceadr[number], scene.flexfaceadr[number] + len(mine))
            assert scene.flexfaceused[number] == len(mine)
            apart = np.abs(mine[:, None] - scene.flexface.reshape(-1, 9)[None, own]).max(axis=-1)
            assert sorted(apart.argmin(axis=1)) == list(range(len(mine)))
            np.testing.assert_allclose(apart.min(axis=1), 0, atol=SINGLE)


@pytest.mark.filterwarnings("ignore:.*contacts of flexes")
def test_normals_are_those_of_the_scene():
    """Smooth ones of points, flat ones of triangles that are shaded so."""
    from jaxsim.model.allocate import allocate
    from jaxsim.physics.body.inertia import com_pos
    from jaxsim.physics.body.kinematics import kinematics
    from jaxsim.physics.flex.flex import flex
    from jaxsim.transforms.layout import batched
    from jaxsim.view.flex.surface import soft_points

    mj, m, _ = both()
    plan = surface_topology(m.structure)

    def normals(m, d):
        found = soft_points(m, flex(m, com_pos(m, kinematics(m, d))))
        return [x.to_array() for x in found]

    d = next(states(mj))
    start = allocate(m, ("xpos", "xquat", "flexvert_xpos"))
    pos, normal = jax.jit(batched(normals))(m, start.replace(qpos=jnp.asarray(d.qpos)))
    pos, normal = np.asarray(pos)[plan.corner.T], np.asarray(normal)[plan.corner.T]
    across = np.cross(pos[:, 1] - pos[:, 0], pos[:, 2] - pos[:, 0])
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    normal = np.where(plan.flat[:, None, None], across[:, None], normal)
    scene = mujoco.MjvScene(mj, 100)
    option, camera = mujoco.MjvOption(), mujoco.MjvCamera()
    mujoco.mjv_updateScene(mj, d, option, None, camera, mujoco.mjtCatBit.mjCAT_ALL, scene)
    for k in range(2):
        own = plan.owner == k
        first = scene.flexfaceadr[plan.id[k]]
        face = scene.flexface.reshape(-1, 9)[first : first + own.sum()]
        match = np.abs(pos[own].reshape(-1, 1, 9) - face).max(axis=-1).argmin(axis=1)
        theirs = scene.flexnormal.reshape(-1, 3, 3)[first + match]
        # flat ones are those of the triangles as they are drawn, in MuJoCo as they were before the
        # radius was added, and those of a bent rim are a little crooked there
        flat = plan.flat[own]
        assert flat.sum() == (16 if k == 0 else 20)
        np.testing.assert_allclose(normal[own][~flat], theirs[~flat], atol=SINGLE)
        assert np.all(np.sum(normal[own][flat] * theirs[flat], axis=-1) > 0.98)


@pytest.mark.filterwarnings("ignore:.*contacts of flexes")
def test_mouse_selects_the_nearest_vertex():
    mj, m, posing = both()
    poses = posing.of({"qpos": mj.qpos0[None]})
    softs = {soft.name: soft for soft in deformables_of(m)}
    assert set(softs) == {"rope", "cloth", "jelly", "sail", "flag"}
    cloth = m.names["body"].index("cloth_4")
    assert body_at(m, softs["cloth"], poses, poses.xpos[0, cloth] + 0.02) == cloth
    # the first corner of the flag is its first bone's alone
    corner = poses.soft[0, surface_topology(m.structure).first + m.skin_vertadr[1]]
    assert body_at(m, softs["flag"], poses, corner) == m.names["body"].index("a")
