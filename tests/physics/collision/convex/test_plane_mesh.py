"""Planes against meshes: every contact equals the oracle's, and changes as it should."""

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from optimized import OPTIMIZED
from physics.collision.convex.shapes import SHAPES, loaded, oracle
from physics.oracle import data, unpack
from tolerance import DIFFERENCE, FLOAT32, ROUNDING, SOLVER

import jaxsim
from jaxsim.io.bridge import put_model
from jaxsim.math import Quat, Rot, Vec
from jaxsim.physics.collision.contacts import collision
from jaxsim.physics.collision.convex.hull.hulls import Hulls
from jaxsim.physics.collision.convex.plane_mesh import plane_mesh
from jaxsim.physics.collision.shape import ContactPoints, PlacedGeoms
from jaxsim.transforms.layout import pack_record

NAMES = ("box", "rough", "drum", "shard", "cut")
MARGIN = 0.03
STEP = 1e-6  # of finite differences


def touching(plane: PlacedGeoms, mesh: PlacedGeoms, h: Hulls) -> ContactPoints:
    """The collider as the driver calls it."""
    return plane_mesh(plane, mesh, h, jnp.zeros_like(plane.pos.x))


collide = jax.jit(touching, compiler_options=OPTIMIZED)


def placed(pos, mat, geom) -> PlacedGeoms:
    """`[n, 3]`, `[n, 3, 3]`, `[n]` as geoms."""
    pos, mat, geom = jnp.asarray(pos), jnp.asarray(mat), jnp.asarray(geom, jnp.int32)
    return PlacedGeoms(Vec(*pos.T), Rot(*mat.reshape(-1, 9).T), Vec(*jnp.zeros_like(pos).T), geom)


def face_down(mj, d, geom: int, rng) -> np.ndarray:
    """An orientation in which a polygon of a geom nearly lies on the plane."""
    mesh = mj.geom_dataid[geom]
    polygon = mj.mesh_polyadr[mesh] + rng.integers(mj.mesh_polynum[mesh])
    normal = mj.mesh_polynormal[polygon]
    down = -d.geom_xmat[0].reshape(3, 3)[:, 2] + rng.normal(size=3) * rng.choice([1e-4, 0.03, 0.2])
    down /= np.linalg.norm(down)
    turn = np.r_[1 + normal @ down, np.cross(normal, down)]
    body = np.empty(4)
    back = mj.geom_quat[geom] * [1, -1, -1, -1]
    mujoco.mju_mulQuat(body, turn / np.linalg.norm(turn), back)
    return body


def draw(mj: mujoco.MjModel, states: int = 60, seed: int = 0):
    """Placements of plane and meshes, `[n]`, and what the oracle finds for each, `[ncon, 7]`.

    Random orientations and such with a polygon on the plane; from just apart to all beyond it.
    """
    rng = np.random.default_rng(seed)
    d = mujoco.MjData(mj)
    mujoco.mj_kinematics(mj, d)
    normal = d.geom_xmat[0].reshape(3, 3)[:, 2]
    rows, contacts = [], []
    for k in range(states):
        for geom in range(1, mj.ngeom):
            at = 7 * (geom - 1)
            turn = rng.normal(size=4)
            d.qpos[at : at + 3] = rng.normal(size=3)
            d.qpos[at + 3 : at + 7] = turn / np.linalg.norm(turn)
            if k % 2:
                d.qpos[at + 3 : at + 7] = face_down(mj, d, geom, rng)
        mujoco.mj_kinematics(mj, d)
        for geom in range(1, mj.ngeom):
            mesh = mj.geom_dataid[geom]
            start = mj.mesh_vertadr[mesh]
            point = mj.mesh_vert[start : start + mj.mesh_vertnum[mesh]]
            point = point @ d.geom_xmat[geom].reshape(3, 3).T + d.geom_xpos[geom]
            depth = rng.uniform(-0.3, 1) * rng.choice([0.05, 0.3, 1, 2.5]) * mj.geom_rbound[geom]
            lowest = ((point - d.geom_xpos[0]) @ normal).min()
            d.qpos[7 * (geom - 1) : 7 * (geom - 1) + 3] -= normal * (lowest + depth)
        mujoco.mj_forward(mj, d)
        found = d.contact
        for geom in range(1, mj.ngeom):
            mine = found.geom[:, 1] == geom
            rows.append((d.geom_xpos[[0, geom]], d.geom_xmat[[0, geom]], geom))
            contacts.append(np.c_[found.dist, found.pos, found.frame[:, :3]][mine])
    pos, mat, geom = (np.array(x) for x in zip(*rows, strict=True))
    return placed(pos[:, 0], mat[:, 0], 0 * geom), placed(pos[:, 1], mat[:, 1], geom), contacts


