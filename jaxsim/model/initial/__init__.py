"""Initial values of Data."""

from jaxsim.model.initial.state import mocap_bodies as mocap_bodies
from jaxsim.model.initial.state import start_state as start_state
