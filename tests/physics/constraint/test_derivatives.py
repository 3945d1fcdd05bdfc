"""Derivatives of the constrained acceleration: forward, reverse and central differences agree."""

import jax
import numpy as np
import pytest
from jax.test_util import check_grads
from physics.constraint.scene import compile_xml, state, world
from physics.constraint.test_rows import ELLIPTIC, PARTS, TOSSED
from tolerance import ROUGH_DIFFERENCE

import jaxsim

OF_STATE = ("qpos", "qvel", "ctrl", "qfrc_applied")
WITHOUT_CONTACTS = (
    "body_mass body_invweight0 site_pos eq_data eq_solref eq_solimp jnt_range jnt_solref "
    "dof_frictionloss dof_solimp tendon_range tendon_frictionloss"
).split()
OF_CONTACTS = "body_mass geom_friction geom_solref geom_solimp geom_size geom_pos".split()
DRIVEN = TOSSED.replace("</mujoco>", '<actuator><motor joint="j" gear="9"/></actuator></mujoco>')
CASES = {
    "all but contacts": (PARTS["all"], WITHOUT_CONTACTS),
    "pyramids": (DRIVEN.format(**ELLIPTIC | {"cone": "pyramidal"}), OF_CONTACTS),
    "elliptic cones": (DRIVEN.format(**ELLIPTIC), OF_CONTACTS),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_derivatives_of_the_acceleration(case):
    xml, of_model = CASES[case]
    mj = compile_xml(xml)
    mjd = state(mj, 0, spread=0.1, settle=20 if mj.nu else 0)
    assert mjd.nefc > 5
    m, d = world(mj, mjd)
    scale = 1 / (1 + np.abs(mjd.qacc).max())

    @jax.jit
    def qacc(x):
        at_m, at_d = x
        return scale * jaxsim.forward(m.replace(**at_m), d.replace(**at_d)).qacc

    x = ({name: getattr(m, name) for name in of_model}, {n: getattr(d, n) for n in OF_STATE})
    check_grads(qacc, (x,), order=1, modes=("fwd", "rev"), eps=1e-6, **ROUGH_DIFFERENCE)
