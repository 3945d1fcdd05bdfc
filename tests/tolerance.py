"""Tolerances of the tests, each with its reason.

`np.testing.assert_allclose(ours, theirs, **ROUNDING)` asks for |ours - theirs| <= atol + rtol
|theirs|. A test that needs another number takes the nearest one here and gives the reason there:
`ROUNDING | {"atol": 1e-9}`.
"""

Tolerance = dict[str, float]


def _both(size: float) -> Tolerance:
    return {"rtol": size, "atol": size}


# The same operations on numbers of about one; only the compiler's fusing may differ.
SAME = {"rtol": 1e-14, "atol": 1e-14}
# One formula with its operations in another order: tens of roundings.
ROUNDING = _both(1e-12)
# A stage with sums over the whole tree: hundreds of roundings, of terms that partly cancel.
STAGE = _both(1e-11)
# Several stages, one after another, or a hundred steps without contacts.
STAGES = {"rtol": 1e-10, "atol": 1e-12}
# Solutions with the mass matrix, whose condition multiplies the rounding of what went before.
DYNAMICS = _both(1e-9)
# Optima of the solver from another start or along another way: it stops when the cost, which is
# flat at its optimum, no longer changes.
SOLVER = _both(1e-8)
# The same through stiff constraints: forces are differences of accelerations times large numbers.
STIFF = _both(1e-7)
# Points of contact and normals: the oracle clips boxes with a margin of 1e-9 of their size.
CONTACT = {"rtol": 1e-9, "atol": 1e-7}
# Central differences with a step of 1e-6: the step squared, and rounding divided by the step.
DIFFERENCE = {"rtol": 1e-7, "atol": 1e-8}
# Differences of outputs that are large compared with their slopes, or with high curvature.
ROUGH_DIFFERENCE = _both(1e-6)
# What MuJoCo itself stores or computes in single precision, or iterates to that.
STORED_SINGLE = _both(1e-6)
# Results in single precision compared with those in double, after many operations.
FLOAT32 = {"rtol": 1e-4, "atol": 1e-5}
