"""Farthest vertices, faces and edges of hulls against a search through all of them."""

import pickle
from dataclasses import replace

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.collision.convex.shapes import SHAPES, loaded, oracle, polygons, vertices
from physics.oracle import unpack
from tolerance import SAME

import jaxsim
from jaxsim.assets.mesh.directions import FAN_SLICES
from jaxsim.assets.mesh.support_map import CELLS_PER_EDGE, COORDINATE_ROUNDING
from jaxsim.batch.program_report import count_equations
from jaxsim.io.save import from_bytes, to_bytes
from jaxsim.math import Vec
from jaxsim.physics.collision.convex.hull.faces import (
    face_normal,
    face_vertices,
    hull_ends,
    hull_faces,
)
from jaxsim.physics.collision.convex.hull.hulls import Hulls, hull_of, hull_vertex, hulls, row_of
from jaxsim.physics.collision.convex.hull.support import hull_support

MANY = 100_000  # random directions for a hull
ALL = tuple(SHAPES)

support = jax.jit(hull_support)


def mesh_rows(h: Hulls, vertex) -> np.ndarray:
    """Rows of `mesh_vert` of vertices of hulls."""
    return np.asarray(h.tables.mesh_row[vertex])


def on_borders(rng, n: int) -> np.ndarray:
    """Directions on borders of cells, of their parts, and of faces of the cube."""
    lines = np.arange(-CELLS_PER_EDGE * 8, CELLS_PER_EDGE * 8 + 1) / (CELLS_PER_EDGE * 8)
    d = np.c_[np.ones(n), rng.choice(lines, n), rng.uniform(-1, 1, n)]
    d[: n // 4, 2] = rng.choice(lines, n // 4)
    d = np.take_along_axis(d, rng.permuted(np.tile([0, 1, 2], (n, 1)), axis=1), axis=1)
    return d * rng.choice([-1, 1], (n, 1))


def directions(mj: mujoco.MjModel, mesh: int, n: int = MANY) -> np.ndarray:
    """Random ones, those of borders, normals of faces, and very near to normals."""
    rng = np.random.default_rng(mesh)
    here = slice(mj.mesh_polyadr[mesh], mj.mesh_polyadr[mesh] + mj.mesh_polynum[mesh])
    normal = mj.mesh_polynormal[here]
    near = rng.choice(normal, 5000)
    near = near + rng.normal(size=near.shape) * 10.0 ** rng.uniform(-9, -1, (5000, 1))
    d = np.concatenate([rng.normal(size=(n, 3)), on_borders(rng, 20_000), normal, near])
    return d / np.linalg.norm(d, axis=1)[:, None]


def farthest(point: np.ndarray, d: np.ndarray) -> np.ndarray:
    """Largest product of any point with each direction; by parts, for the memory."""
    parts = np.array_split(d, len(d) // 10_000 + 1)
    return np.concatenate([(point @ part.T).max(axis=0) for part in parts])


@pytest.mark.short("box-float64", "rough-float64", "cut-float32")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", ALL)
def test_no_vertex_is_farther(name, dtype):
    """To the last digit where lists were short; else to the rounding of the coordinates."""
    mj = oracle(*ALL)
    _, h = loaded(mj)
    h = jax.tree.map(lambda a: a.astype(dtype) if a.dtype == float else a, h)
    mesh = ALL.index(name)
    mine = vertices(mj, mesh)
    d = directions(mj, mesh)
    geom = jnp.full(len(d), 1 + mesh, jnp.int32)
    found = mesh_rows(h, support(h, hull_of(h, geom), Vec(*jnp.asarray(d, dtype).T)))
    assert found.dtype == np.int32
    assert np.isin(found, mine).all()
    point = mj.mesh_vert.astype(np.float64)
    short = farthest(point[mine], d) - np.einsum("ni,ni->n", point[found], d)
    exact = name in ("box", "rough", "shard") and dtype == np.float64
    rounding = 1e-16 if exact else 2 * COORDINATE_ROUNDING
    assert short.max() <= rounding * np.abs(point[mine]).max() + 1e-16


def test_lists_are_short_and_tables_small():
    """Also where 64 corners are equally far, and where 200 are nearly so."""
    s = loaded(oracle(*ALL))[0].structure
    assert s.nhull == len(ALL)
    assert s.nhullmost <= 16
    assert 4 * (s.nhullpart + s.nhullvert + s.nhullfan * (FAN_SLICES + 2)) < 100_000


def asked(mj: mujoco.MjModel, h: Hulls, n: int = 500):
    """Directions, and the vertices that are farthest in others that are not far from these."""
    rng = np.random.default_rng(3)
    mesh = rng.integers(0, mj.nmesh, n)
    d = rng.normal(size=(n, 3))
    tilted = Vec(*jnp.asarray(d + 0.3 * rng.normal(size=(n, 3))).T)
    vertex = support(h, hull_of(h, jnp.asarray(1 + mesh, jnp.int32)), tilted)
    return vertex, Vec(*jnp.asarray(d).T)


def test_faces():
    """All polygons at a vertex; their normals and outlines."""
    mj = oracle(*ALL)
    _, h = loaded(mj)
    vertex, _d = asked(mj, h)
    listed = np.asarray(jax.jit(hull_faces)(h, vertex))
    face = listed[
        np.random.default_rng(4).integers(len(listed), size=vertex.size), np.arange(vertex.size)
    ]
    normal = np.asarray(face_normal(h, face).to_array(1))
    np.testing.assert_array_equal(normal, mj.mesh_polynormal[face])
    corners, number = jax.jit(face_vertices)(h, face)
    corners = np.asarray(corners.to_array(2))
    outlines = polygons(mj)
    assert len(corners) == 64
    for i, v in enumerate(mesh_rows(h, vertex)):
        mesh = np.searchsorted(mj.mesh_vertadr, v, side="right") - 1
        first, number_of = mj.mesh_polymapadr[v], mj.mesh_polymapnum[v]
        at = mj.mesh_polymap[first : first + number_of] + mj.mesh_polyadr[mesh]
        np.testing.assert_array_equal(listed[: len(at), i], at)
        assert (listed[len(at) :, i] == at[-1]).all()
        outline = outlines[face[i]]
        assert number[i] == len(outline)
        np.testing.assert_array_equal(corners[: number[i], i], mj.mesh_vert[outline])
        assert (corners[number[i] :, i] == corners[number[i] - 1, i]).all()


def test_edges():
    """All edges at a vertex: of each polygon there the corner before it."""
    mj = oracle(*ALL)
    _, h = loaded(mj)
    vertex, _ = asked(mj, h)
    ends, faces = mesh_rows(h, jax.jit(hull_ends)(h, vertex)), np.asarray(hull_faces(h, vertex))
    outlines = polygons(mj)
    for i, v in enumerate(mesh_rows(h, vertex)):
        for end, face in zip(ends[:, i], faces[:, i], strict=True):
            outline = list(outlines[face])
            assert end == outline[outline.index(v) - 1]


@pytest.mark.slow
def test_each_world_has_its_own_vertices():
    """Vertices, faces and normals are those that each world finds by itself; also all in a row."""
    mj = oracle("box", "drum", "shard")
    _, h = loaded(mj)
    worlds, n = 3, 40
    scale = jnp.array([1.0, 0.5, 2.0])
    rng = np.random.default_rng(0)
    geom = jnp.asarray(rng.integers(1, 4, (n, worlds)), jnp.int32)
    d = Vec(*jnp.asarray(rng.normal(size=(3, n, worlds))))

    @jax.jit
    def ask(h, geom, d):
        vertex = hull_support(h, hull_of(h, geom), d)
        face, ends = hull_faces(h, vertex), hull_ends(h, vertex)
        rows = [row_of(h, number) for number in (vertex, face, ends)]
        return *rows, hull_vertex(h, vertex), face_vertices(h, face[0])[0]

    many = replace(
        h, vertex=h.vertex.map(lambda a: a[:, None] * scale[None]), normal=h.normal[:, None]
    )
    together = ask(many, geom, d)
    in_a_row = ask(many, geom.ravel(), d.map(jnp.ravel))
    for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(in_a_row), strict=True):
        np.testing.assert_array_equal(a.reshape(b.shape), b)
    for k in range(worlds):
        alone = ask(replace(h, vertex=h.vertex.scale(scale[k])), geom[:, k], d[:, k])
        for a, b in zip(jax.tree.leaves(together), jax.tree.leaves(alone), strict=True):
            np.testing.assert_array_equal(a[..., k], b)


def test_vertices_that_were_moved():
    """None is farther on hulls that were stretched otherwise than evenly, in each world."""
    mj = oracle(*ALL)
    m, _ = loaded(mj)
    stretch = np.array([[1.0, 0.5, 1.5], [0.2, 1.0, 1.0], [1.0, 1.0, 1.0]])
    moved = m.replace(mesh_vert=m.mesh_vert[None] * stretch[:, None])
    table = Vec(*jnp.moveaxis(moved.mesh_vert, 0, -1).swapaxes(0, 1))
    h = hulls(unpack(moved, 0))
    h = replace(h, vertex=table[h.tables.mesh_row])
    rng = np.random.default_rng(1)
    for mesh, name in enumerate(ALL):
        d = Vec(*jnp.asarray(rng.normal(size=(3, 2000, len(stretch)))))
        geom = jnp.full(d.shape, 1 + mesh, jnp.int32)
        found = hull_vertex(h, support(h, hull_of(h, geom), d)).dot(d)
        for k, scale in enumerate(stretch):
            point = mj.mesh_vert[vertices(mj, mesh)] * scale
            best = farthest(point, np.stack(d.parts, -1)[:, k])
            np.testing.assert_allclose(found[:, k], best, err_msg=name, **SAME)


def test_vertices_carry_derivatives():
    """A coordinate moves with its entry of `mesh_vert`, and with no other."""
    mj = oracle("box", "drum", "shard")
    m, h = loaded(mj)
    _, d = asked(mj, h, 20)

    def height(mesh_vert):
        h = hulls(unpack(m.replace(mesh_vert=mesh_vert), 0))
        found = hull_support(h, hull_of(h, jnp.full(20, 2, jnp.int32)), d)
        return hull_vertex(h, found).dot(d), found

    jacobian, found = jax.jit(jax.jacrev(height, has_aux=True))(m.mesh_vert)
    expected = np.zeros(jacobian.shape)
    expected[np.arange(20), mesh_rows(h, found)] = np.stack(d.parts, 1)
    np.testing.assert_allclose(jacobian, expected, **SAME)


def test_zero_direction_returns_a_vertex():
    """The result for zero, huge and tiny directions is the farthest vertex of the hull; for what is
    not a number, it is a vertex of the model."""
    mj = oracle(*ALL)
    _, h = loaded(mj)
    d = np.array([[0, 0, 0], [1e300, 0, 0], [0, -1e-300, 0], [np.inf, 0, 0], [np.nan, 0, 1]])
    for mesh in range(mj.nmesh):
        hull = hull_of(h, jnp.full(len(d), 1 + mesh, jnp.int32))
        found = mesh_rows(h, support(h, hull, Vec(*jnp.asarray(d).T)))
        assert np.isin(found[:3], vertices(mj, mesh)).all()
        assert ((found >= 0) & (found < mj.nmeshvert)).all()


@pytest.mark.slow
def test_the_program_does_not_grow_with_the_meshes():
    def sizes(*names):
        _, h = loaded(oracle(*names))
        hull, d = jnp.zeros(5, jnp.int32), Vec(*jnp.zeros((3, 5)))
        asked = (
            (hull_support, (h, hull, d)),
            (hull_faces, (h, hull)),
            (hull_ends, (h, hull)),
            (face_vertices, (h, hull)),
        )
        return [count_equations(jax.make_jaxpr(f)(*given).jaxpr) for f, given in asked]

    size = sizes("drum")
    assert size == sizes("drum", "shard") == sizes("drum", "box", "rough", "cut", "lid")
    assert max(size) < 300  # with the walk on vertices that were moved, a third of it


def test_tables_stay_with_the_model():
    """Through files, pickles, and a change of leaves; those of meshes nothing touches are empty."""
    m, h = loaded(oracle("drum", "shard"))
    for again in (from_bytes(to_bytes(m)), pickle.loads(pickle.dumps(m))):
        assert again.structure == m.structure
        for a, b in zip(jax.tree.leaves(hulls(unpack(again, 0))), jax.tree.leaves(h), strict=True):
            np.testing.assert_array_equal(a, b)
    drawn = jaxsim.load_model(
        """<mujoco><asset><mesh name="a" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset><worldbody>
        <geom type="plane" size="1 1 1"/><body><freejoint/>
        <geom type="mesh" mesh="a" contype="0" conaffinity="0"/></body></worldbody></mujoco>"""
    )
    assert drawn.structure.nhull == drawn.structure.nhullvert == 0
    assert (drawn.structure.geom_hullid == -1).all()


def test_tables_hold_what_searches_read():
    """Not the vertices inside of a hull, nor a mesh that is only drawn, unless it is searched."""
    rng = np.random.default_rng(0)
    cloud = " ".join(map(str, rng.normal(size=(300, 3)).ravel()))
    m = jaxsim.load_model(
        f"""<mujoco><asset><mesh name="a" vertex="{cloud}"/>
        <mesh name="b" vertex="{cloud}" scale="2 2 2"/></asset><worldbody>
        <body><freejoint/><geom type="mesh" mesh="a"/></body>
        <body><geom type="mesh" mesh="b" contype="0" conaffinity="0"/></body>
        <geom type="sphere" size=".1"/></worldbody></mujoco>"""
    )
    collide, query = (hulls(unpack(m, 0), drawn=drawn) for drawn in (False, True))
    assert len(collide.vertex.x) < 100  # of 600
    assert (np.asarray(collide.tables.mesh_row) < 300).all()
    assert set(range(300, 600)) <= set(np.asarray(query.tables.mesh_row).tolist())
    assert not collide.searches_all
    assert query.searches_all
