"""The residual: what the model predicts of every sample, less what was measured, over sigma.

    rows = [ (gain p(t - delay) + offset - y) / sigma      for every sample y at time t
             (value - mean) / sd                           for every prior
             (end of a piece - start of the next) / tolerance    with multiple shooting ]

p is what a rollout gives of a signal, on a line between two steps. A recording is one piece, or
several with multiple shooting (shooting.py). Pieces are worlds of one `vmap`; the Jacobian is that
of forward differentiation, one direction for each parameter and for each number of the state of a
piece, as pieces do not depend on the starts of others.
"""

import functools
from collections.abc import Mapping
from collections.abc import Sequence as Many

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.enums import DisableBit
from jaxsim.identify.delay import delayed, reach
from jaxsim.identify.parameter import Parameters
from jaxsim.identify.pieces import Making, Piece, choose_unknowns, make_pieces
from jaxsim.identify.sequences import Sequence, samples
from jaxsim.identify.shooting import cuts
from jaxsim.identify.signals import signal
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.physics.api import differentiate_pos, integrate_pos
from jaxsim.rollout.scan import rollout


class Problem:
    """Parameters and recordings as one residual of one vector of unknowns.

    The unknowns are those of the parameters, then the tangents of the states that are not known.

    Args:
      m: the model.
      parameters: what is searched.
      sequences: one recording or several.
      segments: steps of a piece, for multiple shooting; None: a recording is one piece.
      tolerance: standard deviation of the state's jump from one piece to the next [m, rad, and the
        same per s].

    Attributes:
      given, m: the model, as it was given and as it is simulated.
      size: number of unknowns.
      names: of the signals.
      rows: number of rows that count.
      known_sigma: whether the noise of the sequences is given.
      samples: each recording on the steps of the model.

    Raises:
      ValueError: something in the recordings is not of this model.
    """

    def __init__(
        self,
        m: Model,
        parameters: Parameters,
        sequences: Sequence | Many[Sequence],
        *,
        segments: int | None = None,
        tolerance: float = 1e-4,
    ):
        self.sequences = (sequences,) if isinstance(sequences, Sequence) else tuple(sequences)
        if not self.sequences:
            raise ValueError("sequences: expected at least one Sequence, got none")
        # a state that diverges must stay so, to be seen
        flags = int(m.opt.disableflags) | int(DisableBit.AUTORESET)
        self.given = m
        self.m = m.replace(opt=m.opt.replace(disableflags=flags))
        self.parameters = parameters
        self.known_sigma = _known_sigma(self.sequences)
        self.history, self._late = reach(m, parameters)
        if segments is not None and self._late:
            raise ValueError("segments: a delay of a sensor is not for multiple shooting")
        self.samples = [samples(m, s, self.history) for s in self.sequences]
        self.names = tuple(dict.fromkeys(n for s in self.samples for n in s.names))
        self._signals = [signal(m, name) for name in self.names]
        self._check_tuned()
        parts = [cuts(s, segments) for s in self.samples]
        made = Making(self.m, self.names, self._late, self.history, tolerance)
        self._pieces, self._places = make_pieces(made, self.sequences, self.samples, parts)
        tied = np.asarray(self._pieces.tie) > 0
        self._states = choose_unknowns(m, self.sequences, [k for k, _ in self._places], tied)
        self.size = parameters.size + len(self._states.free)
        if not self.size:
            raise ValueError("parameters: expected something to search, all is given or frozen")
        priors = len(parameters.prior(parameters.nominal())) + len(self._states.prior_ids)
        samples_ = sum(len(ids) for _, ids in self._places)
        self.rows = samples_ + priors + len(self._states.tied_rows)
        starts = {"sensordata": 0, "qpos": m.nsensordata, "qvel": m.nsensordata + m.nq}
        self._columns = np.array([starts[s.source] + s.start for s in self._signals])
        names = {int(m.actuator_ctrladr[i]): n for i, n in enumerate(m.names["actuator"])}
        self._controls = [names.get(i, "") for i in range(m.nu)]

    def __repr__(self) -> str:
        return f"Problem({self.size} unknowns, {self.rows} rows, {len(self._places)} pieces)"

    def start(self, theta: jax.Array) -> jax.Array:
        """The unknowns with these parameters and the states as they are given, (size,)."""
        return jnp.concatenate([theta, jnp.zeros(len(self._states.free), theta.dtype)])

    def residual(self, x: jax.Array) -> jax.Array:
        """All rows, those of padding are 0, (n,); see the head of the file."""
        theta, z = self._split(x)
        rows, ends = jax.vmap(self._piece, (None, 0, 0))(theta, z, self._pieces)
        return self._joined(theta, z, rows, ends)

    def jacobian(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The residual (n,) and its exact derivative (n, size)."""
        theta, z = self._split(x)

        k, n = len(theta), len(theta) + z.shape[1]

        def one(z, piece):
            def along(t):
                run = functools.partial(self._piece, piece=piece)
                return jax.jvp(run, (theta, z), (t[:k], t[k:]))

            # one primal for all directions; the model does not depend on the piece
            return jax.vmap(along, out_axes=(None, -1))(jnp.eye(n, dtype=x.dtype))

        (rows, ends), (d_rows, d_ends) = jax.vmap(one)(z, self._pieces)
        r = self._joined(theta, z, rows, ends)

        # what follows from the unknowns without a rollout: priors, and the starts of next pieces
        def rest(x):
            theta, z = self._split(x)
            return self._joined(theta, z, jnp.zeros_like(rows), jnp.zeros_like(ends))

        J = jax.jacfwd(rest)(x)
        first = self._spread(d_rows[..., :k], d_rows[..., k:])
        last = self._spread(d_ends[..., :k], d_ends[..., k:])[self._states.tied_rows]
        between = jnp.zeros((len(r) - len(first) - len(last), self.size), x.dtype)
        return r, J + jnp.concatenate([first, between, last])

    def predictions(self, x: jax.Array) -> list[np.ndarray]:
        """What is predicted of each sample of each sequence, in the order of `samples`."""
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

        return jax.jit(rows)

    def _split(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Unknowns of the parameters, (k,), and of the state of each piece, (pieces, nz)."""
        k, shape = self.parameters.size, (len(self._places), len(self._states.used))
        z = jnp.zeros(shape, x.dtype).reshape(-1).at[self._states.free].set(x[k:])
        return x[:k], z.reshape(shape)

    def _joined(self, theta: jax.Array, z: jax.Array, rows: jax.Array, ends: jax.Array):
        """The residual: of samples, priors of parameters and of states, jumps."""
        states = z.reshape(-1)[self._states.prior_ids] * jnp.asarray(
            self._states.prior_weights, z.dtype
        )
        parts = [rows.reshape(-1), self.parameters.prior(theta), states]
        if len(self._states.tied_rows):
            jumps = ends - self._pieces.tie[:, None] * jnp.roll(z, -1, 0)
            parts.append(jumps.reshape(-1)[self._states.tied_rows])
        return jnp.concatenate(parts)

    def _spread(self, of_theta: jax.Array, of_z: jax.Array) -> jax.Array:
        """Derivatives of pieces by their own states, as columns of all unknowns, (n, size)."""
        pieces, n, nz = of_z.shape
        own = jnp.eye(pieces, dtype=of_z.dtype)[:, None, :, None] * of_z[:, :, None, :]
        columns = own.reshape(pieces * n, pieces * nz)[:, self._states.free]
        k = of_theta.shape[-1]
        return jnp.concatenate([of_theta.reshape(pieces * n, k), columns], 1)

    def _piece(self, theta: jax.Array, z: jax.Array, piece: Piece) -> tuple[jax.Array, jax.Array]:
        """Rows of the samples of a piece, and where it ends as the next piece sees it."""
        m = self.parameters.model(self.m, theta)
        tuned = self.parameters.signals(theta)
        d = _seeded(self._moved(m, piece.start, z), 0 * jnp.concatenate([theta, z])[0])
        names = [f"ctrl:{n}" for n in self._controls]
        ctrl = delayed(piece.ctrl, self.history, _tuning(tuned, names, m.opt.timestep))
        record = ("sensordata", "qpos", "qvel", *(["act"] if m.na else []))
        _, after = rollout(m, d, ctrl=ctrl, record=record)
        # a step tells the state after it, and the sensors before
        before = [
            jnp.concatenate([now[None], after[n][:-1]])
            for n, now in (("qpos", d.qpos), ("qvel", d.qvel))
        ]
        table = jnp.concatenate([after["sensordata"], *before], 1)[:, self._columns]
        names = [s.name for s in self._signals]
        rows = _compared(table, piece, *_tuning(tuned, names, m.opt.timestep))
        return rows, self._end(m, after, piece)

    def _moved(self, m: Model, d: Data, z: jax.Array) -> Data:
        """A start with the unknowns of its state added."""
        if not len(self._states.used):
            return d
        full = jnp.zeros(2 * m.nv + m.na, z.dtype).at[self._states.used].set(z)
        turned = integrate_pos(m, d.qpos, full[: m.nv], jnp.ones((), z.dtype))
        velocity, act = full[m.nv : 2 * m.nv], full[2 * m.nv :]
        return d.replace(qpos=turned, qvel=d.qvel + velocity, act=d.act + act)

    def _end(self, m: Model, after: dict, piece: Piece) -> jax.Array:
        """The state at the end, in the tangent of the start of the next piece, over tolerance."""
        if not len(self._states.tied_rows):
            return jnp.zeros(0, m.qpos0.dtype)
        qpos, qvel, act = piece.next
        at = piece.last - 1
        jump = [
            differentiate_pos(m, jnp.ones((), qpos.dtype), qpos, after["qpos"][at]),
            after["qvel"][at] - qvel,
            *([after["act"][at] - act] if m.na else []),
        ]
        return jnp.where(piece.tie > 0, jnp.concatenate(jump), 0) * piece.tie

    def _check_tuned(self) -> None:
        """Refuses offsets, gains and delays of what is not measured."""
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
) -> Problem:
    """The residual of some recordings, for an optimizer of one's own.

    Args:
      m, parameters, sequences, segments, tolerance: as of `Problem`.

    Returns:
      A `Problem`: `problem.residual(x)` and `problem.jacobian(x)` are pure functions of the
      unknowns, and `problem.start(theta)` is where to start.
    """
    return Problem(m, parameters, sequences, segments=segments, tolerance=tolerance)


