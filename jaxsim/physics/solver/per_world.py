"""Solve large problems of a batch world by world.

The other stages of a step process as many worlds at a time as a vector register has lanes. A Newton
Hessian of hundreds of dofs has its nonzeros elsewhere in each world, and a batch of Hessians does
not fit in a cache. Solved one at a time, each world's Hessian is a skyline matrix with that world's
profile (linalg/skyline.py), and its contacts are truncated to those it has.
"""

from collections.abc import Callable
from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxsim.linalg.tree_sparse import TreeSparse
from jaxsim.physics.solver.problem import ConstraintProblem
from jaxsim.physics.solver.solution import ConstraintSolution, SolverSettings
from jaxsim.transforms.derivative_context import prefer_loops
from jaxsim.transforms.materialize import is_unbatched
from jaxsim.transforms.tuning import tuning


def solves_by_world(p: ConstraintProblem) -> bool:
    """Return True if a problem is solved world by world.

    The dof threshold is lower where the state determines which trees are coupled (`p.couplings`).
    Excluded are derivatives, which take all contacts at once and leave the linear systems to the
    library, and trees whose M is stored by its entries, because their Hessian has the same
    sparsity.
    """
    # Derivatives keep all contacts (`used` is None), and need the library's solver.
    contact = p.rows.contact
    all_at_once = contact is not None and contact.J.used is None
    most = tuning().max_unrolled_dofs if p.couplings else tuning().max_tiled_dofs
    one = is_unbatched(p.smooth) or isinstance(p.M, TreeSparse)
    return len(p.smooth) > most and not one and prefer_loops() and not all_at_once


def solve_world_by_world(
    method: Callable[[ConstraintProblem, SolverSettings], ConstraintSolution],
    p: ConstraintProblem,
    settings: SolverSettings,
) -> ConstraintSolution:
    """Apply a solver method to one world after another, with `lax.map`."""
    # A leaf has a batch axis if its last axis has the size of the batch.
    size = p.smooth.shape[-1]
    given, form = jax.tree.flatten((p, settings))
    # Split the leaves into those with a batch axis and those shared by all worlds.
    own = [a.ndim > 0 and a.shape[-1] == size for a in given]

    def one(moving: list) -> ConstraintSolution:
        # Rebuild problem and settings of one world.
        rest = iter(moving)
        shared = (a[..., 0] if a.ndim else a for a, has in zip(given, own, strict=True) if not has)
        problem, how = jax.tree.unflatten(form, [next(rest if has else shared) for has in own])
        return method(_truncate_to_last_contact(problem), how)

    # Map over the worlds; each iteration sees the shared leaves and its own.
    worlds_first = [jnp.moveaxis(a, -1, 0) for a, has in zip(given, own, strict=True) if has]
    found: ConstraintSolution = jax.tree.map(
        lambda a: jnp.moveaxis(a, 0, -1), lax.map(one, worlds_first)
    )
    return found


def _truncate_to_last_contact(p: ConstraintProblem) -> ConstraintProblem:
    """Truncate the contacts of one world to its last active one."""
    contact = p.rows.contact
    if contact is None:
        return p
    # Active contacts have a positive D; the last of them bounds all loops.
    stiffness = jax.tree.leaves(contact.cost.D)[0]
    place = np.arange(1, len(stiffness) + 1, dtype=np.int32)
    used = jnp.max(jnp.where(stiffness > 0, place, 0))
    own = replace(contact, J=replace(contact.J, used=used), cost=replace(contact.cost, used=used))
    return replace(p, rows=replace(p.rows, contact=own))