def points(touch) -> np.ndarray:
    """Distance, position and normal, `[slots, n, 7]`."""
    parts = (touch.dist, *touch.pos.parts, *touch.normal.parts)
    return np.stack([np.broadcast_to(p, touch.dist.shape) for p in parts], -1)


@pytest.mark.parametrize("margin", [0, MARGIN])
def test_contacts_equal_the_oracle(margin):
    """Contacts are equal in number and order, each in position, depth and normal."""
    mj = oracle(*NAMES, margin=margin)
    _, h = loaded(mj)
    plane, mesh, contacts = draw(mj)
    mine = points(collide(plane, mesh, h))
    numbers = set()
    for i, expected in enumerate(contacts):
        found = mine[mine[:, i, 0] <= margin, i]
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)
        numbers.add(len(found))
    assert numbers == {0, 1, 2, 3, 4}


def test_signed_distance_fields_touch_with_their_hull():
    """A geom of type sdf against a plane has the contacts of its mesh."""
    xml = """<mujoco><asset><mesh name="m" vertex="{}"/></asset><worldbody>
      <geom type="plane" size="1 1 1"/>
      <body><freejoint/><geom type="sdf" mesh="m"/></body></worldbody></mujoco>"""
    point = np.random.default_rng(2).normal(size=(20, 3)) * 0.1
    mj = mujoco.MjModel.from_xml_string(xml.format(" ".join(map(str, point.ravel()))))
    _, h = loaded(mj)
    plane, mesh, contacts = draw(mj, states=20)
    mine = points(collide(plane, mesh, h))
    for i, expected in enumerate(contacts):
        np.testing.assert_allclose(mine[mine[:, i, 0] <= 0, i], expected, rtol=0, atol=1e-12)
    assert any(len(c) > 2 for c in contacts)


@pytest.mark.slow
def test_worlds_last():
    """`[n, worlds]` items give what each gives alone; single precision stays close."""
    mj = oracle(*NAMES)
    _, h = loaded(mj)
    plane, mesh, _ = draw(mj, states=24)
    flat = points(collide(plane, mesh, h))
    last = jax.tree.map(lambda x: x.reshape(30, 4), (plane, mesh))
    many = collide(
        *last, jax.tree.map(lambda a: a[:, None] if a.dtype == float and a.ndim else a, h)
    )
    np.testing.assert_allclose(points(many).reshape(flat.shape), flat, **ROUNDING)
    single = jax.tree.map(
        lambda x: x.astype(jnp.float32) if x.dtype == float else x, (plane, mesh, h)
    )
    rough = points(collide(*single))
    assert rough.dtype == np.float32
    # another corner of a face may come first; the lowest point is where it was
    np.testing.assert_allclose(rough[0, :, 0], flat[0, :, 0], **FLOAT32)


def test_derivatives():
    """Derivatives of distance and position, by motion of the mesh and by its vertices."""
    mj = oracle(*NAMES)
    _, h = loaded(mj)
    plane, mesh, _ = draw(mj, states=20)
    rng = np.random.default_rng(0)
    n = len(mesh.id)
    way = jnp.asarray(rng.normal(size=(6, n)))
    growth = Vec(*(jnp.asarray(rng.normal(size=a.shape)) for a in h.vertex.parts))

    @jax.jit
    def moved(t):
        turn = Quat.from_rotation_vector(Vec(*(t * way[3:]))).matrix()
        there = mesh._replace(pos=mesh.pos + Vec(*(t * way[:3])), rot=turn @ mesh.rot)
        touch = touching(plane, there, replace(h, vertex=h.vertex + growth.scale(t)))
        return jnp.stack([touch.dist, *touch.pos.parts])

    _, slope = jax.jvp(moved, (0.0,), (1.0,))
    coarse, fine = ((moved(s) - moved(-s)) / (2 * s) for s in (STEP, STEP / 2))
    near = np.asarray(moved(0.0))[0] < 1
    smooth = near & (np.abs(coarse - fine) < 1e-7).all(axis=0)
    assert smooth.sum() > 0.9 * near.sum()
    np.testing.assert_allclose(slope[:, smooth], fine[:, smooth], **DIFFERENCE)


