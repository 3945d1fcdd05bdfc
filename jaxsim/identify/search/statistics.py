"""How well the unknowns are known: covariance, correlation, intervals, what trades against what.

With rows of unit variance the covariance of the unknowns is (J' J)^-1; where the noise is not
known it is times s^2 = |r|^2 / (rows - unknowns). It is taken from the singular values of J with
columns of unit length, so that it does not depend on units (Belsley, Kuh, Welsch 1980). Along a
direction without effect nothing is known: what has a part in it has an infinite deviation.
"""

from collections.abc import Sequence as Many
from dataclasses import dataclass

import jax
import numpy as np
from scipy import stats

from jaxsim.escape import line
from jaxsim.identify.parameter import Parameters

_RANK_POWER = 0.7  # power of the precision: a singular value that is none, beside the largest
_MIN_PARTICIPATION = 0.05  # part in a direction below which a parameter has none
_TRADE_CORRELATION = 0.95  # correlation from which two parameters are said to trade


@dataclass(frozen=True)
class Uncertainty:
    """What the data say of the unknowns, at the optimum; numpy, float64.

    Attributes:
      covariance: of the unknowns, (n, n); infinite where nothing is known.
      sd: standard deviations of the unknowns, (n,).
      correlation: (n, n); 0 where nothing is known.
      singular: singular values of J with columns of unit length, (n,), falling.
      rank: how many of them are not 0.
      condition: the largest over the smallest.
      lost: directions without effect, (n - rank, n).
      chi2: sum of the squared rows.
      freedom: rows less unknowns that have an effect.
      noise: s, by which sigma was too small; 1 where the noise was found from it.
      known_sigma: whether sigma was given.
    """

    covariance: np.ndarray
    sd: np.ndarray
    correlation: np.ndarray
    singular: np.ndarray
    rank: int
    condition: float
    lost: np.ndarray
    chi2: float
    freedom: int
    noise: float
    known_sigma: bool

    def quantile(self, level: float) -> float:
        """Half an interval of a level, in standard deviations: of the normal law, or Student's."""
        if not 0 < level < 1:
            raise ValueError(f"level: expected a number between 0 and 1, got {level!r}")
        law = stats.norm if self.known_sigma else stats.t(max(self.freedom, 1))
        return float(law.ppf(0.5 + level / 2))


def uncertainty(r, J, *, rows: int | None = None, known_sigma: bool = True) -> Uncertainty:
    """What a residual and its Jacobian say of the unknowns.

    Args:
      r: the residual at the optimum, (m,).
      J: its derivative, (m, n).
      rows: how many rows count; None: m.
      known_sigma: the rows have unit variance; else it is found from them.
    """
    precision = float(np.finfo(np.asarray(J).dtype).eps)
    r, J = np.asarray(r, np.float64), np.asarray(J, np.float64)
    n = J.shape[1]
    length = np.linalg.norm(J, axis=0)
    length = np.where(length > 0, length, 1.0)
    _, S, Vt = np.linalg.svd(J / length, full_matrices=len(J) < n)
    S = np.concatenate([S, np.zeros(n - len(S))])
    rank = int((S[0] * precision**_RANK_POWER < S).sum()) if n else 0
    chi2 = float(r @ r)
    freedom = (len(r) if rows is None else rows) - rank
    square = chi2 / freedom if freedom > 0 else np.nan
    half = Vt[:rank].T / S[:rank] / length[:, None]
    covariance = half @ half.T * (1.0 if known_sigma else square)
    sd = np.sqrt(np.diag(covariance))
    with np.errstate(invalid="ignore", divide="ignore"):
        correlation = covariance / np.outer(sd, sd)
    unknown = (np.abs(Vt[rank:]) > _MIN_PARTICIPATION).any(0)
    covariance[unknown], covariance[:, unknown], sd[unknown] = np.inf, np.inf, np.inf
    correlation[unknown], correlation[:, unknown] = 0.0, 0.0
    np.fill_diagonal(correlation, 1.0)
    condition = S[0] / S[-1] if n and S[-1] > 0 else np.inf
    noise = float(np.sqrt(square))
    return Uncertainty(
        covariance,
        sd,
        correlation,
        S,
        rank,
        condition,
        Vt[rank:],
        chi2,
        freedom,
        noise,
        known_sigma,
    )


