"""The derivative of a step equals MuJoCo's finite differences, in tangent coordinates."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import world
from tolerance import DIFFERENCE, ROUNDING

from jaxsim.control import apply_tangent, difference, linearize
from jaxsim.io.load import load_model
from jaxsim.physics.public.make_data import make_data

PENDULUM = """
<mujoco>
  <option timestep="0.01" integrator="{integrator}"/>
  <worldbody>
    <body>
      <joint name="a" axis="0 1 0" damping="0.1"/>
      <geom type="capsule" fromto="0 0 0 0.5 0 0" size="0.03"/>
      <site name="tip" pos="0.5 0 0"/>
      <body pos="0.5 0 0">
        <joint name="b" type="ball" damping="0.05"/>
        <geom type="capsule" fromto="0 0 0 0.4 0 0.1" size="0.03"/>
      </body>
    </body>
  </worldbody>
  <actuator>
    <motor joint="a" gear="3" ctrlrange="-1 1" ctrllimited="true"/>
    <general joint="a" dyntype="filter" dynprm="0.05" gainprm="2"/>
    <motor joint="b" gear="0.3 0.1 0.2"/>
  </actuator>
  <sensor>
    <framepos objtype="site" objname="tip"/>
    <jointvel joint="a"/>
    <actuatorfrc actuator="x"/>
  </sensor>
</mujoco>
""".replace('<motor joint="a"', '<motor name="x" joint="a"')

BALL = """
<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <geom type="plane" size="5 5 1"/>
    <body name="ball" pos="0 0 0.098">
      <freejoint/>
      <geom size="0.1" mass="1"/>
      <site name="middle"/>
    </body>
  </worldbody>
  <actuator><motor site="middle" gear="1 0 0.5 0.1 0.2 0.3" refsite="middle"/></actuator>
