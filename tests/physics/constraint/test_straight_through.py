"""Straight-through derivatives: the motion of hard contacts, the derivative of smooth ones."""

from functools import partial

import jax
import mujoco
import numpy as np
import pytest
from tolerance import SOLVER

import jaxsim
from jaxsim.envs import Env
from jaxsim.errors import UnsupportedError

H = 2e-3
# a ball above a plate on a spring, and one that lies on it
XML = """<mujoco><option timestep=".005" tolerance="0" iterations="30" ls_iterations="50"/>
<worldbody><body gravcomp="1"><joint type="slide" axis="0 0 1" stiffness="100"/>
<geom type="box" size=".5 .5 .01"/></body>
<body pos="0 0 .06"><joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 0 1"/>
<geom size=".05" mass="1"/></body></worldbody></mujoco>"""
STEPS = 3
LOW, HIGH = -1e-4, 4e-3  # heights of the ball over the plate, in touch and before


@pytest.fixture(scope="module")
def models():
    """Return a model with straight-through derivatives, with smooth contacts, with hard ones."""
    m = jaxsim.load_model(XML, smooth=H, straight_through=True)
    smooth = jaxsim.load_model(XML, smooth=H)
    return m, smooth, smooth.replace(smooth=None)


@partial(jax.jit, static_argnames="steps")
@partial(jax.vmap, in_axes=(None, 0, 0, None))
def differentiate_steps(m, state, along, steps):
    """Return the state after some steps, its derivative in a direction, and that of the contact."""

    def end(state):
        qpos, qvel = state
        d = jaxsim.make_data(m).replace(qpos=qpos, qvel=qvel)
        d = jax.lax.scan(lambda d, _: (jaxsim.step(m, d), None), d, length=steps)[0]
        return (d.qpos, d.qvel), d.contact.dist

    (y, dist), (dy, d_dist) = jax.jvp(end, (state,), (along,))
    # reverse mode for several steps only, to compile less
    back = jax.vjp(lambda s: end(s)[0], state)[1](y)[0] if steps > 1 else None
    return y, dy, back, dist, d_dist


def start():
    """Two worlds, and directions."""
    rng = np.random.default_rng(0)
    qpos, qvel = np.zeros((2, 3)), np.array([[0, 0.2, -0.1], [0, 0.2, -0.3]])
    qpos[:, 2] = LOW, HIGH
    return (qpos, qvel), tuple(rng.normal(size=(2, 2, 3)))


def test_motion_of_hard_and_derivative_of_smooth_contacts(models):
    m, smooth, hard = models
    state, along = start()
    y, dy, _, dist, d_dist = differentiate_steps(m, state, along, 1)
    y_hard, dy_hard, _, dist_hard, d_dist_hard = differentiate_steps(hard, state, along, 1)
    y_smooth, dy_smooth, _, _, _ = differentiate_steps(smooth, state, along, 1)
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-14, atol=1e-15), y, y_hard)
    jax.tree.map(partial(np.testing.assert_allclose, **SOLVER), dy, dy_smooth)
    # which differ, also where there is no contact yet
    for world in range(2):
        assert np.abs(y[1][world] - y_smooth[1][world]).max() > 1e-4
        assert np.abs(dy[1][world] - dy_hard[1][world]).max() > 1e-3
    # contacts are those of the motion, with their own derivative
    np.testing.assert_allclose(dist, dist_hard, rtol=1e-13)
    np.testing.assert_allclose(d_dist, d_dist_hard, **SOLVER)
    assert (np.abs(d_dist_hard[0]) > 0.1).any()


@pytest.mark.slow
def test_a_motion_is_differentiated_by_the_product_of_the_steps(models):
    m, smooth, hard = models
    state, along = start()
    y, dy, back, _, _ = differentiate_steps(m, state, along, STEPS)
    expected, at = along, state
    for _ in range(STEPS):
        expected = differentiate_steps(smooth, at, expected, 1)[1]
        at = differentiate_steps(hard, at, along, 1)[0]
    jax.tree.map(partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-13), y, at)
    jax.tree.map(partial(np.testing.assert_allclose, **SOLVER), dy, expected)
    # reverse mode is its transpose
    product = lambda a, b: sum((x * z).sum() for x, z in zip(a, b, strict=True))  # noqa: E731
    np.testing.assert_allclose(product(back, along), product(y, dy), rtol=1e-10)


def test_every_way_to_such_a_model(tmp_path):
    """Loaded, saved, of MuJoCo, recompiled; without a smoothing length it is refused."""
    m = jaxsim.load_model(XML, smooth=H, straight_through=True)
    jaxsim.save_model(m, tmp_path / "m.jxm")
    saved = jaxsim.load_model(tmp_path / "m.jxm")
    theirs = jaxsim.put_model(mujoco.MjModel.from_xml_string(XML), smooth=H, straight_through=True)
    spec = jaxsim.Spec.from_string(XML)
    of_spec = jaxsim.load_model(spec, smooth=H, straight_through=True)
    again, _ = jaxsim.recompile(spec, of_spec, jaxsim.make_data(of_spec))
    later = jaxsim.smooth_contacts(jaxsim.load_model(XML), H, straight_through=True)
    of_task = Env(jaxsim.load_model(XML)).with_smooth_contacts(H)
    assert later.ncontact == m.ncontact
    assert of_task.begin.contact.dist.shape == (m.ncontact,)
    for each in (m, saved, theirs, again, later, of_task.m):
        assert each.straight_through
        assert "in derivatives" in jaxsim.describe(each)
    with pytest.raises(ValueError, match="straight_through: the model has no smoothing length"):
        jaxsim.load_model(XML, straight_through=True)
    assert not jaxsim.load_model(tmp_path / "m.jxm", straight_through=False).straight_through
    assert not jaxsim.smooth_contacts(m, 0).straight_through
    # options that exclude smooth contacts exclude them later too
    flag = '<option><flag speculative="enable"/></option><worldbody>'
    with pytest.raises(UnsupportedError, match="speculative cannot be used with smooth"):
        jaxsim.make_data(
            jaxsim.smooth_contacts(jaxsim.load_model(XML.replace("<worldbody>", flag)), H)
        )
