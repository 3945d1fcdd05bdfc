"""Programs on both sides of the thresholds in `jaxsim/transforms/tuning.py`, for `tuning.py`.

Each function here returns a `Program`. It is called once for each value of a threshold, while that
value is set: some thresholds are read when a model is loaded.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from scipy.spatial import ConvexHull

import jaxsim
from jaxsim.arrays.array import Array
from jaxsim.arrays.gather import gather
from jaxsim.arrays.linear import bind_gather_static, bind_matmul
from jaxsim.arrays.products import gram
from jaxsim.control.solve.levenberg_marquardt import _triangle
from jaxsim.identify.search.sensitivity import RolloutInputs, sensitivities
from jaxsim.linalg.cholesky import solve_spd
from jaxsim.linalg.dense import Dense
from jaxsim.linalg.skyline import Skyline
from jaxsim.physics.body.tree_sums import subtree_sums
from jaxsim.physics.collision.compact import sort_by_rank
from jaxsim.physics.constraint.rows import ConstraintBlocks
from jaxsim.physics.solver.problem import ConstraintProblem
from jaxsim.transforms.primitive import PhysicsCall

CONFIGS = Path(__file__).parent.parent / "configs"
WORLDS, TILES = 16, 16  # worlds of a tile, tiles of a program


class Program(NamedTuple):
    """A function and the arguments with which it is timed."""

    function: Callable
    args: tuple


def numbers(*shape: int) -> Array:
    """Return normally distributed numbers."""
    return jnp.asarray(np.random.default_rng(0).standard_normal(shape), float)


def fused_program(function: Callable, *args: Array, worlds: int | None = WORLDS) -> Program:
    """Return a function of arrays, worlds last, compiled as in a step: fused, tile by tile."""

    def one_tile(leaves: Sequence[Array]) -> list[Array]:
        call = PhysicsCall(
            lambda worlds, staged, *a: [function(*a)],
            [False] * len(leaves),
            0,
            lambda worlds, linear: worlds,
        )
        return call(*leaves, worlds=worlds)

    if worlds not in (None, WORLDS):
        return Program(lambda *leaves: one_tile(leaves), args)
    tiles = tuple(jnp.broadcast_to(a, (TILES, *a.shape)) for a in args)
    return Program(lambda *leaves: lax.map(one_tile, leaves), tiles)


# Linear systems.


def system(n: int, *worlds: int) -> tuple[Array, Array]:
    """Return a symmetric positive definite matrix and a right-hand side."""
    a = numbers(n, n, *worlds)
    eye = jnp.eye(n).reshape(n, n, *(1 for _ in worlds))
    return a + jnp.swapaxes(a, 0, 1) + 8 * n**0.5 * eye, numbers(n, *worlds)


def solver_system(n: int) -> Program:
    """Solve the system of an iteration of Newton's method."""

    def solve(A: Array, b: Array) -> Array:
        p = ConstraintProblem(Dense(A), b, ConstraintBlocks())
        return p.accumulator(p.choose_hessian().form).solve(b)

    return fused_program(solve, *system(n, WORLDS))


def many_systems(n: int, worlds: int = WORLDS) -> Program:
    return fused_program(solve_spd, *system(n, worlds), worlds=worlds)


def one_system(n: int) -> Program:
    return fused_program(solve_spd, *system(n), worlds=None)


