"""Recordings as pieces of equal length: arrays for one `vmap`, and the unknowns of their states.

Recordings differ in length, rate and gaps; pieces are padded to one shape with weight 0.
"""

from collections.abc import Mapping
from collections.abc import Sequence as Many
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxsim.identify.sequences import STATE_SIGNALS, Samples, Sequence, initial_state
from jaxsim.identify.shooting import Cut, StateArrays, guesses
from jaxsim.identify.signals import signal
from jaxsim.model.data import Data
from jaxsim.model.model import Model


class Piece(NamedTuple):
    """A part of a recording that is one rollout; all pieces have leading axes of pieces.

    Attributes:
      start: initial state, before the unknowns of the state are added.
      ctrl: controls, (history + steps, nu).
      step, part, signal: time of each sample as step and part of a step from the start, and its
        signal, (S,); padded.
      value, weight: measurement, and 1 / sigma; 0 for padding, (S,).
      last: step at which the next piece starts, ().
      tie: 1 / tolerance of the state of the next piece, 0 if there is none, ().
      next: state from which the next piece starts, (qpos, qvel, act).
    """

    start: Any
    ctrl: Any
    step: Any
    part: Any
    signal: Any
    value: Any
    weight: Any
    last: Any
    tie: Any
    next: Any


# Samples on each side of a cut that determine a velocity. States of tied pieces are first guesses,
# in which noise matters more than impacts.
_TIED_REACH = 4
_SAMPLE_FIELDS = ("step", "part", "signal", "value", "weight")


class PieceSettings(NamedTuple):
    """Settings that all pieces share.

    Attributes:
      m: the model.
      names: names of all signals.
      late: largest delay of a signal in steps, by name.
      history: controls of a piece before its start.
      tolerance: standard deviation of the defects, the state's jumps between pieces.
      tied: a piece must end where the next starts.
    """

    m: Model
    names: tuple[str, ...]
    late: Mapping[str, float]
    history: int
    tolerance: float
    tied: bool = True


def make_pieces(
    of: PieceSettings, sequences: Many[Sequence], all_samples: Many[Samples], parts: Many[list[Cut]]
) -> tuple[Piece, list[tuple[int, np.ndarray]]]:
    """Return the pieces of all recordings.

    Returns:
      The pieces with a leading axis, and for each the index of its recording and the indices of its
      samples.
    """
    steps = max(c.last - c.first for cuts in parts for c in cuts) + 1
    made: list[Piece] = []
    places: list[tuple[int, np.ndarray]] = []
    for k, (sequence, s, cuts) in enumerate(zip(sequences, all_samples, parts, strict=True)):
        d = initial_state(of.m, sequence)
        early = s.step + s.part < _count_delayed_steps(of, s)
        reach = _TIED_REACH if of.tied else 1
        states = guesses(of.m, d, s, cuts, of.history, reach) if len(cuts) > 1 else [_state(d)]
        for i, cut in enumerate(cuts):
            final = i + 1 == len(cuts)
            ids = np.flatnonzero((s.step >= cut.first) & ((s.step < cut.last) | final) & ~early)
            places.append((k, ids))
            tie = 1 / of.tolerance if of.tied and not final else 0.0
            made.append(_piece(of, d, s, cut, ids, steps, states[i : i + 2], tie))
    most = max(len(ids) for _, ids in places)
    padded = [_pad_piece(p, most) for p in made]
    return jax.tree.map(lambda *a: _stack_pieces(a, of.m.qpos0.dtype), *padded), places


def _count_delayed_steps(of: PieceSettings, s: Samples) -> np.ndarray:
    """Return the steps after the start in which a delayed sample precedes the start, (S,)."""
    late = np.array([of.late.get(signal(of.m, n).name, 0.0) for n in s.names])
    return late[s.signal]


def _piece(
    of: PieceSettings,
    d: Data,
    s: Samples,
    cut: Cut,
    ids,
    steps: int,
    states: list[StateArrays],
    tie: float,
) -> Piece:
    """Return one piece; `states` are its initial state and that of the next piece, if any."""
    rows = np.arange(cut.first, cut.first + of.history + steps)
    columns = np.array([of.names.index(n) for n in s.names])
    start = {n: np.asarray(a, d.qpos.dtype) for n, a in zip(STATE_SIGNALS, states[0], strict=True)}
    return Piece(
        start=d.replace(**start),
        ctrl=s.ctrl[np.minimum(rows, len(s.ctrl) - 1)],
        step=s.step[ids] - cut.first,
        part=s.part[ids],
        signal=columns[s.signal[ids]],
        value=s.value[ids],
        weight=s.weight[ids],
        last=np.asarray(cut.last - cut.first),
        tie=np.asarray(tie),
        next=states[-1],
    )


def _pad_piece(piece: Piece, most: int) -> Piece:
    places = {n: np.pad(getattr(piece, n), (0, most - len(piece.step))) for n in _SAMPLE_FIELDS}
    return piece._replace(**places)


def _state(d: Data) -> StateArrays:
    return np.asarray(d.qpos), np.asarray(d.qvel), np.asarray(d.act)


def _stack_pieces(arrays: Many, dtype) -> jax.Array:
    """Stack arrays of all pieces; real numbers get the precision of the model."""
    a = np.stack([np.asarray(x) for x in arrays])
    kind = dtype if np.issubdtype(a.dtype, np.floating) else a.dtype
    return jax.device_put(a.astype(np.int32 if a.dtype == np.int64 else kind))


class PieceStates(NamedTuple):
    """Selection of the numbers of the states of pieces that are unknowns.

    A state has a tangent (qpos, qvel, act), of nv + nv + na numbers.

    Attributes:
      used: numbers of the tangent that are unknown in some piece, (nz,).
      free: flat indices of the unknowns of all pieces in (pieces, nz).
      prior_ids, prior_weights: indices of those that have a prior, and 1 / sd.
      tied_rows: flat indices of the rows of defects in (pieces, 2 nv + na).
    """

    used: np.ndarray
    free: np.ndarray
    prior_ids: np.ndarray
    prior_weights: np.ndarray
    tied_rows: np.ndarray


def choose_unknowns(
    m: Model, sequences: Many[Sequence], recording: list[int], tied: np.ndarray
) -> PieceStates:
    """Return the unknowns of the states of pieces.

    Args:
      m: the model.
      sequences: the recordings.
      recording: index of the recording of each piece.
      tied: whether the next piece must start where a piece ends, (pieces,).
    """
    ends = np.cumsum([0, m.nv, m.nv, m.na])
    free = np.zeros((len(recording), int(ends[-1])), bool)
    weight = np.zeros(free.shape)
    for i, k in enumerate(recording):
        if i and tied[i - 1]:
            free[i] = True
            continue
        estimate = sequences[k].estimate
        sds = estimate if isinstance(estimate, Mapping) else dict.fromkeys(estimate)
        for name, sd in sds.items():
            part = slice(ends[STATE_SIGNALS.index(name)], ends[STATE_SIGNALS.index(name) + 1])
            free[i, part] = True
            weight[i, part] = 0.0 if sd is None else 1 / sd
    used = np.flatnonzero(free.any(0) | tied.any())
    flat = weight[:, used].ravel()
    prior_ids = np.flatnonzero(flat)
    rows = np.flatnonzero(np.repeat(tied, free.shape[1]))
    return PieceStates(
        used, np.flatnonzero(free[:, used].ravel()), prior_ids, flat[prior_ids], rows
    )
