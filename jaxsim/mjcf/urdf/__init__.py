"""Read URDF into the same element tree as MJCF."""

from jaxsim.mjcf.urdf.robot import read_robot as read_robot
from jaxsim.mjcf.urdf.table import ROBOT as ROBOT
