"""Velocities and accelerations of all kinds of objects against MuJoCo."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.query.machine import in_all_worlds, machine
from public import public
from states import single, world
from tolerance import DIFFERENCE, DYNAMICS, STAGES

import jaxsim
from jaxsim.enums import ObjType

pytestmark = pytest.mark.kernels

pair = cache(machine)
KINDS = {"body": "nbody", "xbody": "nbody", "geom": "ngeom", "site": "nsite", "camera": "ncam"}


# each kind in its own axes or in those of the world, which differ by a rotation
ASKED = [
    *(("object_acceleration", kind, True) for kind in KINDS),
    ("object_acceleration", "site", False),
    ("object_velocity", "body", True),
    ("object_velocity", "camera", True),
    ("object_velocity", "site", False),
]


def asked(m, d):
    """Every object of each kind; and one by its name and the number of its kind."""
    each = [
        jax.vmap(lambda i: public(name)(m, d, kind, i, local))(  # noqa: B023
            jnp.arange(getattr(m, KINDS[kind]))
        )
        for name, kind, local in ASKED
    ]
    return each, jaxsim.support.object_velocity(m, d, ObjType.SITE, "s")


@cache
def found():
    _, _, m, d = pair()
    return in_all_worlds(asked)(m, d)


@pytest.mark.parametrize("row", range(len(ASKED)), ids=lambda k: "-".join(map(str, ASKED[k])))
def test_beside_mujoco(row):
    mj, states, _, _ = pair()
    name, kind, local = ASKED[row]
    theirs = {
        "object_velocity": mujoco.mj_objectVelocity,
        "object_acceleration": mujoco.mj_objectAcceleration,
    }[name]
    for k, state in enumerate(states):
        for i in range(getattr(mj, KINDS[kind])):
            out = np.zeros(6)
            theirs(mj, state, int(ObjType[kind.upper()]), i, out, local)
            np.testing.assert_allclose(found()[0][row][k, i], out, **DYNAMICS, err_msg=str(i))


def test_by_name_and_number_of_the_kind():
    mj, _, _, _ = pair()
    each, by_name = found()
    of_sites = each[ASKED.index(("object_velocity", "site", False))]
    assert np.array_equal(by_name, of_sites[:, mj.site("s").id])


def test_the_derivative_of_an_acceleration():
    """Derivatives for one world, by its velocity and acceleration, against differences."""
    _, _, m, worlds = pair()
    d = world(worlds, 0)
    dv, da = jnp.asarray(np.random.default_rng(0).normal(size=(2, m.nv)))

    def run(t):
        there = d.replace(qvel=d.qvel + t * dv, qacc=d.qacc + t * da)
        return jaxsim.support.object_acceleration(m, there, "site", "s", True)

    local = ("object_acceleration", "site", True)
    both, h = jax.jit(lambda t: jax.jvp(run, (t,), (1.0,))), 1e-5  # one program
    (below, _), (here, slope), (above, _) = (both(k * h) for k in (-1, 0, 1))
    np.testing.assert_allclose(slope, (above - below) / (2 * h), **DIFFERENCE)
    np.testing.assert_allclose(here, found()[0][ASKED.index(local)][0, 1], **STAGES)


@pytest.mark.slow
def test_in_single_precision():
    _, _, m, d = pair()

    def one(m, d):
        return jaxsim.support.object_acceleration(m, d, "camera", 0, True)

    assert jax.eval_shape(in_all_worlds(one), single(m), single(d)).dtype == jnp.float32


def test_unknown_objects_are_rejected():
    _, _, m, d = pair()
    d = world(d, 0)
    with pytest.raises(ValueError, match="object_velocity: objtype: expected one of 'body', "):
        jaxsim.support.object_velocity(m, d, "joint", 0)
    with pytest.raises(ValueError, match="objid: there is no site 7; the model has 2"):
        jaxsim.support.object_acceleration(m, d, "site", 7)
    with pytest.raises(ValueError, match="does not carry 'qacc'"):
        jaxsim.support.object_acceleration(m, jaxsim.make_data(m, keep=[]), "site", 0)