@pytest.mark.slow
def test_reverse_mode_is_finite_where_faces_are_flush():
    """Level boxes and drums, in the plane, above and below it: no NaN in value or gradient."""
    mj = oracle("box", "drum")
    _, h = loaded(mj)
    height = np.repeat([-1, -0.2, -0.05, 0, 0.05, 0.2], 2)
    n = len(height)
    eye = np.tile(np.eye(3), (n, 1, 1))
    plane = placed(np.zeros((n, 3)), eye, np.zeros(n))
    mesh = placed(np.c_[0 * height, 0 * height, height], eye, np.tile([1, 2], n // 2))

    def total(pos, rot, vertex):
        touch = touching(plane, mesh._replace(pos=pos, rot=rot), replace(h, vertex=vertex))
        here = touch.dist < 2
        parts = (touch.dist, *touch.pos.parts, *touch.normal.parts)
        return sum(jnp.sum(jnp.where(here, p, 0)) for p in parts)

    gradient = jax.jit(jax.grad(total, argnums=(0, 1, 2)))(mesh.pos, mesh.rot, h.vertex)
    assert all(np.isfinite(g).all() for g in jax.tree.leaves(gradient))


@pytest.mark.slow
def test_meshes_fall_as_in_mujoco():
    """Dropped on a level plane, three hulls bounce, tip over and come to rest in the same way."""
    shapes = "".join(
        f"""<mesh name="{name}" vertex="{" ".join(map(str, SHAPES[name].ravel()))}"/>"""
        for name in ("box", "cut", "shard")
    )
    bodies = "".join(
        f"""<body pos="{k} 0 .25" euler="{20 * k + 10} 30 0"><freejoint/>
        <geom type="mesh" mesh="{name}" contype="0"/></body>"""
        for k, name in enumerate(("box", "cut", "shard"))
    )
    xml = f"""<mujoco><option tolerance="0" iterations="30"/><asset>{shapes}</asset><worldbody>
      <geom type="plane" size="5 5 1"/>{bodies}</worldbody></mujoco>"""
    mj = mujoco.MjModel.from_xml_string(xml)
    state, m = mujoco.MjData(mj), put_model(mj)
    d, step = jaxsim.make_data(m), jax.jit(jaxsim.step)
    most = 0
    for _ in range(250):
        mujoco.mj_step(mj, state)
        d = step(m, d)
        most = max(most, int(d.ncon))
    assert most >= 5
    np.testing.assert_allclose(d.qpos, state.qpos, **SOLVER)


def jaco(file: str, height: float) -> mujoco.MjModel:
    """A hand or an arm with ten meshes of hundreds of vertices, which touch only a plane."""
    package = find_spec("dm_control")
    if package is None or package.origin is None:
        pytest.skip("dm_control is not installed (tests/model_packages.txt)")
    path = Path(package.origin).parent / "third_party" / "kinova" / file
    spec = mujoco.MjSpec.from_file(str(path))
    for geom in spec.geoms:
        geom.contype, geom.conaffinity = 1, 2
    spec.worldbody.add_geom(
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=[1, 1, 1],
        pos=[0, 0, height],
        quat=[1, 0.03, -0.05, 0],  # level, it would touch round ends in many equal points
        contype=2,
        conaffinity=1,
    )
    return spec.compile()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("file", "height"),
    [("jaco_arm.xml", 0.4), pytest.param("jaco_hand.xml", 0.1, marks=pytest.mark.slow)],
)
def test_a_robot_in_a_plane(file, height):
    """The list of contacts of poses in which links of a robot reach below a plane."""
    mj = jaco(file, height)
    m = put_model(mj, contacts=64)
    assert m.nhull == m.nmesh
    rng = np.random.default_rng(0)
    found = jax.jit(lambda d: pack_record(collision(unpack(m, 0), unpack(d, 0)), d))
    total = 0
    for _ in range(20):
        state = mujoco.MjData(mj)
        mujoco.mj_integratePos(mj, state.qpos, 2 * rng.normal(size=mj.nv), 1.0)
        mujoco.mj_forward(mj, state)
        d = data(mj, state)
        contact = jax.tree.map(lambda a: jnp.zeros((m.ncontact, *a.shape[1:]), a.dtype), d.contact)
        d = found(d.replace(contact=contact))
        assert d.ncon == state.ncon
        for name in ("dist", "pos", "frame", "geom"):
            mine, theirs = getattr(d.contact, name)[: state.ncon], getattr(state.contact, name)
            np.testing.assert_allclose(mine.ravel(), theirs.ravel(), rtol=0, atol=1e-12)
        total += state.ncon
    assert total > 40
