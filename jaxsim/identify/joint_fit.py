"""Joint fit of several models: parameters that they share are one unknown in all of them.

Examples are a robot with and without a load, two fingers of one make, a bench test and the whole
machine: each has its model and its recordings, and the vector of unknowns is

    x = [parameters by name, then states of the first model, of the second, ...]

The rows are those of all models in order; the prior of a shared parameter counts once.
"""

from collections.abc import Mapping
from collections.abc import Sequence as Many
from dataclasses import replace
from typing import Any, NoReturn

import jax
import jax.numpy as jnp
import numpy as np

from jaxsim.identify.estimation import Fit, best_fit, run_searches
from jaxsim.identify.forms import Form
from jaxsim.identify.parameter import Parameter, Parameters
from jaxsim.identify.parameter import parameters as make_parameters
from jaxsim.identify.residual import Problem
from jaxsim.identify.sequences import Sequence
from jaxsim.model.model import Model

Forms = Mapping[str, Form]


class JointProblem(Problem):
    """Several problems as one residual of one vector of unknowns.

    Args:
      problems: one for each model.
      shown: names of their parameters in the joint problem: equal names are one parameter.

    Attributes:
      problems: as given.
      parameters: parameters of all models, by name, in the order of their first occurrence.
    """

    def __init__(self, problems: Many[Problem], shown: Many[Mapping[str, str]]):
        self.problems = tuple(problems)
        merged: dict[str, Parameter] = {}
        for problem, names in zip(self.problems, shown, strict=True):
            for name, p in problem.parameters.items():
                number = names[name].removesuffix(name)  # prefix of a name that is not shared
                target = p.target._replace(labels=tuple(number + n for n in p.target.labels))
                merged.setdefault(names[name], replace(p, name=names[name], target=target))
        self.given = self.m = self.problems[0].m
        self.parameters = Parameters(self.m, merged)
        sizes = [0 if p.form.frozen else p.size for p in merged.values()]
        first = dict(zip(merged, np.cumsum([0, *sizes]), strict=False))
        # slots of the unknowns of each problem
        self._slots, at = [], self.parameters.size
        for problem, names in zip(self.problems, shown, strict=True):
            free = [(names[n], p) for n, p in problem.parameters.items() if not p.form.frozen]
            own = [np.arange(first[name], first[name] + p.size) for name, p in free]
            states = problem.size - problem.parameters.size
            self._slots.append(np.concatenate([*own, np.arange(at, at + states)]).astype(int))
            at += states
        self.size = int(at)
        self.rows = sum(problem.rows for problem in self.problems)
        self.known_sigma = all(problem.known_sigma for problem in self.problems)
        self.sequences = tuple(s for problem in self.problems for s in problem.sequences)
        self.samples = [s for problem in self.problems for s in problem.samples]
        self.names = tuple(dict.fromkeys(n for problem in self.problems for n in problem.names))

    def __repr__(self) -> str:
        return f"JointProblem({len(self.problems)} models, {self.size} unknowns, {self.rows} rows)"

    def start(self, theta: jax.Array) -> jax.Array:
        """Return the unknowns with these parameters and the given states, (size,)."""
        return jnp.concatenate([theta, jnp.zeros(self.size - len(theta), theta.dtype)])

    def residual(self, x: jax.Array) -> jax.Array:
        """Return all rows, those of the first model first, (n,)."""
        each = zip(self.problems, self._slots, strict=True)
        return jnp.concatenate([problem.residual(x[slots]) for problem, slots in each])

    def jacobians(self, x: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Return residuals (starts, n) and exact derivatives (starts, n, size) of all starts."""
        residuals, columns = [], []
        for problem, slots in zip(self.problems, self._slots, strict=True):
            r, J = problem.jacobians(x[:, slots])
            wide = jnp.zeros((*r.shape, self.size), J.dtype)
            residuals.append(r)
            columns.append(wide.at[:, :, slots].set(J))
        return jnp.concatenate(residuals, 1), jnp.concatenate(columns, 1)

    def predictions(self, x: jax.Array) -> list[np.ndarray]:
        """Return the prediction of each sample of each sequence, in the order of `samples`."""
        each = zip(self.problems, self._slots, strict=True)
        return [p for problem, slots in each for p in problem.predictions(x[slots])]

    def of(self, number: int, x: jax.Array) -> jax.Array:
        """Return the unknowns of one of the problems."""
        return x[self._slots[number]]


class JointFit(Fit):
    """Result of a fit of several models; see `Fit`. `models` has one of each."""

    problem: JointProblem

    @property
    def model(self) -> NoReturn:
        """Raise ValueError, as there are several models."""
        raise ValueError("model: this fit has several models; use `models`")

    @property
    def models(self) -> list[Model]:
        """Return the models with the fitted values, in the given order."""
        found = []
        for number, problem in enumerate(self.problem.problems):
            theta = self.problem.of(number, self.x)[: problem.parameters.size]
            m = problem.model(theta)
            flags = problem.given.opt.disableflags
            found.append(m.replace(opt=m.opt.replace(disableflags=flags)))
        return found


def fit_models(
    models: Many[Model],
    forms: Forms | Many[Forms],
    sequences: Many[Sequence | Many[Sequence]],
    *,
    own: Many[str] = (),
    segments: int | None = None,
    tolerance: float = 1e-4,
    tied: bool = True,
    robust: float | None = None,
    **options: Any,
) -> JointFit:
    """Fit the parameters of several models to their recordings.

    Args:
      models: the models.
      forms: names and forms as for `identify.parameters`, those of each model, or one mapping for
        all of them. A name that several models have is one unknown, a factor for `scale`.
      sequences: one recording or several for each model.
      own: names that are not shared; that of model 1 becomes `1/joint:hinge/damping`.
      segments, tolerance, tied, robust: those of `fit`.
      options: `starts`, `key`, `optimizer`, `iterations`, `batch`, `tier` of `fit`.

    Returns:
      A `JointFit`; its `models` have the fitted values.

    Raises:
      ValueError: the numbers of models, forms and sequences differ, a shared parameter has another
        form or size in another model, or an error of `fit`.
    """
    each: list[Forms] = [forms] * len(models) if isinstance(forms, Mapping) else list(forms)
    if not len(models) == len(each) == len(sequences) or not models:
        raise ValueError(
            f"fit_models: expected equally many, got {len(models)} models, {len(each)} forms, "
            f"{len(sequences)} lists of sequences"
        )
    known = {name for given in each for name in given}
    unknown = [name for name in own if name not in known]
    if unknown:
        raise ValueError(f"own: {unknown[0]!r} is not among the names of the parameters")
    seen: dict[str, tuple[Form, Parameter]] = {}
    problems, shown = [], []
    for number, (m, given, recorded) in enumerate(zip(models, each, sequences, strict=True)):
        names = {name: f"{number}/{name}" if name in own else name for name in given}
        # the prior of a shared parameter is that of the first model which has it
        alone = {n: replace(f, sd=None) if names[n] in seen else f for n, f in given.items()}
        made = make_parameters(m, alone)
        for name, p in made.items():
            _check_shared(name, given[name], p, seen.get(names[name]))
            seen.setdefault(names[name], (given[name], p))
        how: dict[str, Any] = {"tolerance": tolerance, "tied": tied, "robust": robust}
        problems.append(Problem(m, made, recorded, segments=segments, **how))
        shown.append(names)
    problem = JointProblem(problems, shown)
    return best_fit(JointFit, problem, *run_searches(problem, **options))


def _check_shared(
    name: str, form: Form, p: Parameter, first: tuple[Form, Parameter] | None
) -> None:
    """Raise ValueError if a parameter cannot be that of an earlier model."""
    if first is None:
        return
    if form != first[0]:
        raise ValueError(f"{name}: has two forms, {first[0]} and {form}; name it in own=")
    if p.size != first[1].size:
        raise ValueError(
            f"{name}: selects {first[1].size} values in one model, {p.size} in another"
        )
    if form.kind == "inertia" and not np.allclose(p.nominal, first[1].nominal):
        raise ValueError(
            f"{name}: an inertia is searched about that of the model, and those of the models "
            "differ; name it in own="
        )
