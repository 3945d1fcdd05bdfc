"""The cost of the constraints at residuals that are given, against MuJoCo's."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import stack, world
from tolerance import DIFFERENCE, DYNAMICS, ROUNDING

import jaxsim
from jaxsim.enums import ConstraintState
from jaxsim.io.bridge import put_model

SCENE = """
<mujoco><option cone="{cone}" jacobian="dense" noslip_iterations="1" impratio="3">
  <flag diagexact="{exact}"/></option>
<worldbody><geom type="plane" size="3 3 .1" condim="1"/>
  <body pos="0 0 .09"><freejoint/><geom size=".1" condim="1"/></body>
  <body pos="1 0 .09"><freejoint/><geom type="box" size=".1 .2 .1" condim="3"/></body>
  <body pos="2 0 .09"><freejoint/><geom size=".1" condim="6" friction=".5 .02 .01"/></body>
  <body pos="-1 0 1"><joint name="a" axis="0 1 0" range="0 .1" frictionloss=".3"/>
    <geom size=".1" pos=".2 0 0"/><body pos=".4 0 0"><joint name="b" frictionloss=".2"/>
      <geom size=".1" pos="0 .1 0"/></body></body>
</worldbody>
<equality><joint joint1="a" joint2="b"/></equality></mujoco>
"""
COMPILER = {"xla_backend_optimization_level": 0}
WORLDS = 6


def asked(m, d, jar):
    rows = jaxsim.support.constraint_rows(m, d)
    return rows, jaxsim.stages.constraint_update(m, d, jar), jaxsim.stages.project_constraint(m, d)


@cache
def found(cone: str, exact: str):
    mj = mujoco.MjModel.from_xml_string(SCENE.format(cone=cone, exact=exact))
    m, rng, states = put_model(mj), np.random.default_rng(0), []
    for _ in range(WORLDS):
        mjd = mujoco.MjData(mj)
        mjd.qpos[mj.nq - 2] = -0.02
        mjd.qvel[:] = 0.1 * rng.normal(size=mj.nv)
        mujoco.mj_forward(mj, mjd)
        states.append(mjd)
    d = stack([jaxsim.make_data(m)] * WORLDS)
    d = d.replace(
        qpos=jnp.array([s.qpos for s in states]), qvel=jnp.array([s.qvel for s in states])
    )
    count = jax.eval_shape(jaxsim.support.constraint_rows, m, jaxsim.make_data(m)).active.shape[0]
    jar = jnp.asarray(rng.normal(size=(WORLDS, count)))
    run = jax.jit(jax.vmap(asked, (None, 0, 0)), compiler_options=COMPILER)
    return mj, states, m, d, jar, run(m, d, jar)


@pytest.mark.parametrize(
    ("cone", "exact"),
    [pytest.param("pyramidal", "enable", marks=pytest.mark.slow), ("elliptic", "disable")],
)
def test_beside_mujoco(cone, exact):
    mj, states, _, _, jar, every = found(cone, exact)
    seen = set()
    for k, mjd in enumerate(states):
        rows, update, A = jax.tree.map(lambda a: np.asarray(a[k]), every)  # noqa: B023
        active = rows.active
        assert active.sum() == mjd.nefc > 10
        np.testing.assert_allclose(rows.efc_D[active], mjd.efc_D, rtol=DYNAMICS["rtol"])
        AR = mjd.efc_AR.reshape(mjd.nefc, mjd.nefc)
        np.testing.assert_allclose(A[np.ix_(active, active)], AR, **DYNAMICS)
        assert not A[~active].any()

        cost = np.zeros(1)
        mujoco.mj_constraintUpdate(mj, mjd, np.asarray(jar[k])[active], cost, 1)
        np.testing.assert_allclose(update.cost, cost[0], rtol=DYNAMICS["rtol"])
        np.testing.assert_array_equal(update.efc_state[active], mjd.efc_state)
        assert not update.efc_state[~active].any()
        scale = np.abs(mjd.efc_force).max()
        for name in ("efc_force", "qfrc_constraint"):
            ours = getattr(update, name)
            ours = ours[active] if name == "efc_force" else ours
            np.testing.assert_allclose(
                ours, getattr(mjd, name), rtol=0, atol=DYNAMICS["atol"] * scale
            )
        seen |= set(mjd.efc_state)
        if cone == "pyramidal":
            assert update.cone_hessian is None
            continue
        places = np.flatnonzero(active)[[c.efc_address for c in mjd.contact]]
        size = update.cone_hessian.shape[-1]
        first = len(active) - size * len(update.cone_hessian)
        for c, place in zip(mjd.contact, places, strict=True):
            H = update.cone_hessian[(place - first) // size]
            if mjd.efc_state[c.efc_address] != ConstraintState.CONE:
                assert not H.any()
                continue
            theirs = np.asarray(c.H)[: c.dim**2].reshape(c.dim, c.dim)
            np.testing.assert_allclose(H[: c.dim, : c.dim], theirs, rtol=1e-9, atol=1e-7)
    assert seen == {*map(int, ConstraintState)} - ({4} if cone == "pyramidal" else set())


def test_force_is_the_slope_of_the_cost():
    _, _, m, d, jar, every = found("elliptic", "disable")
    d, jar = world((d, jar), 0)
    slope = jax.jit(
        jax.grad(lambda jar: jaxsim.stages.constraint_update(m, d, jar).cost),
        compiler_options=COMPILER,
    )(jar)
    force = np.asarray(every[1].efc_force[0])
    np.testing.assert_allclose(-slope, force, rtol=DIFFERENCE["rtol"], atol=ROUNDING["atol"])


def test_a_residual_for_each_row():
    _, _, m, d, _, _ = found("elliptic", "disable")
    one = world(d, 0)
    with pytest.raises(ValueError, match=r"constraint_update: jar: expected shape \(\d+,\)"):
        jaxsim.stages.constraint_update(m, one, jnp.zeros(3))
