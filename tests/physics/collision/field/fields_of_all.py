"""One model with a geom of every kind that has a signed distance, with geoms in many positions."""

import ctypes
import functools
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import mujoco
import numpy as np
from physics.oracle import unpack

from jaxsim.io.bridge import put_model
from jaxsim.math import Rot, Vec
from jaxsim.model.model import Model
from jaxsim.physics.collision.shape import PlacedGeoms

SHAPES = ("bolt", "bowl", "gear", "nut", "torus")
PRIMITIVES = ("sphere", "capsule", "ellipsoid", "cylinder", "box")
CONFIG = {"bowl": '<config key="radius" value=".4"/><config key="height" value=".1"/>'}
STARTS = 20
ALONE, MEETING = (  # primitives do not meet each other, all others do
    'contype="1" conaffinity="2"',
    'contype="2" conaffinity="3"',
)


def _extension() -> str:
    return "".join(
        f'<plugin plugin="mujoco.sdf.{s}"><instance name="{s}">{CONFIG.get(s, "")}</instance>'
        "</plugin>"
        for s in SHAPES
    )


def _body(name: str, geom: str) -> str:
    return f'<body name="{name}"><freejoint/>{geom}</body>'


def sdf_geom(shape: str) -> str:
    """A geom of a plugin's shape."""
    return f'<geom type="sdf" mesh="{shape}" {MEETING}><plugin instance="{shape}"/></geom>'


def compiled(bodies: dict[str, str], assets: str = "", starts: int = STARTS) -> mujoco.MjModel:
    """A model of free bodies with one geom each, which may name the plugins' meshes."""
    used = [s for s in SHAPES if any(f'mesh="{s}"' in geom for geom in bodies.values())]
    meshes = "".join(f'<mesh name="{s}"><plugin instance="{s}"/></mesh>' for s in used)
    inside = "".join(_body(name, geom) for name, geom in bodies.items())
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><extension>{_extension()}</extension>
        <option sdf_initpoints="{starts}"/><asset>{meshes}{assets}</asset>
        <worldbody>{inside}</worldbody></mujoco>"""
    )


@functools.cache
def all_kinds() -> mujoco.MjModel:
    """Every kind once: body k has geom k."""
    bodies = {p: f'<geom type="{p}" size=".2 .15 .1" {ALONE}/>' for p in PRIMITIVES}
    bodies |= {s: sdf_geom(s) for s in SHAPES}
    bodies["octree"] = f'<geom type="sdf" mesh="ring" {MEETING}/>'
    ring = '<mesh name="ring" builtin="supertorus" params="24 .3 1 1" scale=".5 .5 .5"/>'
    return compiled(bodies, ring)


def physics(mj: mujoco.MjModel) -> Model:
    """A model in the form of the physics, for one world."""
    return unpack(put_model(mj), 0)


class Poses(NamedTuple):
    """Pairs of geoms `[n]` with the contacts that the oracle finds for them.

    Attributes:
      a, b: the geoms.
      ids: their numbers, `[n, 2]`.
      contacts: distance, position and normal of each contact, `[ncon, 7]`.
    """

    a: PlacedGeoms
    b: PlacedGeoms
    ids: np.ndarray
    contacts: list[np.ndarray]


def placed(mj: mujoco.MjModel, pos: np.ndarray, mat: np.ndarray, ids: np.ndarray) -> PlacedGeoms:
    """Geoms of a model by their numbers `[n]`, at `[n, 3]` and `[n, 9]`."""
    return PlacedGeoms(
        Vec(*jnp.asarray(pos).T),
        Rot(*jnp.asarray(mat).T),
        Vec(*jnp.asarray(mj.geom_size[ids]).T),
        jnp.asarray(ids, jnp.int32),
    )


def draw(
    mj: mujoco.MjModel, pairs: list[tuple[int, int]], states: int, spread: float, seed: int
) -> Poses:
    """Pairs of geoms of a model in random states."""
    rng = np.random.default_rng(seed)
    d = mujoco.MjData(mj)
    rows = []
    for _ in range(states):
        mujoco.mj_resetData(mj, d)
        mujoco.mj_integratePos(mj, d.qpos, spread * rng.normal(size=mj.nv), 1.0)
        # the spread of angles is that of all directions
        for k in range(mj.nbody - 1):
            quat = rng.normal(size=4)
            d.qpos[7 * k + 3 : 7 * k + 7] = quat / np.linalg.norm(quat)
        mujoco.mj_forward(mj, d)
        c = d.contact
        every = np.c_[c.dist, c.pos, c.frame[:, :3]]
        for pair in pairs:
            here = (c.geom == pair).all(axis=1)
            rows.append((d.geom_xpos.copy(), d.geom_xmat.copy(), pair, every[here]))
    pos, mat, ids, contacts = zip(*rows, strict=True)
    pos, mat, ids = np.array(pos), np.array(mat), np.array(ids)
    k = np.arange(len(ids))
    a, b = (placed(mj, pos[k, ids[:, i]], mat[k, ids[:, i]], ids[:, i]) for i in (0, 1))
    return Poses(a, b, ids, list(contacts))


def rows(touch) -> np.ndarray:
    """Distance, position and normal of all points, `[k, n, 7]`."""
    parts = [touch.dist, *touch.pos.parts, *touch.normal.parts]
    return np.stack([np.broadcast_to(p, touch.dist.shape) for p in parts], -1)


class _Sdf(ctypes.Structure):
    """`mjSDF` of mjplugin.h."""

    _fields_ = (
        ("plugin", ctypes.c_void_p),
        ("id", ctypes.POINTER(ctypes.c_int)),
        ("type", ctypes.c_int),
        ("relpos", ctypes.c_void_p),
        ("relmat", ctypes.c_void_p),
        ("geomtype", ctypes.POINTER(ctypes.c_int)),
    )


def oracle_distance(
    mj: mujoco.MjModel, d: mujoco.MjData, geom: int, points: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """MuJoCo's own distances `[n]` and slopes `[n, 3]` of points in the frame of a geom."""
    library = ctypes.CDLL(str(next(Path(mujoco.__file__).parent.glob("libmujoco.*"))))
    library.mjc_distance.restype = ctypes.c_double
    library.mjc_getSDF.restype = ctypes.c_void_p
    model, data = ctypes.c_void_p(mj._address), ctypes.c_void_p(d._address)
    kind, instance = int(mj.geom_type[geom]), int(mj.geom_plugin[geom])
    function = ctypes.c_void_p(library.mjc_getSDF(model, geom) if instance >= 0 else None)
    number = instance if instance >= 0 else int(mj.geom_dataid[geom])
    number = ctypes.c_int(number if kind == mujoco.mjtGeom.mjGEOM_SDF else geom)
    geomtype = ctypes.c_int(kind)
    sdf = _Sdf(
        ctypes.cast(ctypes.byref(function), ctypes.c_void_p),
        ctypes.pointer(number),
        0,
        None,
        None,
        ctypes.pointer(geomtype),
    )
    value, slope = np.zeros(len(points)), np.zeros((len(points), 3))
    for k, point in enumerate(np.ascontiguousarray(points)):
        at = ctypes.c_void_p(point.ctypes.data)
        value[k] = library.mjc_distance(model, data, ctypes.byref(sdf), at)
        out = ctypes.c_void_p(slope[k].ctypes.data)
        library.mjc_gradient(model, data, ctypes.byref(sdf), out, at)
    return value, slope
