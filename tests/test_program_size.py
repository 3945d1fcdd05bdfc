"""The size of the programs: what takes time to trace and to compile, counted instead of timed.

A change that makes a program larger has to say so in the table. The figures are of many worlds,
the form in which the machines are kept busy.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import jaxsim
from jaxsim.batch.program_report import count_equations, count_instructions, program_report

pytestmark = pytest.mark.kernels

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
WORLDS = 64
MARGIN = 1.02  # versions of JAX differ a little in what they make of the same code

# Equations of a traced step, and instructions given to the compiler. Two loops that follow what
# exists cost 1 to 6 %: contacts are evaluated in chunks up to the last used slot
# (collision/driver.py, solver/problem.py), and the line search runs only in worlds that still
# move (solver/linesearch.py): 3.6 evaluations of the cost instead of 38.6.
SIZES = {
    "cartpole": (4676, 7263),
    "humanoid": (10433, 16196),
    "pile": (10810, 16850),
    "quadruped": (8248, 13147),
    "walker": (6041, 10091),  # pivots, of a body with several slides: body/singular_inertia.py
}
# Fusion on a CPU copies cheap values into their users; where it compounds, programs explode. By the
# version of JAX it is up to 4.1 for each equation.
MOST_PER_EQUATION = 5


# tile of worlds, contact capacity and matrix forms of a step; the reasons are linalg/choose.py's
PROGRAMS = {
    "humanoid": (16, 40, {"unconstrained acceleration": ("PackedLower", (27,), False),
                          "Newton Hessian": ("PackedLower", (27,), False),
                          "Hessian in a derivative": ("Dense", (27,), False),
                          "integrator euler": ("Dense", (27,), False)}),
    "quadruped": (16, 24, {"unconstrained acceleration": ("PackedLower", (18,), False),
                           "Newton Hessian": ("PackedLower", (18,), False),
                           "Hessian in a derivative": ("Dense", (18,), False),
                           "integrator euler": ("Dense", (18,), False)}),
    "pile": (16, 64, {"unconstrained acceleration": ("BlockDiagonal", (6,) * 12, False),
                      "Newton Hessian": ("Skyline", (72,), True),
                      "Hessian in a derivative": ("Dense", (72,), False),
                      "integrator euler": ("BlockDiagonal", (6,) * 12, False)}),
}  # fmt: skip


# Robots as their makers ship them: hulls with boxes, capsules or cylinders, and a terrain.
VERTICES = "0 1 2 0 -1 2 0 1 -2 0 -1 -2 1 2 0 -1 2 0 1 -2 0 -1 -2 0 2 0 1 2 0 -1 -2 0 1 -2 0 -1"
LINK = '<geom type="mesh" mesh="link" pos="0 0 .1"/>'
FLOOR = '<geom type="plane" size="9 9 .1"/>'


def chain(*geoms: str, joint: str = '<joint axis="0 1 0" range="-90 90"/>') -> str:
    """Return a chain of bodies, one for each geom."""
    inner = chain(*geoms[1:]) if len(geoms) > 1 else ""
    return f'<body pos="0 .05 .2">{joint}{geoms[0]}{inner}</body>' if geoms else ""


CAPSULE = '<geom type="capsule" size=".02" fromto="0 0 0 0 0 .15"/>'
ROBOTS = {
    "arm": FLOOR + chain(*[LINK] * 5, '<geom type="box" size=".05 .02 .04"/>'),
    "hand": "".join(chain(LINK, CAPSULE, LINK) for _ in range(3))
    + chain(LINK, joint="<freejoint/>"),
    "wheels": FLOOR
    + chain(LINK, *['<geom type="cylinder" size=".1 .03"/>'] * 2, joint="<freejoint/>"),
    "terrain": '<geom type="hfield" hfield="ground"/>'
    + chain(*['<geom type="sphere" size=".05"/>', CAPSULE] * 2, joint="<freejoint/>"),
}
# Equations. Planes that cut runs of corners (convex/polygon_loop.py) cost 1 %; faces with many
# corners touch 1.7 times as fast (Kinova Gen3).
ROBOT_SIZES = {"arm": 18158, "hand": 19078, "wheels": 24832, "terrain": 13579}


def robot(name: str) -> str:
    heights = " ".join(str(k % 7) for k in range(64))
    ground = f'<hfield name="ground" nrow="8" ncol="8" size="2 2 .2 .1" elevation="{heights}"/>'
    mesh = f'<mesh name="link" vertex="{VERTICES}" scale=".05 .05 .05"/>'
    asset = ground if name == "terrain" else mesh
    return f"<mujoco><asset>{asset}</asset><worldbody>{ROBOTS[name]}</worldbody></mujoco>"


@pytest.mark.parametrize("name", ROBOTS)
def test_the_program_of_a_robot_with_meshes_has_not_grown(name):
    size = program_report(jaxsim.load_model(robot(name)), WORLDS).equations
    assert 0.9 * ROBOT_SIZES[name] < size <= MARGIN * ROBOT_SIZES[name], f"{name}: {size}"


def traced(m):
    d = jax.vmap(lambda _: jaxsim.make_data(m))(jnp.arange(WORLDS))
    return jax.jit(jax.vmap(jaxsim.step, (None, 0))).trace(m, d)


@pytest.mark.short("humanoid")
@pytest.mark.parametrize("name", SIZES)
def test_the_program_of_a_step_has_not_grown(name):
    report = program_report(jaxsim.load_model(CONFIGS / f"{name}.xml"), WORLDS, lower=True)
    size = report.equations, report.instructions
    for now, before in zip(size, SIZES[name], strict=True):
        assert 0.9 * before < now <= MARGIN * before, (
            f"{name}: {size}, the table says {SIZES[name]}"
        )
    if name in PROGRAMS:
        forms = {s.name: (s.form, s.blocks, s.by_world) for s in report.systems}
        assert (report.tile, report.capacities.contacts, forms) == PROGRAMS[name]
        assert all(name in str(report) for name in forms)


@pytest.mark.slow
def test_fusion_does_not_multiply_the_program():
    program = traced(jaxsim.load_model(CONFIGS / "cartpole.xml"))
    optimized = count_instructions(program.lower().compile().as_text())
    assert optimized < MOST_PER_EQUATION * count_equations(program.jaxpr.jaxpr)


@pytest.mark.slow
def test_the_program_does_not_grow_with_equal_things():
    def robots(n: int) -> str:
        robot = """<body pos="{} 0 .5"><freejoint/><geom size=".1"/><body pos=".2 0 0">
          <joint axis="0 1 0" range="-50 50"/>
          <geom type="capsule" size=".05" fromto="0 0 0 .2 0 0"/>
          <site name="s{}"/></body></body>"""
        sensors = "".join(f'<gyro site="s{k}"/>' for k in range(n))
        bodies = "".join(robot.format(k, k) for k in range(n))
        floor = '<geom type="plane" size="9 9 .1"/>'
        return f"<mujoco><worldbody>{floor}{bodies}</worldbody><sensor>{sensors}</sensor></mujoco>"

    counts = [count_equations(traced(jaxsim.load_model(robots(n))).jaxpr.jaxpr) for n in (6, 12)]
    assert counts[1] <= 1.1 * counts[0], counts
