"""The ten unknowns of a body: round trips, bodies that can exist, derivatives at equal moments."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import ROUNDING

from jaxsim.functions import quat_to_mat
from jaxsim.identify import inertia

rng = np.random.default_rng(0)


def full(quat, moments):
    """Inertia in the body frame of principal axes and moments, by MuJoCo."""
    axes = np.zeros(9)
    mujoco.mju_quat2Mat(axes, np.asarray(quat, np.float64))
    axes = axes.reshape(3, 3)
    return (axes * np.asarray(moments)) @ axes.T


def random_body():
    quat = rng.normal(size=4)
    central = rng.uniform(0.01, 1, 3)
    return (
        rng.uniform(0.1, 5),
        rng.normal(size=3),
        quat / np.linalg.norm(quat),
        central.sum() - central,
    )


def test_a_body_comes_back():
    back = jax.jit(inertia.to_body)
    for _ in range(20):
        mass, ipos, iquat, moments = random_body()
        theta = inertia.from_body(mass, ipos, iquat, moments)
        got = back(jnp.asarray(theta))
        np.testing.assert_allclose(got[0], mass, **ROUNDING)
        np.testing.assert_allclose(got[1], ipos, **ROUNDING)
        np.testing.assert_allclose(full(*got[2:]), full(iquat, moments), **ROUNDING)
        ours = inertia.physical_values(jnp.asarray(theta))
        tensor = full(iquat, moments)
        np.testing.assert_allclose(ours[4:7], np.diag(tensor), **ROUNDING)
        np.testing.assert_allclose(
            ours[7:], [tensor[p] for p in inertia.OFF_DIAGONAL_PAIRS], **ROUNDING
        )


def test_the_pseudo_inertia_is_the_product_of_its_factor():
    """J from its definition, with the inertia about the origin by the parallel axis theorem."""
    theta = jnp.asarray(rng.normal(size=10) * 0.5)
    p = np.asarray(inertia.physical_values(theta))
    mass, com = p[0], p[1:4]
    central = np.diag(p[4:7])
    for (i, j), value in zip(inertia.OFF_DIAGONAL_PAIRS, p[7:], strict=True):
        central[i, j] = central[j, i] = value
    about = central + mass * (com @ com * np.eye(3) - np.outer(com, com))
    J = np.zeros((4, 4))
    J[:3, :3] = np.trace(about) / 2 * np.eye(3) - about
    J[:3, 3] = J[3, :3] = mass * com
    J[3, 3] = mass
    a, d1, d2, d3, s12, s23, s13, *t = np.asarray(theta)
    U = np.eye(4)
    U[0, 0], U[1, 1], U[2, 2] = np.exp([d1, d2, d3])
    U[0, 1], U[1, 2], U[0, 2] = s12, s23, s13
    U[:3, 3] = t
    U *= np.exp(a)
    np.testing.assert_allclose(J, U @ U.T, **ROUNDING)


def test_every_number_is_a_body_that_mujoco_accepts():
    many = jax.jit(jax.vmap(inertia.to_body))(jnp.asarray(rng.normal(size=(50, 10)) * 1.5))
    for mass, _, _, moments in zip(*map(np.asarray, many), strict=True):
        assert mass > 0
        assert (moments > 0).all()
        assert 2 * moments.max() < moments.sum()


@pytest.mark.parametrize("kind", ["apart", "two", "three"])
def test_the_derivative_of_the_inertia(kind):
    """Through axes and moments, also where axes of equal moments are arbitrary."""
    moments = {"apart": (0.2, 0.3, 0.4), "two": (0.2, 0.3, 0.3), "three": (0.3, 0.3, 0.3)}[kind]
    theta = jnp.asarray(inertia.from_body(2.0, (0.1, 0.2, 0.3), (1.0, 0.0, 0.0, 0.0), moments))

    def through(theta):
        _, _, quat, values = inertia.to_body(theta)
        axes = quat_to_mat(quat)
        return axes @ jnp.diag(values) @ axes.T

    def direct(theta):
        p = inertia.physical_values(theta)
        xy, xz, yz = p[7:]
        return jnp.stack([p[4], xy, xz, xy, p[5], yz, xz, yz, p[6]]).reshape(3, 3)

    # equal moments are moved apart by 1.5e-8, and slopes through them lose half of the digits
    near = {"rtol": 1e-7, "atol": 1e-7}
    np.testing.assert_allclose(through(theta), direct(theta), **near)
    np.testing.assert_allclose(jax.jacfwd(through)(theta), jax.jacfwd(direct)(theta), **near)
    np.testing.assert_allclose(jax.jacrev(through)(theta), jax.jacrev(direct)(theta), **near)
    steps = 1e-6 * np.eye(10)
    difference = [(direct(theta + e) - direct(theta - e)) / 2e-6 for e in steps]
    np.testing.assert_allclose(
        jax.jacfwd(direct)(theta), np.stack(difference, -1), rtol=1e-7, atol=1e-8
    )


def test_impossible_bodies_are_refused():
    with pytest.raises(ValueError, match="give the body a volume"):
        inertia.from_body(1.0, (0, 0, 0), (1, 0, 0, 0), (1.0, 1.0, 2.0))
    with pytest.raises(ValueError, match="positive mass"):
        inertia.from_body(0.0, (0, 0, 0), (1, 0, 0, 0), (1.0, 1.0, 1.0))
