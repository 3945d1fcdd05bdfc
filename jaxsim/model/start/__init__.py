"""Initial values of Data."""

from jaxsim.model.start.state import mocap_bodies as mocap_bodies
from jaxsim.model.start.state import start_state as start_state
