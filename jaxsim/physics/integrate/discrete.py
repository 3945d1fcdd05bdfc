"""Test for the integrator `discrete`, whose step solves for the velocity at the end of the step.

Springs, dampers and constraints are implicit in it (docs/physics/integrators.md). It changes the
inertia of the solver (integrate/metric.py), the constraint rows (constraint/impedance.py,
constraint/regularize.py) and the meaning of `qacc`: the change of velocity over a step divided by
its length.
"""

from jaxsim.enums import IntegratorType
from jaxsim.model.model import Model


def is_discrete(m: Model) -> bool:
    """Return True if the model's integrator is the discrete one."""
    return m.opt.integrator == IntegratorType.DISCRETE
