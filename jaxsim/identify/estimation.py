"""Nonlinear least-squares fit of model parameters to recordings, with uncertainties."""

import functools
import time
from collections.abc import Callable, Mapping
from collections.abc import Sequence as Many
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.batch.stored_program import StoredFunction, prepare_program
from jaxsim.control.solve.levenberg_marquardt import (
    Chart,
    Solution,
    begin_searches,
    continue_searches,
    may_continue,
    solutions_of,
)
from jaxsim.escape import MAX_MESSAGE, line
from jaxsim.identify.forms import Form
from jaxsim.identify.parameter import Parameters
from jaxsim.identify.parameter import parameters as make_parameters
from jaxsim.identify.residual import Problem
from jaxsim.identify.search.optimizers import minimize_problem_with_optimistix, minimize_with_optax
from jaxsim.identify.search.statistics import (
    Uncertainty,
    intervals,
    uncertainty,
    value_uncertainty,
    warnings,
)
from jaxsim.identify.sequences import Sequence
from jaxsim.io.phase import named_phase
from jaxsim.model.model import Model
from jaxsim.optional import install_hint
from jaxsim.physics.public.arguments import check_count
from jaxsim.transforms.platform import quick_jit

# Part of the range at each end in which a parameter is reported to be at its bound.
_AT_BOUND_SHARE = 1e-3


@dataclass(frozen=True, eq=False, repr=False)
class Fit:
    """Result of a fit.

    Attributes:
      problem: the residual that was minimized.
      x: the best unknowns: those of the parameters, then those of states, (size,).
      cost: half the sum of the squared rows at `x`.
      costs: final cost of each start, (starts,).
      solutions: final point of each start, with its history.
      uncertainty: uncertainty of the unknowns.
      times: durations of "trace", "compile", "load" and "run" [s].
    """

    problem: Problem
    x: jax.Array
    cost: float
    costs: np.ndarray
    solutions: Solution
    uncertainty: Uncertainty
    times: dict[str, float]

    @property
    def parameters(self) -> Parameters:
        """Return the parameters that were fitted."""
        return self.problem.parameters

    @property
    def theta(self) -> jax.Array:
        """Return the best unknowns of the parameters, (k,)."""
        return self.x[: self.parameters.size]

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the values."""
        return self.parameters.names

    @property
    def values(self) -> np.ndarray:
        """Return the values in physical units, (k,)."""
        return self.parameters.host_numbers(self.theta)

    @functools.cached_property
    def covariance(self) -> np.ndarray:
        """Return the covariance of the values, (k, k); infinite where they are undetermined."""
        k = self.parameters.size
        of_unknowns = self.uncertainty.covariance[:k, :k]
        return value_uncertainty(self.parameters, self.theta, of_unknowns)[0]

    @property
    def sd(self) -> np.ndarray:
        """Return the standard deviations of the values, (k,)."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def correlation(self) -> np.ndarray:
        """Return the correlation of the unknowns of the parameters, (k, k)."""
        k = self.parameters.size
        return self.uncertainty.correlation[:k, :k]

    @functools.cached_property
    def model(self) -> Model:
        """Return the model with the fitted values."""
        m = self.problem.model(self.theta)
        flags = self.problem.given.opt.disableflags
        return m.replace(opt=m.opt.replace(disableflags=flags))

    def intervals(self, level: float = 0.95) -> np.ndarray:
        """Return lower and upper ends of the confidence intervals of the values, (k, 2)."""
        half = self.uncertainty.quantile(level)
        sd = self.uncertainty.sd[: self.parameters.size]
        return intervals(self.parameters, self.theta, sd, self.sd, half)

    @property
    def warnings(self) -> list[str]:
        """Return messages on what limits the trust in the values."""
        states = tuple(f"state[{i}]" for i in range(len(self.x) - self.parameters.size))
        coordinates = self.parameters.coordinates + states
        found = warnings(self.uncertainty, coordinates)
        for p, u in zip(*self._at_bounds(), strict=True):
            found.append(f"{p} is at its bound, {u:.4g}")
        best = int(np.argmin(self.costs))
        if not bool(np.asarray(self.solutions.converged)[best]):
            found.append("the best start has not converged; allow more iterations")
        return found

    def __repr__(self) -> str:
        lines = [f"Fit: cost {self.cost:.6g}, chi2/freedom {self.uncertainty.noise**2:.4g}"]
        names = [line(name) for name in self.names]
        width = max(map(len, names), default=0)
        table = zip(names, self.values, self.sd, self.intervals(), strict=True)
        lines += [
            f"  {n:<{width}}  {v:11.5g} +- {sd:<9.3g} [{a:.5g}, {b:.5g}]"
            for n, v, sd, (a, b) in table
        ]
        return "\n".join([*lines, *(f"  ! {line(w, MAX_MESSAGE)}" for w in self.warnings)])

    def _at_bounds(self) -> tuple[list[str], list[float]]:
        """Return names and values of the parameters at a bound."""
        names, values, at = [], [], 0
        for p in self.parameters.values():
            if p.form.frozen:
                continue
            u = np.asarray(self.theta, np.float64)[at : at + p.size]
            at += p.size
            # A bounded value is a logistic function of its unknown (forms.py).
            if p.form.low is not None:
                part = 1 / (1 + np.exp(-u))
                for i in np.flatnonzero((part < _AT_BOUND_SHARE) | (part > 1 - _AT_BOUND_SHARE)):
                    names.append(p.labels[i])
                    values.append(float(p.value(jnp.asarray(u))[i]))
        return names, values


