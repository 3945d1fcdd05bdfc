"""Large problems of many worlds, solved world by world.

The other stages of a step take as many worlds at a time as a vector has numbers. A Hessian of
hundreds of dofs has its few numbers elsewhere in each world, and those of a whole tile of worlds
fit no cache; of one world it is eliminated along what that world has (arrays/system/profile.py).
"""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.physics.arrays.call.differentiated import loops_pay
from jaxsim.physics.arrays.pin import few
from jaxsim.physics.arrays.system.factor import IN_STEPS, WRITE_OUT
from jaxsim.physics.arrays.system.tree import TreeMatrix
from jaxsim.physics.solver.problem import Problem
from jaxsim.physics.solver.solution import Settings, Solution


def goes_by_world(p: Problem) -> bool:
    """Whether a problem is solved world by world.

    From fewer dofs on where the state says which trees have to do with each other. Not where a
    derivative is made, which takes all contacts at once and leaves the systems to the library; nor
    of a tree of which M is kept by its entries, whose Hessian has no others.
    """
    contact = p.rows.contact
    all_at_once = contact is not None and contact.J.used is None
    large = len(p.smooth) > (WRITE_OUT if p.ties else IN_STEPS)
    one = few(p.smooth) or isinstance(p.M, TreeMatrix)
    return large and not one and loops_pay() and not all_at_once


def world_by_world(
    method: Callable[[Problem, Settings], Solution], p: Problem, settings: Settings
) -> Solution:
    """What a method finds for each world."""
    size = p.smooth.shape[-1]
    given, form = jax.tree.flatten((p, settings))
    own = [a.ndim > 0 and a.shape[-1] == size for a in given]

    def one(moving: list) -> Solution:
        rest = iter(moving)
        shared = (a[..., 0] if a.ndim else a for a, has in zip(given, own, strict=True) if not has)
        problem, how = jax.tree.unflatten(form, [next(rest if has else shared) for has in own])
        return method(_to_the_last_contact(problem), how)

    worlds_first = [jnp.moveaxis(a, -1, 0) for a, has in zip(given, own, strict=True) if has]
    found: Solution = jax.tree.map(lambda a: jnp.moveaxis(a, 0, -1), lax.map(one, worlds_first))
    return found


def _to_the_last_contact(p: Problem) -> Problem:
    """The problem of one world with the contacts that this world has."""
    contact = p.rows.contact
    if contact is None:
        return p
    stiffness = jax.tree.leaves(contact.cost.D)[0]
    place = np.arange(1, len(stiffness) + 1, dtype=np.int32)
    used = jnp.max(jnp.where(stiffness > 0, place, 0))
    own = replace(contact, J=replace(contact.J, used=used), cost=replace(contact.cost, used=used))
    return replace(p, rows=replace(p.rows, contact=own))
