"""Wake and freeze sleeping trees between the stages of a step.

MuJoCo's documentation, Programming: Sleeping islands. Each function takes the Data before the
stages, which has the results of the previous step, and the present one; in models without the flag
it returns the latter. Stages run alone leave the sleep state as it is.
"""

from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.constraint.island import islands
from jaxsim.physics.sleep.trees import (
    all_awake,
    can_sleep,
    can_wake,
    freeze_sleeping,
    update_sleep_counts,
)
from jaxsim.physics.sleep.wake import wake_by_equalities, wake_by_tendons, wake_disturbed

# Forces of dofs that sleeping trees keep unchanged.
PASSIVE_AND_BIAS_FORCES = (
    *("qfrc_spring", "qfrc_damper", "qfrc_gravcomp", "qfrc_fluid", "qfrc_adhesion"),
    *("qfrc_passive", "qfrc_bias"),
)


def wake_moved_trees(m: Model, before: Data, d: Data) -> Data:
    """Wake trees whose state or inputs changed, once their new poses are known."""
    if not can_sleep(m):
        return all_awake(m, d)
    return wake_disturbed(m, before, d) if can_wake(m) else d


def wake_tendons(m: Model, before: Data, d: Data) -> Data:
    """Wake trees that tendons couple to awake ones."""
    del before
    return wake_by_tendons(m, d) if can_wake(m) else d


def wake_equalities(m: Model, before: Data, d: Data) -> Data:
    """Wake trees that equality constraints couple to awake ones; `collision` wakes by contacts."""
    del before
    return wake_by_equalities(m, d) if can_wake(m) else d


def count_awake(m: Model, before: Data, d: Data) -> Data:
    """Count what is awake, after the last stage that wakes."""
    del before
    return update_sleep_counts(m, d) if can_sleep(m) else d


def freeze_forces(m: Model, before: Data, d: Data) -> Data:
    """Restore the passive and bias forces with which trees fell asleep."""
    return freeze_sleeping(m, before, d, PASSIVE_AND_BIAS_FORCES) if can_sleep(m) else d


def number_islands(m: Model, before: Data, d: Data) -> Data:
    """Find the constraint islands, which fall asleep together."""
    del before
    return islands(m, d) if can_sleep(m) else d
