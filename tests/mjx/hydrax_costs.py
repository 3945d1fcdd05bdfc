"""Costs of plans of hydrax's tasks, on the engine that `mujoco.mjx` is and on MuJoCo in C.

    python -m jaxsim.mjx tests/mjx/hydrax_costs.py FOLDER TASK ...

FOLDER is a checkout of hydrax (github.com/vincekurtz/hydrax). Prints one line of JSON per task.
"""

import importlib
import json
import sys

import jax
import mujoco
import numpy as np
from mujoco import mjx

# Module of each task, and its class. humanoid_mocap needs recordings that hydrax does not contain.
TASKS = {
    "cart_pole": "CartPole",
    "crane": "Crane",
    "cube": "CubeRotation",
    "double_cart_pole": "DoubleCartPole",
    "humanoid_standup": "HumanoidStandup",
    "particle": "Particle",
    "pendulum": "Pendulum",
    "pusht": "PushT",
    "walker": "Walker",
}
SAMPLES = 8


def main() -> None:
    folder, *names = sys.argv[1:]
    sys.path.insert(0, folder)
    for name in names:
        print(json.dumps({"task": name} | costs(name)), flush=True)


def costs(name: str) -> dict:
    """Return the cost of each sampled plan, and that of the same controls in C."""
    from hydrax.algs import PredictiveSampling

    task = getattr(importlib.import_module(f"hydrax.tasks.{name}"), TASKS[name])()
    planner = PredictiveSampling(
        task, num_samples=SAMPLES, noise_level=0.3, plan_horizon=0.2, num_knots=4
    )
    data = mjx.make_data(task.mj_model)
    _, rollouts = jax.jit(planner.optimize)(data, planner.init_params())
    running = jax.jit(task.running_cost)
    in_c = [cost_in_c(task, running, controls) for controls in np.asarray(rollouts.controls)]
    return {"cost": np.asarray(rollouts.costs)[:, :-1].sum(1).tolist(), "in C": in_c}


def cost_in_c(task, running, controls: np.ndarray) -> float:
    """Return the sum of running costs along a rollout of MuJoCo."""
    model, total = task.mj_model, 0.0
    data = mujoco.MjData(model)
    for u in controls:
        data.ctrl = u
        mujoco.mj_step(model, data)
        total += task.dt * float(running(mjx.put_data(model, data), u))
    return total


if __name__ == "__main__":
    main()
