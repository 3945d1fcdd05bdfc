"""Hulls of several kinds, a model of them on a plane, and queries of its tables."""

import functools

import mujoco
import numpy as np
from physics.oracle import unpack

from jaxsim import Model
from jaxsim.io.bridge import put_model
from jaxsim.physics.collision.convex.hull.hulls import Hulls, hulls


def _ring(n: int, radius: float, height: float) -> np.ndarray:
    angle = 2 * np.pi * np.arange(n) / n + 0.1
    return np.c_[radius * np.cos(angle), radius * np.sin(angle), np.full(n, height)]


def _ball(n: int, seed: int) -> np.ndarray:
    point = np.random.default_rng(seed).normal(size=(n, 3))
    return point / np.linalg.norm(point, axis=1)[:, None]


BOX = np.stack(np.meshgrid(*[[-1.0, 1.0]] * 3, indexing="ij"), -1).reshape(-1, 3)
SHAPES = {
    "box": BOX * [0.1, 0.05, 0.2],
    "rough": _ball(1000, 0) * [0.1, 0.15, 0.05],  # 1,000 vertices, about 2,000 triangles
    "drum": np.concatenate([_ring(64, 0.1, -0.05), _ring(64, 0.1, 0.05)]),  # two large faces
    # a cap that is nearly flat, with many corners at nearly one height
    "lid": np.concatenate([_ring(40, r, 0.1 - 0.05 * r**4) for r in (0.2, 0.4, 0.6, 0.8, 1.0)])
    * [0.1, 0.1, 1],
    "shard": np.random.default_rng(5).normal(size=(12, 3)) * 0.1,
    "cut": np.concatenate([_ring(9, 0.1, -0.05), _ring(7, 0.04, 0.05)]) * [1, 1.7, 1],
}


@functools.cache
def oracle(*names: str, margin: float = 0.0) -> mujoco.MjModel:
    """Free bodies of these shapes, which touch a plane and nothing else."""
    plane = "1 0.2 -0.1 0.3"
    assets = "".join(
        f'<mesh name="{name}" vertex="{" ".join(map(str, SHAPES[name].ravel()))}"/>'
        for name in names
    )
    bodies = "".join(
        f'<body><freejoint/><geom type="mesh" mesh="{name}" contype="0" margin="{margin}"/></body>'
        for name in names
    )
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><asset>{assets}</asset><worldbody>
        <geom type="plane" size="1 1 1" pos=".3 .2 -.4" quat="{plane}"/>{bodies}
        </worldbody></mujoco>"""
    )


def loaded(mj: mujoco.MjModel) -> tuple[Model, Hulls]:
    """The model, and its hulls for one world."""
    m = put_model(mj)
    return m, hulls(unpack(m, 0))


def vertices(mj: mujoco.MjModel, mesh: int) -> np.ndarray:
    """Rows of the vertices of a mesh's hull."""
    graph = mj.mesh_graph[mj.mesh_graphadr[mesh] :]
    return mj.mesh_vertadr[mesh] + graph[2 + graph[0] : 2 + 2 * graph[0]]


def polygons(mj: mujoco.MjModel) -> list[np.ndarray]:
    """Corners of all polygons, as rows of the vertices."""
    of_mesh = np.repeat(np.arange(mj.nmesh), mj.mesh_polynum)
    rows = zip(mj.mesh_polyvertadr, mj.mesh_polyvertnum, of_mesh, strict=True)
    return [mj.mesh_vertadr[k] + mj.mesh_polyvert[adr : adr + num] for adr, num, k in rows]
