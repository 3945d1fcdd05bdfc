"""What the counters of `Data.warning` mean, and reading them on the host.

Nothing raises inside a step: what goes wrong there is counted, world by world. `check` raises after
the fact, `warning_counts` reports; `warning_texts` (describe/warnings.py) names joints and
actuators.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import WarningType
from jaxsim.model.data import Data


class Meaning(NamedTuple):
    """What a counter counts, and what to do about it."""

    what: str
    remedy: str


ROOM = "make more room: load_model(..., contacts=N, pairs=N); suggest_capacities measures it"
MEANINGS = {
    WarningType.INERTIA: Meaning("singular mass matrix", "check masses and armature"),
    WarningType.CONTACTFULL: Meaning("more contacts than there is room for", ROOM),
    WarningType.CNSTRFULL: Meaning("more constraints than there is room for", ROOM),
    WarningType.BADQPOS: Meaning(
        "reset: position not finite or too large", "use a smaller time step"
    ),
    WarningType.BADQVEL: Meaning(
        "reset: velocity not finite or too large", "use a smaller time step"
    ),
    WarningType.BADQACC: Meaning(
        "reset: acceleration not finite or too large", "use a smaller time step"
    ),
    WarningType.BADCTRL: Meaning("control not finite, taken as zero", "check the controls"),
}


class WarningCount(NamedTuple):
    """A counter that is not zero.

    Attributes:
      type: what went wrong.
      times: how often, in all worlds together.
      worlds: indices of the worlds where it did, over all leading axes counted as one.
      of: number of worlds.
      last: what the last was about, in each of these worlds (`about`).
    """

    type: WarningType
    times: int
    worlds: np.ndarray
    of: int
    last: np.ndarray

    def __str__(self) -> str:
        meaning = MEANINGS[self.type]
        where = f" in {len(self.worlds)} of {self.of} worlds" if self.of > 1 else ""
        times = "once" if self.times == 1 else f"{self.times} times"
        return f"{times}{where}: {meaning.what}; {meaning.remedy}"


# whose first bad entry a warning notes
ENTRY_OF = {
    WarningType.BADQPOS: "qpos",
    WarningType.BADQVEL: "qvel",
    WarningType.BADQACC: "qacc",
    WarningType.BADCTRL: "ctrl",
}


def about(kind: WarningType, info: int) -> str:
    """What `Data.warning_lastinfo` says of a warning: "qvel[7]", "40 wanted"; "" if nothing."""
    if kind == WarningType.CONTACTFULL:
        return f"{info} wanted"
    return f"{ENTRY_OF[kind]}[{info}]" if kind in ENTRY_OF and info >= 0 else ""


def warning_counts(d: Data) -> list[WarningCount]:
    """What went wrong in some worlds since `make_data`.

    Args:
      d: one world or a batch, outside jit: the counters are read on the host.
    """
    both = jax.device_get((d.warning, d.warning_lastinfo))
    counts, info = (np.asarray(a).reshape(-1, np.shape(a)[-1]) for a in both)
    return [
        WarningCount(kind, int(n.sum()), at := np.flatnonzero(n), len(n), info[at, kind])
        for kind in WarningType
        if (n := counts[:, kind]).any()
    ]


def diverged(before: Data, after: Data) -> jax.Array:
    """Return whether a world was put back to its start between two states, as after a bad step.

    MuJoCo's automatic reset hides that a world has blown up: its numbers are finite again. The
    counters tell. Where the flag `autoreset` is off nothing is put back, and the numbers tell.

    Args:
      before, after: one world, or many with leading axes; some steps lie between them.

    Returns:
      bool (...).
    """
    bad = np.array([WarningType.BADQPOS, WarningType.BADQVEL, WarningType.BADQACC])
    counted = (after.warning != before.warning)[..., bad].any(axis=-1)
    return counted | ~(jnp.isfinite(after.qpos).all(-1) & jnp.isfinite(after.qvel).all(-1))


def check(d: Data) -> None:
    """Raise if something went wrong in a step of these worlds.

    Args:
      d: one world or a batch, outside jit: the counters are read on the host.

    Raises:
      RuntimeError: a counter of `d.warning` is not zero; names each, with the first world where
        it happened, what the last was about there, and the remedy.
    """
    found = warning_counts(d)
    if found:
        lines = [f"{n.type.name}: {n} (first: {_first(n)})" for n in found]
        raise RuntimeError("\n".join(["the simulation warns:", *lines]))


def _first(n: WarningCount) -> str:
    """Return the first world of a warning, and what it was about there."""
    what = about(n.type, n.last[0])
    return f"world {n.worlds[0]}{', ' if what else ''}{what}"
