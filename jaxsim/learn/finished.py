"""Recognize a finished training by its files, without importing learners or starting a device.

`jaxsim sweep` watches the folders of its trainings from a process that must leave all devices to
them.
"""

from pathlib import Path

from jaxsim.batch.trajectory import load_trajectory
from jaxsim.learn.checkpoint import Checkpoints

CONFIG_FILE = "config.toml"  # the settings of a run, in its folder


def is_finished(folder: Path, steps: int) -> bool:
    """Return whether a run has trained for `steps` actions and written its result."""
    saved = Checkpoints(folder / "checkpoints").steps()
    return bool(saved) and saved[-1] >= steps and is_motion_of(folder / "motion.npz", saved[-1])


def is_motion_of(path: Path, step: int) -> bool:
    """Return whether a file is the complete motion of a step."""
    try:
        return load_trajectory(path).header.get("actions") == step
    except (OSError, ValueError):
        return False
