"""Whether a step and its constraint solver are one operation: under the discrete integrator.

What that changes: the inertia of the solver (integrate/metric.py), the rows of the constraints
(constraint/impedance.py, constraint/weigh.py), and what `qacc` means, the change of velocity in a
step divided by its length.
"""

from jaxsim.enums import IntegratorType
from jaxsim.model.model import Model


def is_discrete(m: Model) -> bool:
    """Whether a model's integrator is the discrete one."""
    return m.opt.integrator == IntegratorType.DISCRETE