def skyline_system(n: int = 300, block: int = 12) -> Program:
    parts = np.arange(n).reshape(-1, block).tolist()
    mask = np.kron(np.eye(n // block), np.ones((block, block)))
    A, b = system(n)
    return fused_program(lambda A, b: Skyline.of(A, parts).solve(b), A * mask, b, worlds=None)


def tall_qr(rows: int = 3500, columns: int = 20) -> Program:
    return Program(_triangle, (numbers(rows), numbers(rows, columns)))


def large_worlds(boxes: int) -> Program:
    """Step a model whose solver iterates over all worlds of a tile at once."""
    body = '<body pos="{} 0 .1"><freejoint/><geom type="box" size=".1 .1 .1"/></body>'
    bodies = "".join(body.format(0.3 * k) for k in range(boxes))
    return step(
        '<mujoco><option solver="CG" iterations="10"/><worldbody>'
        f'<geom type="plane" size="9 9 1"/>{bodies}</worldbody></mujoco>'
    )


# Sums, products and gathers.


def product(n: int) -> Program:
    """Multiply two n x n matrices between operations of one kernel."""

    def between(A: Array, B: Array) -> Array:
        return elementwise(gram(elementwise(A, 8), B), 8)

    return fused_program(between, numbers(n, n), numbers(n, n), worlds=None)


def short_parts(number: int) -> Program:
    """Run a few operations between library calls, which cannot be fused."""

    def several(x: Array) -> Array:
        for _ in range(8):
            x = elementwise(lax.sort(x, dimension=0), number)
        return x

    return fused_program(several, numbers(32, WORLDS))


def elementwise(x: Array, number: int) -> Array:
    """Apply a chain of elementwise operations."""
    for k in range(number):
        x = lax.sin(x) if k % 2 else lax.neg(x)
    return x


def long_sum(n: int) -> Program:
    return fused_program(gram, numbers(n, 6, WORLDS), numbers(n, 6, WORLDS))


def constant_product(size: int) -> Program:
    weights = np.random.default_rng(1).standard_normal((4, size // 4))
    return fused_program(lambda x: bind_matmul(weights, jnp.sin(x)), numbers(size // 4, WORLDS))


def padded_scatter(factor: int, repeats: int = 4) -> Program:
    """Scatter-add with a table of groups that has `factor` padded items for each real one."""
    groups, most = factor + 1, factor**2 + factor + 1
    owner = np.concatenate([np.zeros(most, int), np.arange(1, groups)])
    index = np.concatenate([owner + groups * k for k in range(repeats)])
    x = numbers(groups * repeats, WORLDS)

    def scatter(y: Array) -> Array:
        return jax.linear_transpose(lambda x: bind_gather_static(x, index), x)(y)[0]

    return fused_program(scatter, numbers(len(index), WORLDS))


def table_lookup(n: int) -> Program:
    index = jnp.asarray(np.random.default_rng(1).integers(0, n, (32, 1024)), jnp.int32)
    return fused_program(lambda x, i: gather(x, i), numbers(n, 1024), index, worlds=1024)


def tree_sum(n: int) -> Program:
    joint = '<joint axis="0 1 0"/><geom size=".1" pos=".1 0 0" contype="0" conaffinity="0"/>'
    chain = f"<body>{joint}" * (n - 1) + "</body>" * (n - 1)
    m = jaxsim.load_model(f"<mujoco><worldbody>{chain}</worldbody></mujoco>")
    return fused_program(lambda x: subtree_sums(m, jnp.sin(x)), numbers(n, WORLDS))


# Steps.


def step(model: str | Path, worlds: int = WORLDS) -> Program:
    """Step many worlds with random velocities, or one world from its initial state."""
    m = jaxsim.load_model(model)
    d = jaxsim.make_data(m)
    if worlds == 1:
        return Program(jaxsim.step, (m, d))
    many = jaxsim.replicate(d, worlds)
    many = many.replace(qvel=0.1 * numbers(*many.qvel.shape))
    return Program(jax.vmap(jaxsim.step, (None, 0)), (m, many))


def quadruped(worlds: int = WORLDS) -> Program:
    return step(CONFIGS / "quadruped.xml", worlds)


def trees(sizes: Sequence[int], floor: bool) -> Program:
    """Step chains of hinges that cannot touch each other."""
    link = '<body pos=".1 0 0"><joint axis="0 1 0"/><geom size=".05" pos=".1 0 0"/>'
    chains = "".join(
        f'<frame pos="0 {k} .05">{link * n}{"</body>" * n}</frame>' for k, n in enumerate(sizes)
    )
    plane = '<geom type="plane" size="9 9 1" contype="2" conaffinity="2"/>' if floor else ""
    bits = 'contype="0" conaffinity="2"' if floor else 'contype="0" conaffinity="0"'
    return step(
        f"<mujoco><default><geom {bits}/></default><worldbody>{plane}{chains}</worldbody></mujoco>"
    )


def shell_in_ipc() -> Program:
    """Step a shell that falls on a plane, with the flag ipc."""
    return step(
        '<mujoco><option integrator="discrete"><flag ipc="enable"/></option><worldbody>'
        '<geom type="plane" size="1 1 1"/><flexcomp name="c" type="grid" dim="2" count="4 4 1" '
        'spacing=".04 .04 .04" mass=".1" pos="0 0 .006" radius=".004"><elasticity young="3e3" '
        'poisson=".1" thickness=".004" elastic2d="both" damping=".01"/>'
        '<contact selfcollide="none"/></flexcomp></worldbody></mujoco>',
        worlds=1,
    )


# Selection and collision.


def order(size: int) -> Program:
    rng = np.random.default_rng(0)
    rank = rng.permuted(np.tile(np.arange(size, dtype=np.int32)[:, None], WORLDS), axis=0)
    index = jnp.broadcast_to(jnp.arange(size, dtype=jnp.int32)[:, None], (size, WORLDS))
    number = jnp.full((1, WORLDS), size // 2, jnp.int32)
    return fused_program(sort_by_rank, index, jnp.asarray(rank), number)


def contacts(model: str | jaxsim.Model, worlds: int = WORLDS) -> Program:
    """Compute the distances of contacts."""
    m = jaxsim.load_model(model) if isinstance(model, str) else model
    many = jaxsim.replicate(jaxsim.make_data(m, keep="all"), worlds)
    many = many.replace(qpos=many.qpos + 0.01 * numbers(*many.qpos.shape))

    def distances(m: jaxsim.Model, d: jaxsim.Data) -> Array:
        stages = jaxsim.stages
        for stage in (stages.kinematics, stages.com_pos, stages.flex, stages.collision):
            d = stage(m, d)
        return d.contact.dist

    return Program(jax.vmap(distances, (None, 0)), (m, many))


def swarm(kinds: Sequence[str], number: int, spacing: float = 0.15, assets: str = "") -> str:
    """Return a model of bodies on hinges in a row; the kinds of their geoms alternate."""
    body = '<body pos="{} 0 0"><joint axis="0 1 0" pos="0 0 -1"/><geom {}/></body>'
    bodies = "".join(body.format(spacing * k, kinds[k % len(kinds)]) for k in range(number))
    return f"<mujoco><asset>{assets}</asset><worldbody>{bodies}</worldbody></mujoco>"


def pairs(number: int) -> Program:
    """Collide capsules of which neighbors touch; `number` is the number of pairs."""
    geoms = round((2 * number) ** 0.5 + 0.5)
    return contacts(swarm(['type="capsule" size=".08 .1"'], geoms))


def sheet(name: str, side: int, pos: str) -> str:
    return (
        f'<flexcomp name="{name}" type="grid" dim="2" count="{side} {side} 1" radius=".005" '
        f'spacing=".02 .02 .02" mass=".5" pos="{pos}"><contact selfcollide="none"/></flexcomp>'
    )


def sheet_and_balls(elements: int) -> Program:
    """Collide a sheet with two balls: twice as many candidate pairs as elements."""
    side = round((elements / 2) ** 0.5) + 1
    ball = '<body pos="0 {} .015"><freejoint/><geom size=".012"/></body>'
    balls = ball.format(0) + ball.format(0.04)
    return contacts(f"<mujoco><worldbody>{sheet('a', side, '0 0 0')}{balls}</worldbody></mujoco>")


def two_sheets(side: int) -> Program:
    sheets = sheet("a", side, "0 0 0") + sheet("b", side, ".007 .003 .009")
    return contacts(f"<mujoco><worldbody>{sheets}</worldbody></mujoco>", worlds=4)


CYLINDERS = ('type="cylinder" size=".09 .05"', 'type="ellipsoid" size=".1 .08 .06"')


def mesh(vertices: int) -> str:
    """Return a mesh with faces; without faces it would get a hull in any case."""
    point = np.random.default_rng(0).normal(size=(vertices, 3))
    point *= 0.1 / np.linalg.norm(point, axis=1)[:, None]
    face = ConvexHull(point.round(4)).simplices
    normal = np.cross(point[face[:, 1]] - point[face[:, 0]], point[face[:, 2]] - point[face[:, 0]])
    inward = np.sum(normal * point[face[:, 0]], axis=1) < 0
    face[inward] = face[inward][:, ::-1]
    vertex, face = (" ".join(map(str, a.ravel())) for a in (point.round(4), face))
    return f'<mesh name="stone" vertex="{vertex}" face="{face}"/>'


def convex(number: int = 12, worlds: int = 64) -> Program:
    return contacts(swarm(CYLINDERS, number), worlds)


def hulls() -> Program:
    return contacts(swarm(['type="mesh" mesh="stone"'], 12, assets=mesh(60)), worlds=64)


def bare_mesh(vertices: int = 300) -> Program:
    """Collide meshes without a hull: when they were compiled they could not touch anything."""
    import mujoco

    bare = 'type="mesh" mesh="stone" contype="0" conaffinity="0"'
    mj = mujoco.MjModel.from_xml_string(swarm([bare], 4, assets=mesh(vertices)))
    mj.geom_contype[:] = mj.geom_conaffinity[:] = 1
    mj.body_contype[1:] = mj.body_conaffinity[1:] = 1
    return contacts(jaxsim.put_model(mj))


def hills() -> Program:
    height = np.random.default_rng(0).random((24, 24)).round(3)
    field = (
        '<hfield name="hills" nrow="24" ncol="24" size="2 2 .2 .1" '
        f'elevation="{" ".join(map(str, height.ravel()))}"/>'
    )
    text = swarm(['type="capsule" size=".1 .1"', CYLINDERS[1]], 8, 0.3, field)
    return contacts(
        text.replace("<worldbody>", '<worldbody><geom type="hfield" hfield="hills" pos="1 0 -.2"/>')
    )


# Rays, images, sensitivities.


def spheres(number: int) -> str:
    place = np.random.default_rng(0).uniform(-1, 1, (number, 3)).round(3)
    geom = '<geom size=".03" pos="{} {} {}"/>'
    geoms = "".join(geom.format(*p) for p in place)
    return f"<mujoco><worldbody>{geoms}<body><joint/><geom size='.1'/></body></worldbody></mujoco>"


def rays(geoms: int = 300, number: int = 1000) -> Program:
    m = jaxsim.load_model(spheres(geoms))
    way = numbers(number, 3)
    start = jnp.asarray([[0.0, 0.0, 2.0]]) + 0 * way
    return Program(jaxsim.support.ray, (m, jaxsim.make_data(m), start, way))


def picture() -> Program:
    m = jaxsim.load_model(spheres(50))

    def depth(m: jaxsim.Model, d: jaxsim.Data) -> Array:
        return jaxsim.render(m, d, width=160, height=120, what=["depth"]).depth

    return Program(depth, (m, jaxsim.make_data(m)))


def tangents(worlds: int = 512, steps: int = 5) -> Program:
    """Compute the sensitivities of rollouts to the initial velocity, in all directions."""
    m = jaxsim.load_model(CONFIGS / "walker.xml")
    start = jaxsim.replicate(jaxsim.make_data(m), worlds)
    state = {name: getattr(start, name) for name in ("qpos", "qvel", "act")}
    eye = jnp.broadcast_to(jnp.eye(m.nv), (worlds, m.nv, m.nv))
    along = {name: jnp.zeros((worlds, m.nv, *a.shape[1:])) for name, a in state.items()}
    motion = RolloutInputs({}, state, jnp.zeros((worlds, steps, m.nu)))
    change = RolloutInputs({}, along | {"qvel": eye}, None)

    def run(m: jaxsim.Model, start: jaxsim.Data, motion: RolloutInputs, change: RolloutInputs):
        return sensitivities(m, start, motion, change, lambda before, after: after.qpos)

    return Program(run, (m, start, motion, change))
