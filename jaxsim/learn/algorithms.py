"""The learners by name, and the memory that each needs."""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxsim.envs.vector import VectorEnv
from jaxsim.envs.wrap import Wrapper
from jaxsim.io.config import SettingLocations
from jaxsim.learn.config import Training
from jaxsim.learn.first_order_learner import make_first_order_learner
from jaxsim.learn.learner import Learner
from jaxsim.learn.rejax_learner import make_rejax_learner


class WorldBytes(NamedTuple):
    """Bytes of a world: of a transition that is stored, and of its state."""

    transition: float
    state: float


class Algorithm(NamedTuple):
    """A learner.

    Attributes:
      make: worlds, settings and their source locations -> the learner.
      stored: setting that determines the memory for the data of an update.
      bytes_of: that memory in bytes, of a seed: its own settings, worlds, bytes of a world.
      differentiates: it differentiates reward and observations of the task.
    """

    make: Callable[[VectorEnv | Wrapper, Training, SettingLocations], Learner]
    stored: str
    bytes_of: Callable[[Any, int, WorldBytes], float]
    differentiates: bool = False


_FIRST_ORDER = Algorithm(
    make_first_order_learner,
    "num_steps",
    lambda form, worlds, size: size.state * form.num_steps * worlds,
    differentiates=True,
)
ALGORITHMS = {
    "ppo": Algorithm(
        make_rejax_learner,
        "num_steps",
        lambda form, worlds, size: size.transition * form.num_steps * worlds,
    ),
    "sac": Algorithm(
        make_rejax_learner,
        "buffer_size",
        lambda form, worlds, size: 2.0 * size.transition * form.buffer_size,
    ),
    "shac": _FIRST_ORDER,
    "apg": _FIRST_ORDER,
}


def make_learner(
    worlds: VectorEnv | Wrapper, training: Training, locations: SettingLocations
) -> Learner:
    """Return the learner of a training.

    Args:
      worlds: the worlds of a seed.
      training: the settings; `algorithm` selects the row of `ALGORITHMS`.
      locations: source locations of the settings, for messages.

    Raises:
      ConfigError: the actions of an update cannot be divided into minibatches; an observation has
        no such name, or the policy would see none.
    """
    return ALGORITHMS[training.algorithm].make(worlds, training, locations)
