"""Multiple shooting: a recording in pieces, each with its own initial state.

Over a long or chaotic motion the final state depends on the parameters so strongly that the
residual of one rollout has many minima. In pieces it is nearly linear: the states at the cuts are
unknowns, and the condition that each piece ends where the next starts gives rows of the residual,
which may be violated on the way to the solution (Bock 1983; Bock, Kostina, Schlöder 2007).
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.batch.scan import rollout
from jaxsim.enums import JointType, SensorType
from jaxsim.identify.sequences import Samples
from jaxsim.identify.signals import QPOS_WIDTHS, QVEL_WIDTHS, signal, timestep
from jaxsim.model.data import Data
from jaxsim.model.model import Model


class Cut(NamedTuple):
    """A piece of a recording: from step `first` to step `last`, where the next one starts."""

    first: int
    last: int


def cuts(s: Samples, length: int | None) -> list[Cut]:
    """Return the pieces of a recording, of `length` steps; None: one piece."""
    end = s.steps - 1
    if length is None:
        return [Cut(0, end)]
    if isinstance(length, bool) or not isinstance(length, int) or length < 1:
        raise ValueError(f"segments: expected a number of steps above 0, got {length!r}")
    firsts = range(0, max(end, 1), length)
    return [Cut(a, min(a + length, end)) for a in firsts]


StateArrays = tuple[np.ndarray, np.ndarray, np.ndarray]


def guesses(m: Model, d: Data, s: Samples, pieces: list[Cut], history: int) -> list[StateArrays]:
    """Return initial guesses of the states at the starts of pieces, (qpos, qvel, act) each.

    Measured joint positions and velocities are used; velocities without a measurement are slopes
    of positions. All else is that of a rollout of the model with its present parameters, or the
    initial state where the rollout diverges.

    Args:
      m: the model.
      d: the initial state of the recording.
      s: the recording.
      pieces: the pieces.
      history: rows of controls before the start.
    """
    ctrl = jnp.asarray(s.ctrl[history:], d.qpos.dtype)
    run = jax.jit(lambda d, ctrl: rollout(m, d, ctrl=ctrl, record=("qpos", "qvel", "act"))[1])
    records = run(d, ctrl)
    found = []
    for piece in pieces:
        at = piece.first - 1
        state = [
            np.array(getattr(d, n) if at < 0 else records[n][at], np.float64)
            for n in ("qpos", "qvel", "act")
        ]
        if not all(np.isfinite(a).all() for a in state):
            state = [np.array(getattr(d, n), np.float64) for n in ("qpos", "qvel", "act")]
        if at >= 0:
            _write_measured(m, s, piece.first, state)
        found.append((state[0], state[1], state[2]))
    return found


def _write_measured(m: Model, s: Samples, step: int, state: list[np.ndarray]) -> None:
    """Write the measurements at a step into a state."""
    tables = _tables(m)
    position = s.step + s.part
    known = set()
    for k, name in enumerate(s.names):
        place = tables.get((signal(m, name).source, signal(m, name).start))
        mine = s.signal == k
        if place is None or not mine.any():
            continue
        kind, index, dof = place
        at, values = position[mine], s.value[mine]
        order = np.argsort(at)
        at, values = at[order], values[order]
        state[kind][index] = np.interp(step, at, values)
        if kind == 1:
            known.add(index)
        elif dof >= 0 and len(at) > 1 and dof not in known:
            state[1][dof] = _slope(at, values, step) / timestep(m)


def _slope(at: np.ndarray, values: np.ndarray, step: int, reach: int = 4) -> float:
    """Return the slope of the line through the nearest samples, per step."""
    near = np.argsort(np.abs(at - step))[: 2 * reach + 1]
    return float(np.polyfit(at[near] - step, values[near], 1)[0])


def _tables(m: Model) -> dict[tuple[str, int], tuple[int, int, int]]:
    """Return (0 for qpos or 1 for qvel, address, dof) by the (source, address) of a signal."""
    found: dict[tuple[str, int], tuple[int, int, int]] = {}
    for joint, type_ in enumerate(m.jnt_type):
        scalar = type_ in (JointType.SLIDE, JointType.HINGE)
        q, v = int(m.jnt_qposadr[joint]), int(m.jnt_dofadr[joint])
        found |= {
            ("qpos", q + k): (0, q + k, v if scalar else -1) for k in range(QPOS_WIDTHS[type_])
        }
        found |= {("qvel", v + k): (1, v + k, -1) for k in range(QVEL_WIDTHS[type_])}
        for sensor, place in ((SensorType.JOINTPOS, (0, q, v)), (SensorType.JOINTVEL, (1, v, -1))):
            of = (m.sensor_type == sensor) & (m.sensor_objid == joint)
            found |= {("sensordata", int(m.sensor_adr[i])): place for i in np.flatnonzero(of)}
    return found
