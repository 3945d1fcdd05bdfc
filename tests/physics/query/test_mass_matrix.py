"""Products with the mass matrix and its factor, against MuJoCo; total mass; rows of constraints."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.query.machine import STATES, in_all_worlds, machine, oracle
from states import single, world
from tolerance import DIFFERENCE, DYNAMICS, ROUNDING, STAGES

import jaxsim
from jaxsim.derivative import inverse, inverse_fd
from jaxsim.linalg.ldl import ltdl, solve_transposed

pair = cache(machine)
VECTORS = np.random.default_rng(3).normal(size=(STATES, 13))
ROWS = np.random.default_rng(4).normal(size=(STATES, 20))


def asked(m, d, vec, efc_vec):
    rows = jaxsim.support.constraint_rows(m, d)
    count = rows.active.shape[0]
    return {
        "add_m": jaxsim.support.add_m(m, d, jnp.ones((m.nv, m.nv), vec.dtype)),
        "mul_m2": jaxsim.support.mul_m2(m, d, vec),
        "solve_m2": jaxsim.support.solve_m2(m, d, vec),
        "factor_m": jaxsim.stages.factor_m(m, d),
        "rows": rows,
        "mul_jac_vec": jaxsim.support.mul_jac_vec(m, d, vec),
        "mul_jac_t_vec": jaxsim.support.mul_jac_t_vec(m, d, efc_vec[:count]),
        "normalize_quat": jaxsim.support.normalize_quat(m, 3 * d.qpos),
    }


@cache
def found():
    mj, _, m, d = pair()
    return in_all_worlds(asked, 0, 0)(m, d, jnp.asarray(VECTORS[:, : mj.nv]), jnp.asarray(ROWS))


def full(mj, state):
    M = np.zeros((mj.nv, mj.nv))
    mujoco.mj_fullM(mj, state, M)
    return M


@pytest.mark.parametrize("k", range(STATES))
def test_beside_mujoco(k):
    mj, states, _, _ = pair()
    state, vec = states[k], VECTORS[k, : mj.nv]
    M, out = full(mj, state), np.zeros(mj.nv)
    ours = world(found(), k)
    np.testing.assert_allclose(ours["add_m"], M + 1, **STAGES)
    mujoco.mj_mulM2(mj, state, out, vec)
    np.testing.assert_allclose(ours["mul_m2"], out, **STAGES)
    half = np.zeros((1, mj.nv))
    _, D = ours["factor_m"]
    mujoco.mj_solveM2(mj, state, half, vec[None], 1 / np.sqrt(D))
    np.testing.assert_allclose(ours["solve_m2"], half[0], **DYNAMICS)


def test_the_factor_of_mujoco():
    mj, states, _, _ = pair()
    L, D = world(found()["factor_m"], 0)
    assert np.all(np.triu(L, 1) == 0)
    assert np.all(np.diag(L) == 1)
    np.testing.assert_allclose(L.T @ np.diag(D) @ L, full(mj, states[0]), **STAGES)
    theirs = np.zeros((mj.nv, mj.nv))
    mujoco.mju_sparse2dense(theirs, states[0].qLD, mj.M_rownnz, mj.M_rowadr, mj.M_colind)
    np.testing.assert_allclose(np.tril(L, -1), np.tril(theirs, -1), **DYNAMICS)
    np.testing.assert_allclose(D, np.diag(theirs), **DYNAMICS)


def test_halves_are_halves():
    mj, states, _, _ = pair()
    for k, state in enumerate(states):
        M, vec = full(mj, state), VECTORS[k, : mj.nv]
        out = world(found(), k)
        np.testing.assert_allclose(out["mul_m2"] @ out["mul_m2"], vec @ M @ vec, **STAGES)
        expected = vec @ np.linalg.solve(M, vec)
        np.testing.assert_allclose(out["solve_m2"] @ out["solve_m2"], expected, **DYNAMICS)


def test_products_with_the_constraint_jacobian():
    mj, states, m, d = pair()
    assert {True, False} == {*np.asarray(found()["rows"].active).ravel().tolist()}
    for k, state in enumerate(states):
        vec, ours = VECTORS[k, : mj.nv], world(found(), k)
        active = np.asarray(ours["rows"].active)
        assert active.sum() == state.nefc
        out = np.zeros(state.nefc)
        mujoco.mj_mulJacVec(mj, state, out, vec)
        np.testing.assert_allclose(ours["mul_jac_vec"][active], out, **STAGES)
        assert np.all(ours["mul_jac_vec"][~active] == 0)
        force = np.zeros(mj.nv)
        mujoco.mj_mulJacTVec(mj, state, force, ROWS[k, : len(active)][active])
        np.testing.assert_allclose(ours["mul_jac_t_vec"], force, **STAGES)
    with pytest.raises(ValueError, match=r"mul_jac_t_vec: efc_vec: expected shape \(\d+,\)"):
        jaxsim.support.mul_jac_t_vec(m, world(d, 0), jnp.zeros(99))


def test_quaternions_of_a_configuration():
    mj, states, _, _ = pair()
    for k, state in enumerate(states):
        qpos = 3 * state.qpos
        mujoco.mj_normalizeQuat(mj, qpos)
        np.testing.assert_allclose(found()["normalize_quat"][k], qpos, **ROUNDING)


@pytest.mark.slow
def test_in_single_precision():
    _, _, m, d = pair()
    vec, rows = (jnp.ones((STATES, n), jnp.float32) for n in (m.nv, 20))
    shapes = jax.eval_shape(in_all_worlds(asked, 0, 0), single(m), single(d), vec, rows)
    shapes["rows"] = shapes["rows"].efc_J
    assert {s.dtype for s in jax.tree.leaves(shapes)} == {np.dtype(np.float32)}


def test_the_factor_has_a_derivative():
    rng = np.random.default_rng(0)
    A, B = (x @ x.T + np.eye(5) for x in rng.normal(size=(2, 5, 5)))
    b = jnp.asarray(rng.normal(size=5))

    def number(t):
        L, D = ltdl(jnp.asarray(A) + t * jnp.asarray(B))
        return jnp.sum(jnp.sin(solve_transposed(L, b)) / D)

    both, h = jax.jit(jax.value_and_grad(number)), 1e-5  # one program
    (below, _), (_, slope), (above, _) = (both(0.1 + k * h) for k in (-1, 0, 1))
    np.testing.assert_allclose(slope, (above - below) / (2 * h), **DIFFERENCE)


@pytest.mark.slow
def test_a_model_without_dofs_has_an_empty_matrix():
    m = jaxsim.load_model("<mujoco><worldbody><body><geom size='.1'/></body></worldbody></mujoco>")
    d, none = jaxsim.make_data(m), jnp.zeros(0)

    def shapes(time):
        at = d.replace(time=time)
        products = (
            jaxsim.support.mul_m,
            jaxsim.support.mul_m2,
            jaxsim.support.solve_m,
            jaxsim.support.solve_m2,
        )
        exact, by_differences = inverse(m, at), inverse_fd(m, at)
        return {
            "full_m": jaxsim.support.full_m(m, at),
            "L": jaxsim.stages.factor_m(m, at).L,
            "D": jaxsim.stages.factor_m(m, at).D,
            **{f.__name__: f(m, at, none) for f in products},
            "inverse": exact.DfDq,
            "DmDq": exact.DmDq,
            "inverse_fd": by_differences.DfDq,
        }

    square = {"full_m": 2, "L": 2, "inverse": 2, "DmDq": 3, "inverse_fd": 2}
    for name, a in shapes(jnp.zeros(())).items():
        assert a.shape == (0,) * square.get(name, 1), name
    for name, a in jax.vmap(shapes)(jnp.zeros(2)).items():
        assert a.shape == (2, *(0,) * square.get(name, 1)), name


def test_total_mass():
    mj, _, m, _ = pair()
    np.testing.assert_allclose(
        jaxsim.support.get_total_mass(m), mujoco.mj_getTotalmass(mj), **ROUNDING
    )
    heavy = jax.jit(jaxsim.support.set_total_mass)(m, 7.5)
    theirs = oracle()
    mujoco.mj_setTotalmass(theirs, 7.5)
    np.testing.assert_allclose(heavy.body_mass, theirs.body_mass, **ROUNDING)
    np.testing.assert_allclose(heavy.body_inertia, theirs.body_inertia, **ROUNDING)
    np.testing.assert_allclose(
        jax.grad(lambda x: jaxsim.support.get_total_mass(jaxsim.support.set_total_mass(m, x)))(7.5),
        1,
        **ROUNDING,
    )
