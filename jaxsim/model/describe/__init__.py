"""Human-readable descriptions of a model and of the state of a world."""

from jaxsim.model.describe.lines import name_of as name_of
from jaxsim.model.describe.model import bytes_per_world as bytes_per_world
from jaxsim.model.describe.model import describe as describe
from jaxsim.model.describe.warnings import warning_texts as warning_texts
