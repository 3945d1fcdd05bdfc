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
step, x = x0 + h J w (scene.py). `way` is a displacement of the points, `share` the free fraction of
it, `free` the last w without impact, `pushes` the candidate pairs with their multipliers.
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
from jaxsim.physics.ipc.broadphase import Near, detect_near_pairs
from jaxsim.physics.ipc.gap import compute_gaps
from jaxsim.physics.ipc.multipliers import (
    OfVertices,
    Pushes,
    begin_pairs,
    merge_pairs,
    scatter_max,
    store_multipliers,
    update_multipliers,
)
from jaxsim.physics.ipc.rows import ipc_rows, linearize_gaps, predicted_gaps
from jaxsim.physics.ipc.scene import IpcScene
from jaxsim.physics.ipc.time_of_impact import Closing, times_of_impact

_MAX_ITERATIONS = 1024  # maximum number of iterations
_MAX_STALLED_ITERATIONS = 64  # iterations in a row without progress, after which the step ends
_MIN_STEP_FRACTION = 1e-6  # fraction of the motion below which it counts as no progress
_TIME_TIE_TOLERANCE = 1e-12  # tolerance for equal times of impact
# (rows of the pairs or None, warm start) -> (acceleration, force of the pairs, iterations).
Answer = Callable[[RowBlock | None, Array], tuple[Array, Array, Array]]


class IpcIterate(NamedTuple):
    """Loop state.

    Attributes:
      free: velocity up to which the motion is free of impacts, `[nv, *W]`.
      last: `free` before the last iteration, at which its gaps were linearized.
      acc, force: the last solution, and the force of its pairs, `[nv, *W]`.
      share: free fraction of the motion from `last` in the last iteration, `[1, *W]`.
      done: completed fraction of the whole motion, `[1, *W]`.
      stuck: number of iterations in a row without progress, int `[1, *W]`.
      pushes: candidate pairs of each grid, in the last iteration.
      next: candidate pairs of the next iteration.
      before, vertices: state of the vertices, before the last iteration and after it.
      lost: number of pairs dropped for lack of capacity, int `[1, *W]`.
      niter: iterations of the constraint solver, int `[1, *W]`.
      iteration: number of iterations done, int `[1, *W]`.
    """

    free: jax.Array
    last: jax.Array
    acc: jax.Array
    force: jax.Array
    share: jax.Array
    done: jax.Array
    stuck: jax.Array
    pushes: list[Pushes]
    next: list[Pushes]
    before: OfVertices
    vertices: OfVertices
    lost: jax.Array
    niter: jax.Array
    iteration: jax.Array

    @property
    def busy(self) -> Array:
        """Return the worlds whose step is not complete, `[1, *W]` bool."""
        on = (
            (self.done < 1 - _MIN_STEP_FRACTION)
            & (self.stuck < _MAX_STALLED_ITERATIONS)
            & (self.iteration < _MAX_ITERATIONS)
        )
        return on | (self.iteration == 0)


class Solved(NamedTuple):
    """Solution of the step with given pairs: acceleration, force of the pairs, iterations."""

    acc: jax.Array
    force: jax.Array
    niter: jax.Array
    lost: jax.Array
    linear: list


def run_iterations(scene: IpcScene, d: Data, answer: Answer) -> IpcIterate:
    """Iterate until the step is complete in all worlds.

    Args:
      scene: the scene of the step.
      d: the state.
      answer: `(block, warm) -> (acceleration, force of the block, iterations)`.
    """
    zero, none = jnp.zeros_like(d.qvel), jnp.zeros((1, *d.qvel.shape[1:]), jnp.int32)
    vertices = OfVertices(d.flexvert_lambda, d.flexvert_conage)
    # Initial candidates: pairs near the unconstrained motion, with the multipliers of vertices.
    way = scene.displacement(d.qvel + scene.h * d.qacc_smooth)
    found = [detect_near_pairs(scene, grid, scene.start, way) for grid in scene.plan.grids]
    pushes = [
        begin_pairs(vertices, grid, f.pair, f.there)
        for grid, f in zip(scene.plan.grids, found, strict=True)
    ]
    lost = sum((f.lost for f in found), none)
    share = jnp.zeros_like(zero[:1])
    start = IpcIterate(
        *(zero, zero, d.qacc_warmstart, zero, share, share, none),
        *(pushes, pushes, vertices, vertices, lost, none, none),
    )

    def iterate(state: IpcIterate) -> IpcIterate:
        # Advance the worlds that are not done; the others keep their state.
        new = _run_iteration(scene, d, answer, state)
        return _select_fields(state.busy, new, state)

    end: IpcIterate = lax.while_loop(lambda s: jnp.any(s.busy), iterate, start)
    return end


