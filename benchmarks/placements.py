"""Pairs of geoms for `collision_sweep.py`: models, and poses with contacts of wanted depths.

A model has a few stations: two geoms of given types each, of different sizes, which only collide
with each other. The first is fixed, the second is moved along a line until MuJoCo detects a
contact, and then in or out by the depth of the class of the pose.
"""

import itertools
from typing import NamedTuple

import mujoco
import numpy as np

STATIONS = 5
MARGIN = 0.02  # margin of the classes that have one [m]
# MuJoCo's search for the depth of boxes and meshes in height fields ends early if there is no
# margin at all: half of the depths are then wrong. This is none, in effect.
NO_MARGIN = 1e-9
# Where an ellipsoid or a cylinder is inside another geom, its depth is searched for; with MuJoCo's
# own limits (1e-6, 35) normals are good to 1e-3, positions to 1e-4, and touches lighter than 1e-6
# are often missed.
SEARCH = {"ccd_tolerance": 1e-12, "ccd_iterations": 1000}
FAR = 4.0  # distance at which nothing touches [m]
BISECTIONS = 44  # bisections of FAR, down to rounding

MESHES = ("tetra", "box_mesh", "hull60", "hull400")
KINDS = ("plane", "hfield", "sphere", "capsule", "ellipsoid", "cylinder", "box", *MESHES)
# the type that is geom 1 in MuJoCo comes first; planes and fields never collide
PAIRS = [
    p
    for p in itertools.combinations_with_replacement(KINDS, 2)
    if not set(p) <= {"plane", "hfield"}
]
FLAT = (int(mujoco.mjtGeom.mjGEOM_PLANE), int(mujoco.mjtGeom.mjGEOM_HFIELD))
# computed by formulas, not iteratively
ANALYTIC = {
    *(("plane", k) for k in KINDS[2:]),
    *(("sphere", k) for k in ("sphere", "capsule", "cylinder", "box")),
    ("capsule", "capsule"),
    ("capsule", "box"),
    ("box", "box"),
}


# on these MuJoCo iterates to the tolerance in distance, and its root in direction
ROUND = ("ellipsoid", "cylinder")


class Pose(NamedTuple):
    """A class of poses.

    Attributes:
      turns: largest angle from parallel [rad]; None: any orientation.
      depth: least and largest, in least half sizes of the second geom; negative: separate, by
        parts of MARGIN.
      along: the second geom approaches along an axis of the first, at any yaw, over its middle.
      margin: margin of the pair [m].
    """

    turns: tuple[float, ...] | None
    depth: tuple[float, float]
    along: bool
    margin: float


CLASSES = {
    "separate": Pose(None, (-0.95, -0.05), False, MARGIN),
    "grazing": Pose(None, (1e-6, 1e-4), False, NO_MARGIN),
    "shallow": Pose(None, (1e-4, 0.05), False, NO_MARGIN),
    "deep": Pose(None, (0.05, 0.5), False, NO_MARGIN),
    "aligned": Pose((0.0, 1e-6, 1e-3, 0.05), (1e-4, 0.05), False, NO_MARGIN),
    "stacked": Pose((0.0, 1e-3, 0.02, 0.1), (1e-4, 0.05), True, NO_MARGIN),
    "hovering": Pose((0.0, 1e-3, 0.02, 0.1), (-0.95, -0.05), True, MARGIN),
}


def oracle(text: str) -> mujoco.MjModel:
    """Return MuJoCo's model, whose iterations end at rounding."""
    m = mujoco.MjModel.from_xml_string(text)
    for name, value in SEARCH.items():
        setattr(m.opt, name, value)
    return m


def xml(pair: tuple[str, str], seed: int = 0) -> str:
    """Return the model of a pair of types: five stations at the origin."""
    rng = np.random.default_rng(seed)
    assets, bodies, pairs = [], [], []
    for k in range(STATIONS):
        first, second = (
            _geom(kind, f"{side}{k}", rng, assets) for kind, side in zip(pair, "ab", strict=True)
        )
        pose = f'pos="{_text(rng.normal(size=3))}" quat="{_text(_any_turn(rng))}"'
        still = first.replace("<geom", f"<geom {pose}")
        bodies.append(f"{still}<body><freejoint/>{second}</body>")
        pairs.append(f'<pair geom1="a{k}" geom2="b{k}" margin="{MARGIN}"/>')
    return (
        f'<mujoco><default><geom contype="0" conaffinity="0"/></default><asset>{"".join(assets)}'
        f"</asset><worldbody>{''.join(bodies)}</worldbody><contact>{''.join(pairs)}</contact></mujoco>"
    )


def _geom(kind: str, name: str, rng: np.random.Generator, assets: list[str]) -> str:
    size = rng.uniform(0.1, 0.4, 3)
    if kind in MESHES:
        assets.append(f'<mesh name="{name}" vertex="{_text(_vertices(kind, rng) * size)}"/>')
        return f'<geom name="{name}" type="mesh" mesh="{name}" mass="1"/>'
    if kind == "hfield":
        heights = _text(rng.uniform(size=(6, 7)))
        sizes = _text([*rng.uniform(0.8, 1.2, 2), 0.3, 0.1])
        assets.append(
            f'<hfield name="{name}" nrow="6" ncol="7" size="{sizes}" elevation="{heights}"/>'
        )
        return f'<geom name="{name}" type="hfield" hfield="{name}"/>'
    return f'<geom name="{name}" type="{kind}" size="{_text(size)}"/>'


