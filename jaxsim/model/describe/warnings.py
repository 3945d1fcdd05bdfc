"""Warnings as sentences that name joints, actuators and worlds."""

import numpy as np

from jaxsim.enums import JointType, WarningType
from jaxsim.model.data import Data
from jaxsim.model.describe.lines import DOF_AXES, dof_labels, name_of
from jaxsim.model.model import Model
from jaxsim.model.names import actuator_input_name
from jaxsim.model.warning import ENTRY_OF, MEANINGS, describe_entry, warning_counts

_QUATERNION_NAMES = tuple(f"quaternion {c}" for c in "wxyz")
_COORDINATE_NAMES = {
    **DOF_AXES,
    JointType.FREE: (*DOF_AXES[JointType.FREE][:3], *_QUATERNION_NAMES),
    JointType.BALL: _QUATERNION_NAMES,
}


def warning_texts(m: Model, d: Data, worlds: int = 3) -> list[str]:
    """Return a sentence for each kind of warning and world since `make_data`.

    Corresponds to `mju_warningText` in MuJoCo, with the name of the joint or actuator of a bad
    value.

    Args:
      m: the model.
      d: one world or a batch, outside jit: the counters are read on the host.
      worlds: number of worlds named for each kind of warning, the first that have it.

    Returns:
      The sentences; an empty list if there was no warning.

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
    what, name = describe_entry(kind, info), _name(m, kind, info)
    last = f", the last {what}" if what else ""
    return f"{where}{kind.name} {often}, {MEANINGS[kind].what}{last}{name}"


def _name(m: Model, kind: WarningType, info: int) -> str:
    """Return the owner of the bad entry, or the contact capacity, for the end of a sentence."""
    if kind == WarningType.CONTACTFULL:
        return f", capacity {m.ncontact}"
    names = _field_entry_names(m).get(ENTRY_OF.get(kind, ""), [])
    return f", of {names[info]}" if 0 <= info < len(names) else ""


def _field_entry_names(m: Model) -> dict[str, list[str]]:
    """Return the names of the entries of each field."""
    qpos = [
        f"{name_of(m, 'joint', j)} {axis}".rstrip()
        for j in range(m.njnt)
        for axis in _COORDINATE_NAMES[JointType(int(m.jnt_type[j]))]
    ]
    return {
        "qpos": qpos,
        "qvel": dof_labels(m),
        "qacc": dof_labels(m),
        "dof": dof_labels(m),
        "ctrl": _controls(m),
    }


def _controls(m: Model) -> list[str]:
    """Return the name of each control: its actuator and input."""
    return [
        " ".join(filter(None, (name_of(m, "actuator", a), actuator_input_name(m, a, index))))
        for a in range(m.nactuator)
        for index in range(int(m.actuator_ctrlnum[a]))
    ]
