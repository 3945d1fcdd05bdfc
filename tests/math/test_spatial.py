"""Spatial vectors and inertias: laws of rigid motion, against MuJoCo's and numpy's matrices."""

import jax.numpy as jnp
import mujoco
import numpy as np
from tolerance import DIFFERENCE, ROUNDING

from jaxsim.math import Inertia, Quat, Rot, Spatial, Vec

N = 30
RNG = np.random.default_rng(0)


def draw(kind, n: int = N):
    """Random values by components."""
    return kind.from_array(jnp.asarray(RNG.normal(size=(n, len(kind.names)))))


def turn(n: int = N) -> Rot:
    return draw(Quat, n).normalize().matrix()


def close(ours, theirs) -> None:
    np.testing.assert_allclose(ours, theirs, **ROUNDING)


def moved(s: Spatial, offset: Vec, *, force: bool) -> Spatial:
    """A motion or force about the point `offset` away from the one it was about."""
    out = []
    for row, by in zip(np.asarray(s.to_array()), np.asarray(offset.to_array()), strict=True):
        res = np.zeros(6)
        mujoco.mju_transformSpatial(res, row, int(force), by, np.zeros(3), np.eye(3).ravel())
        out.append(res)
    return Spatial.from_array(jnp.asarray(np.array(out)))


def test_cross_products_are_dual():
    """(v x m) . f = -m . (v x* f): power does not depend on the frame."""
    v, m, f = (draw(Spatial) for _ in range(3))
    close(v.cross_motion(m).dot(f), -m.dot(v.cross_force(f)))


def test_cross_motion_is_a_lie_bracket():
    """Antisymmetric, and Jacobi's identity."""
    a, b, c = (draw(Spatial) for _ in range(3))
    close(a.cross_motion(b).to_array(), -b.cross_motion(a).to_array())
    around = (
        a.cross_motion(b.cross_motion(c))
        + b.cross_motion(c.cross_motion(a))
        + c.cross_motion(a.cross_motion(b))
    )
    close(around.to_array(), 0)


def test_cross_motion_is_the_rate_of_a_motion_fixed_in_a_moving_frame():
    """Compared with differences: the frame moves with v for a time h, and carries m with it."""
    v, m = draw(Spatial), draw(Spatial)

    def after(h):
        R = Quat.from_rotation_vector(v.rot.scale(h)).matrix()
        p = v.lin.scale(h)  # the origin, to first order
        w = R @ m.rot
        return Spatial.of(w, R @ m.lin + p.cross(w)).to_array()

    h = 1e-5
    rate = (after(h) - after(-h)) / (2 * h)
    # the origin's path is taken to first order: the rest is of the second
    np.testing.assert_allclose(v.cross_motion(m).to_array(), rate, **DIFFERENCE | {"atol": 1e-7})


def test_velocity_at_a_point_equals_that_of_mujoco():
    v, offset = draw(Spatial), draw(Vec)
    close(v.at(offset).to_array(), moved(v, offset, force=False).lin.to_array())


def test_power_is_the_same_about_every_point():
    v, f, offset = draw(Spatial), draw(Spatial), draw(Vec)
    close(moved(v, offset, force=False).dot(moved(f, offset, force=True)), v.dot(f))


def bodies():
    """Principal moments, orientation, mass, and center of mass minus the reference point."""
    principal = draw(Vec).map(lambda a: 0.5 + a**2)
    return principal, turn(), 0.5 + draw(Vec).x ** 2, draw(Vec)


def matrix(principal, R, mass, offset) -> np.ndarray:
    """The spatial inertia (n, 6, 6) of the textbook (Featherstone, 2.63), by numpy."""
    out = np.zeros((N, 6, 6))
    for k in range(N):
        A = np.asarray(R.to_array()[k]).reshape(3, 3)
        c = np.asarray(offset.to_array()[k])
        cross = np.array([[0, -c[2], c[1]], [c[2], 0, -c[0]], [-c[1], c[0], 0]])
        about = A @ np.diag(np.asarray(principal.to_array()[k])) @ A.T
        out[k, :3, :3] = about + mass[k] * cross @ cross.T
        out[k, :3, 3:], out[k, 3:, :3] = mass[k] * cross, mass[k] * cross.T
        out[k, 3:, 3:] = mass[k] * np.eye(3)
    return out


def test_momentum_is_the_matrix_times_the_motion():
    given, v = bodies(), draw(Spatial)
    expected = np.einsum("nij,nj->ni", matrix(*given), np.asarray(v.to_array()))
    close((Inertia.about(*given) @ v).to_array(), expected)


def test_kinetic_energy_is_that_of_the_center_of_mass():
    """v . I v = m |v_c|^2 + w . I_c w, and it is positive."""
    principal, R, mass, offset = given = bodies()
    v = draw(Spatial)
    twice = v.dot(Inertia.about(*given) @ v)
    local = R.T @ v.rot
    center = v.at(offset)
    close(
        twice,
        mass * center.dot(center)
        + local.dot(Vec(*(a * b for a, b in zip(principal.parts, local.parts, strict=True)))),
    )
    assert (twice > 0).all()


def test_transport_keeps_the_momentum():
    """An inertia about another point gives the momentum about that point."""
    principal, R, mass, offset = bodies()
    v, by = draw(Spatial), draw(Vec)
    here = Inertia.about(principal, R, mass, offset) @ v
    there = Inertia.about(principal, R, mass, offset - by) @ moved(v, by, force=False)
    close(there.to_array(), moved(here, by, force=True).to_array())


def test_inertias_of_parts_add_up():
    """Two bodies that move together are one body: composite inertia."""
    one, other, v = bodies(), bodies(), draw(Spatial)
    together = (Inertia.about(*one) + Inertia.about(*other)) @ v
    close(together.to_array(), ((Inertia.about(*one) @ v) + (Inertia.about(*other) @ v)).to_array())
