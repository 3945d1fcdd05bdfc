"""Many placements of two geoms, and the contacts the oracle finds for each."""

from typing import NamedTuple

import jax.numpy as jnp
import mujoco
import numpy as np

from jaxsim.enums import GeomType
from jaxsim.math import Rot, Vec
from jaxsim.physics.collision.shape import PlacedGeoms


class Placements(NamedTuple):
    """Placements `[n]` of two geoms, with the oracle's contacts of each."""

    a: PlacedGeoms
    b: PlacedGeoms
    margin: np.ndarray
    contacts: list[np.ndarray]  # `[ncon, 7]`: distance, position, normal


def name(kind: tuple[int, int]) -> str:
    return "_".join(GeomType(k).name.lower() for k in kind)


def placed(pos, mat, size) -> PlacedGeoms:
    """`[n, 3]`, `[n, 9]`, `[n, 3]` as geoms."""
    return PlacedGeoms(
        Vec(*jnp.asarray(pos).T),
        Rot(*jnp.asarray(mat).reshape(-1, 9).T),
        Vec(*jnp.asarray(size).T),
        jnp.zeros(len(pos), jnp.int32),
    )


def random_quat(rng) -> np.ndarray:
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)


def draw(kind: tuple[int, int], seed: int, models: int = 10, states: int = 50) -> Placements:
    """Random sizes, distances and orientations; a third of them nearly aligned with each other.

    Depths go from apart to one geom inside the other. Every second model has a margin.
    """
    rng = np.random.default_rng(seed)
    rows, contacts = [], []
    for k in range(models):
        margin = 0.15 * (k % 2)
        mj = _model(kind, rng, margin)
        d = mujoco.MjData(mj)
        first = 0 if kind[0] == GeomType.PLANE else 7
        for i in range(states):
            turn = random_quat(rng)
            if first:
                d.qpos[:3], d.qpos[3:7] = rng.normal(size=3), random_quat(rng)
                base, origin = d.qpos[3:7].copy(), d.qpos[:3]
            else:
                base, origin = mj.geom_quat[0], mj.geom_pos[0]
            if i % 3 == 0:
                turn = _aligned(base, rng)
            away = rng.normal(size=3)
            away *= rng.choice([0.1, 0.3, 0.6, 0.9]) / np.linalg.norm(away)
            d.qpos[first : first + 7] = np.r_[origin + away, turn]
            mujoco.mj_forward(mj, d)
            rows.append((d.geom_xpos.copy(), d.geom_xmat.copy(), mj.geom_size.copy(), 2 * margin))
            found = d.contact
            contacts.append(np.c_[found.dist, found.pos, found.frame[:, :3]])
    pos, mat, size, margins = (np.array(x) for x in zip(*rows, strict=True))
    a, b = (placed(pos[:, g], mat[:, g], size[:, g]) for g in (0, 1))
    return Placements(a, b, margins, contacts)


def _model(kind, rng, margin: float) -> mujoco.MjModel:
    shapes = [GeomType(k).name.lower() for k in kind]
    sizes = [" ".join(f"{x:.6f}" for x in rng.uniform(0.1, 0.4, 3)) for _ in kind]
    first = f'<geom type="{shapes[0]}" size="{sizes[0]}" margin="{margin}"/>'
    if kind[0] == GeomType.PLANE:
        quat = " ".join(map(str, random_quat(rng)))
        first = f'<geom type="plane" size="1 1 1" pos=".1 .2 .3" quat="{quat}" margin="{margin}"/>'
    else:
        first = f"<body><freejoint/>{first}</body>"
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><worldbody>{first}<body><freejoint/>
        <geom type="{shapes[1]}" size="{sizes[1]}" margin="{margin}"/>
        </body></worldbody></mujoco>"""
    )


def _aligned(base: np.ndarray, rng) -> np.ndarray:
    """An orientation that a few right angles and a small rotation take to `base`."""
    out = base.copy()
    for _ in range(2):
        axis = np.eye(3)[rng.integers(3)]
        half = rng.integers(4) * np.pi / 4
        mujoco.mju_mulQuat(out, out.copy(), np.r_[np.cos(half), np.sin(half) * axis])
    mujoco.mju_quatIntegrate(out, rng.normal(size=3), rng.choice([1e-6, 1e-3, 0.05]))
    return out
