"""The solver alone: its accelerations are the optimum of a convex problem, row kind by row kind.

The problem is read from public functions (mass matrix, unconstrained acceleration, rows) and judged
by the conditions of an optimum (Karush, Kuhn, Tucker) and by scipy on the cost written here.

    cost(a) = (a - a0)' M (a - a0) / 2 + s(J a - aref),   s(x) = max over f: -f' x - f' R f / 2

where the force f of an equality is free, that of dry friction bounded, that of a limit and of an
edge of a pyramid not negative, that of an elliptic contact in its friction cone (MuJoCo's
documentation, Computation: Constraint model, primal problem).
"""

from functools import cache, partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from physics.constraint.scene import compile_xml
from scipy.optimize import minimize
from states import inputs, random_state
from tolerance import DIFFERENCE, SOLVER, STIFF

import jaxsim
from jaxsim.enums import ConstraintType as Type

pytestmark = pytest.mark.long

ARM = """<body pos="0 0 1"><joint name="a" axis="0 1 0" {hinge}/><geom size=".1" pos=".3 0 0"/>
  <body pos=".5 0 0"><joint name="b" type="slide" axis="1 0 0" {slide}/>
  <geom size=".1" pos=".1 0 0"/></body></body>"""
BALL = """<geom name="floor" type="plane" size="9 9 1" friction=".1"/>
  <body pos="0 0 .095"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
  <joint type="slide" axis="0 0 1"/><joint type="ball"/>
  <geom size=".1" condim="{condim}" friction=".6 .03 .01" priority="1"/></body>"""


def arm(rest="", **given) -> str:
    """Two dofs, a hinge that carries a slide."""
    body = ARM.format(**{"hinge": "", "slide": ""} | given)
    return f'<mujoco><option gravity="1 0 -5"/><worldbody>{body}</worldbody>{rest}</mujoco>'


def ball(cone: str, condim: int) -> str:
    """A ball that presses on the floor, and is pushed and turned."""
    body = BALL.format(condim=condim)
    option = f'<option cone="{cone}" impratio="3"/>'
    return f"<mujoco>{option}<worldbody>{body}</worldbody></mujoco>"


TENDON = """<tendon><fixed name="t" frictionloss="20"><joint joint="a" coef="1"/>
  <joint joint="b" coef="-2"/></fixed></tendon>"""
EQUALITY = """<equality><joint joint1="a" joint2="b" polycoef=".1 .7"/></equality>"""
LIMITS = {"hinge": 'range="-5 5" limited="true"', "slide": 'range="-.05 .05" limited="true"'}
LOSS = {"hinge": 'frictionloss="25"', "slide": 'frictionloss="8"'}
KINDS = {
    "equality": arm(EQUALITY),
    "friction of dofs": arm(**LOSS),
    "friction of a tendon": arm(TENDON),
    "limit": arm(**LIMITS),
    "frictionless contact": ball("pyramidal", 1),
    "pyramid of 3": ball("pyramidal", 3),
    "pyramid of 6": ball("pyramidal", 6),
    "cone of 3": ball("elliptic", 3),
    "cone of 6": ball("elliptic", 6),
}
# whose rows are solved as those of other kinds are
SIMILAR = ("friction of a tendon", "limit", "pyramid of 6", "cone of 6")
each_kind = pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=pytest.mark.slow) if k in SIMILAR else k for k in KINDS]
)
SEEDS = range(6)
COMPILER = {"xla_backend_optimization_level": 0}  # the programs run a few times


class Problem(NamedTuple):
    """The convex problem of a state, and its solution."""

    M: np.ndarray  # (nv, nv)
    free: np.ndarray  # unconstrained acceleration (nv,)
    J: np.ndarray  # (n, nv)
    aref: np.ndarray
    R: np.ndarray  # (n,)
    kind: np.ndarray
    loss: np.ndarray
    contact: np.ndarray  # number of the contact of a row
    friction: np.ndarray  # of the contacts (ncon, 5)
    force: np.ndarray  # ours
    qacc: np.ndarray  # ours


@partial(jax.jit, compiler_options=COMPILER)
def solved(m, d):
    d = jaxsim.forward(m, d)
    return d, jaxsim.support.constraint_rows(m, d), jaxsim.support.full_m(m, d)


