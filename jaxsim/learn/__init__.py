"""Learning by reinforcement: trainings from a file, that can be stopped and go on, and be played.

The algorithms are rejax's; the extra `rl` has what is needed.
"""

from jaxsim.learn.config import Training as Training
