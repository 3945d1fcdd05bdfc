"""Multiple shooting: a recording in pieces, each with its own initial state.

Over a long or chaotic motion the final state depends on the parameters so strongly that the
residual of one rollout has many minima. In pieces it is nearly linear: the states at the cuts are
unknowns, and the condition that each piece ends where the next starts gives rows of the residual,
which may be violated on the way to the solution (Bock 1983; Bock, Kostina, Schlöder 2007).
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.batch.scan import rollout
from jaxsim.enums import SensorType
from jaxsim.identify.joint_velocity import joint_slices, line_velocity
from jaxsim.identify.sequences import Samples
from jaxsim.identify.signals import signal, timestep
from jaxsim.model.data import Data
from jaxsim.model.model import Model

_STATE = ("qpos", "qvel", "act")


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


def guesses(
    m: Model, d: Data, s: Samples, pieces: list[Cut], history: int, reach: int
) -> list[StateArrays]:
    """Return states at the starts of pieces as measured, (qpos, qvel, act) each.

    Measured joint positions and velocities are used; velocities without a measurement are slopes
    of positions. All else is that of a rollout of the model with its present parameters, or the
    initial state where the rollout diverges.

    Args:
      m: the model.
      d: the initial state of the recording.
      s: the recording.
      pieces: the pieces.
      history: rows of controls before the start.
      reach: samples on each side of a cut whose line has the velocity.
    """
    records = {n: np.asarray(getattr(d, n))[None].repeat(s.steps, 0) for n in _STATE}
    if not _is_measured(m, s):
        ctrl = jnp.asarray(s.ctrl[history:], d.qpos.dtype)
        records = jax.jit(lambda d, ctrl: rollout(m, d, ctrl=ctrl, record=_STATE)[1])(d, ctrl)
    found = []
    for piece in pieces:
        at = piece.first - 1
        state = [np.array(getattr(d, n) if at < 0 else records[n][at], np.float64) for n in _STATE]
        if not all(np.isfinite(a).all() for a in state):
            state = [np.array(getattr(d, n), np.float64) for n in _STATE]
        if at >= 0:
            _write_measured(m, s, piece.first, state, reach)
        found.append((state[0], state[1], state[2]))
    return found


def _is_measured(m: Model, s: Samples) -> bool:
    """Return whether samples determine all of the state: all positions, more than once."""
    tables = _tables(m)
    counts = np.bincount(s.signal, minlength=len(s.names))
    places = [tables.get((signal(m, n).source, signal(m, n).start)) for n in s.names]
    known = {place for place, count in zip(places, counts, strict=True) if count > 1}
    return not m.na and {(0, i) for i in range(m.nq)} <= known


def _write_measured(m: Model, s: Samples, step: int, state: list[np.ndarray], reach: int) -> None:
    """Write the measurements at a step into a state."""
    tables = _tables(m)
    position = s.step + s.part
    known: set[int] = set()
    measured: dict[int, tuple[np.ndarray, np.ndarray]] = {}  # samples by their index in qpos
    for k, name in enumerate(s.names):
        place = tables.get((signal(m, name).source, signal(m, name).start))
        mine = s.signal == k
        if place is None or not mine.any():
            continue
        kind, index = place
        at, values = position[mine], s.value[mine]
        order = np.argsort(at)
        at, values = at[order], values[order]
        if kind == 1 and not at[0] <= step <= at[-1]:
            continue  # a velocity that was measured at another time, such as the initial one
        state[kind][index] = np.interp(step, at, values)
        if kind == 1:
            known.add(index)
        else:
            measured[index] = at, values
    for joint in range(len(m.jnt_type)):
        own, dofs = joint_slices(m, joint)
        found = [measured.get(i) for i in range(own.start, own.stop)]
        slopes = _slopes(m, joint, found, step, reach)
        if slopes is not None:
            unknown = [i for i in range(dofs.start, dofs.stop) if i not in known]
            state[1][unknown] = slopes[np.array(unknown, int) - dofs.start] / timestep(m)


def _slopes(m: Model, joint: int, found: list, step: int, reach: int) -> np.ndarray | None:
    """Return the slopes of lines through the samples nearest to a step, per step; None if the
    position of the joint is not measured at two times."""
    if any(samples is None for samples in found):
        return None
    common = functools.reduce(np.intersect1d, [at for at, _ in found])
    if len(common) < 2:
        return None
    # in the order of time: velocities are in the frame of the middle sample, that of the cut
    near = np.sort(common[np.argsort(np.abs(common - step))[: 2 * reach + 1]])
    rows = np.stack([values[np.searchsorted(at, near)] for at, values in found], 1)
    return line_velocity(m, joint, near, rows)


def _tables(m: Model) -> dict[tuple[str, int], tuple[int, int]]:
    """Return (0 for qpos or 1 for qvel, address) by the (source, address) of a signal."""
    found: dict[tuple[str, int], tuple[int, int]] = {}
    for joint in range(len(m.jnt_type)):
        own, dofs = joint_slices(m, joint)
        q, v = own.start, dofs.start
        found |= {("qpos", i): (0, i) for i in range(q, own.stop)}
        found |= {("qvel", i): (1, i) for i in range(v, dofs.stop)}
        for sensor, place in ((SensorType.JOINTPOS, (0, q)), (SensorType.JOINTVEL, (1, v))):
            of = (m.sensor_type == sensor) & (m.sensor_objid == joint)
            found |= {("sensordata", int(m.sensor_adr[i])): place for i in np.flatnonzero(of)}
    return found
