"""Tasks of our own, by name.

    env = make("cartpole_swingup")

Each is a file with the model beside it; a name that the Control Suite has too means the same model,
the same start and the same reward.
"""

from collections.abc import Callable
from typing import Any

from jaxsim.envs.env import Env
from jaxsim.envs.tasks.cartpole import Cartpole
from jaxsim.words import remedy

TASKS: dict[str, Callable[..., Env]] = {
    "cartpole_balance": lambda **given: Cartpole(swing_up=False, **given),
    "cartpole_swingup": lambda **given: Cartpole(swing_up=True, **given),
}


def make(name: str, **given: Any) -> Env:
    """A task by its name.

    Args:
      name: one of `TASKS`.
      given: arguments of the task.

    Raises:
      ValueError: there is no such task; says the nearest.

    Example:
      >>> make("cartpole_swingup").observation_size
      5
    """
    if name not in TASKS:
        raise ValueError(
            f"no task is named {name!r}{remedy(name, TASKS, '; there are: ' + ', '.join(TASKS))}"
        )
    return TASKS[name](**given)
