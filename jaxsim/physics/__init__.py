"""Physics of one step, from a state to the next. `forward.py` lists the stages in order.

`api.py` defines the public functions. Those that other packages build upon are imported here.
"""

from jaxsim.physics.api import forward as forward
from jaxsim.physics.api import full_m as full_m
from jaxsim.physics.api import inverse as inverse
from jaxsim.physics.api import step as step
