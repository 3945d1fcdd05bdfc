"""Settings of a training: a task, its worlds, a learner; the form of configs/learn/*.toml.

    task = "cartpole_swingup"
    steps = 1_000_000
    seeds = 3

    [worlds]
    count = 64

    [ppo]
    learning_rate = 1e-3

Settings of learners have rejax's names; those of SHAC and APG have the same ones.
"""

from dataclasses import dataclass

from jaxsim.io.config import setting

_MAX_TRAINING_ARRAY = 10_000_000  # largest array dimension, checked before memory is computed
_MAX_LAYER_WIDTH = 100_000  # largest width of a layer
_MAX_STORED_TRANSITIONS = 1_000_000_000  # largest replay buffer
_MAX_TRAINING_STEPS = 1_000_000_000_000
_MAX_CRITICS = 1000
MAX_SEED = 2**31 - 2  # the next seed must be a 32-bit number too
_MAX_GRAD_NORM_DOC = "bound of each entry of a gradient (rejax clips entries, not the norm)"
ACTIVATIONS = ("relu", "swish", "tanh", "elu", "gelu")


@dataclass(frozen=True)
class WorldsForm:
    """Number of worlds, and the wrappers between them and the learner."""

    count: int = setting(64, doc="worlds of each seed", least=1, most=_MAX_TRAINING_ARRAY)
    length: int | None = setting(
        None, doc="actions per episode; default: the task's", least=1, most=_MAX_TRAINING_ARRAY
    )
    repeat: int | None = setting(
        None, doc="physics steps per action; default: the task's", least=1, most=_MAX_TRAINING_ARRAY
    )
    frames: int = setting(
        1, doc="number of stacked observations", least=1, most=_MAX_TRAINING_ARRAY
    )
    delay: int = setting(0, doc="delay of each action [actions]", least=0, most=_MAX_TRAINING_ARRAY)
    obs_noise: float = setting(0.0, doc="standard deviation added to observations", least=0)
    action_noise: float = setting(0.0, doc="standard deviation added to actions", least=0)
    delay_most: float | None = setting(
        None, doc="if set, each episode draws a delay between `delay` and this [actions]", least=0
    )
    pushes: dict[str, tuple[float, ...]] = setting(
        dict, doc="by body, `body:torso`: [lowest, highest] horizontal impulse of a push [N s]"
    )
    push_every: float = setting(5.0, doc="mean time between pushes of a body [s]", above=0)
    randomize: dict[str, tuple[float, ...]] = setting(
        dict,
        doc="physical parameters, `joint:*/damping`: [lowest, highest] factor, one for each object",
    )
    randomize_shift: dict[str, tuple[float, ...]] = setting(
        dict, doc="the same: [lowest, highest] offset, in the parameter's unit"
    )
    randomize_value: dict[str, tuple[float, ...]] = setting(
        dict, doc="the same: [lowest, highest] value that replaces the model's"
    )
    every_episode: bool = setting(
        False, doc="whether each episode draws a new model; otherwise each world has one"
    )


@dataclass(frozen=True)
class PPOForm:
    """Proximal policy optimization; Schulman et al., 2017."""

    learning_rate: float = setting(3e-4, doc="learning rate of Adam", above=0)
    anneal: bool = setting(True, doc="whether it decreases linearly to 0 over the run")
    gamma: float = setting(0.99, doc="discount factor per action", least=0, most=1)
    gae_lambda: float = setting(
        0.95, doc="lambda of generalized advantage estimation", least=0, most=1
    )
    num_steps: int = setting(
        64, doc="actions of each world per update", least=1, most=_MAX_TRAINING_ARRAY
    )
    num_minibatches: int = setting(
        8, doc="minibatches per update", least=1, most=_MAX_TRAINING_ARRAY
    )
    num_epochs: int = setting(
        8, doc="passes through the data per update", least=1, most=_MAX_TRAINING_ARRAY
    )
    clip_eps: float = setting(0.2, doc="clipping range of the policy ratio", above=0)
    ent_coef: float = setting(0.0, doc="weight of the entropy", least=0)
    vf_coef: float = setting(0.5, doc="weight of the value loss", least=0)
    max_grad_norm: float = setting(0.5, doc=_MAX_GRAD_NORM_DOC, above=0)
    hidden: tuple[int, ...] = setting(
        (64, 64), doc="widths of the networks", least=1, most=_MAX_LAYER_WIDTH
    )
    activation: str = setting("swish", doc="activation of the networks", choices=ACTIVATIONS)
    initial_std: float | None = setting(
        None,
        doc="initial standard deviation, with means near zero; default: 1, with random means",
        above=0,
    )
    normalize_observations: bool = setting(True, doc="to mean 0 and standard deviation 1")
    normalize_rewards: bool = setting(True, doc="by the standard deviation of the returns")


