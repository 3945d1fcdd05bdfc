"""A recorded motion for drawing: times, and the states of the shown worlds."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from jaxsim.batch.trajectory import Trajectory, load_trajectory
from jaxsim.model.model import Model
from jaxsim.view.browser.draw.poses import POSE_STATE_FIELDS

_FORCE_INPUTS = ("qvel", "act", "ctrl")  # fields on which forces depend
Recorded = Trajectory | Mapping[str, np.ndarray] | str | os.PathLike[str]


@dataclass(frozen=True)
class RecordedMotion:
    """A recorded motion.

    Attributes:
      time: time of each record since the first one, (records,) [s].
      state: qpos and, if they were recorded, mocap_pos, mocap_quat, and other fields on which
        contact forces depend, (records, worlds, ...).
    """

    time: np.ndarray
    state: dict[str, np.ndarray]

    @property
    def records(self) -> int:
        """Return the number of records."""
        return len(self.time)

    @property
    def worlds(self) -> int:
        """Return the number of worlds."""
        return self.state["qpos"].shape[1]

    def num_shown(self, worlds: int | None, most: int) -> int:
        """Return the number of worlds to show: as requested, else at most `most`.

        Raises:
          ValueError: there are not so many.
        """
        if worlds is not None and not 0 < worlds <= self.worlds:
            raise ValueError(f"worlds: asked for {worlds}, the motion has {self.worlds}")
        return min(worlds or most, self.worlds)

    def at(self, record: int, worlds: slice = slice(None)) -> dict[str, np.ndarray]:
        """Return the state of some worlds in a record, (worlds, ...)."""
        return {name: value[record, worlds] for name, value in self.state.items()}


def motion_of(m: Model, recorded: Recorded) -> RecordedMotion:
    """Return a motion of a model.

    Args:
      m: the model.
      recorded: a trajectory, its file, or arrays by name: qpos (records, nq) or (records, worlds,
        nq), as `rollout` returns them, and optionally time, mocap_pos and mocap_quat.

    Raises:
      ValueError: there are no positions, or they belong to another model.
      OSError: the file cannot be read.
    """
    step = float(m.opt.timestep)
    if isinstance(recorded, str | os.PathLike):
        recorded = load_trajectory(recorded)
    if isinstance(recorded, Trajectory):
        step = float(recorded.header.get("timestep", step)) * int(recorded.header.get("every", 1))
        recorded = recorded.fields
    if not isinstance(recorded, Mapping):
        raise ValueError(
            "the motion: expected a Trajectory, its file or arrays by name, such as "
            f"{{'qpos': ...}}, got {type(recorded).__name__}"
        )
    if "qpos" not in recorded:
        listed = ", ".join(recorded) or "nothing"
        raise ValueError(f"the motion has no positions: qpos was not recorded ({listed} was)")
    qpos = np.asarray(recorded["qpos"])
    if qpos.ndim not in (2, 3) or not qpos.size or qpos.shape[-1] != m.nq:
        raise ValueError(
            f"qpos: expected shape (records, worlds, {m.nq}) or (records, {m.nq}), got "
            f"{qpos.shape}; is it the motion of this model?"
        )
    one = qpos.ndim == 2
    state = {name: np.asarray(recorded[name]) for name in POSE_STATE_FIELDS if name in recorded}
    for name, size in (("mocap_pos", 3), ("mocap_quat", 4)):
        expected = (*qpos.shape[:-1], m.nmocap, size)
        if name in state and state[name].shape != expected:
            raise ValueError(f"{name}: expected shape {expected}, got {state[name].shape}")
    sizes = {"qvel": m.nv, "act": m.na, "ctrl": m.nu}
    for name in _FORCE_INPUTS:
        value = np.asarray(recorded.get(name, ()))
        # otherwise they do not belong to these records
        if value.shape == (*qpos.shape[:-1], sizes[name]):
            state[name] = value
    state = {name: value[:, None] if one else value for name, value in state.items()}
    time = step * np.arange(len(qpos))
    if "time" in recorded:
        record_times = np.asarray(recorded["time"], float).reshape(len(qpos), -1)[:, 0]
        if np.all(np.diff(record_times) > 0):  # otherwise worlds were reset during the motion
            time = record_times - record_times[0]
    return RecordedMotion(time, state)
