"""Environments for reinforcement learning: tasks, batches of worlds, domain randomization.

    Env          a task in one world: actions, observations, rewards
    VectorEnv    a batch of worlds with bounded episodes and automatic resets
    randomize    a model for each world, from ranges of parameters or a function
    with_masks   collision masks that differ between worlds
    FrameStack, Delayed, Noisy, Pushed    wrappers between an agent and the worlds

Named tasks are in `jaxsim.envs.tasks`. Adapters for other libraries are modules of their own:
`gymnasium`, `stable_baselines`, `dm_env`, `brax`, `playground`, `rejax`.
"""

from jaxsim.envs.env import Env as Env
from jaxsim.envs.masks import with_masks as with_masks
from jaxsim.envs.randomization import randomize as randomize
from jaxsim.envs.ranges.draw import factor as factor
from jaxsim.envs.ranges.draw import shift as shift
from jaxsim.envs.state import State as State
from jaxsim.envs.vector import VectorEnv as VectorEnv
from jaxsim.envs.wrap import Delayed as Delayed
from jaxsim.envs.wrap import FrameStack as FrameStack
from jaxsim.envs.wrap import Noisy as Noisy
from jaxsim.envs.wrap import Pushed as Pushed