def calculate_intervals(r, J, alpha: float = 0.05) -> tuple[np.ndarray, np.ndarray]:
    """Covariance of the unknowns and half widths of their intervals; the noise is found from r.

    Args:
      r: the residual at the optimum, (m,).
      J: its derivative, (m, n).
      alpha: probability of being outside of the interval.

    Returns:
      covariance (n, n), half widths (n,).
    """
    u = uncertainty(r, J, known_sigma=False)
    return u.covariance, u.quantile(1 - alpha) * u.sd


def of_values(
    parameters: Parameters, theta: jax.Array, covariance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Covariance and standard deviations of the values, by the slopes of their maps.

    Args:
      parameters: the parameters.
      theta: their unknowns, (k,).
      covariance: of the unknowns, (k, k).
    """
    slope = np.asarray(jax.jacfwd(parameters.numbers)(theta), np.float64)
    finite = np.isfinite(np.diag(covariance))
    known = np.where(np.outer(finite, finite), covariance, 0.0)
    found = slope @ known @ slope.T
    lost = (np.abs(slope[:, ~finite]) > 0).any(1)
    found[lost], found[:, lost] = np.inf, np.inf
    return found, np.sqrt(np.diag(found))


def intervals(
    parameters: Parameters, theta: jax.Array, sd: np.ndarray, value_sd: np.ndarray, half: float
) -> np.ndarray:
    """Ends of the intervals of the values, (k, 2), within their bounds.

    Those of a single number are the images of the ends of its unknown; those of an inertia lie
    `half` standard deviations on both sides.
    """
    values = np.asarray(parameters.numbers(theta), np.float64)
    ends = np.stack([values - half * value_sd, values + half * value_sd], 1)
    at = 0
    for p in parameters.values():
        if p.form.frozen:
            continue
        mine = slice(at, at + p.size)
        at += p.size
        if p.form.kind != "inertia":
            u = np.asarray(theta, np.float64)[mine]
            reach = np.minimum(half * sd[mine], 700.0)
            images = [np.asarray(p.map.value(jax.numpy.asarray(u + s * reach))) for s in (-1, 1)]
            ends[mine] = np.sort(np.stack(images, 1), 1)
    return ends


def warnings(u: Uncertainty, names: Many[str]) -> list[str]:
    """What a person should know before trusting the numbers, in words."""
    names, found = [line(name) for name in names], []
    for direction in u.lost:
        parts = np.flatnonzero(np.abs(direction) > _MIN_PARTICIPATION)
        parts = parts[np.argsort(-np.abs(direction[parts]), kind="stable")]
        if len(parts) == 1:
            found.append(f"{names[parts[0]]} has no effect on what was measured")
            continue
        shown = ", ".join(f"{names[i]} ({direction[i]:+.2f})" for i in parts[:6])
        more = f" and {len(parts) - 6} more" if len(parts) > 6 else ""
        found.append(f"not told apart by the data: {shown}{more}")
    upper = np.triu(np.abs(u.correlation), 1)
    pairs = np.argwhere(upper > _TRADE_CORRELATION)
    for i, j in sorted(map(tuple, pairs), key=lambda p: -upper[p])[:20]:
        c = u.correlation[i, j]
        found.append(f"{names[i]} trades against {names[j]} (correlation {c:+.3f})")
    if u.known_sigma and u.freedom > 0:
        low, high = stats.chi2(u.freedom).ppf([0.001, 0.999]) / u.freedom
        if not low <= u.noise**2 <= high:
            found.append(
                f"chi2 per degree of freedom is {u.noise**2:.3g}, expected {low:.3g} to "
                f"{high:.3g}: sigma is not that of the noise, or the model cannot explain the data"
            )
    return found
