"""Exchange with MuJoCo itself: its compiled models and its states, given by a caller who has it.

Nothing here imports MuJoCo; objects of its Python package are read and written by attribute names,
and its functions are found where these objects come from.
"""

from jaxsim.io.bridge.get import get_data as get_data
from jaxsim.io.bridge.get import get_data_into as get_data_into
from jaxsim.io.bridge.make import make_data as make_data
from jaxsim.io.bridge.model import put_model as put_model
from jaxsim.io.bridge.put import put_data as put_data
