"""Read the counters of `Data.warning` on the host.

Nothing raises inside a step: failures are counted, for each world. `check` raises after the fact,
`warning_counts` reports; `warning_texts` (describe/warnings.py) names joints and actuators.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import WarningType
from jaxsim.model.data import Data
from jaxsim.model.shaped import Bool, Int


class Meaning(NamedTuple):
    """Meaning of a counter, and its remedy."""

    what: str
    remedy: str


_CAPACITY_HINT = (
    "raise the capacity: load_model(..., contacts=N, pairs=N); suggest_capacities measures it"
)
MEANINGS = {
    WarningType.INERTIA: Meaning("singular mass matrix", "check masses and armature"),
    WarningType.CONTACTFULL: Meaning("contact capacity exceeded", _CAPACITY_HINT),
    WarningType.CNSTRFULL: Meaning("constraint capacity exceeded", _CAPACITY_HINT),
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
    """A nonzero warning counter.

    Attributes:
      type: kind of the warning.
      times: number of occurrences, in all worlds together.
      worlds: indices of the worlds with the warning, in the flattened batch.
      of: number of worlds.
      last: `Data.warning_lastinfo` of the last occurrence in each of these worlds
        (`describe_entry`).
    """

    type: WarningType
    times: int
    worlds: Int[np.ndarray, "k"]
    of: int
    last: Int[np.ndarray, "k"]

    def __str__(self) -> str:
        meaning = MEANINGS[self.type]
        where = f" in {len(self.worlds)} of {self.of} worlds" if self.of > 1 else ""
        times = "once" if self.times == 1 else f"{self.times} times"
        return f"{times}{where}: {meaning.what}; {meaning.remedy}"


# Field of the bad entry that a warning records; elimination starts with the last dof.
ENTRY_OF = {
    WarningType.INERTIA: "dof",
    WarningType.BADQPOS: "qpos",
    WarningType.BADQVEL: "qvel",
    WarningType.BADQACC: "qacc",
    WarningType.BADCTRL: "ctrl",
}


def describe_entry(kind: WarningType, info: int) -> str:
    """Return the meaning of `Data.warning_lastinfo`: "qvel[7]", "40 wanted"; "" if none."""
    if kind == WarningType.CONTACTFULL:
        return f"{info} wanted"
    return f"{ENTRY_OF[kind]}[{info}]" if kind in ENTRY_OF and info >= 0 else ""


def warning_counts(d: Data) -> list[WarningCount]:
    """Return the nonzero warning counters since `make_data`.

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


def diverged(before: Data, after: Data) -> Bool[jax.Array, "*batch"]:
    """Return whether a world was reset between two states because a step failed.

    MuJoCo's automatic reset hides a divergence: all values are finite again. The counters record
    it. If the flag `autoreset` is off there is no reset, and non-finite values are detected.

    Args:
      before, after: one world, or many with leading axes, before and after some steps.

    Returns:
      bool (...).
    """
    bad = np.array([WarningType.BADQPOS, WarningType.BADQVEL, WarningType.BADQACC])
    counted = (after.warning != before.warning)[..., bad].any(axis=-1)
    return counted | ~(jnp.isfinite(after.qpos).all(-1) & jnp.isfinite(after.qvel).all(-1))


def check_warnings(d: Data) -> None:
    """Raise if a step of these worlds failed.

    Args:
      d: one world or a batch, outside jit: the counters are read on the host.

    Raises:
      RuntimeError: a counter of `d.warning` is not zero; names each, with the first world where
        it occurred, the entry concerned, and the remedy.
    """
    found = warning_counts(d)
    if found:
        lines = [f"{n.type.name}: {n} (first: {_first_world(n)})" for n in found]
        raise RuntimeError("\n".join(["the simulation warns:", *lines]))


def _first_world(n: WarningCount) -> str:
    """Return the first world of a warning, and the entry concerned."""
    what = describe_entry(n.type, n.last[0])
    return f"world {n.worlds[0]}{', ' if what else ''}{what}"
