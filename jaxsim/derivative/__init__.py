"""Derivatives of the physics, in tangent coordinates: MuJoCo's `mjd_` functions.

Exact derivatives by automatic differentiation, and finite differences (`..._fd`) with the same
results.
"""

from jaxsim.derivative.finite_difference import transition_fd as transition_fd
from jaxsim.derivative.hessian import hessian_vector as hessian_vector
from jaxsim.derivative.inverse_dynamics import InverseDerivative as InverseDerivative
from jaxsim.derivative.inverse_dynamics import inverse as inverse
from jaxsim.derivative.inverse_dynamics import inverse_fd as inverse_fd
from jaxsim.derivative.quaternion import quat_integrate as quat_integrate
from jaxsim.derivative.quaternion import sub_quat as sub_quat
from jaxsim.derivative.step_derivative import Linear as Linear
from jaxsim.derivative.step_derivative import transition as transition
from jaxsim.derivative.tangent import apply_tangent as apply_tangent
from jaxsim.derivative.tangent import difference as difference
