"""System identification: parameters of a model from measured motion (docs/identify.md)."""

from jaxsim.identify.forms import Form as Form
from jaxsim.identify.forms import linear as linear
from jaxsim.identify.forms import log as log
from jaxsim.identify.forms import pseudo_inertia as pseudo_inertia
from jaxsim.identify.forms import scale as scale
from jaxsim.identify.parameter import Parameter as Parameter
from jaxsim.identify.parameter import Parameters as Parameters
from jaxsim.identify.parameter import parameters as parameters
