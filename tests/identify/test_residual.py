"""The residual: what MuJoCo C would measure, and its exact Jacobian."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from recordings import record, waves
from tolerance import DYNAMICS, ROUNDING

import jaxsim
from jaxsim.identify import (
    Sequence,
    TimeSeries,
    build_residual_fn,
    linear,
    log,
    parameters,
    pseudo_inertia,
    scale,
)
from jaxsim.transforms import tuning

ARM = """<mujoco><option timestep="0.01" integrator="implicitfast"/><worldbody>
  <body name="upper"><joint name="shoulder" axis="0 1 0" damping="0.2" armature="0.01"/>
    <geom type="box" size="0.05 0.04 0.2" pos="0 0 -0.2" mass="1"/>
    <body name="lower" pos="0 0 -0.4"><joint name="elbow" axis="0 1 0" damping="0.1"
        frictionloss="0.05"/>
      <geom type="box" size="0.03 0.02 0.2" pos="0 0 -0.2" mass="0.5"/>
      <site name="tip" pos="0 0 -0.4"/>
    </body>
  </body></worldbody>
  <actuator><position name="drive" joint="shoulder" kp="10" kv="1"/>
    <motor name="motor" joint="elbow"/></actuator>
  <sensor><gyro name="gyro" site="tip"/><jointpos name="q" joint="elbow"/>
    <actuatorfrc name="torque" actuator="drive"/></sensor>
