"""A problem of optimal control: named residuals with weights and norms, and control limits.

    J = sum_t l(x_t, u_t) + l_T(x_T),   l = sum_i w_i n_i(r_i(x, u)),   l_T with terminal weights

Steps have equal weight, regardless of the time step. The residuals read the result of `forward` at
(x_t, u_t); at the end, where there is no control, `ctrl` is zero.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp

from jaxsim.control.norms import norm_named
from jaxsim.derivative.ctrl_limits import control_limits
from jaxsim.model.data import Data
from jaxsim.model.model import Model
from jaxsim.model.names import name2id
from jaxsim.model.record.check import brief_value

Residual = Callable[[Model, Data], jax.Array]
GoalResidual = Callable[[Model, Data, jax.Array], jax.Array]
Weight = Any  # a number or an array


@dataclass(frozen=True)
class Term:
    """One term of the cost.

    Weights, parameters and goals are traced: they can be changed, batched or differentiated without
    recompilation.

    Attributes:
      name: for messages and `Problem.costs`.
      residual: (m, d) -> a vector or a number, zero at the goal; or the name of a sensor.
      weight: weight of the cost at each step, at least 0.
      terminal: weight of the cost at the end; None: `weight`.
      norm: a name of the table in jaxsim/control/norms.py.
      parameters: parameters of the norm; (): its defaults.
      goal: third argument of the residual, such as a target position; None: the residual has two.
    """

    name: str
    residual: Residual | GoalResidual | str
    weight: Weight = 1.0
    terminal: Weight = None
    norm: str = "quadratic"
    parameters: tuple[Weight, ...] = ()
    goal: Any = None

    def __post_init__(self):
        known = norm_named(self.norm)
        if not callable(self.residual) and not isinstance(self.residual, str):
            raise ValueError(
                f"residual of {self.name!r}: expected a function (m, d) -> vector or the name of "
                f"a sensor, got {brief_value(self.residual)}"
            )
        if self.goal is not None and not callable(self.residual):
            raise ValueError(
                f"goal of {self.name!r}: a sensor has none; give a residual (m, d, goal) -> vector"
            )
        if len(self.parameters) not in (0, len(known.defaults)):
            raise ValueError(
                f"parameters of {self.name!r}: norm {self.norm!r} has {len(known.defaults)}, got "
                f"{len(self.parameters)}"
            )

    def vector(self, m: Model, d: Data) -> jax.Array:
        """Return the residual, (n,)."""
        if not callable(self.residual):
            return _sensor(m, d, self.residual)
        goal = () if self.goal is None else (jnp.asarray(self.goal),)
        value = self.residual(m, d, *goal)
        return jnp.atleast_1d(jnp.asarray(value)).astype(m.qpos0.dtype).reshape(-1)

    def cost(self, r: jax.Array, terminal: bool = False) -> jax.Array:
        """Return the weighted norm of a residual (n,)."""
        norm = norm_named(self.norm)
        weight = self.weight if self.terminal is None or not terminal else self.terminal
        parameters = (jnp.asarray(p).astype(r.dtype) for p in self.parameters or norm.defaults)
        return jnp.asarray(weight).astype(r.dtype) * norm.function(r, *parameters)


@dataclass(frozen=True)
class Problem:
    """Costs and control limits of an optimal control problem.

    Attributes:
      terms: terms of the cost.
      lower, upper: limits of the controls, (nu,) each; None: those of the model.

    Example:
      >>> upright = Term("upright", lambda m, d: d.qpos - jnp.pi, weight=2.0, norm="l2")
      >>> slow = Term("slow", lambda m, d: d.qvel, weight=0.1)
      >>> problem = Problem([upright, slow])
      >>> {name: round(float(cost), 3) for name, cost in problem.costs(m, d).items()}
      {'upright': 6.086, 'slow': 0.0}
    """

    terms: Sequence[Term] = field(default=())
    lower: Any = None
    upper: Any = None

    def __post_init__(self):
        object.__setattr__(self, "terms", tuple(self.terms))
        names = [t.name for t in self.terms if isinstance(t, Term)]
        if len(names) != len(self.terms) or len(set(names)) != len(names):
            raise ValueError(f"terms: expected Terms of different names, got {names}")

    def limits(self, m: Model) -> tuple[jax.Array, jax.Array]:
        """Return the lower and upper limits of controls, (nu,) each; infinite where there is no
        limit."""
        low, high = control_limits(m)
        lower = low if self.lower is None else jnp.maximum(low, self.lower)
        upper = high if self.upper is None else jnp.minimum(high, self.upper)
        return lower.astype(m.qpos0.dtype), upper.astype(m.qpos0.dtype)

    def running(self, m: Model, d: Data) -> jax.Array:
        """Return the cost of a step, (): `d` is the world at (x, u), after `forward`."""
        return self.cost_of(self.residuals(m, d))

    def terminal(self, m: Model, d: Data) -> jax.Array:
        """Return the cost at the end, ()."""
        return self.cost_of(self.residuals(m, d), terminal=True)

    def costs(self, m: Model, d: Data, terminal: bool = False) -> dict[str, jax.Array]:
        """Return the cost of each term by name."""
        return {t.name: t.cost(t.vector(m, d), terminal) for t in self.terms}

    def residuals(self, m: Model, d: Data) -> tuple[jax.Array, ...]:
        """Return the residual of each term."""
        return tuple(t.vector(m, d) for t in self.terms)

    def cost_of(self, residuals: Sequence[jax.Array], terminal: bool = False) -> jax.Array:
        """Return the cost of given residuals, one per term."""
        each = zip(self.terms, residuals, strict=True)
        return sum((t.cost(r, terminal) for t, r in each), jnp.zeros((), residuals[0].dtype))


def _sensor(m: Model, d: Data, name: str) -> jax.Array:
    """Return the data of one sensor."""
    i = name2id(m, "sensor", name)
    if d.sensordata is None:
        raise ValueError(
            f"sensor {name!r}: this Data does not carry 'sensordata'; keep it: make_data(m, "
            "keep=['sensordata'])"
        )
    first = int(m.sensor_adr[i])
    return d.sensordata[first : first + int(m.sensor_dim[i])]


jax.tree_util.register_dataclass(
    Term,
    data_fields=["weight", "terminal", "parameters", "goal"],
    meta_fields=["name", "residual", "norm"],
)
jax.tree_util.register_dataclass(Problem, data_fields=["terms", "lower", "upper"], meta_fields=[])
