"""The editable model, between the checked XML tree and the compiled arrays."""

from jaxsim.spec.body import Body as Body
from jaxsim.spec.element import SpecElement as SpecElement
from jaxsim.spec.spec import Spec as Spec
