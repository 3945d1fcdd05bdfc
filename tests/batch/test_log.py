"""Warnings are reported as they happen, with world and time, under every transformation."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim
from jaxsim.enums import WarningType

pytestmark = pytest.mark.kernels

XML = """<mujoco><option timestep=".01"/><worldbody><body><joint name="j"/>
  <geom size=".1" pos=".1 0 0"/></body></worldbody>
<actuator><motor joint="j"/></actuator></mujoco>"""


@pytest.fixture(scope="module")
def m():
    return jaxsim.load_model(XML)


def told_of(run, *arguments) -> list:
    told: list = []
    jax.block_until_ready(run(told.append, *arguments))
    jax.effects_barrier()
    return told


def test_worlds_and_times_under_vmap_and_scan(m):
    d = jaxsim.replicate(jaxsim.make_data(m), 6)
    d = d.replace(qvel=d.qvel.at[4].set(jnp.nan))
    ctrl = jnp.zeros((5, 6, 1)).at[3, 1].set(jnp.inf).at[2, 5].set(jnp.nan)

    def run(handler, m, d, ctrl):
        step = jax.vmap(jaxsim.log_warnings(jaxsim.step, handler), (None, 0))

        @jax.jit
        def all_steps(m, d, ctrl):
            return jax.lax.scan(lambda d, u: (step(m, d.replace(ctrl=u)), None), d, ctrl)[0]

        return all_steps(m, d, ctrl)

    told = told_of(run, m, d, ctrl)
    found = sorted((e.world, e.type.name, round(e.time, 9), e.times, e.info) for e in told)
    assert found == [
        (1, "BADCTRL", 0.03, 1, 0),
        (4, "BADQVEL", 0.0, 1, 0),
        (5, "BADCTRL", 0.02, 1, 0),
    ]
    # the results are those of a function without logging
    plain = jax.vmap(jaxsim.step, (None, 0))
    expected = jax.lax.scan(lambda d, u: (plain(m, d.replace(ctrl=u)), None), d, ctrl)[0]
    np.testing.assert_allclose(run(lambda _: None, m, d, ctrl).qpos, expected.qpos, atol=1e-12)


@pytest.mark.slow
def test_batches_of_batches_count_as_one(m):
    one = jaxsim.make_data(m)
    d = jax.tree.map(lambda a: jnp.broadcast_to(a, (2, 3, *a.shape)), one)
    d = d.replace(ctrl=d.ctrl.at[1, 2].set(jnp.nan))

    def run(handler, d):
        step = jaxsim.log_warnings(jaxsim.step, handler)
        return jax.jit(jax.vmap(jax.vmap(lambda d: step(m, d))))(d)

    assert [(e.world, e.type) for e in told_of(run, d)] == [(5, WarningType.BADCTRL)]


def test_the_logger_has_a_line(m, caplog):
    d = jaxsim.make_data(m).replace(ctrl=jnp.full(1, jnp.nan), time=jnp.array(1.5))
    with caplog.at_level(logging.WARNING, logger="jaxsim"):
        jax.block_until_ready(jax.jit(jaxsim.log_warnings(jaxsim.step))(m, d))
        jax.effects_barrier()
    (record,) = caplog.records
    assert record.getMessage().startswith("world 0, 1.5 s: BADCTRL: control not finite")


@pytest.mark.slow
def test_gradients_pass(m):
    step = jaxsim.log_warnings(jaxsim.step, lambda _: None)

    def end(f, u):
        return f(m, jaxsim.make_data(m).replace(ctrl=u)).qvel[0]

    u = jnp.ones(1)
    found, expected = (jax.grad(lambda u, f=f: end(f, u))(u) for f in (step, jaxsim.step))
    np.testing.assert_allclose(found, expected)
    assert found[0] != 0


@pytest.mark.slow
def test_handler_is_not_called_without_warnings(m):
    d = jaxsim.make_data(m)
    assert told_of(lambda h: jax.jit(jaxsim.log_warnings(jaxsim.step, h))(m, d)) == []
    assert "callback" not in jax.jit(jaxsim.step).lower(m, d).as_text()