def scene(kind: str, seed: int):
    """A state with something for the rows to do: every second one is pushed hard."""
    mj, hard = compile_xml(KINDS[kind]), 1 if seed % 2 else 0.02
    spread = 0.1 if mj.nv == 2 else 0.0  # the ball stays on the floor
    state = random_state(mj, seed, spread=spread, speed=0.5 * hard)
    state.qfrc_applied[:] = 8 * hard * np.random.default_rng(seed).normal(size=mj.nv)
    state.xfrc_applied[:] *= hard
    m = jaxsim.put_model(mj)
    return m, inputs(m, state, "all")


@cache
def problem(kind: str, seed: int) -> Problem:
    m, d = scene(kind, seed)
    d, rows, M = jax.tree.map(np.asarray, solved(m, d))
    here = rows.active
    return Problem(
        M, d.qacc_smooth, rows.efc_J[here], rows.efc_aref[here], 1 / rows.efc_D[here],
        rows.efc_type[here], rows.efc_frictionloss[here], rows.efc_id[here],
        d.contact.friction[: d.ncon], rows.efc_force[here], d.qacc,
    )  # fmt: skip


def cones(p: Problem):
    """Yield the rows of each elliptic contact, the coefficients of its tangents, and mu."""
    for number, friction in enumerate(p.friction):
        rows = np.flatnonzero((p.kind == Type.CONTACT_ELLIPTIC) & (p.contact == number))
        if rows.size:
            coefficients = friction[: rows.size - 1]
            # R of a tangent is c / coefficient^2, R of the normal c / mu^2
            mu = coefficients[0] * np.sqrt(p.R[rows[1]] / p.R[rows[0]])
            yield rows, coefficients, mu


def forces(p: Problem, x: np.ndarray) -> np.ndarray:
    """The forces that attain the maximum in s(x), for the residual x = J a - aref."""
    f = -x / p.R
    one_sided = np.isin(
        p.kind, (Type.LIMIT_JOINT, Type.LIMIT_TENDON, Type.CONTACT_FRICTIONLESS,
                 Type.CONTACT_PYRAMIDAL))  # fmt: skip
    f = np.where(one_sided, np.maximum(f, 0), f)
    bounded = np.isin(p.kind, (Type.FRICTION_DOF, Type.FRICTION_TENDON))
    f = np.where(bounded, np.clip(f, -p.loss, p.loss), f)
    for rows, coefficients, mu in cones(p):
        # scaled so that R is c for all: the closest point of the cone mu h >= |g|
        c = p.R[rows[0]] * mu**2
        h, g = -mu * x[rows[0]] / c, -coefficients * x[rows[1:]] / c
        T = np.linalg.norm(g)
        if h + mu * T <= 0:
            h, g = 0.0, 0 * g
        elif mu * h < T:
            along = (h + mu * T) / (1 + mu**2)
            h, g = along, g * (mu * along / T)
        f[rows] = np.r_[mu * h, coefficients * g]
    return f


def cost(p: Problem, a: np.ndarray) -> tuple[float, np.ndarray]:
    """The cost of an acceleration, and its gradient."""
    x, inertia = p.J @ a - p.aref, p.M @ (a - p.free)
    f = forces(p, x)
    value = 0.5 * (a - p.free) @ inertia - f @ x - 0.5 * f @ (p.R * f)
    return value, inertia - p.J.T @ f


def close(ours, theirs, scale, tolerance) -> None:
    """Equal relative to the largest of the numbers they were made from."""
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=tolerance["atol"] * (1 + scale))


