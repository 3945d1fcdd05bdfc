"""The size of the programs: what takes time to trace and to compile, counted instead of timed.

A change that makes a program larger has to say so in the table. The figures are of many worlds,
the form in which the machines are kept busy.
"""

import re
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import jaxsim
from jaxsim.transforms.primitive import PHYSICS_P, program_of

pytestmark = pytest.mark.kernels

CONFIGS = Path(__file__).resolve().parent.parent / "configs"
WORLDS = 64
MARGIN = 1.02  # versions of JAX differ a little in what they make of the same code

# of a step: equations of the program as traced, and instructions as given to the compiler
SIZES = {
    "cartpole": (4606, 7157),
    "humanoid": (9760, 15765),
    "pile": (10714, 16911),
    "quadruped": (7967, 13090),
    "walker": (5642, 9785),  # pivots, of a body with several slides: body/singular_inertia.py
}
# Fusion on a CPU copies cheap values into their users; where it compounds, programs explode. By the
# version of JAX it is up to 4.1 for each equation.
MOST_PER_EQUATION = 5


def traced(m):
    d = jax.vmap(lambda _: jaxsim.make_data(m))(jnp.arange(WORLDS))
    return jax.jit(jax.vmap(jaxsim.step, (None, 0))).trace(m, d)


def equations(jaxpr) -> int:
    """All equations, those of inner programs included."""
    count = 0
    for equation in jaxpr.eqns:
        count += 1
        if equation.primitive is PHYSICS_P:
            count += equations(program_of(equation).jaxpr)
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                inner = getattr(inner, "jaxpr", inner)
                count += equations(inner) if hasattr(inner, "eqns") else 0
    return count


def instructions(text: str) -> int:
    return len(re.findall(r"^\s+(?:ROOT )?%[\w.\-:#]+(?:, %[\w.\-:#]+)* = ", text, re.MULTILINE))


@pytest.mark.parametrize("name", SIZES)
def test_the_program_of_a_step_has_not_grown(name):
    program = traced(jaxsim.load_model(CONFIGS / f"{name}.xml"))
    size = equations(program.jaxpr.jaxpr), instructions(program.lower().as_text())
    for now, before in zip(size, SIZES[name], strict=True):
        assert 0.9 * before < now <= MARGIN * before, (
            f"{name}: {size}, the table says {SIZES[name]}"
        )


def test_fusion_does_not_multiply_the_program():
    program = traced(jaxsim.load_model(CONFIGS / "cartpole.xml"))
    optimized = instructions(program.lower().compile().as_text())
    assert optimized < MOST_PER_EQUATION * equations(program.jaxpr.jaxpr)


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

    counts = [equations(traced(jaxsim.load_model(robots(n))).jaxpr.jaxpr) for n in (6, 12)]
    assert counts[1] <= 1.1 * counts[0], counts
