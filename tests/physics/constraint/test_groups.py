"""Models of many trees, whose contacts have rows for the dofs that they touch only: MuJoCo's."""

from functools import cache, partial

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from physics.constraint.scene import compile_xml
from tolerance import SOLVER, STAGES

import jaxsim
from jaxsim.physics.constraint.contact.groups import contact_groups

ARM = """<body pos="{x} {y} .25"><joint axis="0 1 0"/>
  <geom type="capsule" size=".05" fromto="0 0 0 .3 0 0" {more}/>
  <body pos=".3 0 0"><joint axis="0 1 0" range="-1 1" limited="true" frictionloss=".1"/>
    <geom type="capsule" size=".05" fromto="0 0 0 .2 0 -.25" condim="4" {more}/></body></body>"""
BALL = """<body pos="{x} {y} {z}"><freejoint/><geom size=".1" {more}/>
  <site name="s{x}{z}" size=".2"/></body>"""
ALONE = 'contype="0"'  # touches the floor only


def scene(cone: str, *bodies: str, more: str = "") -> str:
    return f"""<mujoco><option cone="{cone}" timestep=".004"/>
      <worldbody><geom type="plane" size="9 9 1" priority="1" condim="3"/>{"".join(bodies)}
      </worldbody>{more}</mujoco>"""


def balls(number: int, z: float, more: str = "") -> str:
    places = ((k * 0.15, 0, z + 0.15 * (k % 2)) for k in range(number))
    return "".join(BALL.format(x=x, y=y, z=z, more=more) for x, y, z in places)


SCENES = {
    # slots, numbers a row, XML
    "parts": (
        1,
        6,
        scene(
            "pyramidal",
            ARM.format(x=0, y=2, more=ALONE),
            balls(3, 0.095, ALONE),
            ARM.format(x=0, y=3, more=ALONE),
            more='<sensor><touch site="s0.150.245"/><touch site="s0.00.095"/></sensor>',
        ),
    ),
    "trees": (
        2,
        12,
        scene(
            "elliptic",
            ARM.format(x=-0.2, y=0, more=""),
            balls(4, 0.3),
            ARM.format(x=0.1, y=0.12, more=""),
        ),
    ),
    "even": (2, 12, scene("pyramidal", balls(9, 0.095))),
}
ROWS = ("efc_aref", "efc_D", "efc_force")
RESULTS = ("qacc", "qfrc_constraint", "sensordata")
KEPT = ["efc_J", *ROWS, *RESULTS, "ncon", "nefc", jaxsim.support.contact_forces]
STEPS = (0, 15, 40, 60, 90, 120)


@cache
def worlds(name: str):
    """States on the way, the oracle's, as one batch."""
    mj = compile_xml(SCENES[name][2])
    m = jaxsim.put_model(mj)
    start, rng = jaxsim.make_data(m, KEPT), np.random.default_rng(2)
    oracle, states = [], []
    mjd = mujoco.MjData(mj)
    mjd.qvel[:] = 0.3 * rng.normal(size=mj.nv)
    for step in range(max(STEPS) + 1):
        mujoco.mj_step(mj, mjd)
        if step in STEPS:
            mujoco.mj_forward(mj, mjd)
            oracle.append(mjd.__copy__())
            states.append((mjd.qpos.copy(), mjd.qvel.copy()))
    qpos, qvel = (jnp.array(a) for a in zip(*states, strict=True))
    d = jax.vmap(lambda q, v: start.replace(qpos=q, qvel=v))(qpos, qvel)
    return mj, m, d, oracle


def jacobian(mj, mjd) -> np.ndarray:
    J = mjd.efc_J.reshape(-1, mj.nv)
    return J[: mjd.nefc]


def solved(m, d):
    d = jaxsim.forward(m, d)
    return d, jaxsim.support.contact_forces(m, d)


@pytest.mark.short("parts-one many")
@pytest.mark.parametrize(
    ("name", "forms"),
    [
        ("parts", "one many"),
        ("trees", "one"),
        pytest.param("even", "one many", marks=pytest.mark.slow),
    ],
)
def test_every_output(name, forms):
    """One world and six: rows, their forces, accelerations, contact forces, sensors."""
    slots, width, _ = SCENES[name]
    mj, m, d, oracle = worlds(name)
    groups = contact_groups(m)
    assert (groups.slots, groups.width) == (slots, width)
    assert len({mjd.ncon for mjd in oracle}) > 1
    many = jax.jit(jax.vmap(solved, (None, 0)))(m, d) if "many" in forms else None
    alone = jax.jit(solved)
    for k, mjd in enumerate(oracle):
        world = partial(jax.tree.map, lambda a, k=k: a[k])
        answers = [world(many)] if "many" in forms else []
        answers += [alone(m, world(d))] if "one" in forms else []
        for found, forces in answers:
            n = mjd.nefc
            assert (int(found.ncon), int(found.nefc)) == (mjd.ncon, n)
            np.testing.assert_allclose(found.efc_J[:n], jacobian(mj, mjd), **STAGES)
            for field in ROWS:
                np.testing.assert_allclose(getattr(found, field)[:n], getattr(mjd, field), **SOLVER)
            for field in RESULTS:
                np.testing.assert_allclose(getattr(found, field), getattr(mjd, field), **SOLVER)
            force = np.zeros((mjd.ncon, 6))
            for c in range(mjd.ncon):
                mujoco.mj_contactForce(mj, mjd, c, force[c])
            np.testing.assert_allclose(forces[: mjd.ncon], force, **SOLVER)


ROPES = """<mujoco><option integrator="{integrator}"><flag diagexact="{exact}"/></option><worldbody>
  {arms}</worldbody><tendon>{ropes}</tendon></mujoco>"""


@pytest.mark.short("discrete-enable")
@pytest.mark.parametrize(("integrator", "exact"), [("Euler", "disable"), ("discrete", "enable")])
def test_rows_of_fixed_tendons_are_of_all_worlds(integrator, exact):
    """Friction of tendons whose Jacobian does not depend on the state, in trees that are apart."""
    arms = "".join(
        f'<body pos="0 {k} 1"><joint name="a{k}" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/>'
        f'<body pos=".3 0 0"><joint name="b{k}" axis="0 1 0"/><geom size=".1" pos=".3 0 0"/>'
        "</body></body>"
        for k in range(4)
    )
    ropes = "".join(
        f'<fixed frictionloss=".1"><joint joint="a{k}" coef="1"/><joint joint="b{k}" coef="{k}"/>'
        "</fixed>"
        for k in range(4)
    )
    mj = mujoco.MjModel.from_xml_string(
        ROPES.format(integrator=integrator, exact=exact, arms=arms, ropes=ropes)
    )
    mj.opt.iterations, mj.opt.tolerance = 100, 1e-16
    m, mjd = jaxsim.put_model(mj), mujoco.MjData(mj)
    qvel = np.random.default_rng(0).normal(size=(5, mj.nv))
    d = jaxsim.make_data(m)
    many = jax.jit(jax.vmap(lambda m, v: jaxsim.step(m, d.replace(qvel=v)).qvel, (None, 0)))
    for found, start in zip(many(m, jnp.array(qvel)), qvel, strict=True):
        mujoco.mj_resetData(mj, mjd)
        mjd.qvel[:] = start
        mujoco.mj_step(mj, mjd)
        np.testing.assert_allclose(found, mjd.qvel, **SOLVER)
