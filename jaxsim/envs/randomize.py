"""Models that differ between worlds: domain randomisation.

What a change of masses or lengths moves (inverse weights, lengths of tendons, statistics) follows
by `set_const`. Which leaves then differ between worlds is read from the traced function: a leaf
that does not depend on the random numbers stays one for all worlds.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.extend.core

from jaxsim.model.model import Model
from jaxsim.physics.arrays.call.call import CALL, program_of
from jaxsim.physics.constants.set_const import set_const

# primitives that run a program, and how it is found in the equation
CALLS: dict[str, Callable[[Any], jax.extend.core.ClosedJaxpr]] = {
    "jit": lambda eqn: eqn.params["jaxpr"],
    "custom_jvp_call": lambda eqn: eqn.params["call_jaxpr"],
    CALL.name: program_of,
}

Change = Callable[[Model, jax.Array], dict[str, Any]]


def randomize(
    m: Model, keys: jax.Array, change: Change, *, derive: bool = True
) -> tuple[Model, Any]:
    """A model for each world.

    Args:
      m: the model.
      keys: random keys, one for each world, (worlds,).
      change: from the model and a key to new leaves by name: `{"geom_friction": ...}`.
      derive: whether `set_const` finds what follows from the leaves.

    Returns:
      The model, with a leading axis of worlds in the leaves that differ; and of each leaf 0 or
      None, as `in_axes` of `jax.vmap` takes it.

    Raises:
      ValueError: the model has no such field, or compiled it out because it is zero.

    Example:
      >>> keys = jax.random.split(jax.random.key(0), 4)
      >>> heavier = lambda m, k: {"body_mass": m.body_mass * (1 + jax.random.uniform(k))}
      >>> models, axes = randomize(m, keys, heavier)
      >>> models.body_mass.shape, axes.body_mass, models.geom_friction.shape, axes.geom_friction
      ((4, 2), 0, (1, 3), None)
    """

    def leaves(key: jax.Array) -> list[jax.Array]:
        new = m.replace(**change(m, key))
        return jax.tree.leaves(set_const(new) if derive else new)

    differs = depends(jax.make_jaxpr(leaves)(keys[0]).jaxpr)

    def drawn(key: jax.Array) -> list[jax.Array]:
        return [x for x, d in zip(leaves(key), differs, strict=True) if d]

    new = iter(jax.jit(jax.vmap(drawn))(keys))
    old, form = jax.tree.flatten(m)
    models = [next(new) if d else x for x, d in zip(old, differs, strict=True)]
    axes = [0 if d else None for d in differs]
    return jax.tree.unflatten(form, models), jax.tree.unflatten(form, axes)


def depends(program: jax.extend.core.Jaxpr) -> list[bool]:
    """Which results of a traced function depend on its arguments.

    What is inside a loop or a branch is not looked at: if something that goes in depends, all that
    comes out does.
    """
    return _reached(program, [True] * len(program.invars))


def _reached(program: jax.extend.core.Jaxpr, arguments: list[bool]) -> list[bool]:
    moving = {v for v, moves in zip(program.invars, arguments, strict=True) if moves}

    def moves(v: Any) -> bool:
        return not isinstance(v, jax.extend.core.Literal) and v in moving

    for eqn in program.eqns:
        inputs = [moves(v) for v in eqn.invars]
        if eqn.primitive.name in CALLS:
            outputs = _reached(CALLS[eqn.primitive.name](eqn).jaxpr, inputs)
        else:
            outputs = [any(inputs)] * len(eqn.outvars)
        moving |= {v for v, out in zip(eqn.outvars, outputs, strict=True) if out}
    return [moves(v) for v in program.outvars]
