"""Block-diagonal systems: connected components of dofs, and solutions equal to the dense ones."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from tolerance import ROUNDING, SOLVER

import jaxsim
from jaxsim.linalg.dense import Dense
from jaxsim.physics.partition import inertia_blocks, solver_blocks

CART = """<body name="cart{k}" pos="{k} 0 .098"><joint name="x{k}" type="slide" axis="1 0 0"/>
  <joint type="slide" axis="0 0 1"/><geom size=".1" condim="3" {geom}/></body>"""
APART = 'contype="2" conaffinity="1"'  # touches the floor, not one another


def carts(count: int, geom: str = APART, rest: str = "", more: str = "") -> str:
    """Return equal carts of two dofs, which are block-diagonal from four carts on."""
    bodies = "".join(CART.format(k=k, geom=geom) for k in range(count))
    return f"""<mujoco><option iterations="30"/><worldbody><geom type="plane" size="9 9 1"/>{bodies}
      {more}</worldbody>{rest}</mujoco>"""


TENDON = """<tendon><fixed {inertia}><joint joint="x0" coef="1"/><joint joint="x2" coef="-1"/>
  </fixed></tendon>"""
EQUALITY = '<equality><joint joint1="x3" joint2="x1"/></equality>'
CROSSED = """<equality><joint joint1="x5" joint2="x1"/><joint joint1="x0" joint2="x2"/>
  <joint joint1="x3" joint2="x5"/></equality>"""
PAIRS = ((0, 1), (2, 3), (4, 5), (6, 7), (8, 9))
WHOLE = (tuple(range(10)),)


@pytest.mark.parametrize(
    ("xml", "inertia", "solver"),
    [
        (carts(5), PAIRS, PAIRS),
        (carts(5, geom=""), PAIRS, WHOLE),
        (carts(5, rest=EQUALITY), PAIRS, ((0, 1), (2, 3, 6, 7), (4, 5), (8, 9))),
        (
            carts(6, rest=CROSSED),
            (*PAIRS, (10, 11)),
            ((0, 1, 4, 5), (2, 3, 6, 7, 10, 11), (8, 9)),
        ),
        (carts(5, rest=TENDON.format(inertia="")), *[((0, 1, 4, 5), (2, 3), (6, 7), (8, 9))] * 2),
        (carts(1), ((0, 1),), ((0, 1),)),
    ],
    ids=["apart", "touching", "equality", "several", "tendon", "one tree"],
)
def test_coupled_dofs_are_one_block(xml, inertia, solver):
    m = jaxsim.load_model(xml)
    assert inertia_blocks(m) == inertia
    assert solver_blocks(m) == solver


def test_systems_are_split_only_if_cheaper():
    """Two trees of two dofs: a fourth of the work, but two programs if their sizes differed."""
    assert len(solver_blocks(jaxsim.load_model(carts(2)))) == 2
    more = '<body pos="0 5 1"><joint/><geom size=".1" contype="0" conaffinity="0"/></body>'
    m = jaxsim.load_model(carts(1, more=more))
    assert len(inertia_blocks(m)) == 1


@pytest.mark.parametrize("worlds", [(), (5,), (70,)], ids=str)
def test_solutions_are_those_of_the_whole(worlds):
    """Parts of two sizes, whose rows are mixed, in one world and in many."""
    parts = ((0, 3), (1, 2, 6), (4, 5), (7,))
    rng = np.random.default_rng(1)
    root = rng.standard_normal((8, 8, *worlds))
    A = np.einsum("ik...,jk...->ij...", root, root) + 8 * np.eye(8).reshape(
        8, 8, *[1] * len(worlds)
    )
    label = np.zeros(8)
    for k, part in enumerate(parts):
        label[list(part)] = k
    A = A * (label[:, None] == label).reshape(8, 8, *[1] * len(worlds))
    b = rng.standard_normal((8, *worlds))
    x = jax.jit(lambda A, b: Dense(A, parts).solve(b))(A, b)
    np.testing.assert_allclose(np.einsum("ij...,j...->i...", A, x), b, **ROUNDING)


@pytest.mark.parametrize(
    "xml",
    [
        pytest.param(carts(5, rest=EQUALITY), marks=pytest.mark.slow),
        carts(5, geom="", rest=TENDON.format(inertia='armature=".3"')),
    ],
    ids=["parts of two sizes", "small parts of the inertia"],
)
def test_forces_and_accelerations_equal_those_of_mujoco(xml):
    mj = mujoco.MjModel.from_xml_string(xml)
    m = jaxsim.put_model(mj)
    rng = np.random.default_rng(2)
    qvel = 0.3 * rng.standard_normal((6, mj.nv))
    d = jaxsim.make_data(m)
    many = jax.vmap(lambda v: d.replace(qvel=v))(jnp.asarray(qvel))
    ours = jax.jit(jax.vmap(jaxsim.forward, (None, 0)))(m, many)
    back = jax.jit(jax.vmap(jaxsim.inverse, (None, 0)))(m, ours)
    for k, v in enumerate(qvel):
        theirs = mujoco.MjData(mj)
        theirs.qvel[:] = v
        mujoco.mj_forward(mj, theirs)
        assert theirs.nefc > 0
        for name in ("qacc_smooth", "qacc", "qfrc_constraint"):
            np.testing.assert_allclose(getattr(ours, name)[k], getattr(theirs, name), **SOLVER)
    np.testing.assert_allclose(back.qfrc_inverse, np.zeros_like(qvel), **SOLVER)


@pytest.mark.slow
def test_worlds_of_pairs_of_trees_that_touch_are_those_of_one():
    """Blocks of the Hessian are pairs of trees; a contact touches two trees of one block."""
    ball = '<body pos="{} 0 .1"><freejoint/><geom size=".1" {}/></body>'
    masks = [f'contype="{k}" conaffinity="{k}"' for k in (1, 1, 2, 2)]
    bodies = "".join(ball.format(0.19 * k, mask) for k, mask in enumerate(masks))
    m = jaxsim.load_model(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    assert [len(part) for part in solver_blocks(m)] == [12, 12]
    d = jaxsim.make_data(m)
    qvel = 0.3 * np.random.default_rng(3).standard_normal((3, m.nv))
    forward = jax.jit(lambda v: jaxsim.forward(m, d.replace(qvel=v)))
    many = jax.jit(jax.vmap(lambda v: jaxsim.forward(m, d.replace(qvel=v))))(qvel)
    for k, v in enumerate(qvel):
        one = forward(v)
        assert np.any(one.qfrc_constraint)
        np.testing.assert_allclose(many.qacc[k], one.qacc, **SOLVER)
