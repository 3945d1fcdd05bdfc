"""Warnings in words: what was bad, in which world, by the names of joints and actuators."""

import numpy as np

from jaxsim.enums import JointType, WarningType
from jaxsim.model.data import Data
from jaxsim.model.describe.lines import AXES, dofs, name_of
from jaxsim.model.model import Model
from jaxsim.model.names import actuator_input_name
from jaxsim.model.warning import ENTRY_OF, MEANINGS, about, warning_counts

QUATERNION = tuple(f"quaternion {c}" for c in "wxyz")
COORDINATES = {
    **AXES,
    JointType.FREE: (*AXES[JointType.FREE][:3], *QUATERNION),
    JointType.BALL: QUATERNION,
}


def warning_texts(m: Model, d: Data, worlds: int = 3) -> list[str]:
    """What went wrong since `make_data`, a sentence for each kind of warning and world.

    MuJoCo's `mju_warningText`, with names: a bad number is said by its joint or actuator.

    Args:
      m: the model.
      d: one world or a batch, outside jit: the counters are read on the host.
      worlds: how many worlds of each kind are named, the first that have it.

    Returns:
      The sentences; none: nothing went wrong.

    Example:
      >>> xml = "<body><joint name='knee'/><geom size='1'/></body>"
      >>> m = jaxsim.load_model(f"<mujoco><worldbody>{xml}</worldbody></mujoco>")
      >>> d = jaxsim.make_data(m)
      >>> jaxsim.warning_texts(m, jax.jit(jaxsim.step)(m, d.replace(qvel=d.qvel + 1e11)))
      ['BADQVEL once, reset: velocity not finite or too large, the last qvel[0], of knee']
    """
    return [
        _sentence(m, count.type, times, info, f"world {world}: " if count.of > 1 else "")
        for count in warning_counts(d)
        for world, info in list(zip(count.worlds, count.last, strict=True))[:worlds]
        for times in [int(np.reshape(d.warning, (count.of, -1))[world, count.type])]
    ]


def _sentence(m: Model, kind: WarningType, times: int, info: int, where: str) -> str:
    often = "once" if times == 1 else f"{times} times"
    what, name = about(kind, info), _name(m, kind, info)
    last = f", the last {what}" if what else ""
    return f"{where}{kind.name} {often}, {MEANINGS[kind].what}{last}{name}"


def _name(m: Model, kind: WarningType, info: int) -> str:
    """Whose entry it is, or how much room there was."""
    if kind == WarningType.CONTACTFULL:
        return f", room for {m.ncontact}"
    names = _entries(m).get(ENTRY_OF.get(kind, ""), [])
    return f", of {names[info]}" if 0 <= info < len(names) else ""


def _entries(m: Model) -> dict[str, list[str]]:
    """What each number is, by field."""
    qpos = [
        f"{name_of(m, 'joint', j)} {axis}".rstrip()
        for j in range(m.njnt)
        for axis in COORDINATES[JointType(int(m.jnt_type[j]))]
    ]
    return {"qpos": qpos, "qvel": dofs(m), "qacc": dofs(m), "ctrl": _controls(m)}


def _controls(m: Model) -> list[str]:
    """Return the actuator of each control, and which of its inputs it is."""
    return [
        " ".join(filter(None, (name_of(m, "actuator", a), actuator_input_name(m, a, place))))
        for a in range(m.nactuator)
        for place in range(int(m.actuator_ctrlnum[a]))
    ]
