"""Quaternions as numpy arrays, which the compiler uses, and as traced arrays give equal results.

Most formulas are shared (`jaxsim/math/quaternion.py`); normalization, the logarithm and the
rotation to a direction are written for each, because derivatives need guards.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from tolerance import ROUNDING

from jaxsim import functions as f
from jaxsim.math import Quat
from jaxsim.math import quaternion as q

MANY = 20
RNG = np.random.default_rng(0)
# The identity, half rotations about each axis, and others; both signs.
UNIT = np.concatenate([np.eye(4), -np.eye(4), RNG.normal(size=(MANY - 8, 4))])
UNIT /= np.linalg.norm(UNIT, axis=1, keepdims=True)
OTHER, VEC = UNIT[::-1], RNG.normal(size=(MANY, 3))
VEC[:4] = [0, 0, 1], [0, 0, -1], [1, 0, 0], [0, 0, 2]
AXIS = VEC / np.linalg.norm(VEC, axis=1, keepdims=True)
ANGLE = RNG.normal(size=MANY)
MATRIX = q.quat_to_matrix(UNIT)
# Lengths on both sides of those that count as zero and as one.
SCALED = UNIT * np.resize([0, 1e-20, 1, 1 + 1e-15, 0.5, 3], (MANY, 1))


def normalize(quat):
    return Quat.from_array(jnp.asarray(quat)).normalize().to_array()


def euler(angles):
    return f.euler_to_quat(angles, "xYz")


# By name: the numpy form, the traced form, their arguments, and whether each takes many at once.
PAIRS = {
    "product": (q.quat_multiply, f.mul_quat, (UNIT, OTHER), True),
    "conjugate": (q.quat_conjugate, f.neg_quat, (UNIT,), True),
    "rotation": (q.quat_rotate, lambda quat, v: f.rot_vec_quat(v, quat), (UNIT, VEC), True),
    "matrix": (q.quat_to_matrix, f.quat_to_mat, (UNIT,), True),
    "norm": (q.quat_normalize, normalize, (SCALED,), True),
    "logarithm": (q.quat_to_rotation_vector, lambda quat: f.quat_to_vel(quat, 1), (UNIT,), True),
    "from matrix": (q.quat_from_matrix, f.mat_to_quat, (MATRIX,), False),
    "from axis": (q.quat_from_axis_angle, f.axis_angle_to_quat, (AXIS, ANGLE), False),
    "from direction": (q.quat_from_z_axis, f.quat_z_to_vec, (VEC,), False),
    "from angles": (lambda a: q.quat_from_euler(a, "xYz"), euler, (VEC,), False),
}


@pytest.mark.parametrize("name", PAIRS)
def test_both_namespaces_agree(name):
    ours, traced, arguments, many = PAIRS[name]
    each = [ours(*row) for row in zip(*arguments, strict=True)]
    theirs = [traced(*row) for row in zip(*arguments, strict=True)] if not many else None
    np.testing.assert_allclose(each, traced(*arguments) if many else theirs, **ROUNDING)
    if many:  # arrays of many are computed component by component, one as plain numbers
        np.testing.assert_array_equal(ours(*arguments), each)


def test_unit_quaternions_keep_their_bits():
    np.testing.assert_array_equal(q.quat_normalize(np.eye(4)), np.eye(4))
    near = np.array([1 + 1e-15, 0, 0, 0])
    np.testing.assert_array_equal(q.quat_normalize(near), near)
