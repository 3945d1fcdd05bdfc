"""Mass matrices that are singular: MuJoCo's count of mjWARN_INERTIA, and the motion there."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import DYNAMICS

import jaxsim
from jaxsim.enums import MINVAL, WarningType
from jaxsim.io.bridge import put_model
from jaxsim.linalg.block_diagonal import BlockDiagonal
from jaxsim.linalg.ldl import ltdl
from jaxsim.linalg.tree_sparse import TreeSparse

ARM = """<body pos="0 {} 0"><joint axis="0 1 0" damping="{}"/><geom size=".1" pos=".1 0 0"/>
  <body pos="0 0 1"><joint axis="0 1 0"/><geom size=".1" pos=".1 0 0"/></body></body>"""
MASSLESS = ((), (2,), (4,), (2, 4), (1,), (1, 2))


def arms(integrator: str, damping: float) -> mujoco.MjModel:
    bodies = "".join(ARM.format(k, damping) for k in range(2))
    return mujoco.MjModel.from_xml_string(
        f'<mujoco><option integrator="{integrator}"/><default><geom contype="0"/></default>'
        f"<worldbody>{bodies}</worldbody></mujoco>"
    )


def told(d: mujoco.MjData) -> list[int]:
    return [d.warning[WarningType.INERTIA].number, d.warning[WarningType.INERTIA].lastinfo]


@pytest.mark.short("Euler-1")
@pytest.mark.parametrize(
    ("integrator", "damping"),
    [
        ("Euler", 0),
        ("Euler", 1),
        *(pytest.param(i, 1, marks=pytest.mark.slow) for i in ("RK4", "implicitfast")),
        *(pytest.param(i, 0, marks=pytest.mark.slow) for i in ("implicit", "discrete")),
    ],
)
def test_bodies_without_mass_count_as_mujocos(integrator, damping):
    """Worlds whose models differ in the bodies without mass: counts, dofs and the motion."""
    mj = arms(integrator, damping)
    m = put_model(mj)
    mass, inertia = (np.tile(a, (len(MASSLESS), 1, 1)) for a in (m.body_mass, m.body_inertia))
    mass = mass[:, 0]
    for k, bodies in enumerate(MASSLESS):
        mass[k, list(bodies)] = 0
        inertia[k, list(bodies)] = 0

    def steps(mass, inertia):
        there = m.replace(body_mass=mass, body_inertia=inertia)
        return jax.lax.fori_loop(0, 3, lambda _, d: jaxsim.step(there, d), jaxsim.make_data(m))

    d = jax.jit(jax.vmap(steps))(jnp.asarray(mass), jnp.asarray(inertia))
    for k, bodies in enumerate(MASSLESS):
        theirs = arms(integrator, damping)
        theirs.body_mass[list(bodies)] = 0
        theirs.body_inertia[list(bodies)] = 0
        expected = mujoco.MjData(theirs)
        for _ in range(3):
            mujoco.mj_step(theirs, expected)
        found = [d.warning[k], d.warning_lastinfo[k]]
        assert [int(a[WarningType.INERTIA]) for a in found] == told(expected)
        np.testing.assert_allclose(d.qpos[k], expected.qpos, **DYNAMICS)
        assert not np.delete(d.warning[k], WarningType.INERTIA).any()
    assert d.warning[1, WarningType.INERTIA] >= 3
    if (integrator, damping) == ("Euler", 0):
        (text, *_) = jaxsim.warning_texts(m, d)
        assert text.endswith("singular mass matrix, the last dof[1], of joint 1")


DEPENDENT = {
    "coaxial hinges": ('<joint axis="0 1 0"/><joint axis="0 1 0"/>', 0),
    "slides": ('<joint type="slide" axis=".6 .7 .3"/><joint type="slide" axis=".6 .7 .3"/>', 0),
    "gimbal lock": ('<joint axis="1 0 0"/><joint axis="0 1 0"/><joint axis="0 0 1"/>', np.pi / 2),
    "no gimbal lock": ('<joint axis="1 0 0"/><joint axis="0 1 0"/><joint axis="0 0 1"/>', 0.3),
}


@pytest.mark.short("coaxial hinges-cpu")
@pytest.mark.parametrize(
    ("case", "platform"),
    [
        *((case, "cpu") for case in DEPENDENT),
        ("coaxial hinges", "tpu"),
        *(
            pytest.param(case, "tpu", marks=pytest.mark.slow)
            for case in DEPENDENT
            if case != "coaxial hinges"
        ),
    ],
)
def test_dependent_joint_axes_are_counted(case, platform):
    """Pivots decide on a CPU, the axes alone on accelerators."""
    joints, turned = DEPENDENT[case]
    mj = mujoco.MjModel.from_xml_string(f"""<mujoco><worldbody>
      <body pos="1 1 1"><freejoint/><geom size=".1"/></body>
      <body quat="1 .3 .2 .1">{joints}<geom type="box" size=".1 .2 .3" pos=".1 0 0"/></body>
      </worldbody></mujoco>""")
    theirs, m = mujoco.MjData(mj), put_model(mj)
    theirs.qpos[8] = turned
    mujoco.mj_forward(mj, theirs)
    start = jaxsim.make_data(m).replace(qpos=theirs.qpos)
    with jaxsim.for_platform(platform, kernels=False):
        d = jax.jit(jaxsim.forward)(m, start)
    found = [int(a[WarningType.INERTIA]) for a in (d.warning, d.warning_lastinfo)]
    assert found == told(theirs) == ([0, 0] if case.startswith("no") else [1, 6])


def test_pivots_of_the_forms_of_a_matrix():
    """Pivots equal those of the dense factorization; one that is too small is raised."""
    rng = np.random.default_rng(0)
    forest, parts = (-1, 0, 1, 1, -1, 4), ((0, 1, 2, 3), (4, 5))
    above = np.eye(6, dtype=bool)
    for k, parent in enumerate(forest):
        above[k] |= above[parent] if parent >= 0 else False
    A = np.where(above, rng.normal(size=(6, 6)), 0)
    A = A.T @ A
    A[3, :] = A[:, 3] = 0
    D = ltdl(jnp.asarray(A))[1]
    np.testing.assert_allclose(BlockDiagonal.of(jnp.asarray(A), parts).pivots(), D, **DYNAMICS)
    assert D[3] == MINVAL
    A[3, 3] = 1
    D = ltdl(jnp.asarray(A))[1]
    unit = tuple(jnp.asarray(A[:, k]) for k in range(6)), tuple(jnp.eye(6)[:, k] for k in range(6))
    tree = TreeSparse.of_products(*unit, forest)
    np.testing.assert_allclose(tree.pivots(), D, **DYNAMICS)


@pytest.mark.slow
def test_factors_that_are_kept_are_mujocos():
    mj = arms("Euler", 0)
    mj.body_mass[2] = mj.body_inertia[2] = 0
    theirs, m = mujoco.MjData(mj), put_model(mj)
    mujoco.mj_forward(mj, theirs)
    d = jax.jit(jaxsim.forward)(m, jaxsim.make_data(m, keep=["qLDiagInv"]))
    np.testing.assert_allclose(d.qLDiagInv, theirs.qLDiagInv, rtol=1e-9)
