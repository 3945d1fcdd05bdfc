"""Ranges of physical parameters for domain randomization, by the name of the parameter.

    "body:torso/mass": (0.8, 1.2)                 a factor, uniform
    "joint:*/damping": scale(0.5, 2)              a factor, uniform in its logarithm
    "actuator:hip/kp": scale(sd=0.1)              a factor, log-normal
    "geom:foot*/friction[0]": linear(0.4, 1.2)    the value itself
    "body:torso/mass": shift(-1, 3)               an offset that is added
    "body:torso/inertia": pseudo_inertia(sd=0.1)  mass, center of mass and inertia

Names and forms are those of identification (identify/targets/select.py, identify/forms.py); "*"
selects all objects, unnamed ones included. One factor is drawn for each object, and dependent
numbers change with it: inertia with mass, the bias of a servo with its gain. A bare field,
"body_mass", changes alone.
"""