def _seeded(d: Data, zero: jax.Array) -> Data:
    """A state that depends on the unknowns in all that a step changes.

    The derivative of a loop is traced again for each part of its state that begins not to.
    """
    names = ("qpos", "qvel", "act", "qacc_warmstart", "sensordata")
    return d.replace(**{n: getattr(d, n) + zero for n in names})


def _compared(table: jax.Array, piece: Piece, gain, offset, delay) -> jax.Array:
    """Rows of samples: prediction less measurement, weighted, (S,).

    Args:
      table: the signals at each step, (steps, k).
      piece: its samples.
      gain, offset, delay: of each signal, (k,); delays in steps.
    """
    which = piece.signal
    position = piece.part - delay[which]
    whole = jnp.floor(position)
    part = position - whole
    at = jnp.clip(piece.step + whole.astype(piece.step.dtype), 0, len(table) - 1)
    then = jnp.minimum(at + 1, len(table) - 1)
    p = (1 - part) * table[at, which] + part * table[then, which]
    return piece.weight * (gain[which] * p + offset[which] - piece.value)


def _tuning(tuned: Mapping, names: Many[str], h: jax.Array) -> tuple[jax.Array, ...]:
    """Gain, offset and delay in steps of each name, (n,) each."""
    gain, offset, delay = (
        jnp.stack([tuned.get((n, field), jnp.full((), rest, h.dtype)) for n in names])
        if names
        else jnp.zeros(0, h.dtype)
        for field, rest in (("gain", 1.0), ("offset", 0.0), ("delay", 0.0))
    )
    return gain, offset, delay / h


def _known_sigma(sequences: Many[Sequence]) -> bool:
    known = {s.sigma is not None for s in sequences}
    if len(known) > 1:
        raise ValueError("sigma: give it for all sequences, or for none")
    return known.pop()
