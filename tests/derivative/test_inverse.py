"""The Jacobians of inverse dynamics, exact and by differences, against MuJoCo's differences."""

from functools import cache

import mujoco
import numpy as np
import pytest
from physics.query.machine import in_all_worlds, machine
from tolerance import ROUGH_DIFFERENCE

import jaxsim
from jaxsim.derivative import inverse, inverse_fd

pair = cache(machine)


def theirs(mj, state, eps, actuation):
    """In the convention of control theory: outputs by inputs."""
    nv, ns = mj.nv, mj.nsensordata
    nM = mj.nC
    shapes = [(nv, nv)] * 3 + [(nv, ns)] * 3 + [(nv, nM)]
    out = [np.zeros(shape) for shape in shapes]
    mujoco.mjd_inverseFD(mj, state, eps, actuation, *out)
    DmDq = np.zeros((nv, nv, nv))
    for q in range(nv):
        lower = np.zeros((nv, nv))
        mujoco.mju_sparse2dense(lower, out[6][q], mj.M_rownnz, mj.M_rowadr, mj.M_colind)
        DmDq[:, :, q] = np.tril(lower) + np.tril(lower, -1).T
    return [*(a.T for a in out[:6]), DmDq]


def test_exact():
    mj, states, m, d = pair()
    found = in_all_worlds(lambda m, d: inverse(m, d, flg_actuation=True))(m, d)
    # the mean of differences to both sides is the central one
    for k, state in enumerate(states):
        sides = zip(*(theirs(mj, state, eps, True) for eps in (1e-6, -1e-6)), strict=True)
        for name, a, (up, down) in zip(found._fields, found, sides, strict=True):
            where = f"{name} {k}"
            np.testing.assert_allclose(a[k], (up + down) / 2, **ROUGH_DIFFERENCE, err_msg=where)


@pytest.mark.slow
def test_differences():
    mj, states, m, d = pair()
    found = in_all_worlds(lambda m, d: inverse_fd(m, d, 1e-5))(m, d)
    for k, state in enumerate(states):
        expected = theirs(mj, state, 1e-5, False)
        for name, a, b in zip(found._fields, found, expected, strict=True):
            np.testing.assert_allclose(a[k], b, **ROUGH_DIFFERENCE, err_msg=f"{name} {k}")


def test_the_data_has_to_carry_what_is_read():
    _, _, m, _ = pair()
    with pytest.raises(ValueError, match="inverse: this Data does not carry 'actuator_force'"):
        inverse(m, jaxsim.make_data(m, keep=[]))
