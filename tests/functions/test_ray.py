"""Rays and shapes by themselves, against `mju_rayGeom`."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import ROUGH_DIFFERENCE, ROUNDING

from jaxsim.enums import GeomType
from jaxsim.functions import quat_to_mat, ray_geom, ray_skin
from jaxsim.functions.ray import RAY_SHAPES

NUMBER = 150
KINDS = tuple(RAY_SHAPES)


def drawn(seed: int):
    """Poses, sizes, and rays from inside and outside, at and past the shapes, of any length."""
    rng = np.random.default_rng(seed)
    pos = rng.normal(size=(NUMBER, 3))
    quat = rng.normal(size=(NUMBER, 4))
    mat = np.asarray(quat_to_mat(quat / np.linalg.norm(quat, axis=1)[:, None]))
    size = rng.uniform(0.1, 0.5, (NUMBER, 3))
    size[::7, :2] = 0  # planes without end
    pnt = pos + rng.normal(size=(NUMBER, 3)) * rng.choice([0.05, 1.0], (NUMBER, 1))
    aim = pos + 0.2 * rng.normal(size=(NUMBER, 3))
    return [pos, mat, size, pnt, (aim - pnt) * rng.uniform(0.3, 3, (NUMBER, 1))]


def theirs(kind, pos, mat, size, pnt, vec) -> np.ndarray:
    rows = []
    for k in range(NUMBER):
        normal = np.zeros(3)
        given = pos[k], mat[k].ravel(), size[k], pnt[k], vec[k]
        rows.append(np.r_[mujoco.mju_rayGeom(*given, kind, normal), normal])
    return np.array(rows)


@jax.jit
def all_kinds(*given):
    """Distances and normals of the same rays and shapes of each kind, `[kind, n, 4]`."""
    hits = [ray_geom(*given, geomtype=kind) for kind in KINDS]
    return jnp.stack([jnp.column_stack(hit) for hit in hits])


def test_rays_equal_those_of_mujoco():
    given = drawn(0)
    given[2] = np.maximum(given[2], np.where(np.arange(3) == 2, 0.1, 0))
    mine = all_kinds(*given)
    sized = np.all(given[2] > 0, axis=1)
    for k, kind in enumerate(KINDS):
        expected = theirs(kind, *given)
        use = sized | (kind == GeomType.PLANE)
        assert 0.1 < (expected[use, 0] >= 0).mean() < 0.97
        np.testing.assert_allclose(mine[k][use], expected[use], **ROUNDING)


def test_derivatives():
    given = drawn(1)
    given[2][::7] = 0.3
    rng = np.random.default_rng(2)
    way = [rng.normal(size=x.shape) for x in given]
    step = 1e-6
    moved = [
        all_kinds(*(x + s * w for x, w in zip(given, way, strict=True))) for s in (step, -step)
    ]
    difference = (moved[0] - moved[1]) / (2 * step)
    out, slope = jax.jit(lambda a, w: jax.jvp(all_kinds, a, w))(tuple(given), tuple(way))
    # not where a ray passes from one face to another, or hardly touches
    smooth = np.all(np.abs(difference) < 30, axis=2) & (out[..., 0] >= 0)
    assert (smooth.sum(axis=1) > 8).all()
    np.testing.assert_allclose(slope[smooth], difference[smooth], **ROUGH_DIFFERENCE)
    assert np.isfinite(slope).all()


def test_one_and_many():
    one = ray_geom(np.zeros(3), np.eye(3), np.ones(3), np.array([3.0, 0, 0]), -np.eye(3)[0], "box")
    assert one.dist == 2
    np.testing.assert_array_equal(one.normal, [1, 0, 0])
    several = ray_geom(np.zeros(3), np.eye(3), np.ones(3), np.zeros(3), np.eye(3), GeomType.SPHERE)
    np.testing.assert_allclose(several.dist, np.ones(3))
    nothing = ray_geom(np.zeros(3), np.eye(3), np.ones(3), np.zeros(3), np.zeros(3), 2)
    assert nothing.dist == -1
    assert not nothing.normal.any()
    with pytest.raises(ValueError, match=r"ray_geom: geomtype: expected one of plane, .*'mesh'"):
        ray_geom(np.zeros(3), np.eye(3), np.ones(3), np.zeros(3), np.zeros(3), "mesh")


def test_skins_are_met_as_in_mujoco():
    """Rays from both sides; the vertex is the nearest one of the face."""
    rng = np.random.default_rng(2)
    vert = rng.normal(size=(9, 3)).astype(np.float32).astype(float)
    face = np.array([rng.choice(9, 3, replace=False) for _ in range(7)], np.int32)
    pnt, vec = 2 * rng.normal(size=(80, 3)), rng.normal(size=(80, 3))
    vec[40:] -= pnt[40:]
    found = jax.jit(lambda *a: ray_skin(face, *a))(vert, pnt, vec)
    for k, (p, v) in enumerate(zip(pnt, vec, strict=True)):
        near = np.full(1, -1, np.int32)
        far = mujoco.mju_raySkin(
            7, 9, face.reshape(1, -1), np.float32(vert.reshape(1, -1)), p, v, near
        )
        assert found.vertid[k] == (near[0] if far >= 0 else -1)
        np.testing.assert_allclose(found.dist[k], far, **ROUNDING)
    assert 0.1 < (found.dist >= 0).mean() < 0.9
    one = ray_skin(face, vert, pnt[41], vec[41])
    np.testing.assert_allclose(one.dist, found.dist[41], **ROUNDING)
    with pytest.raises(ValueError, match="face: there are 5 vertices, got 8"):
        ray_skin(face, vert[:5], pnt, vec)


def test_a_skin_of_many_faces_and_of_whole_numbers():
    n = 200
    x, y = np.meshgrid(np.arange(n), np.arange(n), indexing="ij")
    vert = np.stack([x, y, 0 * x], axis=-1).reshape(-1, 3)
    first = (x * n + y)[:-1, :-1].ravel()
    face = np.stack([first, first + n, first + 1], axis=1)  # half of each square
    assert len(face) > 2**15
    found = ray_skin(face, vert, [3.2, 5.3, 2], [0, 0, -1])
    np.testing.assert_allclose(found.dist, 2.0, **ROUNDING)
    assert found.vertid == 3 * n + 5
    with pytest.raises(ValueError, match="got -2"):
        ray_skin([[0, 1, -2]], vert, [3.2, 5.3, 2], [0, 0, -1])
