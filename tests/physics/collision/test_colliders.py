"""Colliders of primitives against the oracle, their derivatives, and singular placements."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from optimized import OPTIMIZED
from physics.collision.two_geoms import draw, name, placed, random_quat
from tolerance import CONTACT, ROUNDING, SAME

from jaxsim.enums import GeomType
from jaxsim.math import Quat, Vec
from jaxsim.model.contact import NO_CONTACT_DISTANCE
from jaxsim.physics.collision.candidates.table import COLLIDERS

STEP = 1e-6  # of finite differences

KINDS = sorted(kind for kind, row in COLLIDERS.items() if row.assets is None)
each_kind = pytest.mark.parametrize("kind", KINDS, ids=name)


def _flat(touch):
    """dist `[k, n]`, and position and normal `[k, n, 3]`."""
    pos, normal = (
        np.stack([np.broadcast_to(c, touch.dist.shape) for c in v.parts], -1)
        for v in (touch.pos, touch.normal)
    )
    return np.asarray(touch.dist), pos, normal


@each_kind
def test_contacts_equal_the_oracle(kind):
    """Contacts are equal in number and order, each in position, depth and normal."""
    p = draw(kind, seed=7)
    collider = COLLIDERS[kind]
    dist, pos, normal = _flat(jax.jit(collider.collide, compiler_options=OPTIMIZED)(p.a, p.b))
    assert dist.shape[0] == collider.slots
    for i, expected in enumerate(p.contacts):
        here = dist[:, i] <= p.margin[i]
        mine = np.c_[dist[here, i], pos[here, i], normal[here, i]]
        assert len(mine) == len(expected) <= collider.slots
        np.testing.assert_allclose(mine, expected, rtol=0, atol=CONTACT["atol"])


def _moved(b, x):
    """Geoms displaced by the first three rows of `x` `[6, n]` and turned by the others."""
    turn = Quat.from_rotation_vector(Vec(*x[3:])).matrix()
    return b._replace(pos=b.pos + Vec(*x[:3]), rot=turn @ b.rot)


@each_kind
def test_derivative_of_the_distance(kind):
    """Forward mode equals central differences wherever these agree for two step sizes."""
    p = draw(kind, seed=3, models=4, states=40)
    rng = np.random.default_rng(0)
    n = len(p.margin)
    way = jnp.asarray(rng.normal(size=(6, n)))

    @jax.jit
    def distance(x):
        return COLLIDERS[kind].collide(p.a, _moved(p.b, x)).dist

    zero = jnp.zeros((6, n))
    _, slope = jax.jit(lambda x: jax.jvp(distance, (x,), (way,)))(zero)
    coarse, fine = ((distance(h * way) - distance(-h * way)) / (2 * h) for h in (STEP, STEP / 2))
    near = np.asarray(distance(zero)) < 1
    smooth = near & (np.abs(coarse - fine) < 1e-7)
    assert smooth.sum() > 0.8 * near.sum()
    assert np.abs(slope - fine)[smooth].max() < 1e-6


@pytest.mark.short("capsule_box", "sphere_cylinder", "plane_box")
@each_kind
def test_reverse_mode_is_finite_at_singular_placements(kind):
    """Concentric, aligned, touching and flush geoms: no NaN in value or gradient."""
    turns = [np.r_[1.0, 0, 0, 0], np.r_[0.5, 0.5, 0.5, 0.5], np.r_[0.8, 0.6, 0, 0]]
    offsets = [0, 0.1, 0.2, 0.3, 0.5, 1.0]
    directions = [np.eye(3)[0], np.eye(3)[2], np.r_[0, 0.6, 0.8], np.ones(3)]
    rows = [(o * d, t) for o in offsets for d in directions for t in turns]
    rows.append((np.zeros(3), random_quat(np.random.default_rng(0))))
    n = len(rows)
    b_pos = np.array([r[0] for r in rows])
    quats = np.array([r[1] for r in rows])
    mats = np.stack(Quat(*quats.T).matrix().parts, -1)
    size = np.tile([0.2, 0.3, 0.2], (n, 1))
    a = placed(np.zeros((n, 3)), np.tile(np.eye(3).ravel(), (n, 1)), size)
    b = placed(b_pos, mats, size)

    def total(a, b):
        t = COLLIDERS[kind].collide(a, b)
        parts = [t.dist, *t.pos.parts, *t.normal.parts]
        here = t.dist < NO_CONTACT_DISTANCE
        return sum(jnp.sum(jnp.where(here, jnp.broadcast_to(p, here.shape), 0)) for p in parts)

    value, gradient = jax.jit(jax.value_and_grad(total, argnums=(0, 1), allow_int=True))(a, b)
    assert np.isfinite(value)
    real = [g for g in jax.tree.leaves(gradient) if g.dtype != jax.dtypes.float0]
    assert real
    assert all(np.isfinite(g).all() for g in real)


def _single(x):
    return x.astype(jnp.float32) if x.dtype == jnp.float64 else x


@pytest.mark.short("sphere_cylinder", "plane_box")
@pytest.mark.parametrize(
    "kind",
    [pytest.param(k, marks=pytest.mark.slow) if name(k) == "box_box" else k for k in KINDS],
    ids=name,
)
def test_worlds_last(kind):
    """`[n, worlds]` items give what each world gives; single precision stays close."""
    p = draw(kind, seed=5, models=2, states=30)
    collide = COLLIDERS[kind].collide
    flat = jax.jit(collide, compiler_options=OPTIMIZED)(p.a, p.b)
    many = jax.tree.map(lambda x: x.reshape(12, 5), (p.a, p.b))
    last = jax.jit(collide, compiler_options=OPTIMIZED)(*many)
    for x, y in zip(jax.tree.leaves(flat), jax.tree.leaves(last), strict=True):
        assert y.shape == (x.shape[0], 12, 5)
        np.testing.assert_allclose(y.reshape(x.shape), x, rtol=0, atol=ROUNDING["atol"])
    single = jax.jit(collide, compiler_options=OPTIMIZED)(*jax.tree.map(_single, many))
    assert all(x.dtype == jnp.float32 and np.isfinite(x).all() for x in jax.tree.leaves(single))


def test_normals_point_from_the_first_geom_to_the_second():
    """A sphere above a plane, and a sphere next to a box."""
    z, x = np.r_[0, 0, 1.0], np.r_[1.0, 0, 0]
    eye, size = np.eye(3).ravel(), np.r_[0.1, 0.1, 0.1]
    cases = (
        ((GeomType.PLANE, GeomType.SPHERE), z, z),
        ((GeomType.SPHERE, GeomType.BOX), x, x),
        ((GeomType.BOX, GeomType.BOX), z, z),
    )
    for kind, offset, expected in cases:
        a, b = placed([0 * z], [eye], [size]), placed([0.15 * offset], [eye], [size])
        normal = COLLIDERS[kind].collide(a, b).normal
        np.testing.assert_allclose(np.stack([c.ravel()[0] for c in normal.parts]), expected, **SAME)
