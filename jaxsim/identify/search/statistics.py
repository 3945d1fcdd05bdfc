"""Uncertainty of the unknowns: covariance, correlation, confidence intervals, collinearity.

With rows of unit variance the covariance of the unknowns is (J' J)^-1; where the noise is not known
it is multiplied by s^2 = |r|^2 / (rows - unknowns). It is computed from the singular values of J
with columns of unit length, so that it does not depend on units (Belsley, Kuh, Welsch 1980).
Directions without effect are undetermined: an unknown with a component in one has an infinite
standard deviation.
"""

from collections.abc import Sequence as Many
from dataclasses import dataclass

import jax
import numpy as np
from scipy import special  # its statistics take a second to import

from jaxsim.escape import line
from jaxsim.identify.parameter import Parameters
from jaxsim.transforms.platform import quick_jit

_RANK_POWER = 0.7  # exponent of the machine epsilon: relative singular values below are zero
_MIN_PARTICIPATION = 0.05  # component in a direction below which a parameter does not take part
_TRADE_CORRELATION = (
    0.95  # correlation above which two parameters are reported to trade against each other
)


@dataclass(frozen=True)
class Uncertainty:
    """Uncertainty of the unknowns at the optimum; numpy, float64.

    Attributes:
      covariance: covariance of the unknowns, (n, n); infinite where they are undetermined.
      sd: standard deviations of the unknowns, (n,).
      correlation: (n, n); 0 where they are undetermined.
      singular: singular values of J with columns of unit length, (n,), descending.
      rank: number of nonzero singular values.
      condition: the largest over the smallest.
      lost: directions without effect, (n - rank, n).
      chi2: sum of the squared rows.
      freedom: degrees of freedom: rows less unknowns that have an effect.
      noise: s, the factor by which sigma was too small.
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
        """Return the half width of an interval in standard deviations, normal or Student's."""
        if not 0 < level < 1:
            raise ValueError(f"level: expected a number between 0 and 1, got {level!r}")
        below = 0.5 + level / 2
        if self.known_sigma:
            return float(special.ndtri(below))
        return float(special.stdtrit(max(self.freedom, 1), below))


def uncertainty(r, J, *, rows: int | None = None, known_sigma: bool = True) -> Uncertainty:
    """Return the uncertainty of the unknowns from a residual and its Jacobian.

    Args:
      r: the residual at the optimum, (m,).
      J: its derivative, (m, n).
      rows: number of rows without padding; None: m.
      known_sigma: the rows have unit variance; else it is estimated from them.
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
    """Return the covariance of the unknowns and half widths of their intervals.

    The noise is estimated from r.

    Args:
      r: the residual at the optimum, (m,).
      J: its derivative, (m, n).
      alpha: probability of being outside of the interval.

    Returns:
      covariance (n, n), half widths (n,).
    """
    u = uncertainty(r, J, known_sigma=False)
    return u.covariance, u.quantile(1 - alpha) * u.sd


def value_uncertainty(
    parameters: Parameters, theta: jax.Array, covariance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return covariance and standard deviations of the values, by the slopes of their maps.

    Args:
      parameters: the parameters.
      theta: their unknowns, (k,).
      covariance: covariance of the unknowns, (k, k).
    """
    slope = np.asarray(quick_jit(jax.jacfwd(parameters.numbers))(theta), np.float64)
    finite = np.isfinite(np.diag(covariance))
    known = np.where(np.outer(finite, finite), covariance, 0.0)
    found = slope @ known @ slope.T
    lost = (np.abs(slope[:, ~finite]) > 0).any(1)
    found[lost], found[:, lost] = np.inf, np.inf
    return found, np.sqrt(np.diag(found))


def intervals(
    parameters: Parameters, theta: jax.Array, sd: np.ndarray, value_sd: np.ndarray, half: float
) -> np.ndarray:
    """Return the ends of the intervals of the values, (k, 2), within their bounds.

    The ends for a number are the images of the ends of its unknown; for an inertia, the values plus
    and minus `half` standard deviations.
    """
    values = parameters.host_numbers(theta)
    ends = np.stack([values - half * value_sd, values + half * value_sd], 1)
    u = np.asarray(theta, np.float64)
    reach = np.minimum(half * sd, 700.0)
    kind = np.asarray(theta).dtype
    images = np.stack([parameters.host_numbers((u + s * reach).astype(kind)) for s in (-1, 1)], 1)
    at = 0
    for p in parameters.values():
        if p.form.frozen:
            continue
        mine = slice(at, at + p.size)
        at += p.size
        if p.form.kind != "inertia":
            ends[mine] = np.sort(images[mine], 1)
    return ends


def warnings(u: Uncertainty, names: Many[str]) -> list[str]:
    """Return messages on undetermined, correlated or badly explained data."""
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
        # `chdtri` takes the probability above its result.
        low, high = special.chdtri(u.freedom, np.array([0.999, 0.001])) / u.freedom
        if not low <= u.noise**2 <= high:
            found.append(
                f"chi2 per degree of freedom is {u.noise**2:.3g}, expected {low:.3g} to "
                f"{high:.3g}: sigma is not that of the noise, or the model cannot explain the data"
            )
    return found
