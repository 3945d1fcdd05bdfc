"""Exchange compiled models and states with MuJoCo's own Python package.

Nothing here imports MuJoCo: its objects are read and written by attribute names, and its functions
are looked up in the package that these objects come from.
"""

from jaxsim.io.bridge.get import get_data as get_data
from jaxsim.io.bridge.get import get_data_into as get_data_into
from jaxsim.io.bridge.make import make_data as make_data
from jaxsim.io.bridge.model import put_model as put_model
from jaxsim.io.bridge.put import put_data as put_data
