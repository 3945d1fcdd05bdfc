"""The list of the linear systems of a step, for each solver and integrator."""

import pytest

import jaxsim
from jaxsim.physics.pipeline.linear_systems import LinearSystem, linear_systems

pytestmark = pytest.mark.kernels

ARM = """<body pos="{} 0 1"><joint axis="0 1 0" damping=".1"/>
  <geom size=".1" pos=".1 0 0" contype="0" conaffinity="0"/></body>"""
ARMS = "".join(ARM.format(k) for k in range(3))
FREE = '<body pos="0 2 1"><freejoint/><geom size=".1"/></body>'
FLOOR = '<geom type="plane" size="9 9 1"/>'


def systems(bodies: str, option: str = "", worlds: int = 1) -> dict[str, LinearSystem]:
    """Return the systems of a model by their names."""
    text = f"<mujoco><option {option}/><worldbody>{bodies}</worldbody></mujoco>"
    return {s.name: s for s in linear_systems(jaxsim.load_model(text), worlds)}


def test_without_rows_and_dampers_there_is_one_system():
    found = systems(ARMS, 'integrator="RK4"')
    assert list(found) == ["acceleration"]
    assert (found["acceleration"].form, found["acceleration"].blocks) == ("BlockDiagonal", (1,) * 3)
    assert systems("") == {}


@pytest.mark.parametrize(
    ("option", "name", "form"),
    [
        ("", "integrator euler", "BlockDiagonal"),
        ('integrator="implicitfast"', "integrator implicitfast", "BlockDiagonal"),
        ('integrator="implicit"', "integrator implicit", "General"),
    ],
)
def test_matrices_of_integrators(option, name, form):
    assert systems(ARMS, option, worlds=4)[name].form == form


def test_free_bodies_are_blocks_of_their_own():
    found = systems(FREE, 'integrator="implicitfast"')["free bodies"]
    assert (found.size, found.blocks, found.form) == (6, (6,), "General")


@pytest.mark.parametrize(
    ("option", "names"),
    [
        ("", {"unconstrained acceleration", "Newton Hessian", "Hessian in a derivative"}),
        ('solver="CG"', {"CG preconditioner"}),
        ('solver="PGS" noslip_iterations="2"', {"PGS responses", "no-slip responses"}),
    ],
)
def test_systems_of_solvers(option, names):
    assert set(systems(FLOOR + FREE, option)) == names


def test_worlds_that_are_solved_together_have_another_form():
    one, many = (systems(FLOOR + FREE, worlds=n)["Newton Hessian"] for n in (1, 8))
    assert (one.form, many.form) == ("Dense", "PackedLower")
    assert "one world" in one.reason
    assert many.thresholds == ("max_unrolled_dofs",)
