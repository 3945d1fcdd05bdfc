"""The tasks as `gymnasium.make` and `gymnasium.make_vec` know them: "jaxsim/Hopper-v5".

Gymnasium calls `register_tasks` when it is imported, by the entry point `gymnasium.envs` of the
package; importing `jaxsim.envs.gymnasium` does the same.
"""

from jaxsim.envs.tasks import TASKS
from jaxsim.extra import needed

ADAPTER = "jaxsim.envs.gymnasium"


def register_tasks() -> None:
    """Registers all of `TASKS`, as "jaxsim/hopper_hop" and so on; those that are known stay."""
    # not at the top: Gymnasium imports this file while it is imported itself
    gymnasium = needed("gymnasium.envs.registration", "rl")
    register, registry = gymnasium.register, gymnasium.registry

    for name, task in TASKS.items():
        if f"jaxsim/{name}" not in registry:
            register(
                id=f"jaxsim/{name}",
                entry_point=f"{ADAPTER}:make_env",
                vector_entry_point=f"{ADAPTER}:make_vector_env",
                max_episode_steps=task.length,
                kwargs={"task": name},
            )
