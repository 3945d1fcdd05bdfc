"""Step of the mode ipc: solve, run CCD along the update, advance to the first impact, repeat.

MuJoCo's `mj_ipc` (XML reference: option/flag/ipc); incremental potential contact (M. Li et al.,
2020) with an augmented Lagrangian (push.py) instead of the barrier. An iteration

1. solves the step with the pairs that may be active, their gaps linearized at the last
   configuration that is free of impacts (rows.py, with the constraint solver),
2. updates the multipliers of these pairs (push.py),
3. runs a broad phase and CCD along the motion to the solution (near.py, advance.py),
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

from jaxsim.model.data import Data
from jaxsim.physics.arrays.array import Array, Tree
from jaxsim.physics.arrays.select import column, pick
from jaxsim.physics.constraint.rows import Block
from jaxsim.physics.ipc.advance import Closing, advance
from jaxsim.physics.ipc.gap import gap
from jaxsim.physics.ipc.near import Near, near
from jaxsim.physics.ipc.push import OfVertices, Pushes, begun, merged, most_at, pushed, remembered
from jaxsim.physics.ipc.rows import ahead, linear, rows
from jaxsim.physics.ipc.scene import Scene

MOST = 1024  # maximum number of iterations
STUCK = 64  # iterations in a row without progress, after which the step ends
FREE = 1e-6  # fraction of the motion below which it counts as no progress
TIE = 1e-12  # tolerance for equal times of impact
# (rows of the pairs or None, warm start) -> (acceleration, force of the pairs, iterations).
Answer = Callable[[Block | None, Array], tuple[Array, Array, Array]]


class Turns(NamedTuple):
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
      turn: number of iterations done, int `[1, *W]`.
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
    turn: jax.Array

    @property
    def busy(self) -> Array:
        """Return the worlds whose step is not complete, `[1, *W]` bool."""
        on = (self.done < 1 - FREE) & (self.stuck < STUCK) & (self.turn < MOST)
        return on | (self.turn == 0)


class Solved(NamedTuple):
    """Solution of the step with given pairs: acceleration, force of the pairs, iterations."""

    acc: jax.Array
    force: jax.Array
    niter: jax.Array
    lost: jax.Array
    linear: list


def turns(scene: Scene, d: Data, answer: Answer) -> Turns:
    """Iterate until the step is complete in all worlds.

    Args:
      scene: the scene of the step.
      d: the state.
      answer: `(block, warm) -> (acceleration, force of the block, iterations)`.
    """
    zero, none = jnp.zeros_like(d.qvel), jnp.zeros((1, *d.qvel.shape[1:]), jnp.int32)
    vertices = OfVertices(d.flexvert_lambda, d.flexvert_conage)
    # Initial candidates: pairs near the unconstrained motion, with the multipliers of vertices.
    way = scene.moved(d.qvel + scene.h * d.qacc_smooth)
    found = [near(scene, grid, scene.start, way) for grid in scene.plan.grids]
    pushes = [
        begun(vertices, grid, f.pair, f.there)
        for grid, f in zip(scene.plan.grids, found, strict=True)
    ]
    lost = sum((f.lost for f in found), none)
    share = jnp.zeros_like(zero[:1])
    start = Turns(
        *(zero, zero, d.qacc_warmstart, zero, share, share, none),
        *(pushes, pushes, vertices, vertices, lost, none, none),
    )

    def turn(state: Turns) -> Turns:
        # Advance the worlds that are not done; the others keep their state.
        new = _turn(scene, d, answer, state)
        return _chosen(state.busy, new, state)

    end: Turns = lax.while_loop(lambda s: jnp.any(s.busy), turn, start)
    return end


def solved(
    scene: Scene, d: Data, answer: Answer, last: Array, pushes: list[Pushes], warm: Array
) -> Solved:
    """Solve with pairs whose gaps are linearized at the velocity `last` `[nv, *W]`."""
    if not pushes:
        acc, push, niter = answer(None, warm)
        return Solved(acc, push, niter, jnp.zeros_like(niter), [])
    # Linearize the gaps, and build rows for the deepest.
    x = scene.at(last)
    grids = zip(scene.plan.grids, pushes, strict=True)
    all = [linear(scene, gap(scene, grid, p.pair, x)) for grid, p in grids]
    free = scene.moved(d.qvel + scene.h * d.qacc_smooth - last)
    block, has = rows(scene, all, pushes, d.qvel - last, free)
    acc, push, niter = answer(block, warm)
    # Count pairs without a row that the solution violates.
    way = scene.moved(d.qvel + scene.h * acc - last)
    misses = [
        p.there & (ahead(of, way) < p.force / of.stiffness)
        for of, p in zip(all, pushes, strict=True)
    ]
    lost = jnp.sum(jnp.concatenate(misses) & ~has, axis=0, keepdims=True, dtype=jnp.int32)
    return Solved(acc, push, niter, lost, all)


def _turn(scene: Scene, d: Data, answer: Answer, s: Turns) -> Turns:
    grids = scene.plan.grids
    # Solve with the candidate pairs.
    found = solved(scene, d, answer, s.free, s.next, s.acc)
    w = d.qvel + scene.h * found.acc
    # Update the multipliers with the gaps at the solution.
    x, way = scene.at(s.free), scene.moved(w - s.free)
    pushes, vertices = settled(scene, found, s.next, s.vertices, w - s.free)
    # CCD along the motion to the solution.
    nears = [near(scene, grid, x, way) for grid in grids]
    closing = [advance(scene, g, f, x, way) for g, f in zip(grids, nears, strict=True)]
    # Advance to the first impact; the pairs that cause it become candidates.
    share = _free_share(closing, s.share)
    comes = _earliest(scene, nears, closing)
    merging = zip(pushes, grids, nears, comes, strict=True)
    following = [merged(p, vertices, grid, f.pair, c) for p, grid, f, c in merging]
    return Turns(
        free=s.free + part_of(scene, share, w) * (w - s.free),
        last=s.free,
        acc=found.acc,
        force=found.force,
        share=share,
        done=s.done + (1 - s.done) * share,
        stuck=jnp.where(share > FREE, 0, s.stuck + 1),
        pushes=s.next,
        next=following,
        before=s.vertices,
        vertices=vertices,
        lost=s.lost + found.lost + sum((f.lost for f in nears), 0 * s.lost),
        niter=s.niter + found.niter,
        turn=s.turn + 1,
    )


def settled(
    scene: Scene, found: Solved, pushes: list[Pushes], vertices: OfVertices, change: Array
) -> tuple[list[Pushes], OfVertices]:
    """Update the multipliers of pairs and vertices after a solution.

    Args:
      scene, found: scene and solution.
      pushes, vertices: state before the solution.
      change: velocity relative to that of the linearization, `[nv, *W]`.
    """
    way = scene.moved(change)
    new = [
        pushed(p, ahead(of, way), of.stiffness) for p, of in zip(pushes, found.linear, strict=True)
    ]
    return new, remembered(vertices, scene.plan.grids, new)


def part_of(scene: Scene, share: Array, like: Array) -> Array:
    """Return the fraction of its motion that each dof advances; 1 for dofs without shells."""
    goes = jnp.where(share > FREE, share, 0)
    return jnp.where(column(scene.plan.held, like), goes, 1)


def _free_share(closing: list[Closing], like: Array) -> Array:
    """Return the fraction of the motion before the first impact, `[1, *W]`."""
    # Minimum over all pairs.
    share = jnp.ones_like(like)
    for c in closing:
        share = jnp.minimum(share, jnp.min(c.time, axis=0, keepdims=True, initial=1))
    return share


def _earliest(scene: Scene, nears: list[Near], closing: list[Closing]) -> list[Array]:
    """Select new candidates: pairs in contact, and the first pair to close at each of its points.

    A point that crosses several layers thus meets the first of them.
    """
    # Scatter-max of minus the time of impact.
    earliest = jnp.full_like(scene.start.x, -2.0)
    for f, c in zip(nears, closing, strict=True):
        for point in f.gap.points:
            earliest = most_at(earliest, point, jnp.where(c.closes, -c.time, -2.0))
    # A pair is selected if it has the earliest time at any of its shell points.
    comes = []
    for f, c in zip(nears, closing, strict=True):
        first = jnp.zeros_like(c.closes)
        for point in f.gap.points:
            soft = pick(jnp.asarray(column(scene.plan.flex >= 0, c.time)), point)
            first = first | (soft & (c.time <= TIE - pick(earliest, point)))
        comes.append(f.there & jnp.where(f.gap.dist <= 0, True, c.closes & first))
    return comes


def _chosen(mask: Array, yes: Tree, no: Tree) -> Tree:
    return jax.tree.map(lambda a, b: jnp.where(mask, a, b), yes, no)
