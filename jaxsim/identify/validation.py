"""Prediction of recordings that a fit has not seen, and cross-validation over recordings."""

from collections.abc import Mapping
from collections.abc import Sequence as Many
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.control.solve.levenberg_marquardt import levenberg_marquardt
from jaxsim.escape import line
from jaxsim.identify.estimation import Fit, fit
from jaxsim.identify.forms import Form
from jaxsim.identify.parameter import Parameters
from jaxsim.identify.residual import Problem
from jaxsim.identify.sequences import Sequence
from jaxsim.model.model import Model
from jaxsim.physics.public.arguments import check_count


@dataclass(frozen=True, eq=False)
class Validation:
    """Quality of the prediction of recordings.

    Attributes:
      problem: the recordings.
      x: the unknowns; those of states were fitted.
      predictions: prediction of each sample of each sequence, in the order of `problem.samples`.
      rms: root mean square of the residual by signal, in its unit.
      chi2: mean square of the residual over sigma: about 1 if the model explains all but noise.
    """

    problem: Problem
    x: jax.Array
    predictions: list[np.ndarray]
    rms: dict[str, float]
    chi2: float

    def __repr__(self) -> str:
        rms = ", ".join(f"{line(n)} {value:.3g}" for n, value in self.rms.items())
        return f"Validation(chi2 {self.chi2:.4g}; rms: {rms})"


def validate(found: Fit, sequences: Sequence | Many[Sequence]) -> Validation:
    """Predict recordings with the parameters of a fit.

    Unknown initial states of a recording (`Sequence.estimate`) are fitted to it; the parameters are
    fixed.

    Args:
      found: the fit.
      sequences: recordings that it has not seen.
    """
    problem = Problem(found.problem.given, found.parameters, sequences)
    x = problem.start(found.theta)
    known = len(found.theta)
    if problem.size > known:

        def residual(z: jax.Array) -> jax.Array:
            return problem.residual(jnp.concatenate([found.theta, z]))

        z = jax.jit(lambda z: levenberg_marquardt(residual, z).x)(x[known:])
        x = jnp.concatenate([found.theta, z])
    predictions = problem.predictions(x)
    errors: dict[str, list] = {n: [] for n in problem.names}
    weighted = []
    for s, p in zip(problem.samples, predictions, strict=True):
        known_ = np.isfinite(p)
        for k, name in enumerate(s.names):
            mine = known_ & (s.signal == k)
            errors[name].append((p - s.value)[mine])
        weighted.append(((p - s.value) * s.weight)[known_])
    rms = {n: float(np.sqrt(np.mean(np.concatenate(e) ** 2))) for n, e in errors.items()}
    chi2 = float(np.mean(np.concatenate(weighted) ** 2))
    if not problem.known_sigma:
        chi2 /= found.uncertainty.noise**2
    return Validation(problem, x, predictions, rms, chi2)


@dataclass(frozen=True, eq=False)
class CrossValidation:
    """Fits that each leave out some recordings.

    Attributes:
      fits: fit of each fold.
      held: prediction of the recordings that each leaves out.
      values: values of each fold, (folds, k).
    """

    fits: list[Fit]
    held: list[Validation]
    values: np.ndarray

    @property
    def chi2(self) -> float:
        """Return the mean chi2 of the recordings that were left out."""
        return float(np.mean([v.chi2 for v in self.held]))

    def __repr__(self) -> str:
        return f"CrossValidation({len(self.fits)} folds, chi2 held back {self.chi2:.4g})"


def cross_validate(
    m: Model,
    parameters: Parameters | Mapping[str, Form],
    sequences: Many[Sequence],
    *,
    folds: int | None = None,
    **options,
) -> CrossValidation:
    """Fit with each fold of recordings left out, and predict these.

    An overfitted model predicts unseen recordings worse than seen ones: the chi2 of the recordings
    that were left out is then well above 1.

    Args:
      m, parameters: those of `fit`.
      sequences: two recordings or more.
      folds: number of parts that they are divided into; None: each recording is one.
      options: arguments of `fit`.
    """
    sequences = list(sequences)
    folds = len(sequences) if folds is None else check_count("folds", folds)
    if not 2 <= folds <= len(sequences):
        raise ValueError(
            f"folds: expected at least 2, at most as many as there are sequences "
            f"({len(sequences)}), got {folds}"
        )
    fits, held = [], []
    for k in range(folds):
        seen = [s for i, s in enumerate(sequences) if i % folds != k]
        fits.append(fit(m, parameters, seen, **options))
        held.append(validate(fits[-1], sequences[k::folds]))
    return CrossValidation(fits, held, np.stack([f.values for f in fits]))