_FitT = TypeVar("_FitT", bound=Fit)


def fit(
    m: Model,
    parameters: Parameters | Mapping[str, Form],
    sequences: Sequence | Many[Sequence],
    *,
    starts: int = 1,
    key: jax.Array | None = None,
    optimizer: Any = "lm",
    iterations: int = 50,
    segments: int | None = None,
    tolerance: float = 1e-4,
    tied: bool = True,
    robust: float | None = None,
    batch: int | None = None,
    tier: str = "auto",
) -> Fit:
    """Fit parameters of a model to recordings.

    Args:
      m: the model.
      parameters: the parameters, or names and forms, as for `identify.parameters`.
      sequences: one recording or several.
      starts: number of starts; the first is the first guess, the others are drawn from the bounds
        or priors.
      key: random key of the drawn starts; None: `jax.random.key(0)`.
      optimizer: "lm", Levenberg-Marquardt with an exact Jacobian; a transformation of optax, which
        uses the gradient; or a least-squares solver of optimistix, with the same Jacobian, which
        runs the starts one after another.
      iterations: maximal number of iterations of each start.
      segments: steps of a piece, for multiple shooting; None: a recording is one piece.
      tolerance: standard deviation of the defects, the state's jumps between pieces.
      tied: pieces are tied by unknown states (multiple shooting). False: each piece starts from the
        measured state and predicts the next `segments` steps, so that no states are unknown and
        errors do not accumulate: for motions with impacts, and many recordings. Velocities that
        were not measured are differences of the samples next to the cut.
      robust: residual of a sample, in sigmas, above which its cost grows linearly and no longer as
        its square (pseudo-Huber loss): for outliers, and for motions that a model cannot follow to
        the end. None: all costs are squares.
      batch: starts that run together; None: all. Memory is in proportion.
      tier: how the program is compiled: "auto", quickly at first, and optimized in the background
        if the fit takes longer than that; "fast" or "optimized", for the same bits in each run.

    Returns:
      A `Fit` of the best start.

    Raises:
      ValueError: an argument is invalid, or no start has a finite cost.
    """
    if isinstance(parameters, Mapping) and not isinstance(parameters, Parameters):
        parameters = make_parameters(m, parameters)
    if not isinstance(parameters, Parameters):
        raise ValueError(f"parameters: expected names and forms, got {parameters!r}")
    pieces: dict[str, Any] = {"segments": segments, "tolerance": tolerance, "tied": tied}
    problem = Problem(m, parameters, sequences, **pieces, robust=robust)
    how = {"starts": starts, "key": key, "optimizer": optimizer, "iterations": iterations}
    return best_fit(Fit, problem, *run_searches(problem, **how, batch=batch, tier=tier))


class _Search(NamedTuple):
    """A search by an optimizer from many starts, in calls of one program.

    Attributes:
      begin: from starts (starts, n) to the state of the search.
      advance: from a state to the next one.
      may_continue: whether `advance` is to be called again, from a state.
      solution: from a state to the Solution of each start.
    """

    begin: Callable[[jax.Array], Any]
    advance: Callable[[Any], Any]
    may_continue: Callable[[Any], Any]
    solution: Callable[[Any], Solution]


