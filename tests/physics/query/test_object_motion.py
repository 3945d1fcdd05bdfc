"""Velocities and accelerations of all kinds of objects beside MuJoCo."""

from functools import cache

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.query.machine import in_all_worlds, machine
from tolerance import DYNAMICS, STAGES

import jaxsim
from jaxsim.enums import ObjType

pair = cache(machine)
KINDS = {"body": "nbody", "xbody": "nbody", "geom": "ngeom", "site": "nsite", "camera": "ncam"}


def test_beside_mujoco():
    mj, states, m, d = pair()
    functions = {
        "object_velocity": mujoco.mj_objectVelocity,
        "object_acceleration": mujoco.mj_objectAcceleration,
    }
    found = in_all_worlds(asked)(m, d)
    for (name, kind, local), values in zip(keys(), found, strict=True):
        number = ObjType[kind.upper()]
        for k, state in enumerate(states):
            for i in range(getattr(mj, KINDS[kind])):
                out = np.zeros(6)
                functions[name](mj, state, int(number), i, out, local)
                np.testing.assert_allclose(
                    values[k, i], out, **DYNAMICS, err_msg=f"{name} {kind} {i} {local}"
                )


def keys():
    names = ("object_velocity", "object_acceleration")
    return [(n, k, local) for n in names for k in KINDS for local in (False, True)]


def asked(m, d):
    return [
        jax.vmap(lambda i: getattr(jaxsim, n)(m, d, k, i, local))(  # noqa: B023
            jnp.arange(getattr(m, KINDS[k]))
        )
        for n, k, local in keys()
    ]


def test_by_name_and_number_of_the_kind():
    _, _, m, d = pair()
    d = jax.tree.map(lambda a: a[0], d)
    by_name = jaxsim.object_velocity(m, d, "site", "s")
    by_number = jaxsim.object_velocity(m, d, ObjType.SITE, 1)
    np.testing.assert_allclose(by_name, by_number, **STAGES)


def test_what_there_is_not():
    _, _, m, d = pair()
    d = jax.tree.map(lambda a: a[0], d)
    with pytest.raises(ValueError, match="object_velocity: objtype: expected one of 'body', "):
        jaxsim.object_velocity(m, d, "joint", 0)
    with pytest.raises(ValueError, match="objid: there is no site 7; the model has 2"):
        jaxsim.object_acceleration(m, d, "site", 7)
    with pytest.raises(ValueError, match="does not carry 'qacc'"):
        jaxsim.object_acceleration(m, jaxsim.make_data(m, keep=[]), "site", 0)
