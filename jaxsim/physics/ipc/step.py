"""The step of the mode: solve, see what the way passes through, go as far as it is free, again.

MuJoCo's documentation, XML reference: option/flag/ipc. A turn solves the step with the pairs that
may push, linear about the configuration up to which nothing is passed through; then this
configuration goes along the way to the solution, until a gap has nearly closed; and the pairs which
stopped it push in the next turn. When the whole way is free the step is done: what it commits has
been proved to pass through nothing.
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

MOST = 1024  # turns
STUCK = 64  # turns one after another in which nothing moves
FREE = 1e-6  # of the way, less than which is no move
TIE = 1e-12
# with the rows of pairs, if there are grids of them, and a first guess
Answer = Callable[[Block | None, Array], tuple[Array, Array, Array]]


class Turns(NamedTuple):
    """Where the turns have come to.

    Attributes:
      free: velocity with which nothing is passed through, `[nv, *W]`.
      last: the same before the last turn, about which its pairs were linear.
      acc, force: the last solution, and the force of its pairs, `[nv, *W]`.
      share: how much of the way from `last` was free in the last turn, `[1, *W]`.
      done: how much of the whole motion is, `[1, *W]`.
      stuck: turns in which nothing moved, int `[1, *W]`.
      pushes: pairs that may push, of each grid; before the last turn.
      next: of the next turn.
      before, vertices: what vertices remember, before the last turn and after it.
      lost: pairs that had no place, int `[1, *W]`.
      niter: iterations of the solver, int `[1, *W]`.
      turn: int `[1, *W]`.
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
        """Worlds whose step is not done, `[1, *W]` bool."""
        on = (self.done < 1 - FREE) & (self.stuck < STUCK) & (self.turn < MOST)
        return on | (self.turn == 0)


class Solved(NamedTuple):
    """A solution of the step with some pairs: acceleration, the force of these, iterations."""

    acc: jax.Array
    force: jax.Array
    niter: jax.Array
    lost: jax.Array
    linear: list


def turns(scene: Scene, d: Data, answer: Answer) -> Turns:
    """All turns of a step.

    Args:
      scene: the state.
      d: the same.
      answer: `(block, warm) -> (acceleration, force of the block, iterations)`.
    """
    zero, none = jnp.zeros_like(d.qvel), jnp.zeros((1, *d.qvel.shape[1:]), jnp.int32)
    vertices = OfVertices(d.flexvert_lambda, d.flexvert_conage)
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
        new = _turn(scene, d, answer, state)
        return _chosen(state.busy, new, state)

    end: Turns = lax.while_loop(lambda s: jnp.any(s.busy), turn, start)
    return end


def solved(
    scene: Scene, d: Data, answer: Answer, last: Array, pushes: list[Pushes], warm: Array
) -> Solved:
    """The solution with pairs that are linear about the velocity `last` `[nv, *W]`."""
    if not pushes:
        acc, push, niter = answer(None, warm)
        return Solved(acc, push, niter, jnp.zeros_like(niter), [])
    x = scene.at(last)
    grids = zip(scene.plan.grids, pushes, strict=True)
    all = [linear(scene, gap(scene, grid, p.pair, x)) for grid, p in grids]
    free = scene.moved(d.qvel + scene.h * d.qacc_smooth - last)
    block, has = rows(scene, all, pushes, d.qvel - last, free)
    acc, push, niter = answer(block, warm)
    way = scene.moved(d.qvel + scene.h * acc - last)
    misses = [
        p.there & (ahead(of, way) < p.force / of.stiffness)
        for of, p in zip(all, pushes, strict=True)
    ]
    lost = jnp.sum(jnp.concatenate(misses) & ~has, axis=0, keepdims=True, dtype=jnp.int32)
    return Solved(acc, push, niter, lost, all)


def _turn(scene: Scene, d: Data, answer: Answer, s: Turns) -> Turns:
    grids = scene.plan.grids
    found = solved(scene, d, answer, s.free, s.next, s.acc)
    w = d.qvel + scene.h * found.acc
    x, way = scene.at(s.free), scene.moved(w - s.free)
    pushes, vertices = settled(scene, found, s.next, s.vertices, w - s.free)
    nears = [near(scene, grid, x, way) for grid in grids]
    closing = [advance(scene, g, f, x, way) for g, f in zip(grids, nears, strict=True)]
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
    """The pairs and the vertices after a solution.

    Args:
      scene, found: the state and the solution.
      pushes, vertices: before it.
      change: of the velocity, from that about which the pairs are linear, `[nv, *W]`.
    """
    way = scene.moved(change)
    new = [
        pushed(p, ahead(of, way), of.stiffness) for p, of in zip(pushes, found.linear, strict=True)
    ]
    return new, remembered(vertices, scene.plan.grids, new)


def part_of(scene: Scene, share: Array, like: Array) -> Array:
    """The part of their way that dofs go, of which a share is free: all, if no shell is on them."""
    goes = jnp.where(share > FREE, share, 0)
    return jnp.where(column(scene.plan.held, like), goes, 1)


def _free_share(closing: list[Closing], like: Array) -> Array:
    """How much of the way nothing closes on, `[1, *W]`."""
    share = jnp.ones_like(like)
    for c in closing:
        share = jnp.minimum(share, jnp.min(c.time, axis=0, keepdims=True, initial=1))
    return share


def _earliest(scene: Scene, nears: list[Near], closing: list[Closing]) -> list[Array]:
    """The pairs that come: what touches, and what closes first of all that a point of it does.

    So a point that goes through several layers meets the first of them.
    """
    # minus the time, of which the largest is sought
    earliest = jnp.full_like(scene.start.x, -2.0)
    for f, c in zip(nears, closing, strict=True):
        for point in f.gap.points:
            earliest = most_at(earliest, point, jnp.where(c.closes, -c.time, -2.0))
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