def run_searches(
    problem: Problem,
    *,
    starts: int = 1,
    key: jax.Array | None = None,
    optimizer: Any = "lm",
    iterations: int = 50,
    batch: int | None = None,
    tier: str = "auto",
) -> tuple[Solution, dict[str, float]]:
    """Minimize a problem from all starts; return the solutions, and durations [s].

    The arguments are those of `fit`.

    Raises:
      ValueError: `starts` or `iterations` is not positive, or the optimizer is unknown.
    """
    if check_count("starts", starts) < 1 or check_count("iterations", iterations) < 1:
        raise ValueError("starts, iterations: expected at least 1")
    search = _make_search(problem, optimizer, iterations)
    key = jax.random.key(0) if key is None else key
    draw = quick_jit(lambda key: jax.vmap(problem.start)(problem.parameters.draw(key, starts)))
    x = np.asarray(draw(key))
    # Batches of equal size, the last one padded with copies of the first starts.
    together = min(batch or starts, starts)
    batches = np.resize(x, (-(-starts // together), together, x.shape[1]))
    # Load or compile one program for all batches.
    first = prepare_program(search.begin, (batches[0],), name="the start of the fit", tier="fast")
    begin, state = first.program, first.program(batches[0])
    fit = prepare_program(search.advance, (state,), name="the fit", tier=tier)
    times = {
        "trace": first.trace_seconds + fit.trace_seconds,
        "compile": first.compile_seconds + fit.compile_seconds,
        "load": first.load_seconds + fit.load_seconds,
    }
    # Search batch by batch, until no start of the batch may continue.
    clock = time.perf_counter()
    found = []
    with named_phase("search from all starts"):
        for number, some in enumerate(batches):
            state = begin(some) if number else state
            while search.may_continue(state):
                state = fit.program(state)
            found.append(search.solution(state))
    solutions = jax.tree.map(lambda *a: jax.device_put(np.concatenate(a)[:starts]), *found)
    times["run"] = time.perf_counter() - clock
    return solutions, times


def _make_search(problem: Problem, optimizer: Any, iterations: int) -> _Search:
    """Return the search of an optimizer, batched over starts."""
    if isinstance(optimizer, str) and optimizer == "lm":
        chart = Chart(problem.slope, problem.apply_change)
        derive = jax.jit(problem.jacobians, inline=True)  # traced once, for its shape and value
        return _Search(
            lambda x: begin_searches(derive, x, iterations),
            lambda state: continue_searches(derive, state, chart),
            quick_jit(may_continue),
            quick_jit(solutions_of),
        )
    if hasattr(optimizer, "init") and hasattr(optimizer, "update"):
        one = functools.partial(
            minimize_with_optax, problem.residual, optimizer, iterations=iterations
        )
        return _in_one_call(jax.vmap(one))
    if hasattr(optimizer, "step") and hasattr(optimizer, "terminate"):
        solve = functools.partial(
            minimize_problem_with_optimistix, problem, optimizer, iterations=iterations
        )
        return _in_one_call(functools.partial(jax.lax.map, solve))
    raise ValueError(
        f"optimizer: expected 'lm', a transformation of optax or a least-squares solver of "
        f"optimistix, got {optimizer!r}; {install_hint('identify')}"
    )


def _in_one_call(minimize: Callable[[jax.Array], Solution]) -> _Search:
    """Return a search that one call completes; its state is (starts, solutions or None)."""
    return _Search(
        lambda x: (x, None),
        lambda state: (state[0], minimize(state[0])),
        lambda state: state[1] is None,
        lambda state: state[1],
    )


def best_fit(
    kind: type[_FitT], problem: Problem, solutions: Solution, times: dict[str, float]
) -> _FitT:
    """Return the fit of the best start, with its uncertainty.

    Raises:
      ValueError: no start has a finite cost.
    """
    costs = np.asarray(solutions.cost, np.float64)
    best = int(np.argmin(costs))
    if not np.isfinite(costs[best]):
        raise ValueError(
            "fit: no start has a finite cost: the simulation diverges; check units and bounds, or "
            "use segments=..."
        )
    x = jax.device_put(np.asarray(solutions.x)[best])
    # Residual and Jacobian at the best point; Levenberg-Marquardt has their triangular factor.
    if solutions.triangle is None:
        r, J = StoredFunction(problem.jacobian, "the derivative of the fit", tier="fast")(x)
    else:
        triangle = np.asarray(solutions.triangle)[best]
        r, J = triangle[:, -1], triangle[:, :-1]
    found = uncertainty(r, J, rows=problem.rows, known_sigma=problem.known_sigma)
    return kind(problem, x, float(costs[best]), costs, solutions, found, times)
