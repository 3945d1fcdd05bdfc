"""Large systems of many worlds, each solved in the form of one world: against MuJoCo and a loop."""

import re
from functools import partial
from itertools import count

import jax
import mujoco
import numpy as np
import pytest
from physics.oracle import contact_forces
from states import inputs, random_state, stack, world
from tolerance import SOLVER, STAGE, STIFF

import jaxsim
from jaxsim.enums import DisableBit
from jaxsim.physics.solver.problem import ConstraintProblem

pytestmark = [pytest.mark.kernels, pytest.mark.long]

BALLS = "".join(
    f'<body pos="{0.3 * (k % 4)} {0.3 * (k // 4)} .1"><freejoint/><geom size=".1"/></body>'
    for k in range(17)
)
LEG = '<body pos="0 0 -.1"><joint axis="{} {} 0"/><geom size=".04"/>{}</body>'


def leg(links: int) -> str:
    """A chain that hangs over the floor."""
    text = ""
    for k in range(links):
        text = LEG.format(k % 2, 1 - k % 2, text)
    return text


def legs() -> str:
    """Chains that touch the floor alone."""
    at = (f'<body pos="{2 * k} 0 1.72">{leg(17)}</body>' for k in range(6))
    return "".join(at).replace("<geom ", '<geom contype="0" conaffinity="1" ')


FLOOR = '<geom name="floor" type="plane" size="9 9 1" contype="1"/>'
ONE = leg(98).replace("<geom ", '<geom contype="0" conaffinity="1" ').replace("-.1", "-.02")
LIMITS = ONE.replace('conaffinity="1"', 'conaffinity="0"').replace("<joint ", "<joint {} ")
LIMITS = LIMITS.replace("{}", 'range="-.2 .2" limited="true" frictionloss=".01"')
SCENES = {  # more than 96 dofs: text, cone, how far worlds are from qpos0
    "balls that touch each other": (FLOOR + BALLS, "elliptic", 0.02),
    "legs on the floor": (FLOOR + legs(), "pyramidal", 0.1),
    "one tree": (f'{FLOOR}<body pos="0 0 1.96">{ONE}</body>', "pyramidal", 0.05),
    "limits of a tree": (f'<body pos="0 0 3">{LIMITS}</body>', "pyramidal", 0.1),
}
FIELDS = "qacc qacc_smooth qfrc_constraint qfrc_smooth cacc cfrc_int sensordata".split()
FELT = """<sensor>
  <contact body1="b{last}" data="found force torque" num="3"/>
  <framelinacc objtype="body" objname="b3"/><contact body1="b2" data="found force torque"/>
  <frameangacc objtype="body" objname="b{last}"/>
</sensor>"""


def loaded(name: str) -> tuple[mujoco.MjModel, jaxsim.Model, float]:
    """The model of a scene in both engines, with iterations to the end."""
    content, cone, spread = SCENES[name]
    option = f'<option cone="{cone}" tolerance="1e-14" iterations="60" ls_tolerance="1e-6"/>'
    number = count()
    content = re.sub("<body ", lambda _: f'<body name="b{next(number)}" ', content)
    felt = FELT.format(last=next(number) - 1)
    text = f"<mujoco>{option}<worldbody>{content}</worldbody>{felt}</mujoco>"
    return mujoco.MjModel.from_xml_string(text), jaxsim.load_model(text), spread


def forward_and_forces(m, d):
    new = jaxsim.forward(m, d)
    return new, jaxsim.support.contact_forces(m, new)


@pytest.mark.short("one tree")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("balls that touch each other", marks=pytest.mark.slow),
        pytest.param("legs on the floor", marks=pytest.mark.slow),
        "one tree",
        "limits of a tree",
    ],
)
def test_worlds_that_differ_are_as_those_of_mujoco(name, monkeypatch):
    asked = []
    choose = ConstraintProblem.choose_hessian

    def asks(*args, **how):
        choice = choose(*args, **how)
        asked.append(choice.by_world)
        return choice

    monkeypatch.setattr(ConstraintProblem, "choose_hessian", asks)
    mj, m, spread = loaded(name)
    found = [random_state(mj, seed, spread=spread) for seed in range(3)]
    mj.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_WARMSTART
    m = m.replace(opt=m.opt.replace(disableflags=m.opt.disableflags | DisableBit.WARMSTART))
    free = mj.jnt_type[0] == mujoco.mjtJoint.mjJNT_FREE
    found[1].qpos[2] += 5 * free  # the first body out of contact
    for one in found:
        mujoco.mj_forward(mj, one)
    assert len({one.nefc for one in found}) > 1
    alone = [inputs(m, one, "all") for one in found]
    of_one = jax.jit(forward_and_forces)
    forward = jax.jit(lambda m, d: jax.vmap(forward_and_forces, (None, 0))(m, d))
    together, forces = forward(m, stack(alone))
    assert any(asked)
    for k, theirs in enumerate(found):
        ours, (own, own_force) = world(together, k), of_one(m, alone[k])
        for field in FIELDS:
            value, single = np.asarray(getattr(ours, field)), np.asarray(getattr(own, field))
            np.testing.assert_allclose(value, getattr(theirs, field), err_msg=field, **STIFF)
            # Accelerations of a chain are sums along it, up to 8,000 here: their rounding, which
            # depends on the processor, is relative to the largest.
            rounding = STAGE["atol"] * np.abs(single).max()
            near = SOLVER | {"atol": SOLVER["atol"] + rounding}
            np.testing.assert_allclose(value, single, err_msg=field, **near)
        np.testing.assert_allclose(forces[k], own_force, err_msg="contacts", **SOLVER)
        np.testing.assert_allclose(forces[k][: theirs.ncon], contact_forces(mj, theirs), **STIFF)
        assert int(ours.solver_niter) == int(own.solver_niter)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param("balls that touch each other", marks=pytest.mark.slow),
        "legs on the floor",
    ],
)
def test_what_is_kept_changes_nothing(name):
    mj, m, spread = loaded(name)
    steps = jax.jit(lambda m, d: jax.vmap(partial(jaxsim.step, m))(d))
    states = [random_state(mj, seed, spread=spread) for seed in range(2)]
    least, most = (
        steps(m, stack([inputs(m, one, keep) for one in states])) for keep in ((), "all")
    )
    for field in ("qpos", "qvel", "time"):
        np.testing.assert_allclose(getattr(least, field), getattr(most, field), **SOLVER)