@dataclass(frozen=True)
class SACForm:
    """Soft actor-critic; Haarnoja et al., 2018."""

    learning_rate: float = setting(3e-4, doc="learning rate of Adam", above=0)
    gamma: float = setting(0.99, doc="discount factor per action", least=0, most=1)
    num_epochs: int = setting(
        8, doc="updates per action of all worlds", least=1, most=_MAX_TRAINING_ARRAY
    )
    batch_size: int = setting(256, doc="transitions per update", least=1, most=_MAX_TRAINING_ARRAY)
    buffer_size: int = setting(
        1_000_000, doc="transitions in the replay buffer", least=1, most=_MAX_STORED_TRANSITIONS
    )
    fill_buffer: int = setting(
        5_000, doc="actions before the first update", least=0, most=_MAX_STORED_TRANSITIONS
    )
    polyak: float = setting(
        0.99, doc="weight of the old target critic in an update", least=0, most=1
    )
    max_grad_norm: float = setting(1e6, doc=_MAX_GRAD_NORM_DOC, above=0)
    hidden: tuple[int, ...] = setting(
        (256, 256), doc="widths of the networks", least=1, most=_MAX_LAYER_WIDTH
    )
    activation: str = setting("relu", doc="activation of the networks", choices=ACTIVATIONS)
    normalize_observations: bool = setting(False, doc="to mean 0 and standard deviation 1")
    normalize_rewards: bool = setting(False, doc="by the standard deviation of the returns")


@dataclass(frozen=True)
class APGForm:
    """Analytic policy gradient: the derivative of the rewards of a horizon, without a critic."""

    learning_rate: float = setting(2e-3, doc="learning rate of Adam", above=0)
    anneal: bool = setting(True, doc="whether it decreases linearly to 0 over the run")
    gamma: float = setting(0.99, doc="discount factor per action", least=0, most=1)
    num_steps: int = setting(
        16,
        doc="actions of each world per update, the horizon of the derivative",
        least=1,
        most=_MAX_TRAINING_ARRAY,
    )
    smooth: float = setting(
        0.0,
        doc="smoothing length of contacts in derivatives, not in the motion [m]; 0: none",
        least=0,
    )
    max_grad_norm: float = setting(1.0, doc="bound of the norm of a gradient", above=0)
    max_world_grad_norm: float = setting(
        100.0,
        doc="bound of the norm of the derivative of a world's return in a horizon by its state "
        "before each action, in units of the reward",
        above=0,
    )
    hidden: tuple[int, ...] = setting(
        (128, 64), doc="widths of the policy network", least=1, most=_MAX_LAYER_WIDTH
    )
    activation: str = setting("elu", doc="activation of the networks", choices=ACTIVATIONS)
    initial_std: float = setting(
        0.4, doc="initial standard deviation of actions, before they are squashed", above=0
    )
    normalize_observations: bool = setting(True, doc="to mean 0 and standard deviation 1")


@dataclass(frozen=True)
class SHACForm(APGForm):
    """Short-horizon actor-critic; Xu et al., 2022."""

    critic_learning_rate: float = setting(5e-4, doc="learning rate of the critics", above=0)
    critic_hidden: tuple[int, ...] = setting(
        (64, 64), doc="widths of the networks of the critics", least=1, most=_MAX_LAYER_WIDTH
    )
    critics: int = setting(
        2, doc="number of critics, whose mean is the value", least=1, most=_MAX_CRITICS
    )
    num_epochs: int = setting(
        16,
        doc="passes of the critics through the data per update",
        least=1,
        most=_MAX_TRAINING_ARRAY,
    )
    num_minibatches: int = setting(
        4, doc="minibatches of the critics per pass", least=1, most=_MAX_TRAINING_ARRAY
    )
    td_lambda: float = setting(0.95, doc="lambda of the targets of the critics", least=0, most=1)
    polyak: float = setting(
        0.2, doc="weight of the old target critics in an update", least=0, most=1
    )


@dataclass(frozen=True)
class Training:
    """All settings of a training file: task, learner, evaluation, worlds."""

    task: str = setting(doc="a name, or 'package.module:Class' of your own")
    algorithm: str = setting("ppo", doc="the learner", choices=("ppo", "sac", "shac", "apg"))
    steps: int = setting(
        1_000_000, doc="actions in all worlds of a seed", least=1, most=_MAX_TRAINING_STEPS
    )
    every: int = setting(
        50_000,
        doc="actions between evaluations; each also saves a checkpoint",
        least=1,
        most=_MAX_TRAINING_STEPS,
    )
    seeds: int = setting(1, doc="number of parallel trainings", least=1, most=_MAX_TRAINING_ARRAY)
    seed: int = setting(0, doc="random seed", least=0, most=MAX_SEED)
    episodes: int = setting(16, doc="episodes per evaluation", least=1, most=_MAX_TRAINING_ARRAY)
    keep: int = setting(
        3, doc="number of checkpoints that are kept", least=1, most=_MAX_TRAINING_ARRAY
    )
    tensorboard: bool = setting(False, doc="whether to write events for TensorBoard too")
    actor_obs: tuple[str, ...] = setting(
        (),
        doc="policy inputs from a dict of observations; default: all except `privileged...`",
    )
    critic_obs: tuple[str, ...] = setting((), doc="those of the critic; default: all")
    worlds: WorldsForm = setting(WorldsForm, doc="number of worlds, and their wrappers")
    ppo: PPOForm = setting(PPOForm, doc="settings of PPO")
    sac: SACForm = setting(SACForm, doc="settings of SAC")
    shac: SHACForm = setting(SHACForm, doc="settings of SHAC")
    apg: APGForm = setting(APGForm, doc="settings of the analytic policy gradient")
