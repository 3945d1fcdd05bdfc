"""Residual of an identification: prediction less measurement of every sample, over sigma.

    rows = [ (gain p(t - delay) + offset - y) / sigma      for every sample y at time t
             (value - mean) / sd                           for every prior
             (end of a piece - start of the next) / tolerance    with multiple shooting: defects ]

With `robust=c` a row u of a sample is replaced by u sqrt(2 / (1 + sqrt(1 + (u/c)^2))), so that half
its square is the pseudo-Huber loss c^2 (sqrt(1 + (u/c)^2) - 1): quadratic below c, linear above it
(Hartley and Zisserman, Multiple View Geometry, 2003, appendix 6.8).

p is the signal of a rollout, linearly interpolated between steps. A recording is one piece, or
several with multiple shooting (shooting.py). Pieces are batched as worlds. The Jacobian is computed
in forward mode, with one direction for each parameter and for each number of the state of a piece,
as a piece does not depend on the states of others (search/sensitivity.py).
"""

import functools
from collections.abc import Mapping
from collections.abc import Sequence as Many
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.batch.scan import rollout
from jaxsim.batch.stored_program import StoredFunction
from jaxsim.enums import DisableBit
from jaxsim.identify.delay import delay_controls, max_delay_reach
from jaxsim.identify.parameter import Parameters
from jaxsim.identify.pieces import Piece, PieceSettings, choose_unknowns, make_pieces
from jaxsim.identify.search.sensitivity import (
    RolloutInputs,
    changed_leaves,
    replace_leaves,
    sensitivities,
)
from jaxsim.identify.sequences import STATE_SIGNALS, Sequence, sample_recording
from jaxsim.identify.shooting import cuts
from jaxsim.identify.signals import signal
from jaxsim.io.assemble import live_model
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.support import differentiate_pos, integrate_pos
from jaxsim.transforms.platform import quick_jit


