"""Passive contacts of flexes beside MuJoCo: springs along normals that a discrete step sees."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from states import random_state, stack
from tolerance import DIFFERENCE, DYNAMICS, FLOAT32, STIFF

import jaxsim
from jaxsim.errors import UnsupportedWarning

COMPILER = {"xla_backend_optimization_level": 0}  # the programs run once
WORLD = """<mujoco><option integrator="discrete" tolerance="1e-15" iterations="500"
  ls_iterations="50" ccd_tolerance="1e-12" {option}/><option><flag {flag}/></option><worldbody>
  <body pos="0 0 2"><freejoint/><geom size=".1" contype="0" conaffinity="0"/></body>
  {content}</worldbody>{more}</mujoco>"""
ELASTIC = '<elasticity young="1e3" poisson=".3" damping=".01" {more}/>'
TOUCHED = 'contype="2" conaffinity="0"'
FLOOR = f'<geom name="floor" type="plane" size="1 1 1" {TOUCHED} adhesion="3"/>'
PASSIVE = 'passive="true" contype="1" conaffinity="2"'
PIN = '<pin id="0"/>'


def world(content: str, **given: str) -> str:
    return WORLD.format(content=content, **{"option": "", "flag": "", "more": "", **given})


def flex(name: str, dim: int, count: str, pos: str, more: str = "", **given: str) -> str:
    fill = {"contact": PASSIVE, "pin": "", "elastic": "", "self": "none", **given}
    return (
        f'<flexcomp name="{name}" type="grid" dim="{dim}" count="{count}" spacing=".06 .06 .06" '
        f'radius=".01" mass=".5" pos="{pos}" {more}>{fill["elastic"]}{fill["pin"]}'
        f'<contact selfcollide="{fill["self"]}" margin=".002" gap=".004" {fill["contact"]}/>'
        "</flexcomp>"
    )


def ball(pos: str, size: str, inside: str = "", more: str = "") -> str:
    return f'<body pos="{pos}">{inside}<geom size="{size}" {TOUCHED} {more}/></body>'


HINGE = '<joint axis="1 .2 .3" damping=".1"/>'
ASKED = 'contype="0" conaffinity="1"'
SLIDES = "".join(f'<joint type="slide" axis="{a}" {{}}/>' for a in ("1 0 0", "0 1 0", "0 0 1"))
POINT = """<body name="{name}" pos="{pos}">{joint}
  <geom type="box" size=".01 .02 .03" mass="{mass}" contype="0" conaffinity="0"/>{inside}</body>"""


def odd(name: str, x: float, joints: list[str], inside: str = "") -> tuple[str, str]:
    """A triangle of three bodies, whatever joints they have, over a ball; and its flex."""
    place = [(x, 0), (x + 0.1, 0), (x, 0.1)]
    points = [
        POINT.format(name=f"{name}{k}", pos=f"{a} {b} 1", joint=j, mass=0.1 + 0.1 * k, inside=inside)
        for k, ((a, b), j) in enumerate(zip(place, joints, strict=True))
    ]
    bodies = " ".join(f"{name}{k}" for k in range(3))
    shell = f"""<flex name="{name}" dim="2" body="{bodies}" vertex="0 0 0  0 0 0  0 0 0"
      element="0 1 2" radius=".02"><contact {PASSIVE} selfcollide="none"/></flex>"""
    return "".join(points) + ball(f"{x + 0.03} .03 .89", ".1"), shell


def triangles() -> str:
    """Vertices on bodies with armature, with children, with hinges, balls and free joints."""
    arm = SLIDES.replace("{}", 'armature=".3"', 1).replace("{}", "")
    slides = SLIDES.replace("{}", "")
    turns = '<joint type="ball" pos=".1 .2 .1"/>', '<joint axis="0 1 0" pos=".1 .2 .1"/>'
    child = '<body><joint axis="0 1 0"/><geom size=".01" mass=".7" contype="0"/></body>'
    parts = [
        odd("a", 0, [arm, slides, arm]),
        odd("b", 1, [slides] * 3, child),
        odd("c", 2, [slides, turns[0], slides]),
        odd("d", 3, [turns[1], "<freejoint/>", slides]),
        odd("e", 4, ["<freejoint/>", turns[1], "<freejoint/>"]),
    ]
    bodies, flexes = ("".join(part) for part in zip(*parts, strict=True))
    return world(bodies, more=f"<deformable>{flexes}</deformable>")


# each with the contacts that the oracle finds
SCENES = {
    "two shells, one of them asks": world(
        flex("a", 2, "2 3 1", "0 0 1", contact=ASKED)
        + flex("b", 2, "3 2 1", ".02 .01 1.018", pin=PIN)
        + flex("c", 2, "2 2 1", "1 0 1.01", contact='passive="true" contype="0" conaffinity="2"')
        + ball("1.03 .03 .95", ".05")
        + ball("1.01 .0 1.07", ".06", HINGE),
        option='solver="CG"',
    ),
    "lattices and a rod": world(
        flex("a", 3, "3 2 2", "0 0 1", 'dof="trilinear" cellcount="2 1 1"', pin='<pin id="0 5"/>')
        + flex("b", 3, "2 2 2", ".02 .01 1.078", 'dof="quadratic"', contact=ASKED)
        + flex("c", 1, "4 1 1", "0 -.02 .955", contact=ASKED + ' passive="true"')
        + flex("d", 2, "2 2 1", ".05 .02 1.123", contact='contype="0" conaffinity="4"')
        + flex("e", 2, "2 2 1", ".05 .03 1.135", contact=PASSIVE.replace('"1"', '"4"'))
    ),
    "a shell with itself": world(
        flex("a", 2, "4 4 1", "0 0 1", contact='passive="true"', self="narrow"), option='cone="elliptic"'
    ),
    "shells of quadratic walls": world(
        flex("a", 3, "3 3 3", "0 0 .065", 'dof="quadratic" cellcount="1 1 2"') + FLOOR
    ),
    "odd bodies": triangles(),
}  # fmt: skip
FORCES = "qfrc_spring qfrc_damper qfrc_adhesion qfrc_passive qfrc_bias".split()


def each_row(ours, theirs, name: str, tolerance=DYNAMICS) -> None:
    """Each number by itself, beside the least of its own size and one."""
    np.testing.assert_allclose(np.ravel(ours), np.ravel(theirs), **tolerance, err_msg=name)


@pytest.mark.parametrize("scene", SCENES)
def test_forces_and_acceleration(scene):
    """Of the contacts that the oracle has found."""
    mj = mujoco.MjModel.from_xml_string(SCENES[scene])
    spread = 0.03 if "itself" in scene else 0.004
    state = random_state(mj, 1, spread=spread, speed=0.3)
    mujoco.mj_forward(mj, state)
    assert (state.contact.exclude == 4).any()
    m = jaxsim.put_model(mj, contacts=state.ncon)
    d = jaxsim.put_data(mj, state, contacts=state.ncon, keep="all")

    def found(d):
        d = jaxsim.fwd_velocity(m, d)
        d = jaxsim.fwd_acceleration(m, jaxsim.fwd_actuation(m, d))
        return jaxsim.solve(m, d)

    new = jax.jit(found, compiler_options=COMPILER)(d)
    for name in (*FORCES, "qacc_smooth"):
        each_row(getattr(new, name), getattr(state, name), name)
    for name in ("qfrc_constraint", "qacc"):
        each_row(getattr(new, name), getattr(state, name), name, STIFF)
