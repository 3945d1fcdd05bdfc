"""Points inside sites, against `mj_insideSite`."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest

import jaxsim
from jaxsim.io.bridge import put_model

KINDS = ("sphere", "capsule", "ellipsoid", "cylinder", "box")
SHARDS = [" ".join(map(str, np.random.default_rng(k).normal(size=36) * 0.3)) for k in (5, 6)]


def scene() -> mujoco.MjModel:
    """A body with a site of every kind, and two meshes, of which the hull counts."""
    sites = "".join(
        f'<site name="{kind}" type="{kind}" size=".3 .4 .5" pos=".{k} 0 0" euler="{k} 20 30"/>'
        for k, kind in enumerate(KINDS)
    )
    sites += "".join(f'<site name="shard{k}" type="mesh" mesh="shard{k}"/>' for k in (0, 1))
    meshes = "".join(f'<mesh name="shard{k}" vertex="{v}"/>' for k, v in enumerate(SHARDS))
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><asset>{meshes}</asset><worldbody><body><freejoint/><geom size=".1"/>{sites}
        </body></worldbody></mujoco>"""
    )


def test_points_are_where_the_oracle_says():
    mj = scene()
    m, d, rng = put_model(mj), mujoco.MjData(mj), np.random.default_rng(0)
    ask = jax.jit(jax.vmap(jaxsim.support.inside_site, (None, None, 0, None)))
    for _ in range(3):
        quat = rng.normal(size=4)
        d.qpos[:] = np.r_[rng.normal(size=3), quat / np.linalg.norm(quat)]
        mujoco.mj_kinematics(mj, d)
        point = d.qpos[:3] + 0.4 * rng.normal(size=(200, 3))
        mine = ask(m, jaxsim.make_data(m).replace(qpos=d.qpos), np.arange(mj.nsite), point)
        theirs = [[mujoco.mj_insideSite(mj, d, s, p) for p in point] for s in range(mj.nsite)]
        assert (np.mean(theirs, axis=1) > 0.05).all()
        assert (np.mean(theirs, axis=1) < 0.9).all()
        np.testing.assert_array_equal(mine, np.array(theirs, bool))


def test_arguments():
    m = put_model(scene())
    d, point = jaxsim.make_data(m), jnp.zeros(3)
    inside = jaxsim.support.inside_site(m, d, "sphere", point)
    assert inside
    assert inside.shape == ()
    with pytest.raises(ValueError, match="inside_site: site: there is no site 7; the model has 7"):
        jaxsim.support.inside_site(m, d, 7, point)
    with pytest.raises(ValueError, match=r"inside_site: point: expected shape \(3,\) or \(n, 3\)"):
        jaxsim.support.inside_site(m, d, 0, jnp.zeros(2))