class Problem:
    """Parameters and recordings as one residual of one vector of unknowns.

    The unknowns are those of the parameters, then the tangents of the unknown states.

    Args:
      m: the model.
      parameters: the parameters to fit.
      sequences: one recording or several.
      segments: steps of a piece, for multiple shooting; None: a recording is one piece.
      tolerance: standard deviation of the defects, the state's jumps from one piece to the next [m,
        rad, and the same per s].
      tied: pieces are tied to each other: their states are unknowns. Otherwise each piece starts
        from what was measured, and predicts the samples up to the next.
      robust: residual of a sample, in sigmas, above which its cost grows linearly; None: all costs
        are squares.

    Attributes:
      given, m: the model as given, with the fields of the parameters traced, and as simulated.
      size: number of unknowns.
      names: names of the signals.
      rows: number of rows without padding.
      known_sigma: whether the noise of the sequences is given.
      samples: each recording on the steps of the model.

    Raises:
      ValueError: a recording does not fit the model.
    """

    def __init__(
        self,
        m: Model,
        parameters: Parameters,
        sequences: Sequence | Many[Sequence],
        *,
        segments: int | None = None,
        tolerance: float = 1e-4,
        tied: bool = True,
        robust: float | None = None,
    ):
        if not tied and segments is None:
            raise ValueError("tied: without it recordings are cut into pieces; give segments too")
        if robust is not None and not robust > 0:
            raise ValueError(f"robust: expected a number of sigmas above 0, got {robust!r}")
        self._robust = robust
        # The model, with its parameters traced.
        self.sequences = (sequences,) if isinstance(sequences, Sequence) else tuple(sequences)
        if not self.sequences:
            raise ValueError("sequences: expected at least one Sequence, got none")
        m = live_model(m, parameters.fields)
        # Without automatic resets a diverged rollout gives residuals that are not finite.
        flags = int(m.opt.disableflags) | int(DisableBit.AUTORESET)
        self.given = m
        self.m = m.replace(opt=m.opt.replace(disableflags=flags))
        self.parameters = parameters
        self.known_sigma = _has_sigma(self.sequences)
        self.history, self._late = max_delay_reach(m, parameters)
        if segments is not None and self._late:
            raise ValueError("segments: a delay of a sensor is not for multiple shooting")
        # Samples of all recordings on the steps of the model, and the signals to predict.
        self.samples = [sample_recording(m, s, self.history) for s in self.sequences]
        self.names = tuple(dict.fromkeys(n for s in self.samples for n in s.names))
        self._signals = [signal(m, name) for name in self.names]
        self._check_tuned()
        # Pieces of the recordings, and their unknown states.
        parts = [cuts(s, segments) for s in self.samples]
        made = PieceSettings(self.m, self.names, self._late, self.history, tolerance, tied)
        self._pieces, self._places = make_pieces(made, self.sequences, self.samples, parts)
        ties = np.asarray(self._pieces.tie) > 0
        self._states = choose_unknowns(m, self.sequences, [k for k, _ in self._places], ties)
        self.size = parameters.size + len(self._states.free)
        if not self.size:
            raise ValueError(
                "parameters: nothing to fit; all parameters are frozen, all states given"
            )
        # Number of rows, and the columns of the signals in [sensordata, qpos, qvel].
        priors = len(parameters.prior(parameters.nominal())) + len(self._states.prior_ids)
        samples_ = sum(len(ids) for _, ids in self._places)
        self.rows = samples_ + priors + len(self._states.tied_rows)
        starts = {"sensordata": 0, "qpos": m.nsensordata, "qvel": m.nsensordata + m.nq}
        self._columns = np.array([starts[s.source] + s.start for s in self._signals])
        # Names of the controls, of which offset, gain and delay may be parameters.
        names = {int(m.actuator_ctrladr[i]): n for i, n in enumerate(m.names["actuator"])}
        self._controls = [names.get(i, "") for i in range(m.nu)]
        tuned = [signal for p in parameters.values() for signal, _ in p.target.signals]
        self._commanded = any(signal.startswith("ctrl:") for signal in tuned)
        self._tied = bool(len(self._states.tied_rows))
        self._leaves_program = quick_jit(self._leaves)

    def __repr__(self) -> str:
        return f"Problem({self.size} unknowns, {self.rows} rows, {len(self._places)} pieces)"

    def _leaves(self, theta: jax.Array) -> dict[int, jax.Array]:
        """Return the leaves of the model that the parameters change, by their index."""
        return changed_leaves(self.m, self.parameters.model(self.m, theta))

    def model(self, theta: jax.Array) -> Model:
        """Return the model with these unknowns of the parameters, outside of a program."""
        return replace_leaves(self.m, self._leaves_program(theta))

    def start(self, theta: jax.Array) -> jax.Array:
        """Return the unknowns with these parameters and the given states, (size,)."""
        return jnp.concatenate([theta, jnp.zeros(len(self._states.free), theta.dtype)])

    def residual(self, x: jax.Array) -> jax.Array:
        """Return all rows, 0 for padding, (n,); see the module's documentation."""
        theta, z = self._split(x)
        rows, ends = jax.vmap(self._piece, (None, 0, 0))(theta, z, self._pieces)
        rows = self._limit_outliers(rows)
        return self._join_residual(theta, z, rows, ends)

    def jacobian(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the residual (n,) and its exact derivative (n, size)."""
        r, J = self.jacobians(x[None])
        return r[0], J[0]

    def jacobians(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return residuals and exact derivatives of many unknowns, as worlds of one rollout.

        Args:
          x: (starts, size).

        Returns:
          (starts, n) and (starts, n, size).
        """
        theta, z = jax.vmap(self._split)(x)
        many, pieces = z.shape[:2]

        def flat(tree):
            return jax.tree.map(lambda a: a.reshape(many * pieces, *a.shape[2:]), tree)

        def of_pieces(function):
            return jax.vmap(jax.vmap(function, (None, 0, 0)), (0, 0, None))

        motion, change = of_pieces(self._linearize_motion)(theta, z, self._pieces)
        start = jax.tree.map(
            lambda a: jnp.tile(a, (many, *(1,) * (a.ndim - 1))), self._pieces.start
        )
        found = sensitivities(self.m, start, flat(motion), flat(change), self._observe)
        table, d_table = (a.reshape(many, pieces, *a.shape[1:]) for a in found)
        each = jax.vmap(jax.vmap(self._linearize_rows, (None, 0, 0, 0)), (0, 0, 0, None))
        ended = each(theta, table, d_table, self._pieces)
        return jax.vmap(self._assemble)(x, *ended)

    def _linearize_motion(
        self, theta: jax.Array, z: jax.Array, piece: Piece
    ) -> tuple[RolloutInputs, RolloutInputs]:
        """Return the inputs of the rollout of a piece, and their tangents along all unknowns."""
        k, n = len(theta), len(theta) + len(z)

        def motion(theta, z):
            return self._motion(theta, z, piece)

        def jvp_along(t):
            return jax.jvp(motion, (theta, z), (t[:k], t[k:]))

        found, change = jax.vmap(jvp_along, out_axes=(None, 0))(jnp.eye(n, dtype=theta.dtype))
        return found, change if self._commanded else change._replace(ctrl=None)

    def _linearize_rows(
        self, theta: jax.Array, table: jax.Array, d_table: jax.Array, piece: Piece
    ) -> tuple:
        """Return rows and end of a piece, and their tangents, with all unknowns as last axis."""
        n, k = len(d_table), len(theta)

        def jvp_along(t, d_table):
            def rows_and_end(theta, table):
                rows, end = self._piece_rows(theta, table, piece)
                return self._limit_outliers(rows), end

            return jax.jvp(rows_and_end, (theta, table), (t, d_table))

        directions = jnp.eye(n, k, dtype=theta.dtype)
        found: tuple = jax.vmap(jvp_along, out_axes=(None, -1))(directions, d_table)
        return found

    def _assemble(self, x: jax.Array, pieces: tuple, d_pieces: tuple) -> tuple:
        """Assemble the residual and its derivative from those of the pieces."""
        (rows, ends), (d_rows, d_ends) = pieces, d_pieces
        k = self.parameters.size

        # Rows that need no rollout: priors, and the starts of next pieces.
        def rest(x):
            theta, z = self._split(x)
            return self._join_residual(theta, z, rows, ends)

        def both(x):
            r = rest(x)
            return r, r

        J, r = jax.jacfwd(both, has_aux=True)(x)
        first = self._spread(d_rows[..., :k], d_rows[..., k:])
        last = self._spread(d_ends[..., :k], d_ends[..., k:])[self._states.tied_rows]
        between = jnp.zeros((len(r) - len(first) - len(last), self.size), x.dtype)
        return r, J + jnp.concatenate([first, between, last])

    def slope(self, x: jax.Array) -> jax.Array:
        """Return `Parameters.slope` for all unknowns; those of states are in their own units."""
        k = self.parameters.size
        return jnp.concatenate([self.parameters.slope(x[:k]), jnp.ones_like(x[k:])])

    def apply_change(self, x: jax.Array, change: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Apply `Parameters.apply_change` to all unknowns."""
        k = self.parameters.size
        theta, moved = self.parameters.apply_change(x[:k], change[:k])
        z = x[k:] + change[k:]
        return jnp.concatenate([theta, z]), jnp.concatenate([moved, change[k:]])

    def predictions(self, x: jax.Array) -> list[np.ndarray]:
        """Return the prediction of each sample of each sequence, in the order of
        `sample_recording`."""
        rows = np.asarray(self._rows(jnp.asarray(x), self._pieces), np.float64)
        found = [np.full(len(s.value), np.nan) for s in self.samples]
        for (sequence, ids), row in zip(self._places, rows, strict=True):
            s = self.samples[sequence]
            found[sequence][ids] = s.value[ids] + row[: len(ids)] / s.weight[ids]
        return found

    @functools.cached_property
    def _rows(self):
        def rows(x, pieces):
            theta, z = self._split(x)
            return jax.vmap(self._piece, (None, 0, 0))(theta, z, pieces)[0]

        return StoredFunction(rows, "the prediction", tier="fast")

    def _split(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Split the unknowns into those of the parameters, (k,), and of states, (pieces, nz)."""
        k, shape = self.parameters.size, (len(self._places), len(self._states.used))
        z = jnp.zeros(shape, x.dtype).reshape(-1).at[self._states.free].set(x[k:])
        return x[:k], z.reshape(shape)

    def _join_residual(self, theta: jax.Array, z: jax.Array, rows: jax.Array, ends: jax.Array):
        """Concatenate the rows of samples, priors of parameters and of states, and defects."""
        states = z.reshape(-1)[self._states.prior_ids] * jnp.asarray(
            self._states.prior_weights, z.dtype
        )
        parts = [rows.reshape(-1), self.parameters.prior(theta), states]
        if len(self._states.tied_rows):
            defects = ends - self._pieces.tie[:, None] * jnp.roll(z, -1, 0)
            parts.append(defects.reshape(-1)[self._states.tied_rows])
        return jnp.concatenate(parts)

    def _spread(self, of_theta: jax.Array, of_z: jax.Array) -> jax.Array:
        """Return derivatives of pieces by their states as columns of all unknowns, (n, size)."""
        pieces, n, nz = of_z.shape
        own = jnp.eye(pieces, dtype=of_z.dtype)[:, None, :, None] * of_z[:, :, None, :]
        columns = own.reshape(pieces * n, pieces * nz)[:, self._states.free]
        k = of_theta.shape[-1]
        return jnp.concatenate([of_theta.reshape(pieces * n, k), columns], 1)

    def _piece(self, theta: jax.Array, z: jax.Array, piece: Piece) -> tuple[jax.Array, jax.Array]:
        """Return the rows of a piece, (S,), and its end as `_end` returns it."""
        motion = self._motion(theta, z, piece)
        m = replace_leaves(self.m, motion.fields)
        d = piece.start.replace(**motion.state)
        record = ("sensordata", "qpos", "qvel", *(["act"] if m.na else []))
        _, after = rollout(m, d, ctrl=motion.ctrl, record=record)
        # A step returns the state after it, and the sensors before it.
        before = [
            jnp.concatenate([now[None], after[n][:-1]])
            for n, now in (("qpos", d.qpos), ("qvel", d.qvel))
        ]
        table = jnp.concatenate([after["sensordata"], *before], 1)[:, self._columns]
        states = [after[n] for n in record[1:]] if self._tied else []
        return self._piece_rows(theta, jnp.concatenate([table, *states], 1), piece)

    def _motion(self, theta: jax.Array, z: jax.Array, piece: Piece) -> RolloutInputs:
        """Return the inputs of the rollout of a piece."""
        leaves = self._leaves(theta)
        m = replace_leaves(self.m, leaves)
        tuned = self.parameters.signals(theta)
        d = self._move_start(m, piece.start, z)
        names = [f"ctrl:{n}" for n in self._controls]
        ctrl = delay_controls(
            piece.ctrl, self.history, _signal_corrections(tuned, names, m.opt.timestep)
        )
        return RolloutInputs(leaves, {n: getattr(d, n) for n in STATE_SIGNALS}, ctrl)

    def _observe(self, before: Data, after: Data) -> jax.Array:
        """Return the signals of a step and, if it is needed, the state after it, `[k, *W]`."""
        # A step returns the sensors before it.
        table = jnp.concatenate([after.sensordata, before.qpos, before.qvel])[self._columns]
        states = [after.qpos, after.qvel, after.act] if self._tied else []
        return jnp.concatenate([table, *states])

    def _piece_rows(self, theta: jax.Array, table: jax.Array, piece: Piece) -> tuple:
        """Return the rows of a piece, and its end, from the observed signals of each step."""
        tuned = self.parameters.signals(theta)
        names = [s.name for s in self._signals]
        signals = len(self._columns)
        tuning = _signal_corrections(tuned, names, self.m.opt.timestep)
        rows = _compare_samples(table[:, :signals], piece, *tuning)
        return rows, self._end(table[piece.last - 1, signals:], piece)

    def _limit_outliers(self, rows: jax.Array) -> jax.Array:
        """Return rows of samples whose squares are their pseudo-Huber losses; see the module."""
        if self._robust is None:
            return rows
        return rows * jnp.sqrt(2 / (1 + jnp.sqrt(1 + (rows / self._robust) ** 2)))

    def _move_start(self, m: Model, d: Data, z: jax.Array) -> Data:
        """Return an initial state moved by its unknowns (nz,), which are tangent coordinates."""
        if not len(self._states.used):
            return d
        full = jnp.zeros(2 * m.nv + m.na, z.dtype).at[self._states.used].set(z)
        qpos = integrate_pos(m, d.qpos, full[: m.nv], jnp.ones((), z.dtype))
        dqvel, dact = full[m.nv : 2 * m.nv], full[2 * m.nv :]
        return d.replace(qpos=qpos, qvel=d.qvel + dqvel, act=d.act + dact)

    def _end(self, state: jax.Array, piece: Piece) -> jax.Array:
        """Return the final state less the start of the next piece as given, over the tolerance.

        The difference is in tangent coordinates, (2 nv + na,); those of the next start's unknowns
        are subtracted in `_join_residual`. Zero for the last piece of a recording.
        """
        if not self._tied:
            return jnp.zeros(0, self.m.qpos0.dtype)
        nq, nv = self.m.nq, self.m.nv
        qpos, qvel, act = piece.next
        one = jnp.ones((), qpos.dtype)
        defect = [
            differentiate_pos(self.m, one, qpos, state[:nq]),
            state[nq : nq + nv] - qvel,
            state[nq + nv :] - act,
        ]
        return jnp.where(piece.tie > 0, jnp.concatenate(defect), 0) * piece.tie

    def _check_tuned(self) -> None:
        """Raise ValueError for offsets, gains and delays of signals that are not measured."""
        measured = {s.name for s in self._signals}
        for name, p in self.parameters.items():
            for of, _ in p.target.signals:
                if not of.startswith("ctrl:") and of not in measured:
                    raise ValueError(f"{name}: no sequence has measurements of {of!r}")


def build_residual_fn(
    m: Model,
    parameters: Parameters,
    sequences: Sequence | Many[Sequence],
    *,
    segments: int | None = None,
    tolerance: float = 1e-4,
    tied: bool = True,
    robust: float | None = None,
) -> Problem:
    """Return the residual of recordings, for use with other optimizers.

    Args:
      m, parameters, sequences, segments, tolerance, tied, robust: those of `Problem`.

    Returns:
      A `Problem`: `problem.residual(x)` and `problem.jacobian(x)` are pure functions of the
      unknowns, and `problem.start(theta)` is the initial point.
    """
    how: dict[str, Any] = {"tolerance": tolerance, "tied": tied, "robust": robust}
    return Problem(m, parameters, sequences, segments=segments, **how)


def _compare_samples(table: jax.Array, piece: Piece, gain, offset, delay) -> jax.Array:
    """Return the weighted rows of samples, prediction less measurement, (S,).

    Args:
      table: the signals at each step, (steps, k).
      piece: the piece with the samples.
      gain, offset, delay: those of each signal, (k,); delays in steps.
    """
    which = piece.signal
    position = piece.part - delay[which]
    whole = jnp.floor(position)
    part = position - whole
    at = jnp.clip(piece.step + whole.astype(piece.step.dtype), 0, len(table) - 1)
    then = jnp.minimum(at + 1, len(table) - 1)
    p = (1 - part) * table[at, which] + part * table[then, which]
    return piece.weight * (gain[which] * p + offset[which] - piece.value)


def _signal_corrections(tuned: Mapping, names: Many[str], h: jax.Array) -> tuple[jax.Array, ...]:
    """Return gain, offset and delay in steps of each name, (n,) each."""
    gain, offset, delay = (
        jnp.stack([tuned.get((n, field), jnp.full((), rest, h.dtype)) for n in names])
        if names
        else jnp.zeros(0, h.dtype)
        for field, rest in (("gain", 1.0), ("offset", 0.0), ("delay", 0.0))
    )
    return gain, offset, delay / h


def _has_sigma(sequences: Many[Sequence]) -> bool:
    """Return whether all sequences have a sigma; raise ValueError if some have."""
    known = {s.sigma is not None for s in sequences}
    if len(known) > 1:
        raise ValueError("sigma: give it for all sequences, or for none")
    return known.pop()
