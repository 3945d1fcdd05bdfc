"""Capacities for contacts, measured on states."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxsim

BALLS = "".join(
    f'<body pos="{0.3 * i} 0 0.1"><freejoint/><geom size=".1"/></body>' for i in range(12)
)
XML = f'<mujoco><worldbody><geom type="plane" size="5 5 1"/>{BALLS}</worldbody></mujoco>'


def _states(m, n):
    """Balls in a row that is more and more pushed together."""
    d = jaxsim.make_data(m)
    near = np.linspace(1, 0.1, n)
    qpos = np.tile(np.asarray(m.qpos0), (n, 1))
    qpos[:, 0::7] *= near[:, None]
    return jax.vmap(lambda q: d.replace(qpos=q))(jnp.asarray(qpos))


def test_the_room_suggested_is_what_the_states_need():
    m = jaxsim.load_model(XML, contacts=13, pairs=9)
    states = _states(m, 5)
    found = jaxsim.suggest_capacities(m, states, spare=1)
    run = jax.jit(jax.vmap(jaxsim.forward, in_axes=(None, 0)))
    tight = run(m, states)
    assert int(tight.warning.sum()) > 0
    roomy = jaxsim.load_model(XML, **found._asdict())
    out = run(roomy, _states(roomy, 5))
    assert int(out.warning.sum()) == 0
    assert int(out.ncon.max()) == found.contacts


def test_one_world_and_a_factor_below_one_are_refused():
    m = jaxsim.load_model(XML)
    with pytest.raises(ValueError, match=r"states: expected worlds with qpos \(n, 84\)"):
        jaxsim.suggest_capacities(m, jaxsim.make_data(m))
    with pytest.raises(ValueError, match="spare"):
        jaxsim.suggest_capacities(m, _states(m, 2), spare=0.5)
    with pytest.raises(ValueError, match="pairs"):
        jaxsim.load_model(XML, pairs=-1)
