"""Contacts of meshes with `sdf` geoms, face by face, against the oracle; their derivative."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from optimized import OPTIMIZED
from physics.collision.field.fields_of_all import compiled, draw, physics, rows, sdf_geom
from physics.collision.field.test_sdf import STEP, moved, slopes
from states import single
from tolerance import CONTACT, FLOAT32, ROUGH_DIFFERENCE, ROUNDING

from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.physics.collision.field.mesh import MAX_MESH_CONTACTS, mesh_sdf, mesh_sdf_tables

MESHES = {
    "tetrahedron": 'vertex="-1 -1 -1 1 -1 -1 0 1 -1 0 0 0"',
    "ball": 'builtin="sphere" params="2" scale=".4 .3 .5"',
}
collide = jax.jit(mesh_sdf, compiler_options=OPTIMIZED)


@functools.cache
def drawn(mesh: str, starts: int, spread: float = 0.4):
    """Random placements of a mesh and a torus, with the oracle's contacts."""
    bodies = {"mesh": '<geom type="mesh" mesh="m"/>', "torus": sdf_geom("torus")}
    mj = compiled(bodies, f'<mesh name="m" {MESHES[mesh]}/>', starts)
    return draw(mj, [(0, 1)], 60, spread, seed=0), mesh_sdf_tables(physics(mj))


@pytest.mark.short("ball-40")
@pytest.mark.parametrize(("mesh", "starts"), [("tetrahedron", 20), ("ball", 10), ("ball", 40)])
def test_contacts_equal_the_oracle(mesh, starts):
    """Contacts are equal in number and order; with many starts, a few faces exhaust the limit.

    Points that faces share are the same up to rounding, and one such contact more or less is not
    excluded.
    """
    p, m = drawn(mesh, starts)
    touch = rows(collide(p.a, p.b, m))
    same = 0
    for k, expected in enumerate(p.contacts):
        mine = touch[touch[:, k, 0] < NO_CONTACT_DISTANCE, k]
        if len(mine) == len(expected):
            np.testing.assert_allclose(mine, expected, **CONTACT)
            same += 1
    assert same >= 58
    assert sum(len(c) > 0 for c in p.contacts) > 15
    assert max(len(c) for c in p.contacts) > 2


def test_derivative():
    """Central differences: a found point is a mean of corners, with weights that do not change."""
    p, m = drawn("tetrahedron", 20)
    way = jnp.asarray(np.random.default_rng(0).normal(size=(6, len(p.contacts))))

    def of(x):
        return mesh_sdf(p.a, moved(p.b, x), m)

    ours, there, _ = slopes(of, way)
    search = jax.jit(of)
    numeric = (rows(search(STEP * way)) - rows(search(-STEP * way))) / (2 * STEP)
    assert there.sum() > 50
    close = np.isclose(ours[there], numeric[there], **ROUGH_DIFFERENCE).all(axis=-1)
    assert close.mean() > 0.98  # the rest: where a step prefers another corner


@pytest.mark.slow
def test_reverse_mode_and_worlds_last():
    """A finite gradient; `[n, worlds]` is a loop over worlds; single precision stays sane."""
    p, m = drawn("tetrahedron", 20)

    def total(a, b):
        t = mesh_sdf(a, b, m)
        parts = [t.dist, *t.pos.parts, *t.normal.parts]
        return sum(jnp.sum(jnp.where(t.dist < NO_CONTACT_DISTANCE, part, 0.0)) for part in parts)

    gradient = jax.jit(jax.grad(total, argnums=(0, 1), allow_int=True))(p.a, p.b)
    real = [g for g in jax.tree.leaves(gradient) if g.dtype != jax.dtypes.float0]
    assert all(np.isfinite(g).all() for g in real)
    assert any(np.any(g != 0) for g in real)

    flat = rows(collide(p.a, p.b, m))
    wide = jax.tree.map(lambda x: x[..., None], m)
    many = jax.tree.map(lambda x: x.reshape(12, 5), (p.a, p.b))
    last = rows(collide(*many, wide))
    np.testing.assert_allclose(
        last.reshape(MAX_MESH_CONTACTS, 60, 7), flat, rtol=0, atol=ROUNDING["atol"]
    )
    narrow = rows(collide(*single((*many, wide))))
    assert np.isfinite(narrow).all()
    touching, found = ((r[..., 0] < NO_CONTACT_DISTANCE).any(axis=0) for r in (last, narrow))
    assert (touching == found).mean() > 0.95
    here = narrow[..., 0] < NO_CONTACT_DISTANCE
    np.testing.assert_allclose(np.linalg.norm(narrow[here][:, 4:], axis=-1), 1, **FLOAT32)
