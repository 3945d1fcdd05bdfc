"""Registry of named tasks: those of Gymnasium, of the Control Suite, and of this package.

    env = make("cartpole_swingup")
    worlds = VectorEnv(env, length=TASKS["cartpole_swingup"].length)

A task with a name of Gymnasium or of the Control Suite has the same model, start, observation,
reward and termination.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from jaxsim.envs.env import Env
from jaxsim.envs.tasks.arm import ArmLift, ArmPush
from jaxsim.envs.tasks.cartpole import Cartpole
from jaxsim.envs.tasks.gymnasium.ant import Ant
from jaxsim.envs.tasks.gymnasium.humanoid import Humanoid, HumanoidStandup
from jaxsim.envs.tasks.gymnasium.pendulum import InvertedDoublePendulum, InvertedPendulum
from jaxsim.envs.tasks.gymnasium.reacher import Pusher, Reacher
from jaxsim.envs.tasks.gymnasium.runner import HalfCheetah, Hopper, Swimmer, Walker2d
from jaxsim.envs.tasks.hand import HandCube
from jaxsim.envs.tasks.quadruped import Quadruped
from jaxsim.envs.tasks.suite.cheetah import SuiteCheetah
from jaxsim.envs.tasks.suite.hopper import SuiteHopper
from jaxsim.envs.tasks.suite.humanoid import SuiteHumanoid
from jaxsim.envs.tasks.suite.pendulum import Acrobot, Pendulum
from jaxsim.envs.tasks.suite.reacher import SuiteReacher
from jaxsim.envs.tasks.suite.walker import SuiteWalker
from jaxsim.spelling import remedy


class Task(NamedTuple):
    """A named task.

    Attributes:
      make: function that returns the environment; takes the arguments of `Env`.
      length: actions of an episode.
    """

    make: Callable[..., Env]
    length: int = 1000


TASKS: dict[str, Task] = {
    "arm_lift": Task(ArmLift, 200),
    "arm_push": Task(ArmPush, 200),
    "hand_cube": Task(HandCube, 200),
    "quadruped_rough": Task(partial(Quadruped, rough=True)),
    "quadruped_velocity": Task(Quadruped),
    "quadruped_velocity_plain": Task(partial(Quadruped, gait=False)),
    "cartpole_balance": Task(partial(Cartpole, swing_up=False)),
    "cartpole_balance_sparse": Task(partial(Cartpole, swing_up=False, sparse=True)),
    "cartpole_swingup": Task(partial(Cartpole, swing_up=True)),
    "cartpole_swingup_sparse": Task(partial(Cartpole, swing_up=True, sparse=True)),
    "acrobot_swingup": Task(Acrobot),
    "acrobot_swingup_sparse": Task(partial(Acrobot, sparse=True)),
    "cheetah_run": Task(SuiteCheetah),
    "hopper_hop": Task(partial(SuiteHopper, hop=True)),
    "hopper_stand": Task(partial(SuiteHopper, hop=False)),
    "humanoid_run": Task(partial(SuiteHumanoid, speed=10.0)),
    "humanoid_stand": Task(partial(SuiteHumanoid, speed=0.0)),
    "humanoid_walk": Task(partial(SuiteHumanoid, speed=1.0)),
    "pendulum_swingup": Task(Pendulum),
    "reacher_easy": Task(partial(SuiteReacher, size=0.05)),
    "reacher_hard": Task(partial(SuiteReacher, size=0.015)),
    "walker_run": Task(partial(SuiteWalker, speed=8.0)),
    "walker_stand": Task(partial(SuiteWalker, speed=0.0)),
    "walker_walk": Task(partial(SuiteWalker, speed=1.0)),
    "Ant-v5": Task(Ant),
    "HalfCheetah-v5": Task(HalfCheetah),
    "Hopper-v5": Task(Hopper),
    "Humanoid-v5": Task(Humanoid),
    "HumanoidStandup-v5": Task(HumanoidStandup),
    "InvertedDoublePendulum-v5": Task(InvertedDoublePendulum),
    "InvertedPendulum-v5": Task(InvertedPendulum),
    "Pusher-v5": Task(Pusher, 100),
    "Reacher-v5": Task(Reacher, 50),
    "Swimmer-v5": Task(Swimmer),
    "Walker2d-v5": Task(Walker2d),
}


def make(name: str, **given: Any) -> Env:
    """Return a named task.

    Args:
      name: one of `TASKS`.
      given: arguments of the task.

    Raises:
      ValueError: there is no such task; the message suggests the nearest name.
      ImportError: the package that has its model is not installed; the message names the extra.

    Example:
      >>> make("cartpole_swingup").observation_size
      5
    """
    if name not in TASKS:
        raise ValueError(
            f"no task is named {name!r}{remedy(name, TASKS, '; there are: ' + ', '.join(TASKS))}"
        )
    return TASKS[name].make(**given)