</mujoco>
"""

CASES = {
    "euler": PENDULUM.format(integrator="Euler"),
    "implicit": PENDULUM.format(integrator="implicitfast"),
    "contact": BALL.replace(' refsite="middle"', ""),
}


def states(m, number, seed=0):
    """Return states near the initial one, with random controls; one control is at its limit."""
    random = np.random.default_rng(seed)
    d = make_data(m)

    def one(dx, ctrl):
        return apply_tangent(m, d, dx).replace(ctrl=ctrl)

    size = 0.05 if m.nq == 7 else 0.5
    dx = size * random.normal(size=(number, 2 * m.nv + m.na))
    if m.nq == 7:
        dx[:, 2] = 0.0  # the ball still penetrates the floor
    ctrl = random.uniform(-0.9, 0.9, (number, m.nu))
    ctrl[0, 0] = 1.0
    return jax.vmap(one)(jnp.asarray(dx), jnp.asarray(ctrl))


@pytest.mark.parametrize(
    "case",
    [
        pytest.param("euler", marks=pytest.mark.slow),
        "contact",
        pytest.param("implicit", marks=pytest.mark.slow),
    ],
)
def test_a_b_c_d_are_those_of_mujoco(case):
    m = load_model(CASES[case])
    d = states(m, 3)
    ours = jax.jit(jax.vmap(lambda d: linearize(m, d, sensors=True)))(d)
    mj = mujoco.MjModel.from_xml_string(CASES[case])
    mj.opt.tolerance = 0
    mjd = mujoco.MjData(mj)
    nx, nu, ns = 2 * mj.nv + mj.na, mj.nu, mj.nsensordata
    for k in range(3):
        for name in ("qpos", "qvel", "act", "ctrl"):
            getattr(mjd, name)[:] = getattr(d, name)[k]
        A, B, C, D = (np.zeros(s) for s in ((nx, nx), (nx, nu), (ns, nx), (ns, nu)))
        mujoco.mjd_transitionFD(mj, mjd, 1e-6, 1, A, B, C, D)
        # At a control limit the difference is one-sided: its error is of first order in the step.
        rough = {"rtol": 1e-5, "atol": 1e-6} if k == 0 else DIFFERENCE
        np.testing.assert_allclose(ours.A[k], A, **DIFFERENCE)
        np.testing.assert_allclose(ours.B[k], B, **rough)
        np.testing.assert_allclose(ours.C[k], C, **DIFFERENCE)
        np.testing.assert_allclose(ours.D[k], D, **rough)
    if case == "contact":
        assert (mjd.ncon, mjd.nefc) == (1, 4)


@pytest.mark.slow
def test_derivative_of_runge_kutta_equals_differences_of_mujocos_step():
    """Compare with central differences of `mj_step`, as `mjd_transitionFD` rejects RK4."""
    xml = PENDULUM.format(integrator="RK4")
    m = load_model(xml)
    d = world(states(m, 3), 1)
    A, B, _, _ = jax.jit(lambda d: linearize(m, d))(d)
    mj = mujoco.MjModel.from_xml_string(xml)

    def end(dx, du):
        mjd = mujoco.MjData(mj)
        mjd.qpos[:], mjd.ctrl[:] = d.qpos, d.ctrl + du
        mujoco.mj_integratePos(mj, mjd.qpos, dx[: m.nv], 1)
        mjd.qvel[:], mjd.act[:] = d.qvel + dx[m.nv : 2 * m.nv], d.act + dx[2 * m.nv :]
        mujoco.mj_step(mj, mjd)
        return mjd

    nx, eps = A.shape[0], 1e-6
    for k, direction in enumerate(np.eye(nx + m.nu)):
        step = eps * direction
        before, after = (end(sign * step[:nx], sign * step[nx:]) for sign in (-1, 1))
        dq = np.zeros(m.nv)
        mujoco.mj_differentiatePos(mj, dq, 2 * eps, before.qpos, after.qpos)
        rest = [(getattr(after, n) - getattr(before, n)) / (2 * eps) for n in ("qvel", "act")]
        expected = np.concatenate([dq, *rest])
        np.testing.assert_allclose(np.hstack([A, B])[:, k], expected, **DIFFERENCE)


@pytest.mark.slow
def test_vmap_equals_a_loop_over_states():
    m = load_model(CASES["euler"])
    d = states(m, 3)
    one = jax.jit(lambda d: linearize(m, d, sensors=True))
    many = jax.jit(jax.vmap(lambda d: linearize(m, d, sensors=True)))(d)
    for k in range(3):
        alone = one(world(d, k))
        jax.tree.map(lambda a, b, k=k: np.testing.assert_allclose(a[k], b, **ROUNDING), many, alone)


def test_a_control_outside_of_its_limits_moves_nothing():
    m = load_model(CASES["euler"])
    d = make_data(m)
    B = jax.jit(lambda ctrl: linearize(m, d, ctrl).B)(jnp.array([1.5, 1.5, 0.0]))
    assert not B[:, 0].any()
    assert B[:, 1].any()


@pytest.mark.slow
def test_vmap_over_the_controls_of_a_trajectory():
    m = load_model(CASES["euler"])
    d = make_data(m)
    ctrl = jnp.zeros((4, m.nu))
    linear = jax.jit(jax.vmap(lambda u: linearize(m, d, u)))(ctrl)
    assert linear.A.shape == (4, 9, 9)
    assert linear.C is None


@pytest.mark.slow
@pytest.mark.parametrize("case", ["euler", pytest.param("contact", marks=pytest.mark.slow)])
def test_difference_inverts_moved(case):
    m = load_model(CASES[case])
    d = states(m, 1)
    d = world(d, 0)
    dx = jnp.asarray(np.random.default_rng(1).normal(size=2 * m.nv + m.na))
    back = jax.jit(lambda dx: difference(m, d, apply_tangent(m, d, dx)))
    np.testing.assert_allclose(back(dx), dx, **ROUNDING)
    slope = jax.jit(jax.jacfwd(back))(jnp.zeros_like(dx))
    np.testing.assert_allclose(slope, np.eye(len(dx)), **ROUNDING)
    reverse = jax.jit(jax.jacrev(back))(jnp.zeros_like(dx))
    np.testing.assert_allclose(reverse, np.eye(len(dx)), **ROUNDING)


def test_arguments_of_wrong_shape_are_rejected():
    m = load_model(CASES["euler"])
    d = make_data(m)
    with pytest.raises(
        ValueError, match=r"apply_tangent: dx: expected shape \(9,\).*2 nv \+ na, got"
    ):
        apply_tangent(m, d, jnp.zeros(8))
    with pytest.raises(ValueError, match=r"linearize: ctrl: expected shape \(3,\), got .*jax.vmap"):
        linearize(m, d, jnp.zeros((5, 3)))
    with pytest.raises(ValueError, match=r"difference: d: expected a Data, got NoneType"):
        difference(m, d, None)
