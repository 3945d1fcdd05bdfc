"""Step of the mode ipc: solve, run CCD along the update, advance to the first impact, repeat.

MuJoCo's `mj_ipc` (XML reference: option/flag/ipc); incremental potential contact (M. Li et al.,
2020) with an augmented Lagrangian (multipliers.py) instead of the barrier. An iteration

1. solves the step with the pairs that may be active, their gaps linearized at the last
   configuration that is free of impacts (rows.py, with the constraint solver),
2. updates the multipliers of these pairs (multipliers.py),
3. runs a broad phase and CCD along the motion to the solution (broadphase.py, time_of_impact.py),
4. advances up to the first time of impact, and adds the pairs that caused it.

The step ends when the whole motion is free of impacts; the committed configuration is therefore
proven free of intersections. Configurations are represented by the velocity w at the end of the
step, x = x0 + h J w (scene.py). For one point above a floor, with two iterations:

    iteration 0    no active pair     solution  w = -2   below the floor
                   CCD                impact at 0.6 of the motion
                   advance            free      w = -1.2, the pair with the floor becomes active
    iteration 1    pair active        solution  w = -1.25, gap at rest
                   CCD                no impact
                   advance            free      w = -1.25, the whole motion: done

Names: `motion` is a displacement of the points, `fraction` the part of it that is free of impacts,
`free` the last w without impact.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from jaxsim.arrays.array import Array, PyTree
from jaxsim.arrays.gather import column, gather
from jaxsim.model.data import Data
from jaxsim.physics.constraint.rows import RowBlock
from jaxsim.physics.ipc.broadphase import NearPairs, detect_near_pairs
from jaxsim.physics.ipc.gap import compute_gaps
from jaxsim.physics.ipc.multipliers import (
    ActivePairs,
    VertexMultipliers,
    begin_pairs,
    merge_pairs,
    scatter_max,
    store_multipliers,
    update_multipliers,
)
from jaxsim.physics.ipc.rows import ipc_rows, linearize_gaps, predicted_gaps
from jaxsim.physics.ipc.scene import IpcScene
from jaxsim.physics.ipc.time_of_impact import Impacts, times_of_impact

_MAX_ITERATIONS = 1024  # maximum number of iterations
_MAX_STALLED_ITERATIONS = 64  # iterations in a row without progress, after which the step ends
_MIN_STEP_FRACTION = 1e-6  # fraction of the motion below which it counts as no progress
_TIME_TIE_TOLERANCE = 1e-12  # tolerance for equal times of impact
# (rows of the pairs or None, warm start) -> (acceleration, force of the pairs, iterations).
SolveStep = Callable[[RowBlock | None, Array], tuple[Array, Array, Array]]


class IpcIterate(NamedTuple):
    """Loop state.

    Attributes:
      free: velocity up to which the motion is free of impacts, `[nv, *W]`.
      last: `free` before the last iteration, at which its gaps were linearized.
      acc, force: the last solution, and the force of its pairs, `[nv, *W]`.
      fraction: free fraction of the motion from `last` in the last iteration, `[1, *W]`.
      progress: completed fraction of the whole motion, `[1, *W]`.
      stalled: number of iterations in a row without progress, int `[1, *W]`.
      pairs: candidate pairs of each grid, in the last iteration.
      next_pairs: candidate pairs of the next iteration.
      before, vertices: state of the vertices, before the last iteration and after it.
      dropped: number of pairs dropped for lack of capacity, int `[1, *W]`.
      niter: iterations of the constraint solver, int `[1, *W]`.
      iteration: number of iterations done, int `[1, *W]`.
    """

    free: jax.Array
    last: jax.Array
    acc: jax.Array
    force: jax.Array
    fraction: jax.Array
    progress: jax.Array
    stalled: jax.Array
    pairs: list[ActivePairs]
    next_pairs: list[ActivePairs]
    before: VertexMultipliers
    vertices: VertexMultipliers
    dropped: jax.Array
    niter: jax.Array
    iteration: jax.Array

    @property
    def active(self) -> Array:
        """Return the worlds whose step is not complete, `[1, *W]` bool."""
        on = (
            (self.progress < 1 - _MIN_STEP_FRACTION)
            & (self.stalled < _MAX_STALLED_ITERATIONS)
            & (self.iteration < _MAX_ITERATIONS)
        )
        return on | (self.iteration == 0)


class Solved(NamedTuple):
    """Solution of the step with given pairs: acceleration, force of the pairs, iterations."""

    acc: jax.Array
    force: jax.Array
    niter: jax.Array
    dropped: jax.Array
    linear: list


def run_iterations(scene: IpcScene, d: Data, solve: SolveStep) -> IpcIterate:
    """Iterate until the step is complete in all worlds.

    Args:
      scene: the scene of the step.
      d: the state.
      solve: `(block, warm) -> (acceleration, force of the block, iterations)`.
    """
    zero, none = jnp.zeros_like(d.qvel), jnp.zeros((1, *d.qvel.shape[1:]), jnp.int32)
    vertices = VertexMultipliers(d.flexvert_lambda, d.flexvert_conage)
    # Initial candidates: pairs near the unconstrained motion, with the multipliers of vertices.
    motion = scene.displacement(d.qvel + scene.h * d.qacc_smooth)
    found = [detect_near_pairs(scene, grid, scene.start, motion) for grid in scene.plan.grids]
    pairs = [
        begin_pairs(vertices, grid, f.pair, f.there)
        for grid, f in zip(scene.plan.grids, found, strict=True)
    ]
    dropped = sum((f.dropped for f in found), none)
    fraction = jnp.zeros_like(zero[:1])
    start = IpcIterate(
        *(zero, zero, d.qacc_warmstart, zero, fraction, fraction, none),
        *(pairs, pairs, vertices, vertices, dropped, none, none),
    )

    def iterate(state: IpcIterate) -> IpcIterate:
        # Advance the worlds that are not done; the others keep their state.
        new = _run_iteration(scene, d, solve, state)
        return _select_fields(state.active, new, state)

    end: IpcIterate = lax.while_loop(lambda s: jnp.any(s.active), iterate, start)
    return end


def solve_with_pairs(
    scene: IpcScene, d: Data, solve: SolveStep, last: Array, pairs: list[ActivePairs], warm: Array
) -> Solved:
    """Solve with pairs whose gaps are linearized at the velocity `last` `[nv, *W]`."""
    if not pairs:
        acc, push, niter = solve(None, warm)
        return Solved(acc, push, niter, jnp.zeros_like(niter), [])
    # Linearize the gaps, and build rows for the deepest.
    x = scene.at(last)
    grids = zip(scene.plan.grids, pairs, strict=True)
    all = [linearize_gaps(scene, compute_gaps(scene, grid, p.pair, x)) for grid, p in grids]
    free = scene.displacement(d.qvel + scene.h * d.qacc_smooth - last)
    block, has = ipc_rows(scene, all, pairs, d.qvel - last, free)
    acc, push, niter = solve(block, warm)
    # Count pairs without a row that the solution violates.
    motion = scene.displacement(d.qvel + scene.h * acc - last)
    misses = [
        p.there & (predicted_gaps(of, motion) < p.multiplier / of.stiffness)
        for of, p in zip(all, pairs, strict=True)
    ]
    dropped = jnp.sum(jnp.concatenate(misses) & ~has, axis=0, keepdims=True, dtype=jnp.int32)
    return Solved(acc, push, niter, dropped, all)


def _run_iteration(scene: IpcScene, d: Data, solve: SolveStep, s: IpcIterate) -> IpcIterate:
    grids = scene.plan.grids
    # Solve with the candidate pairs.
    found = solve_with_pairs(scene, d, solve, s.free, s.next_pairs, s.acc)
    w = d.qvel + scene.h * found.acc
    # Update the multipliers with the gaps at the solution.
    x, motion = scene.at(s.free), scene.displacement(w - s.free)
    pairs, vertices = update_pairs(scene, found, s.next_pairs, s.vertices, w - s.free)
    # CCD along the motion to the solution.
    near = [detect_near_pairs(scene, grid, x, motion) for grid in grids]
    impacts = [times_of_impact(scene, g, f, x, motion) for g, f in zip(grids, near, strict=True)]
    # Advance to the first impact; the pairs that cause it become candidates.
    fraction = _free_fraction(impacts, s.fraction)
    added = _select_earliest(scene, near, impacts)
    merging = zip(pairs, grids, near, added, strict=True)
    following = [merge_pairs(p, vertices, grid, f.pair, c) for p, grid, f, c in merging]
    return IpcIterate(
        free=s.free + step_fraction(scene, fraction, w) * (w - s.free),
        last=s.free,
        acc=found.acc,
        force=found.force,
        fraction=fraction,
        progress=s.progress + (1 - s.progress) * fraction,
        stalled=jnp.where(fraction > _MIN_STEP_FRACTION, 0, s.stalled + 1),
        pairs=s.next_pairs,
        next_pairs=following,
        before=s.vertices,
        vertices=vertices,
        dropped=s.dropped + found.dropped + sum((f.dropped for f in near), 0 * s.dropped),
        niter=s.niter + found.niter,
        iteration=s.iteration + 1,
    )


def update_pairs(
    scene: IpcScene,
    found: Solved,
    pairs: list[ActivePairs],
    vertices: VertexMultipliers,
    change: Array,
) -> tuple[list[ActivePairs], VertexMultipliers]:
    """Update the multipliers of pairs and vertices after a solution.

    Args:
      scene, found: scene and solution.
      pairs, vertices: state before the solution.
      change: velocity relative to that of the linearization, `[nv, *W]`.
    """
    motion = scene.displacement(change)
    new = [
        update_multipliers(p, predicted_gaps(of, motion), of.stiffness)
        for p, of in zip(pairs, found.linear, strict=True)
    ]
    return new, store_multipliers(vertices, scene.plan.grids, new)


def step_fraction(scene: IpcScene, fraction: Array, like: Array) -> Array:
    """Return the fraction of its motion that each dof advances; 1 for dofs without shells."""
    goes = jnp.where(fraction > _MIN_STEP_FRACTION, fraction, 0)
    return jnp.where(column(scene.plan.ccd_dofs, like), goes, 1)


def _free_fraction(impacts: list[Impacts], like: Array) -> Array:
    """Return the fraction of the motion before the first impact, `[1, *W]`."""
    # Minimum over all pairs.
    fraction = jnp.ones_like(like)
    for c in impacts:
        fraction = jnp.minimum(fraction, jnp.min(c.time, axis=0, keepdims=True, initial=1))
    return fraction


def _select_earliest(scene: IpcScene, near: list[NearPairs], impacts: list[Impacts]) -> list[Array]:
    """Select new candidates: pairs in contact, and the first pair to close at each of its points.

    A point that crosses several layers thus meets the first of them.
    """
    # Scatter-max of minus the time of impact.
    earliest = jnp.full_like(scene.start.x, -2.0)
    for f, c in zip(near, impacts, strict=True):
        for point in f.gap.points:
            earliest = scatter_max(earliest, point, jnp.where(c.closes, -c.time, -2.0))
    # A pair is selected if it has the earliest time at any of its shell points.
    added = []
    for f, c in zip(near, impacts, strict=True):
        first = jnp.zeros_like(c.closes)
        for point in f.gap.points:
            soft = gather(jnp.asarray(column(scene.plan.flex >= 0, c.time)), point)
            first = first | (soft & (c.time <= _TIME_TIE_TOLERANCE - gather(earliest, point)))
        added.append(f.there & jnp.where(f.gap.dist <= 0, True, c.closes & first))
    return added


def _select_fields(mask: Array, yes: PyTree, no: PyTree) -> PyTree:
    return jax.tree.map(lambda a, b: jnp.where(mask, a, b), yes, no)
