"""Jacobians of points, axes and momenta equal MuJoCo's, and derivatives of the kinematics."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.query.machine import in_all_worlds, machine
from states import single, world
from tolerance import DIFFERENCE, ROUNDING, STAGES

import jaxsim

pair = cache(machine)
POINT, AXIS = np.array([0.3, -0.2, 0.5]), np.array([1.0, 2.0, -0.5])
FORCE, TORQUE = np.array([1.0, -2.0, 3.0]), np.array([0.3, 0.1, -0.2])
QUAT = np.array([0.6, 0.0, 0.8, 0.0])


def close(found, expected):
    np.testing.assert_allclose(found, expected, **STAGES)


def all_queries(m, d, body):
    """Return all queries of one body."""
    given = (POINT, AXIS, FORCE, TORQUE, QUAT)
    point, axis, force, torque, quat = (jnp.asarray(a, d.qpos.dtype) for a in given)
    return {
        "subtree": jaxsim.support.jac_subtree_com(m, d, body),
        "point axis": jaxsim.support.jac_point_axis(m, d, point, axis, body),
        "dot": jaxsim.support.jac_dot(m, d, point, body),
        "angmom": jaxsim.support.angmom_mat(m, d, body),
        "apply": jaxsim.support.apply_ft(m, d, force, torque, point, body, d.qfrc_applied),
        "global": jaxsim.support.local_to_global(m, d, point, quat, body),
        "jac": jaxsim.support.jac(m, d, point, body),
    }


@cache
def of_all():
    return in_all_worlds(jax.vmap(all_queries, (None, None, 0)), None)


@cache
def found():
    """Return the results of all bodies in all worlds: (worlds, bodies, ...)."""
    mj, _, m, d = pair()
    return of_all()(m, d, jnp.arange(mj.nbody))


def expected(mj, state, body):
    p, r = np.zeros((2, 3, mj.nv))
    out = {}
    mujoco.mj_jacSubtreeCom(mj, state, p, body)
    out["subtree"] = p.T.copy()
    mujoco.mj_jacPointAxis(mj, state, p, r, POINT, AXIS, body)
    out["point axis"] = p.T.copy(), r.T.copy()
    mujoco.mj_jacDot(mj, state, p, r, POINT, body)
    out["dot"] = p.T.copy(), r.T.copy()
    mujoco.mj_angmomMat(mj, state, p, body)
    out["angmom"] = p.T.copy()
    target = state.qfrc_applied.copy()
    mujoco.mj_applyFT(mj, state, FORCE, TORQUE, POINT, body, target)
    out["apply"] = target
    xpos, xmat = np.zeros(3), np.zeros(9)
    mujoco.mj_local2Global(state, xpos, xmat, POINT, QUAT, body, 0)
    out["global"] = xpos, xmat.reshape(3, 3)
    mujoco.mj_jac(mj, state, p, r, POINT, body)
    out["jac"] = p.T.copy(), r.T.copy()
    return out


@pytest.mark.parametrize("name", ["subtree", "point axis", "dot", "angmom", "apply", "global"])
def test_jacobians_equal_mujoco(name):
    mj, states, _, _ = pair()
    for k, state in enumerate(states):
        for body in range(mj.nbody):
            if name == "subtree" and not mj.body_subtreemass[body]:
                continue  # MuJoCo divides zero by zero; ours follows subtree_com, see below
            ours = jax.tree.map(lambda a: a[k, body], found()[name])  # noqa: B023
            jax.tree.map(close, ours, expected(mj, state, body)[name])


@pytest.mark.slow
def test_one_world_equals_a_batch():
    _, _, m, d = pair()
    ours = jax.jit(all_queries)(m, world(d, 1), jnp.asarray(3))
    together = jax.tree.map(lambda a: a[1, 3], found())
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, **ROUNDING), ours, together)


@pytest.mark.slow
def test_in_single_precision():
    _, _, m, d = pair()
    shapes = jax.eval_shape(all_queries, single(m), single(world(d, 0)), 3)
    assert {s.dtype for s in jax.tree.leaves(shapes)} == {np.dtype(np.float32)}


def test_they_are_derivatives_of_the_kinematics():
    """The point and the axis move with the body, along a motion that starts with qvel."""
    _, _, m, d = pair()
    d = world(d, 0)
    hand = 3

    def along(t):
        there = d.replace(qpos=jaxsim.support.integrate_pos(m, d.qpos, d.qvel, t))
        posed = jaxsim.stages.com_pos(m, jaxsim.stages.kinematics(m, there.replace()))
        local = posed0.xmat[hand].T @ (jnp.asarray(POINT) - posed0.xpos[hand])
        point = posed.xpos[hand] + posed.xmat[hand] @ local
        axis = posed.xmat[hand] @ posed0.xmat[hand].T @ jnp.asarray(AXIS)
        return point, axis, posed.subtree_com, jaxsim.support.jac(m, there, point, hand)

    d = jaxsim.make_data(m, keep="all").replace(qpos=d.qpos, qvel=d.qvel)
    posed0 = jax.jit(lambda d: jaxsim.stages.com_pos(m, jaxsim.stages.kinematics(m, d)))(d)
    _, rate = jax.jit(lambda: jax.jvp(along, (0.0,), (1.0,)))()
    point, axis, com, columns = rate
    ours = jax.tree.map(lambda a: a[0, hand], found())
    close(point, ours["jac"][0].T @ d.qvel)
    close(axis, ours["point axis"][1].T @ d.qvel)
    close(com, jnp.einsum("bvk,v->bk", found()["subtree"][0], d.qvel))
    # the columns of a free joint's rotations rotate with the body along this motion, as qvel does
    jax.tree.map(close, columns, ours["dot"])


def test_the_angular_momentum_of_subtrees():
    mj, states, _, _ = pair()
    for k, state in enumerate(states):
        mujoco.mj_subtreeVel(mj, state)
        ours = np.einsum("bvk,v->bk", found()["angmom"][k], state.qvel)
        close(ours, state.subtree_angmom)


def test_gradients():
    """Gradients of a scalar of jac_dot, which needs poses and velocities, against differences."""
    _, _, m, d = pair()
    first = world(d, 0)
    rng = np.random.default_rng(1)
    body = 3
    weight = tuple(jnp.asarray(w) for w in rng.normal(size=(2, m.nv, 3)))
    dq, dv = jnp.asarray(rng.normal(size=(2, m.nv)))

    def moved(t):
        return jaxsim.support.integrate_pos(m, first.qpos, dq, t), first.qvel + t * dv

    def number(t):
        qpos, qvel = moved(t)
        dot = jaxsim.support.jac_dot(
            m, first.replace(qpos=qpos, qvel=qvel), jnp.asarray(POINT), body
        )
        return sum(jnp.vdot(a, w) for a, w in zip(dot, weight, strict=True))

    h = 1e-5
    qpos, qvel = jax.jit(jax.vmap(moved))(jnp.asarray([h, -h, 0.0]))
    every = of_all()(m, d.replace(qpos=qpos, qvel=qvel), jnp.arange(m.nbody))["dot"]
    up, down = (
        sum(jnp.vdot(a[k, body], w) for a, w in zip(every, weight, strict=True)) for k in (0, 1)
    )
    np.testing.assert_allclose(jax.jit(jax.grad(number))(0.0), (up - down) / (2 * h), **DIFFERENCE)
