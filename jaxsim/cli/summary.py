"""Summary of a rollout in a few lines."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from jaxsim.batch.processes import to_host
from jaxsim.cli.progress import format_count
from jaxsim.enums import JointType
from jaxsim.model.data import Data
from jaxsim.model.describe import warning_texts
from jaxsim.model.model import Model
from jaxsim.model.warning import warning_counts

_SUMMARIZED_FIELDS = ("time", "qpos", "ncon", "warning", "warning_lastinfo")


def describe_rollout(m: Model, d: Data, steps: int, seconds: float) -> str:
    """Return a description of the worlds after a rollout; all processes must call it.

    Args:
      m: the model.
      d: the worlds at the end, with a leading batch axis.
      steps: steps of each world.
      seconds: wall time of all worlds together.
    """
    ends: Any = SimpleNamespace(**to_host({n: getattr(d, n) for n in _SUMMARIZED_FIELDS}))
    worlds = len(ends.time)
    simulated = worlds * steps * float(m.opt.timestep)
    rows = [
        (
            "simulated",
            f"{worlds} worlds x {steps} steps = {_duration(simulated)} in {seconds:.1f} s, "
            f"{format_count(simulated / seconds)} times real time",
        ),
        ("speed", f"{format_count(worlds * steps / seconds)} world steps/s"),
        *_heights(m, ends),
        *_contacts(m, ends),
        *_warnings(m, ends),
    ]
    return "\n".join(f"{name:11} {text}" for name, text in rows)


def _heights(m: Model, d: Data):
    """Yield the heights of the free bodies at the end."""
    free = np.flatnonzero(m.jnt_type == JointType.FREE)
    if len(free):
        z = d.qpos[:, m.jnt_qposadr[free] + 2]
        yield "height", f"of free bodies: {z.min():.3g} to {z.max():.3g} m, mean {z.mean():.3g} m"


def _contacts(m: Model, d: Data):
    """Yield the numbers of contacts at the end."""
    if m.ncontact and d.ncon is not None:
        most = f"{int(d.ncon.max())} at most"
        yield "contacts", f"{d.ncon.mean():.1f} per world, {most}, capacity {m.ncontact}"


def _warnings(m: Model, d: Data):
    """Yield the warning counts, and sentences on the first worlds."""
    counts = warning_counts(d)
    if not counts:
        yield "warnings", "none: no resets, no overflow"
    for count in counts:
        yield "warning", str(count)
    for text in warning_texts(m, d):
        yield "", text


def _duration(seconds: float) -> str:
    for limit, unit in ((86400.0, "days"), (3600.0, "hours"), (60.0, "minutes")):
        if seconds >= limit:
            return f"{seconds / limit:.3g} {unit}"
    return f"{seconds:.3g} s"
