"""Trajectory optimisation, feedback, equilibria and inverse problems, by gradients of the step."""

from jaxsim.control.limits import control_limits as control_limits
from jaxsim.control.linearize import Linear as Linear
from jaxsim.control.linearize import linearize as linearize
from jaxsim.control.motion import motion_cost as motion_cost
from jaxsim.control.norms import NORMS as NORMS
from jaxsim.control.problem import Problem as Problem
from jaxsim.control.problem import Term as Term
from jaxsim.control.tangent import difference as difference
from jaxsim.control.tangent import moved as moved
