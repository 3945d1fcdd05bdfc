"""Several models in one fit: shared parameters are one unknown, recovered from both."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from recordings import record, waves

import jaxsim
from jaxsim.identify import Sequence, fit_models, linear, log, pseudo_inertia
from jaxsim.identify.joint_fit import JointProblem

PENDULUM = """<mujoco><option timestep="0.02"/><worldbody>
  <body name="arm"><joint name="hinge" axis="0 1 0" damping="0.1"/>
    <geom type="capsule" size="0.03" fromto="0 0 0 0 0 -{}" mass="1"/></body></worldbody>
  <actuator><motor name="motor" joint="hinge"/></actuator>
  <sensor><jointpos name="q" joint="hinge"/></sensor></mujoco>"""
LENGTHS, DAMPING, GAINS, NOISE = (0.5, 0.8), 0.27, (1.3, 0.8), 2e-3
FORMS = {"joint:hinge/damping": log(0.01, 2, sd=3.0), "actuator:motor/gain": linear(0.1, 3)}
OWN = ("actuator:motor/gain",)


@pytest.fixture(scope="module")
def models():
    return [jaxsim.load_model(PENDULUM.format(length)) for length in LENGTHS]


@pytest.fixture(scope="module")
def recordings():
    """A noisy motion of each true pendulum: one damping, two gains."""
    rng, found = np.random.default_rng(0), []
    for length, gain in zip(LENGTHS, GAINS, strict=True):
        mj = mujoco.MjModel.from_xml_string(PENDULUM.format(length))
        mj.dof_damping[0], mj.actuator_gainprm[0, 0] = DAMPING, gain
        ctrl, start = waves(rng, 60, 1, 2.0, 0.02), rng.normal(size=1)
        y = record(mj, ctrl, start)["sensordata"][:, 0] + NOISE * rng.normal(size=60)
        found.append(Sequence({"q": y}, ctrl=ctrl, initial={"qpos": start}, sigma=NOISE))
    return found


@pytest.mark.slow
def test_a_shared_parameter_is_found_from_both_models(models, recordings):
    found = fit_models(models, FORMS, recordings, own=OWN, iterations=15)
    assert found.names == (
        "joint:hinge/damping",
        "0/actuator:motor/gain",
        "1/actuator:motor/gain",
    )
    truth = np.array([DAMPING, *GAINS])
    assert (np.abs(found.values - truth) < 4 * found.sd).all()
    assert (found.sd < 0.05).all()
    for m, gain in zip(found.models, found.values[1:], strict=True):
        np.testing.assert_allclose(m.dof_damping, found.values[0])
        np.testing.assert_allclose(m.actuator_gainprm[0, 0], gain)
    with pytest.raises(ValueError, match="this fit has several models; use `models`"):
        _ = found.model

    # the exact derivative, and one row for the prior of what is shared
    problem = found.problem
    assert isinstance(problem, JointProblem)
    assert problem.rows == 2 * 60 + 1
    x = found.x + 0.1 * jnp.arange(1.0, 4)
    r, J = jax.jit(problem.jacobian)(x)
    np.testing.assert_allclose(r, jax.jit(problem.residual)(x), rtol=1e-9, atol=1e-9)
    h = 1e-5
    for k in range(3):
        ends = [jax.jit(problem.residual)(x.at[k].add(s * h)) for s in (1, -1)]
        np.testing.assert_allclose(J[:, k], (ends[0] - ends[1]) / (2 * h), rtol=1e-4, atol=1e-3)


def test_what_cannot_be_shared_is_refused(models, recordings):
    with pytest.raises(ValueError, match="got 2 models, 2 forms, 1 lists of sequences"):
        fit_models(models, FORMS, recordings[:1])
    with pytest.raises(ValueError, match="own: 'joint:hing/damping' is not among the names"):
        fit_models(models, FORMS, recordings, own=["joint:hing/damping"])
    forms = [{"joint:hinge/damping": log(0.01, 2)}, {"joint:hinge/damping": log(0.01, 3)}]
    with pytest.raises(ValueError, match=r"joint:hinge/damping: has two forms, .* name it in own="):
        fit_models(models, forms, recordings)
    with pytest.raises(ValueError, match="body:arm/inertia: an inertia is searched about that"):
        fit_models(models, {"body:arm/inertia": pseudo_inertia()}, recordings)
