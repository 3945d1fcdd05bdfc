"""Derivatives of the constrained acceleration: forward, reverse and central differences agree."""

import jax
import numpy as np
import pytest
from jax.test_util import check_grads
from physics.constraint.scene import compile_xml, inputs, solution, state
from physics.constraint.test_rows import ELLIPTIC, PARTS, ROOM, TOSSED

STATE = ("qpos", "qvel", "qfrc_smooth")
OF_MODEL = (
    "body_mass body_invweight0 site_pos eq_data eq_solref eq_solimp jnt_range jnt_solref "
    "dof_frictionloss dof_solimp tendon_range tendon_frictionloss"
).split()
OF_CONTACTS = ("friction", "solref", "solimp", "dist", "pos", "frame")
CASES = {
    "all but contacts": (PARTS["all"], OF_MODEL, (), 0),
    "pyramids": (TOSSED.format(**ELLIPTIC | {"cone": "pyramidal"}), ("body_mass",), OF_CONTACTS, 6),
    "elliptic cones": (TOSSED.format(**ELLIPTIC), ("body_mass",), OF_CONTACTS, 6),
}


@pytest.mark.parametrize("case", CASES)
def test_derivatives_of_the_acceleration(case):
    xml, of_model, of_contacts, size = CASES[case]
    mj = compile_xml(xml)
    mjd = state(mj, 0, spread=0.1, settle=20 if size else 0)
    m, d, found = inputs(mj, mjd, ROOM if size else 0)
    assert mjd.nefc > 5
    scale = 1 / (1 + np.abs(mjd.qacc).max())

    @jax.jit
    def qacc(x):
        at_m, at_d, contacts = x
        return scale * solution(m.replace(**at_m), d.replace(**at_d), found | contacts, size)[0]

    x = (
        {name: getattr(m, name) for name in of_model},
        {name: getattr(d, name) for name in STATE},
        {name: found[name] for name in of_contacts},
    )
    check_grads(qacc, (x,), order=1, modes=("fwd", "rev"), eps=1e-6, rtol=1e-6, atol=1e-6)
