"""The physics: from a state to the next one. `forward.py` is the list of its stages.

The public functions are in `api.py`; those that others build upon are named here.
"""

from jaxsim.physics.api import forward as forward
from jaxsim.physics.api import full_m as full_m
from jaxsim.physics.api import inverse as inverse
from jaxsim.physics.api import step as step
