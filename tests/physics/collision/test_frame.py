"""Contact frames: the law; equality with the oracle is in test_contacts."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import ROUNDING

from jaxsim.math import Vec
from jaxsim.physics.collision.frame import contact_frame

pytestmark = pytest.mark.kernels


def test_frame_is_right_handed_and_starts_with_the_normal():
    normals = np.random.default_rng(0).normal(size=(200, 3))
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    normals[:6] = np.r_[np.eye(3), -np.eye(3)]
    for tangent in (None, Vec(*jnp.zeros((3, 200))), Vec(*jnp.asarray(normals[::-1]).T)):
        rows = contact_frame(Vec(*jnp.asarray(normals).T), tangent).rows
        frame = np.stack([np.stack(r.parts, -1) for r in rows], 1)
        np.testing.assert_array_equal(frame[:, 0], normals)
        squares = frame @ frame.transpose(0, 2, 1)
        np.testing.assert_allclose(squares, np.tile(np.eye(3), (200, 1, 1)), **ROUNDING)
        np.testing.assert_allclose(np.linalg.det(frame), 1, **ROUNDING)


def test_a_capsule_that_stands_on_its_end_has_a_frame():
    """The tangent along its axis is lost there; value and gradient stay finite."""
    up = Vec(*jnp.eye(3)[2][:, None])

    def total(tangent):
        return sum(jnp.sum(p) for p in contact_frame(up, tangent).parts)

    value, gradient = jax.value_and_grad(total)(up)
    assert np.isfinite(value)
    assert all(np.isfinite(g).all() for g in gradient.parts)
    first = contact_frame(up, up).rows[1]
    assert [float(c[0]) for c in first.parts] == [1, 0, 0]
