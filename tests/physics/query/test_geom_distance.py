"""Distances of two geoms beside MuJoCo's, for all kinds of convex geoms and planes."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from optimized import OPTIMIZED

import jaxsim
from jaxsim.io.bridge import put_model

SHARD = np.random.default_rng(5).normal(size=(12, 3)) * 0.15
KINDS = {
    "sphere": 'type="sphere" size=".2"',
    "capsule": 'type="capsule" size=".1 .2"',
    "ellipsoid": 'type="ellipsoid" size=".1 .3 .2"',
    "cylinder": 'type="cylinder" size=".2 .15"',
    "box": 'type="box" size=".1 .2 .3"',
    "mesh": 'type="mesh" mesh="shard"',
}
DISTMAX = 2.0


@cache
def oracle() -> mujoco.MjModel:
    """A plane, and two free bodies for each kind, whose geoms are beside their origins."""
    bodies = "".join(
        f'<body><freejoint/><geom name="{kind}{n}" {shape} pos=".05 .1 -.02" euler="10 20 30"/>'
        "</body>"
        for n in (1, 2)
        for kind, shape in KINDS.items()
    )
    # as exact as the oracle can be: its default stops at 1e-6
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><option ccd_tolerance="1e-12" ccd_iterations="1000"/>
        <default><geom contype="0"/></default>
        <asset><mesh name="shard" vertex="{" ".join(map(str, SHARD.ravel()))}"/></asset>
        <worldbody><geom name="plane" type="plane" size="1 1 1" pos=".1 .2 .3" euler="20 30 0"/>
        {bodies}</worldbody></mujoco>"""
    )


def random_qpos(mj: mujoco.MjModel, rng, spread: float) -> np.ndarray:
    """Bodies about the origin, turned at random."""
    pose = rng.normal(size=(mj.nbody - 1, 7))
    pose[:, :3] *= spread
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1)[:, None]
    return pose.ravel()


def measured(mj: mujoco.MjModel, qpos: np.ndarray, geom1: int, geom2: int, distmax: float):
    """The oracle's distance and segment, `[7]`."""
    d, fromto = mujoco.MjData(mj), np.zeros(6)
    d.qpos[:] = qpos
    mujoco.mj_kinematics(mj, d)
    return np.r_[mujoco.mj_geomDistance(mj, d, geom1, geom2, distmax, fromto), fromto]


@cache
def drawn(poses: int = 20):
    """Placements of every two kinds in both orders: positions, geoms, the oracle's distances."""
    mj, rng = oracle(), np.random.default_rng(0)
    first = [mj.geom(f"{kind}1").id for kind in KINDS]
    second = [mj.geom(f"{kind}2").id for kind in KINDS]
    plane = mj.geom("plane").id
    pairs = [(a, b) for a in first for b in second]
    pairs += [(plane, b) for b in second] + [(a, plane) for a in first]
    rows = []
    for a, b in pairs:
        for k in range(poses):
            qpos = random_qpos(mj, rng, (0.15, 0.3, 0.6)[k % 3])
            rows.append((qpos, a, b, measured(mj, qpos, a, b, DISTMAX)))
    return [np.array(x) for x in zip(*rows, strict=True)]


def state(mj: mujoco.MjModel, qpos: np.ndarray):
    """Our model and a Data at a configuration."""
    m = put_model(mj)
    return m, jaxsim.make_data(m).replace(qpos=jnp.asarray(qpos))


def numbers(m, qpos, geom1, geom2, distmax):
    """Distance and segment, `[7]`."""
    d = jaxsim.make_data(m).replace(qpos=qpos)
    dist, fromto = jaxsim.geom_distance(m, d, geom1, geom2, distmax)
    return jnp.concatenate([dist[None], fromto])


one = jax.jit(numbers, compiler_options=OPTIMIZED)
many = jax.jit(jax.vmap(numbers, (None, 0, 0, 0, None)), compiler_options=OPTIMIZED)
