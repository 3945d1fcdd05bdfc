"""Domain randomization: models that differ between worlds.

Constants that depend on a changed mass or length (inverse weights, tendon lengths, statistics) are
recomputed by `set_const`. Leaves that differ between worlds are determined by dependence analysis
of the traced function: a leaf that does not depend on the random key stays shared by all worlds.
Fields that were compiled out, as they were zero when the model was loaded, are traced in the models
that are drawn.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.extend.core
import numpy as np

from jaxsim.envs.core.checks import check_keys
from jaxsim.envs.ranges.change import ChangeFunction, Ranges, change_of
from jaxsim.identify.parameter import INDEPENDENT
from jaxsim.io.assemble import live_model
from jaxsim.model.model import Model
from jaxsim.model.option import Option
from jaxsim.physics.constants.set_const import set_const
from jaxsim.transforms.primitive import PHYSICS_P, program_of

# primitives that call a program, and how to read it from the equation
CALLS: dict[str, Callable[[Any], jax.extend.core.ClosedJaxpr]] = {
    "jit": lambda eqn: eqn.params["jaxpr"],
    "custom_jvp_call": lambda eqn: eqn.params["call_jaxpr"],
    PHYSICS_P.name: program_of,
}


class Drawing(NamedTuple):
    """A random model: the leaves that are drawn, and the function that draws them.

    Attributes:
      m: the model, with the structure of the changed models, which a replaced leaf may determine.
      change: function from a model and a key to new leaves by name.
      derive: whether `set_const` recomputes the constants that depend on the leaves.
      differs: for each leaf of the model, whether it depends on the key.
    """

    m: Model
    change: ChangeFunction
    derive: bool
    differs: tuple[bool, ...]

    def leaves(self, key: jax.Array) -> list[jax.Array]:
        """Return the leaves of one world that differ."""
        leaves = jax.tree.leaves(_randomized_model(self.m, self.change, self.derive, key))
        return [x for x, d in zip(leaves, self.differs, strict=True) if d]

    def model(self, drawn: Sequence[jax.Array], m: Model | None = None) -> Model:
        """Return the model with drawn leaves, of one world or of many."""
        own, form = jax.tree.flatten(self.m)
        old = own if m is None else jax.tree.leaves(m)
        new = iter(drawn)
        return jax.tree.unflatten(
            form, [next(new) if d else x for x, d in zip(old, self.differs, strict=True)]
        )

    @property
    def axes(self) -> Any:
        """Return the axis of worlds of each leaf of the models, 0 or None."""
        form = jax.tree.structure(self.m)
        return jax.tree.unflatten(form, [0 if d else None for d in self.differs])


def random_model(m: Model, change: ChangeFunction | Ranges, *, derive: bool = True) -> Drawing:
    """Return the random model of a change; see `randomize`."""
    if not isinstance(m, Model):
        raise ValueError(f"randomize: m: expected a Model, got {type(m).__name__}")
    if isinstance(change, Mapping | list | tuple):
        change = change_of(m, change)
    elif not callable(change):
        raise ValueError(
            "randomize: change: expected ranges by name, or a function (m, key) -> leaves by "
            f"name, got {change!r}"
        )
    forms: list[Any] = []

    def leaves(key: jax.Array) -> list[jax.Array]:
        values, form = jax.tree.flatten(_randomized_model(m, change, derive, key))
        forms.append(form)
        return values

    program = jax.make_jaxpr(leaves)(jax.random.key(0))
    m = jax.tree.unflatten(forms[0], jax.tree.leaves(m))
    return Drawing(m, change, derive, tuple(dependent_outputs(program.jaxpr)))


def randomize(
    m: Model, keys: jax.Array, change: ChangeFunction | Ranges, *, derive: bool = True
) -> tuple[Model, Any]:
    """Return a model for each world.

    Args:
      m: the model.
      keys: random keys, one for each world, (worlds,).
      change: ranges of physical parameters by name (ranges/): `{"body:torso/mass": (0.8, 1.2)}`;
        or a function from the model and a key to new leaves by name: `{"geom_friction": ...}`.
      derive: whether `set_const` recomputes the constants that depend on the leaves.

    Returns:
      The model, with a leading axis of worlds in the leaves that differ; and 0 or None for each
      leaf, as `in_axes` of `jax.vmap` takes it.

    Raises:
      ValueError: the model has no such parameter or field, or no slot for it (a delay without a
        history); or the mass or inertia of a body became unphysical.

    Example:
      >>> keys = jax.random.split(jax.random.key(0), 4)
      >>> heavier = lambda m, k: {"body_mass": m.body_mass * (1 + jax.random.uniform(k))}
      >>> models, axes = randomize(m, keys, heavier)
      >>> models.body_mass.shape, axes.body_mass, models.geom_friction.shape, axes.geom_friction
      ((4, 2), 0, (1, 3), None)
    """
    check_keys("randomize: keys", keys)
    draw = random_model(m, change, derive=derive)
    models = draw.model(jax.jit(jax.vmap(draw.leaves))(keys))
    _check_bodies(models, draw.axes)
    return models, draw.axes


def _randomized_model(m: Model, change: ChangeFunction, derive: bool, key: jax.Array) -> Model:
    """Return the model of one world, with the constants that depend on the drawn leaves."""
    new: Any = change(m, key)
    if not isinstance(new, Mapping):
        fields = [n for n in ("body_mass", "geom_friction") if isinstance(new, Model)]
        like = "{" + ", ".join(f"{n!r}: new.{n}" for n in fields) + "}" if fields else "a dict"
        raise ValueError(
            f"randomize: change: expected new leaves by name, got a {type(new).__name__}; "
            f"return {like} of what has changed"
        )
    model = live_model(m, _leaf_names(m, new)).tree_replace(new)
    follows = derive and not all(n.startswith("opt") or n.endswith(INDEPENDENT) for n in new)
    return set_const(model) if follows else model


def _leaf_names(m: Model, new: Mapping[str, Any]) -> Iterator[str]:
    """Return the names of new leaves, "opt.density" for one of the options."""
    for name, value in new.items():
        if isinstance(value, Option):
            changed = (n for n in value.fields if getattr(value, n) is not getattr(m.opt, n))
            yield from (f"opt.{n}" for n in changed)
        yield name.removeprefix("_impl.")


def _check_bodies(models: Model, axes: Any) -> None:
    """Raise ValueError for unphysical masses and inertias, where values are concrete."""
    traced = (isinstance(x, jax.core.Tracer) for x in (models.body_mass, models.body_inertia))
    drawn = axes.body_mass is not None or axes.body_inertia is not None
    if not drawn or any(traced):
        return
    mass, moments = (np.asarray(x, np.float64) for x in (models.body_mass, models.body_inertia))
    total = moments.sum(axis=-1)
    tight = 1e-5 * total  # single precision; the compiler itself has a tighter bound
    wrong = (mass < 0) | (moments.min(axis=-1) < 0) | (2 * moments.max(axis=-1) > total + tight)
    if not wrong.any():
        return
    body = int(np.argwhere(wrong)[0][-1])
    row = np.broadcast_to(moments, (*wrong.shape, 3))[tuple(np.argwhere(wrong)[0])]
    raise ValueError(
        f"randomize: body {models.names['body'][body] or body!r} would have moments {row} or a "
        "negative mass, which is not physical; draw 'body:NAME/mass', whose inertia follows, or "
        "'body:NAME/inertia' by a factor or pseudo_inertia(sd=...)"
    )


def dependent_outputs(program: jax.extend.core.Jaxpr) -> list[bool]:
    """Return which results of a traced function depend on its arguments.

    Loops and branches are not analyzed: if an input depends on the arguments, all outputs do.
    """
    return _reachable_outputs(program, [True] * len(program.invars))


def _reachable_outputs(program: jax.extend.core.Jaxpr, arguments: list[bool]) -> list[bool]:
    moving = {v for v, moves in zip(program.invars, arguments, strict=True) if moves}

    def moves(v: Any) -> bool:
        return not isinstance(v, jax.extend.core.Literal) and v in moving

    for eqn in program.eqns:
        inputs = [moves(v) for v in eqn.invars]
        if eqn.primitive.name in CALLS:
            outputs = _reachable_outputs(CALLS[eqn.primitive.name](eqn).jaxpr, inputs)
        else:
            outputs = [any(inputs)] * len(eqn.outvars)
        moving |= {v for v, out in zip(eqn.outvars, outputs, strict=True) if out}
    return [moves(v) for v in program.outvars]
