"""Forms of identified parameters: bounds, prior, and the map from unknowns to values.

The unknown u of a number is real and of order one. The number is v = b g(u), where g is

    linear                 c + s u
    linear, bounded        low + (high - low) / (1 + exp(-u))
    log, scale             exp of one of these, with the logarithms of c, low and high

and b = 1, or the number of the model for `scale`. Every u is within the bounds, and for `log` and
`scale` steps of equal length in u are equal ratios of v.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

_START_MARGIN = 0.01  # part of the range by which a start is kept off its ends
_DRAW_MARGIN = 0.05  # part of the range at each end in which no start is drawn
_SEARCH_MARGIN = 1e-6  # part of the range by which a search is kept off its ends
_MAX_BOUND_STEP = 0.9  # largest part of the distance to a bound that one step takes
_UNBOUNDED_SPREAD = 0.5  # spread of drawn starts without bounds or prior, in units of u


@dataclass(frozen=True)
class Form:
    """Form of a parameter; returned by `linear`, `log`, `scale` and `pseudo_inertia`.

    Attributes:
      kind: "linear", "log", "scale" or "inertia".
      low, high: bounds of the number; of the factor for "scale"; None: no bounds.
      nominal: the first guess; None: the value of the model.
      mean: mean of the prior; None: the first guess.
      sd: standard deviation of the prior, relative (of the logarithm) for "log" and "scale"; None:
        there is no prior.
      share: all objects that the name selects have one unknown.
      frozen: the number stays at its first guess.
    """

    kind: str
    low: float | None = None
    high: float | None = None
    nominal: float | None = None
    mean: float | None = None
    sd: float | None = None
    share: bool = False
    frozen: bool = False

    def __post_init__(self):
        if (self.low is None) != (self.high is None):
            raise ValueError(f"{self.kind}: give both bounds or none, got {self.low}, {self.high}")
        if self.low is not None and self.high is not None and not self.low < self.high:
            raise ValueError(f"{self.kind}: expected low < high, got {self.low}, {self.high}")
        if self.logarithmic and self.low is not None and self.low <= 0:
            raise ValueError(f"{self.kind}: expected bounds above 0, got low = {self.low}")
        if self.logarithmic and self.mean is not None and not self.mean > 0:
            raise ValueError(f"{self.kind}: mean: expected a number above 0, got {self.mean}")
        if self.mean is not None and self.sd is None:
            raise ValueError(f"{self.kind}: mean: a prior has a deviation too, give sd")
        if self.sd is not None and not self.sd > 0:
            raise ValueError(f"{self.kind}: sd: expected a number above 0, got {self.sd}")

    @property
    def logarithmic(self) -> bool:
        """Return whether the logarithm of the number is searched."""
        return self.kind in ("log", "scale")


def linear(
    low=None, high=None, *, nominal=None, mean=None, sd=None, share=False, frozen=False
) -> Form:
    """Return the form of a number of any sign, searched without a transformation.

    Bounds, first guess and prior are in the unit of the parameter.

    Args:
      low, high: bounds of the number; both or none.
      nominal: the first guess; None: the value of the model.
      mean, sd: mean and standard deviation of a normal prior; without `sd` there is no prior,
        without `mean` its mean is the first guess.
      share: one unknown for all objects that the name selects.
      frozen: the number stays at its first guess.
    """
    return Form("linear", low, high, nominal, mean, sd, share, frozen)


def log(
    low=None, high=None, *, nominal=None, mean=None, sd=None, share=False, frozen=False
) -> Form:
    """Return the form of a positive number whose logarithm is searched.

    The arguments are those of `linear`; `sd` is relative. Where the model has 0, the first guess is
    the middle of the bounds.
    """
    return Form("log", low, high, nominal, mean, sd, share, frozen)


def scale(low=None, high=None, *, mean=None, sd=None, share=False, frozen=False) -> Form:
    """Return the form of a positive factor on the number of the model, searched by its logarithm.

    Args:
      low, high: bounds of the factor.
      mean, sd: mean and standard deviation of the prior of the factor; `sd` is relative.
      share: one factor for all objects that the name selects; else each has its own. A shared
        factor on masses or inertias multiplies those that follow from sizes and densities among the
        parameters. Otherwise the product of factor and number in the model replaces them.
      frozen: the number stays at its first guess.
    """
    return Form("scale", low, high, None, mean, sd, share, frozen)


def pseudo_inertia(*, sd: float | None = None, frozen: bool = False) -> Form:
    """Return the form of mass, center of mass and inertia of a body: ten physical unknowns.

    Args:
      sd: standard deviation of a normal prior around the body of the model, in the coordinates of
        `identify/inertia.py` with lengths in radii of gyration: about the relative uncertainty.
      frozen: the body stays as in the model.
    """
    return Form("inertia", sd=sd, frozen=frozen)


class Map(NamedTuple):
    """Map from unknowns to numbers, (n,) each; see the module's documentation.

    Attributes:
      form: the form that it was created from.
      base: b.
      center, length: c and s.
      start: unknowns of the first guess.
      mean: mean of the prior, of the logarithm for "log" and "scale".
    """

    form: Form
    base: np.ndarray
    center: np.ndarray
    length: np.ndarray
    start: np.ndarray
    mean: np.ndarray

    def to_search_scale(self, u: jax.Array) -> jax.Array:
        """Return g (n,), or its logarithm for "log" and "scale"."""
        if self.form.low is None:
            return _as(self.center, u) + _as(self.length, u) * u
        low, high = ends(self.form)
        return low + (high - low) * jax.nn.sigmoid(u)

    def value(self, u: jax.Array) -> jax.Array:
        """Return the numbers, (n,)."""
        v = self.to_search_scale(u)
        return _as(self.base, u) * (jnp.exp(v) if self.form.logarithmic else v)

    def slope(self, u: jax.Array) -> jax.Array:
        """Return the derivative of g, (n,)."""
        if self.form.low is None:
            slope = _as(self.length, u)
        else:
            low, high = ends(self.form)
            slope = (high - low) * jax.nn.sigmoid(u) * jax.nn.sigmoid(-u)
        return slope * jnp.exp(self.to_search_scale(u)) if self.form.logarithmic else slope

    def apply_change(self, u: jax.Array, change: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return the unknowns after a change of g, limited by the bounds.

        Returns:
          The new unknowns (n,), and the change of g that was applied (n,).
        """
        # Current value and its bounds.
        logarithmic = self.form.logarithmic
        v = self.to_search_scale(u)
        g = jnp.exp(v) if logarithmic else v
        low, high = (0.0 if logarithmic else -jnp.inf), jnp.inf
        if self.form.low is not None and self.form.high is not None:
            low, high = self.form.low, self.form.high
        # Stop short of the bound in the direction of the change.
        margin = jnp.maximum(jnp.where(change > 0, high - g, g - low), 0)
        change = jnp.sign(change) * jnp.minimum(jnp.abs(change), _MAX_BOUND_STEP * margin)
        # Invert g.
        v = jnp.log(g + change) if logarithmic else g + change
        if self.form.low is None:
            return (v - _as(self.center, u)) / _as(self.length, u), change
        first, last = ends(self.form)
        part = jnp.clip((v - first) / (last - first), _SEARCH_MARGIN, 1 - _SEARCH_MARGIN)
        return jax.scipy.special.logit(part), change

    def unknown(self, value: np.ndarray) -> np.ndarray:
        """Return the unknowns of numbers within the bounds, (n,)."""
        v = np.asarray(value, np.float64) / self.base
        v = np.log(v) if self.form.logarithmic else v
        if self.form.low is None:
            return (v - self.center) / self.length
        low, high = ends(self.form)
        return _logit((v - low) / (high - low))

    def prior(self, u: jax.Array) -> jax.Array:
        """Return the rows of the prior, (n,); (0,) without one."""
        if self.form.sd is None:
            return u[:0]
        return (self.to_search_scale(u) - _as(self.mean, u)) / self.form.sd

    def draw(self, key: jax.Array) -> jax.Array:
        """Return the unknowns of a random start, (n,)."""
        # Uniform between the bounds; else normal, with the prior or about the first guess.
        n, dtype = len(self.start), jnp.result_type(float)
        if self.form.low is not None:
            part = jax.random.uniform(key, (n,), dtype, _DRAW_MARGIN, 1 - _DRAW_MARGIN)
            return jax.scipy.special.logit(part)
        middle, spread = self.start, np.full(n, _UNBOUNDED_SPREAD)
        if self.form.sd is not None:
            middle, spread = (self.mean - self.center) / self.length, self.form.sd / self.length
        noise = jax.random.normal(key, (n,), dtype)
        return jnp.asarray(middle, dtype) + jnp.asarray(spread, dtype) * noise


