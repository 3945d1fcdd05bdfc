"""Derivatives of forces by velocity, and effective inertias, against MuJoCo's."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from jax.test_util import check_grads
from physics.integrate.test_integrate import moving, world
from physics.oracle import unpack
from tolerance import DYNAMICS, ROUGH_DIFFERENCE, ROUNDING, SAME, SOLVER, STAGE, STAGES

from jaxsim.io.bridge import put_data, put_model
from jaxsim.linalg.elimination import solve_general
from jaxsim.physics.actuator.transmission import transmission
from jaxsim.physics.body.inertia import com_pos, crb
from jaxsim.physics.body.rne import com_vel, rne
from jaxsim.physics.integrate.effective_inertia import effective_inertia
from jaxsim.physics.integrate.velocity_derivative import bias_derivative, smooth_derivative
from jaxsim.physics.tendon.tendon import tendon

FLUID = 'density="100" viscosity=".5" wind="1 2 3"'
TIRED = '<general joint="a" gainprm="0" biastype="affine" biasprm="{} 0 -3" forcerange="-2 2"/>'
PULL = '<general tendon="t" gainprm="0" biastype="affine" biasprm="{} 0 -3" {}/>'
CASES = {
    "dampers": {"tendon": 'armature=".1"'},
    "reflected damping": {"actuators": '<motor joint="f" damping="1 .3" gear="2 3 5 1 1 1"/>'
        '<motor joint="c" damping=".3" gear="2 1 1"/><motor tendon="t" damping="1 .3" gear="2"/>'},
    "damper off": {"flag": 'damper="disable"'},
    "eulerdamp off": {"flag": 'eulerdamp="disable"'},
    "gains": {"actuators": '<velocity joint="f" kv="3" gear="1 1 1 1 1 1"/>'
        '<general site="s" gainprm="1" biastype="affine" biasprm="0 0 -3" gear="1 0 0 0 1 1"/>'
        '<muscle joint="a" lengthrange="-1 1"/><general joint="b" dyntype="integrator" '
        'gaintype="affine" gainprm="1 1 1" actearly="true"/>'},
    "group off": {"option": 'actuatorgroupdisable="1"',
        "actuators": '<velocity joint="a" group="1" kv="3"/>'},
    "actuation off": {"flag": 'actuation="disable"', "actuators": '<velocity joint="a" kv="3"/>'},
    "at the limit": {"actuators": TIRED.format(20) + TIRED.format(1)},
    "joint at its limit": {"joint": 'actuatorfrcrange="-1 1"', "actuators":
        '<velocity joint="a" kv="3"/><motor joint="a" gear="10"/>' + PULL.format(2, "")},
    "joint within": {"joint": 'actuatorfrcrange="-1 1"', "actuators":
        TIRED.format(20) + TIRED.format(-20) + '<velocity joint="a" kv=".1"/>'},
    "tendon at its limit": {"tendon": 'actuatorfrcrange="-.1 .1"',
        "actuators": PULL.format(-30, "") + PULL.format(-70, "") + PULL.format(-11, "")},
    "tendon within": {"tendon": 'actuatorfrcrange="-2 2"', "actuators":
        PULL.format(50, 'forcerange="-.5 .5"') + PULL.format(-1, "")},
    "controllers": {"actuators": '<pid joint="a" kp="2" kv="3" ki="1"/><dcmotor joint="b" '
        'motorconst=".5" resistance="2" inductance=".02" thermal="2 3 0 .04 25 30" input="vel" '
        'controller="0 0 .2"/><dcmotor joint="c" motorconst=".5" resistance="2" lugre="20 .3 .2 '
        '.4 .1" gear="1 0 2"/><orientation joint="c" kp="2" kv=".4"/>'},
    "controllers at a limit": {"joint": 'actuatorfrcrange="-1 1"', "actuators":
        '<dcmotor joint="a" motorconst=".5" resistance="2" lugre="20 .3 .2 .4 .1"/><dcmotor '
        'tendon="t" motorconst=".5" resistance="2" lugre="20 .3 .2 .4 .1" saturation=".01"/>'
        '<dcmotor joint="b" motorconst=".5" resistance="2" input="vel ff" saturation=".01" '
        'controller="0 0 .2 0 0 .01" cogging="1 3 0"/>'},
    "nothing passive": {"option": FLUID, "flag": 'damper="disable" spring="disable"'},
    "box in a medium": {"option": FLUID},
    "ellipsoid in a medium": {"option": FLUID, "geom": 'fluidshape="ellipsoid"'},
}  # fmt: skip


def derivative(mj: mujoco.MjModel, mjd: mujoco.MjData) -> np.ndarray:
    """qDeriv of MuJoCo as a full matrix."""
    out = np.zeros((mj.nv, mj.nv))
    for row in range(mj.nv):
        for k in range(mj.D_rowadr[row], mj.D_rowadr[row] + mj.D_rownnz[row]):
            out[row, mj.D_colind[k]] = mjd.qDeriv[k]
    return out


@pytest.mark.short(
    "dampers-Euler",
    "reflected damping-implicitfast",
    "gains-implicitfast",
    "at the limit-implicitfast",
    "joint at its limit-implicitfast",
    "joint within-implicit",
    "tendon at its limit-implicitfast",
    "tendon within-implicit",
    "controllers-implicitfast",
    "controllers at a limit-implicitfast",
    "nothing passive-Euler",
    "eulerdamp off-Euler",
    "damper off-implicitfast",
    "group off-implicitfast",
    "actuation off-implicitfast",
    "box in a medium-implicitfast",
    "ellipsoid in a medium-implicitfast",
    "ellipsoid in a medium-implicit",
    "reflected damping-Euler",
)
@pytest.mark.parametrize("integrator", ["Euler", "implicitfast", "implicit"])
@pytest.mark.parametrize("case", CASES)
def test_beside_mujoco(case, integrator):
    """The matrix of derivatives, and the acceleration of a step."""
    mj = world(integrator=integrator, **CASES[case])
    mjd = moving(mj, 1)
    mujoco.mj_forward(mj, mjd)
    m, d = unpack(put_model(mj), 0), unpack(put_data(mj, mjd, keep="all"), 0)
    d = com_vel(m, transmission(m, crb(m, tendon(m, com_pos(m, d)))))
    before = mjd.qvel.copy()
    mujoco.mj_step(mj, mjd)

    if integrator != "Euler":
        D = smooth_derivative(m, d)
        if integrator == "implicit":
            D = D - bias_derivative(m, d, np.arange(m.nv))
        np.testing.assert_allclose(D, derivative(mj, mjd), rtol=STAGES["rtol"], atol=STAGE["atol"])

    inertia = effective_inertia(m, d)
    off = case in ("damper off", "eulerdamp off", "nothing passive")
    assert (inertia is None) == (off and integrator == "Euler")
    if inertia is not None:
        force = d.qfrc_smooth + d.qfrc_constraint
        acc = inertia.solve(force)
        expected = (mjd.qvel - before) / mj.opt.timestep
        np.testing.assert_allclose(acc, expected, rtol=SOLVER["rtol"], atol=DYNAMICS["atol"])
        np.testing.assert_allclose(inertia.multiply(acc), force, **DYNAMICS)


def test_bias_derivative():
    """Compared with the derivative of the bias force itself; and for sets of dofs."""
    mj = world()
    m = unpack(put_model(mj), 0)
    mjd = moving(mj)
    mujoco.mj_forward(mj, mjd)
    d = crb(m, com_pos(m, unpack(put_data(mj, mjd, keep="all"), 0)))
    expected = jax.jacfwd(lambda v: rne(m, com_vel(m, d.replace(qvel=v))))(d.qvel)
    d = com_vel(m, d)
    every = bias_derivative(m, d, np.arange(m.nv))
    np.testing.assert_allclose(every, expected, **STAGES)
    sets = np.array([[0, 5], [1, 7], [4, 9]])
    some = bias_derivative(m, d, sets)
    for k in range(2):
        np.testing.assert_allclose(
            some[:, :, k], every[np.ix_(sets[:, k], sets[:, k])], atol=SAME["atol"]
        )


def test_systems_without_symmetry():
    """Solutions for many worlds, and their derivative."""
    rng = np.random.default_rng(0)
    A = jnp.asarray(rng.normal(size=(5, 5, 3)) + 8 * np.eye(5)[..., None])
    b = jnp.asarray(rng.normal(size=(5, 3)))
    expected = np.stack([np.linalg.solve(A[..., k], b[:, k]) for k in range(3)], -1)
    np.testing.assert_allclose(solve_general(A, b), expected, rtol=ROUNDING["rtol"])
    check_grads(solve_general, (A, b), order=1, rtol=ROUGH_DIFFERENCE["rtol"])
