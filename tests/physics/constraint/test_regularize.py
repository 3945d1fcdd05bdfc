"""The flag diagexact against MuJoCo: regularization by the inertia that rows have in the state."""

from functools import cache

import mujoco
import pytest
from physics.integrate.test_discrete import (
    CASES,
    OF_DOFS,
    OF_ROWS,
    SCENE,
    check,
    put,
    start,
    stepper,
)
from states import stack, world

from jaxsim.io.bridge import put_model


@cache
def model(case: str, integrator: str) -> mujoco.MjModel:
    text = SCENE.replace("/>\n<default>", '><flag diagexact="enable"/></option>\n<default>', 1)
    return mujoco.MjModel.from_xml_string(
        text.replace('"discrete"', f'"{integrator}"').format(**CASES[case])
    )


@pytest.mark.slow  # the quick one is test_rows_of_fixed_tendons_are_of_all_worlds, test_groups.py
@pytest.mark.parametrize(
    ("case", "integrator"),
    [("pyramids", "Euler"), ("cones", "discrete"), ("cones", "implicitfast")],
)
def test_rows_and_forces_beside_mujoco(case, integrator):
    mj = model(case, integrator)
    m = put_model(mj)
    starts = [start(mj, seed) for seed in range(2)]
    d = stack([put(m, mjd) for mjd in starts])
    for _ in range(3):
        d = stepper()(m, d)
        for mjd in starts:
            mujoco.mj_step(mj, mjd)
        for k, mjd in enumerate(starts):
            one = world(d, k)
            assert int(one.nefc) == mjd.nefc > 10
            check(OF_DOFS, one, mjd)
            check(OF_ROWS, one, mjd, mjd.nefc)