def ends(form: Form) -> tuple[float, float]:
    """Return the bounds of a bounded form, or their logarithms for "log" and "scale"."""
    low, high = float(form.low or 0), float(form.high or 0)
    return (float(np.log(low)), float(np.log(high))) if form.logarithmic else (low, high)


def make_map(name: str, form: Form, nominal: np.ndarray) -> Map:
    """Return the map from the unknowns of a parameter to its numbers.

    Args:
      name: name of the parameter, for messages.
      form: form of the parameter.
      nominal: the numbers of the model, (n,); 1 for a shared factor.

    Raises:
      ValueError: the form does not allow the first guess.
    """
    guess = nominal if form.nominal is None else np.full_like(nominal, form.nominal)
    # The number is base times g: a factor of the number of the model, or the number itself.
    base = np.ones_like(guess)
    if form.kind == "scale":
        if not guess.all():
            raise ValueError(f"{name}: scale: the model has 0 there; use linear or log")
        base, guess = guess, np.ones_like(guess)
    guess = _check_guesses(name, form, guess)
    v = np.log(guess) if form.logarithmic else guess
    length = np.ones_like(v)
    if not form.logarithmic:
        length = np.where(v != 0, np.abs(v), 1.0) if form.sd is None else np.full_like(v, form.sd)
    # The unknown of the first guess: 0, or within the bounds its logit.
    start = np.zeros_like(v)
    if form.low is not None:
        low, high = ends(form)
        start = _logit(np.clip((v - low) / (high - low), _START_MARGIN, 1 - _START_MARGIN))
    if form.mean is None:
        mean = v
    else:
        mean = np.full_like(v, form.mean)
        mean = np.log(mean) if form.logarithmic else mean
    return Map(form, base, v, length, start, mean)


def _check_guesses(name: str, form: Form, guess: np.ndarray) -> np.ndarray:
    """Return first guesses within the bounds; a 0 of a log form becomes their middle."""
    if form.kind == "log":
        if form.low is not None and form.high is not None:
            guess = np.where(guess == 0, np.sqrt(form.low * form.high), guess)
        if (guess <= 0).any():
            raise ValueError(
                f"{name}: log: expected a number above 0, the first guess is {guess.min():g}; give "
                "bounds, nominal=..., or use scale or linear"
            )
    if form.low is not None and ((guess < form.low) | (guess > form.high)).any():
        wrong = guess[(guess < form.low) | (guess > form.high)][0]
        raise ValueError(
            f"{name}: the first guess {wrong:g} is not within [{form.low:g}, {form.high:g}]; widen "
            "the bounds, or give nominal=..."
        )
    return guess


def _logit(part: np.ndarray) -> np.ndarray:
    return np.log(part) - np.log1p(-part)


def _as(a: np.ndarray, like: jax.Array) -> jax.Array:
    return jnp.asarray(a, like.dtype)