</mujoco>"""
STEPS = 40


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(ARM)


@pytest.fixture(scope="module")
def motions():
    """Two motions of different lengths and starts."""
    mj = mujoco.MjModel.from_xml_string(ARM)
    rng = np.random.default_rng(0)
    found = []
    for steps in (STEPS, STEPS - 11):
        ctrl = waves(rng, steps, 2, 1.5, 0.01)
        qpos, qvel = rng.normal(size=(2, 2))
        found.append((ctrl, qpos, qvel, record(mj, ctrl, qpos, qvel)))
    return found


def sequences(motions, **options):
    return [
        Sequence(
            {
                "gyro": r["sensordata"][:, :3],
                "q": r["sensordata"][:, 3],
                "torque": r["sensordata"][:, 4],
                "qvel:shoulder": r["qvel"][:, 0],
            },
            ctrl=ctrl,
            initial={"qpos": qpos, "qvel": qvel},
            **options,
        )
        for ctrl, qpos, qvel, r in motions
    ]


@pytest.mark.slow
def test_the_true_model_leaves_nothing(m, motions):
    """Also at times between the steps, with gaps, and in rows of their own sigma."""
    P = parameters(m, {"body:lower/mass": scale()})
    problem = build_residual_fn(
        m, P, sequences(motions, sigma={"gyro": 0.1, "q": 0.01, "torque": 1, "qvel:shoulder": 1})
    )
    r = jax.jit(problem.residual)(problem.start(P.nominal()))
    np.testing.assert_allclose(r, np.zeros(len(r)), **DYNAMICS)
    assert problem.rows == 6 * (2 * STEPS - 11)
    ctrl, qpos, qvel, records = motions[0]
    values = records["sensordata"][:, 3]
    between = TimeSeries(0.005 + 0.01 * np.arange(STEPS - 1), (values[1:] + values[:-1]) / 2, ["q"])
    other = TimeSeries(
        0.01 * np.arange(STEPS),
        np.where(np.arange(STEPS) % 3, records["qvel"][:, 0], np.nan),
        ["qvel:shoulder"],
    )
    s = Sequence([between, other], ctrl=ctrl, initial={"qpos": qpos, "qvel": qvel})
    problem = build_residual_fn(m, P, s)
    r = jax.jit(problem.residual)(problem.start(P.nominal()))
    np.testing.assert_allclose(r, np.zeros(len(r)), **DYNAMICS)
    assert problem.rows == STEPS - 1 + 26


FORMS = {
    "body:lower/inertia": pseudo_inertia(sd=1.0),
    "joint:elbow/frictionloss": log(0.001, 1),
    "joint:*/damping": scale(sd=0.5),
    "actuator:drive/kp": scale(0.5, 2),
    "body:lower/pos[0]": linear(),
    "sensor:gyro/offset": linear(),
    "sensor:q/delay": linear(0, 0.03, nominal=0.013),
    "sensor:torque/gain": scale(),
    "ctrl:drive/delay": linear(0, 0.05, nominal=0.017),
}


def differences(f, x):
    return np.stack([(f(x + e) - f(x - e)) / 2e-6 for e in 1e-6 * np.eye(len(x))], -1)


MASSES = ("body:lower/inertia", "body:lower/pos[0]")  # constants follow: a larger program
WITHOUT = {"quick": MASSES, "whole": (), "pieces": ("sensor:q/delay",)}
slow = pytest.mark.slow


@pytest.mark.parametrize(
    "kind", ["quick", pytest.param("whole", marks=slow), pytest.param("pieces", marks=slow)]
)
def test_the_jacobian_is_that_of_differences(m, motions, kind):
    P = parameters(m, {n: f for n, f in FORMS.items() if n not in WITHOUT[kind]})
    segments = 9 if kind == "pieces" else None
    estimate = {"qpos": 0.1, "qvel": None}
    problem = build_residual_fn(
        m, P, sequences(motions, estimate=estimate, sigma=0.1), segments=segments, tolerance=0.1
    )
    rng = np.random.default_rng(1)
    x = problem.start(P.nominal()) + jnp.asarray(0.05 * rng.normal(size=problem.size))
    r, J = jax.jit(problem.jacobian)(x)
    f = jax.jit(problem.residual)
    np.testing.assert_allclose(r, f(x), **ROUNDING)
    close = {"rtol": 1e-5, "atol": 1e-5}  # slopes of up to 1e3, and residuals of up to 1e2
    np.testing.assert_allclose(J, differences(f, x), **close)
    assert J.shape[1] == problem.size
    assert problem.rows == np.count_nonzero(np.abs(J).sum(1))


def test_delays_and_offsets_are_those_of_the_signal(m, motions):
    """A delay of whole steps is a shift; a gain and an offset act on what is predicted."""
    ctrl, qpos, qvel, records = motions[0]
    values = records["sensordata"][:, 3]
    late = np.concatenate([np.full(3, np.nan), 2 * values[:-3] + 0.5])
    forms = {
        "sensor:q/delay": linear(0, 0.05, nominal=0.03),
        "sensor:q/gain": log(nominal=2.0),
        "sensor:q/offset": linear(nominal=0.5),
    }
    P = parameters(m, forms)
    problem = build_residual_fn(
        m, P, Sequence({"q": late}, ctrl=ctrl, initial={"qpos": qpos, "qvel": qvel})
    )
    r = jax.jit(problem.residual)(P.nominal())
    np.testing.assert_allclose(r, np.zeros(len(r)), **DYNAMICS)
    assert problem.rows == STEPS - 5  # what may be from before the start is not compared


@pytest.mark.slow
def test_a_late_control_is_the_control_of_before(m):
    mj = mujoco.MjModel.from_xml_string(ARM)
    ctrl = waves(np.random.default_rng(3), STEPS + 4, 2, 1.5, 0.01)
    commanded = TimeSeries(0.01 * np.arange(-4, STEPS), ctrl, ["drive", "motor"])
    acted = ctrl[4:].copy()
    acted[:, 0] = 0.25 * ctrl[2:-2, 0] + 0.75 * ctrl[1:-3, 0]  # 2.75 steps late
    measured = TimeSeries(
        0.01 * np.arange(STEPS), record(mj, acted)["qpos"], ["qpos:shoulder", "qpos:elbow"]
    )
    P = parameters(m, {"ctrl:drive/delay": linear(0, 0.03, nominal=0.0275)})
    problem = build_residual_fn(m, P, Sequence(measured, ctrl=commanded, start=0.0))
    r = jax.jit(problem.residual)(P.nominal())
    np.testing.assert_allclose(r, np.zeros(len(r)), **DYNAMICS)


@pytest.mark.slow
def test_many_unknowns_are_as_one_by_one(m, motions):
    P = parameters(m, {"body:lower/mass": scale(), "joint:elbow/damping": log()})
    problem = build_residual_fn(m, P, sequences(motions))
    many = P.draw(jax.random.key(0), 3)
    together = jax.jit(jax.vmap(problem.residual))(many)
    one = jax.jit(problem.residual)
    for k in range(3):
        np.testing.assert_allclose(together[k], one(many[k]), **ROUNDING)


@pytest.mark.slow
def test_worlds_at_a_time_change_nothing(m, motions):
    """Sensitivities of many unknowns: all worlds at once, and a few at a time."""
    P = parameters(m, {"body:lower/mass": scale(), "joint:elbow/damping": log()})
    problem = build_residual_fn(m, P, sequences(motions))
    many = P.draw(jax.random.key(0), 3)
    together = jax.jit(problem.jacobians)(many)
    one = jax.jit(problem.jacobian)
    for k in range(3):
        for a, b in zip(together, one(many[k]), strict=True):
            np.testing.assert_allclose(a[k], b, **ROUNDING)
    with tuning.override(max_tangent_lanes=4):  # two worlds
        few = jax.jit(lambda x: problem.jacobians(x))(many)
    for a, b in zip(together, few, strict=True):
        np.testing.assert_allclose(a, b, **ROUNDING)


def test_what_does_not_fit_is_refused(m, motions):
    ok = sequences(motions)
    P = parameters(m, {"body:lower/mass": scale()})
    with pytest.raises(ValueError, match="at least one Sequence"):
        build_residual_fn(m, P, [])
    with pytest.raises(ValueError, match="for all sequences, or for none"):
        build_residual_fn(m, P, [ok[0], *sequences(motions[:1], sigma=1.0)])
    with pytest.raises(ValueError, match="no sequence has measurements of 'qpos:elbow'"):
        build_residual_fn(m, parameters(m, {"qpos:elbow/offset": linear()}), ok)
    with pytest.raises(ValueError, match="a delay needs bounds"):
        build_residual_fn(m, parameters(m, {"ctrl:drive/delay": linear()}), ok)
    delay = parameters(m, {"sensor:q/delay": linear(0, 0.03)})
    with pytest.raises(ValueError, match="not for multiple shooting"):
        build_residual_fn(m, delay, ok, segments=5)
    with pytest.raises(ValueError, match="a number of steps above 0"):
        build_residual_fn(m, P, ok, segments=0)
    with pytest.raises(ValueError, match="all parameters are frozen"):
        build_residual_fn(m, parameters(m, {"body:lower/mass": scale(frozen=True)}), ok)
