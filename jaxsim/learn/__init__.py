"""Reinforcement learning from a settings file; runs can be stopped, resumed and played back.

The algorithms are rejax's; the extra `rl` installs the dependencies.
"""

from jaxsim.learn.config import Training as Training