@pytest.mark.short("cone of 3", "friction of dofs")
@each_kind
def test_the_conditions_of_an_optimum(kind):
    """Forces balance the accelerations, are allowed, and complement what is left of the rows."""
    regimes = set()
    for seed in SEEDS:
        p = problem(kind, seed)
        pushed = p.J.T @ p.force
        close(p.M @ (p.qacc - p.free), pushed, abs(pushed).max(initial=0), SOLVER)
        # the residual that the regularized row keeps: it is the gradient of the dual problem
        x = p.J @ p.qacc - p.aref
        left = x + p.R * p.force
        size = abs(p.aref).max(initial=0)
        for k, row in enumerate(p.kind):
            f, r = p.force[k], left[k]
            match Type(int(row)):
                case Type.EQUALITY:
                    close(r, 0, size, SOLVER)
                    regimes.add("held")
                case Type.FRICTION_DOF | Type.FRICTION_TENDON:
                    assert abs(f) <= p.loss[k] * (1 + 1e-12)
                    inside = abs(f) < p.loss[k]
                    close(r if inside else max(r * np.sign(f), 0), 0, size, SOLVER)
                    regimes.add("sticks" if inside else "slides")
                case Type.CONTACT_ELLIPTIC:
                    pass
                case _:
                    assert f >= 0
                    close(f * r, 0, size * abs(p.force).max(), SOLVER)
                    assert r >= -SOLVER["atol"] * (1 + size)
                    regimes.add("pushes" if f > 0 else "is free")
        for rows, coefficients, _ in cones(p):
            f, r = p.force[rows], left[rows]
            tangent = np.linalg.norm(f[1:] / coefficients)
            slope = np.linalg.norm(coefficients * r[1:])
            assert tangent <= f[0] * (1 + 1e-12)
            assert slope <= r[0] + SOLVER["atol"] * (1 + size)
            close(f @ r, 0, size * f[0], SOLVER)
            inside = tangent < f[0] * (1 - 1e-9)
            regimes.add("is free" if f[0] == 0 else "sticks" if inside else "slides")
    assert regimes >= REGIMES[kind], regimes


SLIDING = {"sticks", "slides"}
PUSHING = {"pushes", "is free"}
REGIMES = {
    "equality": {"held"},
    "friction of dofs": SLIDING,
    "friction of a tendon": SLIDING,
    "limit": {"pushes"},
    "frictionless contact": {"pushes"},
    "pyramid of 3": PUSHING,
    "pyramid of 6": PUSHING,
    "cone of 3": SLIDING,
    "cone of 6": SLIDING,
}


@pytest.mark.short("cone of 3", "friction of dofs")
@each_kind
def test_no_other_method_finds_a_lower_cost(kind):
    """Scipy's quasi-Newton method from the unconstrained acceleration ends at the same point."""
    for seed in SEEDS:
        p = problem(kind, seed)
        # in coordinates in which the inertia is one, which the method needs to get to the end
        L = np.linalg.inv(np.linalg.cholesky(p.M)).T

        def scaled(y, p=p, L=L):
            value, slope = cost(p, p.free + L @ y)
            return value, L.T @ slope

        found = minimize(scaled, np.zeros(len(p.M)), jac=True, method="BFGS",
                         options={"gtol": 1e-10, "maxiter": 2000})  # fmt: skip
        size = abs(p.aref).max(initial=0) + abs(p.free).max()
        assert cost(p, p.qacc)[0] <= found.fun + SOLVER["rtol"] * (1 + abs(found.fun))
        close(p.qacc, p.free + L @ found.x, size, STIFF)


# six directions of a contact are the code of three
@pytest.mark.short("cone of 3", "friction of dofs")
@pytest.mark.parametrize(
    "kind",
    [
        pytest.param(k, marks=pytest.mark.slow) if k in (*SIMILAR, "pyramid of 3") else k
        for k in KINDS
        if not k.endswith("6")
    ],
)
def test_derivative_of_the_solution(kind):
    """Derivatives by the applied forces and the velocities, against central differences."""
    m, d = scene(kind, 1)
    rng = np.random.default_rng(1)
    u, v = jnp.asarray(rng.normal(size=(2, m.nv)))

    def qacc(h):
        new = d.replace(qfrc_applied=d.qfrc_applied + h * u, qvel=d.qvel + h * v)
        return jaxsim.forward(m, new).qacc

    @partial(jax.jit, compiler_options=COMPILER)
    def value_and_slope(h):
        return jax.jvp(qacc, (h,), (jnp.ones(()),))

    h = 1e-5
    (high, _), (low, _), (here, slope) = map(value_and_slope, (h, -h, 0.0))
    assert jnp.abs(slope).max() > 0.1
    close(slope, (high - low) / (2 * h), abs(here).max(), DIFFERENCE)
