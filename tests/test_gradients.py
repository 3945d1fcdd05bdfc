"""Derivatives of whole rollouts, at the model's own solver settings."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import DIFFERENCE, DYNAMICS, ROUNDING

import jaxsim

pytestmark = pytest.mark.long

CONFIGS = Path(__file__).resolve().parent.parent / "configs"


# the indices of the height and of the forward speed of the torso
ROBOTS = {"walker": (0, 1), "humanoid": (2, 0)}


@pytest.fixture(scope="module")
def falling(request):
    """A robot that lands: both feet on the floor within the first steps."""
    down, forward = ROBOTS[request.param]
    m = jaxsim.load_model(CONFIGS / f"{request.param}.xml")
    # MuJoCo's default. The file's four iterations do not reach the minimum in the first steps of
    # the landing, and the derivative is that of the minimum.
    m = m.replace(opt=m.opt.replace(iterations=100, ls_iterations=50))
    d = jaxsim.make_data(m)
    return m, d.replace(qvel=d.qvel.at[down].set(-0.4).at[forward].set(0.3))


def distance(m, d, qvel, mass, ctrl):
    """A smooth function of where 20 steps lead."""
    m = m.replace(body_mass=m.body_mass * mass)

    def step(d, _):
        return jaxsim.step(m, d), d.nefc

    end, rows = jax.lax.scan(step, d.replace(qvel=qvel, ctrl=ctrl), length=20)
    return jnp.sum(end.qpos**2) + jnp.sum(end.qvel**2), rows


@pytest.mark.slow
@pytest.mark.parametrize("falling", ROBOTS, indirect=True)
def test_rollout_with_contacts(falling):
    """Reverse mode, forward mode and central differences agree over 20 steps with contacts."""
    m, d = falling
    rng = np.random.default_rng(0)
    at = (d.qvel, jnp.ones(()), 0.1 * jnp.asarray(rng.standard_normal(m.nu)))
    along = (
        jnp.asarray(rng.standard_normal(m.nv)),
        jnp.asarray(0.3),
        jnp.asarray(rng.standard_normal(m.nu)),
    )

    def moved(step):
        return distance(m, d, *(a + step * v for a, v in zip(at, along, strict=True)))

    # one program for forward mode and the values of differences
    both, h = jax.jit(lambda s: jax.jvp(moved, (s,), (jnp.ones(()),))), 1e-6
    below, ((value, rows), forward), above = (both(jnp.asarray(s)) for s in (-h, 0.0, h))
    assert (np.asarray(rows)[1:] >= 4).all()  # a foot is on the floor all the time
    gradient = jax.jit(lambda *x: jax.grad(lambda x: distance(m, d, *x)[0])(x))(*at)
    reverse = sum(jnp.vdot(g, v) for g, v in zip(gradient, along, strict=True))
    central = (above[0][0] - below[0][0]) / (2 * h)
    plain, _ = jax.jit(lambda *x: distance(m, d, *x))(*at)  # programs of derivatives are others
    np.testing.assert_allclose(value, plain, **ROUNDING)
    np.testing.assert_allclose(forward[0], reverse, rtol=DYNAMICS["rtol"])
    np.testing.assert_allclose(forward[0], central, rtol=DIFFERENCE["rtol"])


@pytest.mark.slow
def test_single_precision():
    """200 steps of the landing at the file's own settings: finite, and forward equals reverse."""
    with jax.enable_x64(False):
        m = jaxsim.load_model(CONFIGS / "humanoid.xml")
        d = jaxsim.make_data(m)
        assert d.qpos.dtype == np.float32

        def moved(qvel):
            def step(d, _):
                return jaxsim.step(m, d), d.nefc

            end, rows = jax.lax.scan(step, d.replace(qvel=qvel), length=200)
            return jnp.sum(end.qpos**2), rows

        qvel = d.qvel.at[2].set(-0.4).at[0].set(0.3)
        gradient, rows = jax.jit(jax.grad(moved, has_aux=True))(qvel)
        assert (np.asarray(rows)[10:] >= 4).all()
        assert np.isfinite(gradient).all()
        along = jnp.ones_like(qvel)
        push = jax.jit(lambda v: jax.jvp(lambda x: moved(x)[0], (qvel,), (v,))[1])
        np.testing.assert_allclose(push(along), gradient.sum(), rtol=1e-3)
