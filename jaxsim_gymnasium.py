"""Register jaxsim's tasks with Gymnasium, without importing jaxsim or JAX.

    import jaxsim_gymnasium  # noqa: F401
    env = gymnasium.make("jaxsim/Hopper-v5")

    env = gymnasium.make("jaxsim_gymnasium:jaxsim/Hopper-v5")  # imports this module itself

The module is outside of the package jaxsim, whose import loads JAX: it only registers names, and
`gymnasium.make` imports the adapter that an id names. So the table below repeats the names and
lengths of `jaxsim.envs.tasks.TASKS`; a test compares the two.
"""

try:
    from gymnasium.envs.registration import register, registry
except ModuleNotFoundError as error:
    from jaxsim.optional import MissingExtra, install_hint  # loads JAX, but only for the error

    raise MissingExtra(f"jaxsim_gymnasium needs Gymnasium; {install_hint('rl')}") from error

ADAPTER = "jaxsim.envs.gymnasium"
SUITE = """
    acrobot_swingup acrobot_swingup_sparse cartpole_balance cartpole_balance_sparse
    cartpole_swingup cartpole_swingup_sparse cheetah_run hopper_hop hopper_stand humanoid_run
    humanoid_stand humanoid_walk pendulum_swingup reacher_easy reacher_hard walker_run
    walker_stand walker_walk
"""
GYMNASIUM = """
    Ant-v5 HalfCheetah-v5 Hopper-v5 Humanoid-v5 HumanoidStandup-v5 InvertedDoublePendulum-v5
    InvertedPendulum-v5 Swimmer-v5 Walker2d-v5
"""
OWN = "quadruped_rough quadruped_velocity quadruped_velocity_plain"
LENGTHS = {  # actions of an episode
    **dict.fromkeys(SUITE.split() + GYMNASIUM.split() + OWN.split(), 1000),
    "Pusher-v5": 100,
    "Reacher-v5": 50,
    "arm_lift": 200,
    "arm_push": 200,
    "hand_cube": 200,
}


def register_tasks() -> None:
    """Register all tasks, as "jaxsim/hopper_hop" and so on; registered ones are kept."""
    for name, length in LENGTHS.items():
        if f"jaxsim/{name}" not in registry:
            register(
                id=f"jaxsim/{name}",
                entry_point=f"{ADAPTER}:make_env",
                vector_entry_point=f"{ADAPTER}:make_vector_env",
                max_episode_steps=length,
                kwargs={"task": name},
            )


register_tasks()