def solve_with_pairs(
    scene: IpcScene, d: Data, answer: Answer, last: Array, pushes: list[Pushes], warm: Array
) -> Solved:
    """Solve with pairs whose gaps are linearized at the velocity `last` `[nv, *W]`."""
    if not pushes:
        acc, push, niter = answer(None, warm)
        return Solved(acc, push, niter, jnp.zeros_like(niter), [])
    # Linearize the gaps, and build rows for the deepest.
    x = scene.at(last)
    grids = zip(scene.plan.grids, pushes, strict=True)
    all = [linearize_gaps(scene, compute_gaps(scene, grid, p.pair, x)) for grid, p in grids]
    free = scene.displacement(d.qvel + scene.h * d.qacc_smooth - last)
    block, has = ipc_rows(scene, all, pushes, d.qvel - last, free)
    acc, push, niter = answer(block, warm)
    # Count pairs without a row that the solution violates.
    way = scene.displacement(d.qvel + scene.h * acc - last)
    misses = [
        p.there & (predicted_gaps(of, way) < p.force / of.stiffness)
        for of, p in zip(all, pushes, strict=True)
    ]
    lost = jnp.sum(jnp.concatenate(misses) & ~has, axis=0, keepdims=True, dtype=jnp.int32)
    return Solved(acc, push, niter, lost, all)


def _run_iteration(scene: IpcScene, d: Data, answer: Answer, s: IpcIterate) -> IpcIterate:
    grids = scene.plan.grids
    # Solve with the candidate pairs.
    found = solve_with_pairs(scene, d, answer, s.free, s.next, s.acc)
    w = d.qvel + scene.h * found.acc
    # Update the multipliers with the gaps at the solution.
    x, way = scene.at(s.free), scene.displacement(w - s.free)
    pushes, vertices = settle_pairs(scene, found, s.next, s.vertices, w - s.free)
    # CCD along the motion to the solution.
    nears = [detect_near_pairs(scene, grid, x, way) for grid in grids]
    closing = [times_of_impact(scene, g, f, x, way) for g, f in zip(grids, nears, strict=True)]
    # Advance to the first impact; the pairs that cause it become candidates.
    share = _free_share(closing, s.share)
    comes = _select_earliest(scene, nears, closing)
    merging = zip(pushes, grids, nears, comes, strict=True)
    following = [merge_pairs(p, vertices, grid, f.pair, c) for p, grid, f, c in merging]
    return IpcIterate(
        free=s.free + step_fraction(scene, share, w) * (w - s.free),
        last=s.free,
        acc=found.acc,
        force=found.force,
        share=share,
        done=s.done + (1 - s.done) * share,
        stuck=jnp.where(share > _MIN_STEP_FRACTION, 0, s.stuck + 1),
        pushes=s.next,
        next=following,
        before=s.vertices,
        vertices=vertices,
        lost=s.lost + found.lost + sum((f.lost for f in nears), 0 * s.lost),
        niter=s.niter + found.niter,
        iteration=s.iteration + 1,
    )


def settle_pairs(
    scene: IpcScene, found: Solved, pushes: list[Pushes], vertices: OfVertices, change: Array
) -> tuple[list[Pushes], OfVertices]:
    """Update the multipliers of pairs and vertices after a solution.

    Args:
      scene, found: scene and solution.
      pushes, vertices: state before the solution.
      change: velocity relative to that of the linearization, `[nv, *W]`.
    """
    way = scene.displacement(change)
    new = [
        update_multipliers(p, predicted_gaps(of, way), of.stiffness)
        for p, of in zip(pushes, found.linear, strict=True)
    ]
    return new, store_multipliers(vertices, scene.plan.grids, new)


def step_fraction(scene: IpcScene, share: Array, like: Array) -> Array:
    """Return the fraction of its motion that each dof advances; 1 for dofs without shells."""
    goes = jnp.where(share > _MIN_STEP_FRACTION, share, 0)
    return jnp.where(column(scene.plan.ccd_dofs, like), goes, 1)


def _free_share(closing: list[Closing], like: Array) -> Array:
    """Return the fraction of the motion before the first impact, `[1, *W]`."""
    # Minimum over all pairs.
    share = jnp.ones_like(like)
    for c in closing:
        share = jnp.minimum(share, jnp.min(c.time, axis=0, keepdims=True, initial=1))
    return share


def _select_earliest(scene: IpcScene, nears: list[Near], closing: list[Closing]) -> list[Array]:
    """Select new candidates: pairs in contact, and the first pair to close at each of its points.

    A point that crosses several layers thus meets the first of them.
    """
    # Scatter-max of minus the time of impact.
    earliest = jnp.full_like(scene.start.x, -2.0)
    for f, c in zip(nears, closing, strict=True):
        for point in f.gap.points:
            earliest = scatter_max(earliest, point, jnp.where(c.closes, -c.time, -2.0))
    # A pair is selected if it has the earliest time at any of its shell points.
    comes = []
    for f, c in zip(nears, closing, strict=True):
        first = jnp.zeros_like(c.closes)
        for point in f.gap.points:
            soft = gather(jnp.asarray(column(scene.plan.flex >= 0, c.time)), point)
            first = first | (soft & (c.time <= _TIME_TIE_TOLERANCE - gather(earliest, point)))
        comes.append(f.there & jnp.where(f.gap.dist <= 0, True, c.closes & first))
    return comes


def _select_fields(mask: Array, yes: PyTree, no: PyTree) -> PyTree:
    return jax.tree.map(lambda a, b: jnp.where(mask, a, b), yes, no)
