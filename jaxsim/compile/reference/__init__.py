"""The reference pose in numpy: kinematics, inertia, tendons, and the derived constants.

The stages of the physics compute the same in JAX, and `set_const` derives the same constants from
them. Both forms exist because loading a model must not wait for a program to be traced and compiled
(milliseconds here, seconds there), while users differentiate and batch `set_const`.
`tests/physics/constants/test_set_const.py` compares every field.

    pose.py                       physics/body/kinematics.py, physics/body/inertia.py
    mass_matrix.py                physics/body/inertia.py
    tendon_path.py, wrap.py       physics/tendon/tendon.py, physics/tendon/wrap.py
    transmission.py               physics/actuator/transmission.py
    constants.py                  physics/constants/set_const.py,
                                  physics/constants/inverse_weight.py
    views.py                      physics/constants/set_const.py
    statistics.py                 physics/constants/statistics.py

Formulas that suit both are in `jaxsim/math`: quaternions, shapes, virtual masses.
"""