def _vertices(kind: str, rng: np.random.Generator) -> np.ndarray:
    """Return the corners of a mesh that extends by about one in each direction."""
    if kind == "box_mesh":
        return np.array(list(itertools.product((-1, 1), repeat=3)), float)
    if kind == "tetra":
        return np.array([(-1, -1, -1), (1, -1, -1), (0, 1, -1), (0, 0, 1)]) + rng.normal(
            scale=0.1, size=(4, 3)
        )
    points = rng.normal(size=(int(kind.removeprefix("hull")), 3))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def _text(values) -> str:
    return " ".join(f"{x:.9g}" for x in np.ravel(values))


class Placements(NamedTuple):
    """Poses of one class.

    Attributes:
      qpos: positions of the model, `[poses, nq]`: every station in each.
      contacts: MuJoCo's contacts of each pose and station, `[n, 7]`: distance, position, normal.
    """

    qpos: np.ndarray
    contacts: list[list[np.ndarray]]


def place(m: mujoco.MjModel, name: str, poses: int, seed: int) -> Placements:
    """Return poses of a class, with MuJoCo's contacts."""
    kind, d = CLASSES[name], mujoco.MjData(m)
    rng = np.random.default_rng([seed, list(CLASSES).index(name)])
    rows, contacts = [], []
    for _ in range(poses):
        starts = [_start(m, d, k, kind, rng) for k in range(STATIONS)]
        quat, origin, away = (np.array(part) for part in zip(*starts, strict=True))
        touch = _touching(m, d, quat, origin, away)
        far = touch - np.array([_depth(m, k, kind, rng) for k in range(STATIONS)])
        m.pair_margin[:] = kind.margin
        _move(m, d, quat, origin + far[:, None] * away)
        rows.append(d.qpos.copy())
        found = np.c_[d.contact.dist, d.contact.pos, d.contact.frame[:, :3]]
        of = station_of(d.contact.geom)
        contacts.append([found[of == k] for k in range(STATIONS)])
    return Placements(np.array(rows), contacts)


def _start(m, d, k: int, kind: Pose, rng) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the orientation of the second geom, and a point and the direction of its line."""
    mujoco.mj_kinematics(m, d)
    still, R, center = np.zeros(4), d.geom_xmat[k].reshape(3, 3), d.geom_xpos[k].copy()
    mujoco.mju_mat2Quat(still, d.geom_xmat[k])
    flat = int(m.geom_type[k]) in FLAT
    away, aside = R @ _unit(rng), np.zeros(3)
    if flat or kind.along:
        axis = 2 if flat else rng.integers(3)
        away = R[:, axis] * (1 if flat else rng.choice([-1, 1]))
        wide = 0.6 if flat else 0.15
        aside = R @ (rng.uniform(-wide, wide, 3) * (np.arange(3) != axis))
    if kind.turns is None:
        return _any_turn(rng), center + aside, away

    # right angles to the first geom, then the yaw about the line, then a small rotation
    turn = still
    for axis in np.eye(3):
        turn = _product(turn, _turn(axis, rng.integers(4) * np.pi / 2))
    if kind.along:
        turn = _product(_turn(away, rng.uniform(0, 2 * np.pi)), turn)
    return _product(turn, _turn(_unit(rng), rng.choice(kind.turns))), center + aside, away


def _touching(m, d, quat, origin, away) -> np.ndarray:
    """Return the distance along its line at which each second geom separates, `[stations]`."""
    m.pair_margin[:] = 0.0
    low, high = np.zeros(STATIONS), np.full(STATIONS, FAR)
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        _move(m, d, quat, origin + middle[:, None] * away)
        touching = np.isin(np.arange(STATIONS), station_of(d.contact.geom))
        low, high = np.where(touching, middle, low), np.where(touching, high, middle)
    return low


def station_of(geom: np.ndarray) -> np.ndarray:
    """Return the stations of contacts: fixed geoms come first in the model, then the others."""
    return geom.max(axis=-1) - STATIONS


def _move(m, d, quat, pos) -> None:
    d.qpos[:] = np.concatenate([pos, quat], axis=1).ravel()
    mujoco.mj_kinematics(m, d)
    mujoco.mj_collision(m, d)


def _depth(m, k: int, kind: Pose, rng) -> float:
    least, most = kind.depth
    if least < 0:
        return MARGIN * rng.uniform(least, most)
    half = m.geom_aabb[STATIONS + k, 3:].min()
    return half * float(np.exp(rng.uniform(np.log(least), np.log(most))))


def _turn(axis: np.ndarray, angle: float) -> np.ndarray:
    return np.r_[np.cos(angle / 2), np.sin(angle / 2) * axis]


def _product(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    out = np.zeros(4)
    mujoco.mju_mulQuat(out, left, right)
    return out


def _unit(rng: np.random.Generator) -> np.ndarray:
    v = rng.normal(size=3)
    return v / np.linalg.norm(v)


def _any_turn(rng: np.random.Generator) -> np.ndarray:
    q = rng.normal(size=4)
    return q / np.linalg.norm(q)
