"""Constants of the reference pose, from MuJoCo's own arrays, equal MuJoCo's constants."""

import mujoco
import numpy as np
import pytest

from jaxsim.compile.reference.constants import Constants
from jaxsim.compile.reference.pose import reference_pose
from jaxsim.compile.reference.statistics import statistics

BOX = '<geom type="box" size=".1 .2 .3" pos=".1 .05 .02" euler="10 20 30"/>'

MODELS = {
    "world": "<worldbody><geom size='1'/><site pos='1 2 3'/></worldbody>",
    "static": f"""
      <worldbody><body pos="1 2 3">{BOX}<body pos="1 0 0">{BOX}</body></body></worldbody>
    """,
    "free": f'<worldbody><body euler="1 2 3"><freejoint/>{BOX}</body></worldbody>',
    "armature on a free joint": f"""
      <worldbody><body><joint type="free" armature="2"/>{BOX}</body></worldbody>
    """,
    "slides with armature": """
      <worldbody>
        <body>
          <joint type="slide" axis="1 0 0" armature="2"/><joint type="slide" axis="0 1 0"/>
          <geom size=".1"/>
        </body>
      </worldbody>
    """,
    "skew slides": """
      <worldbody>
        <body>
          <joint type="slide" axis="1 1 0"/><joint type="slide" axis="0 1 0"/><geom size=".1"/>
        </body>
      </worldbody>
    """,
    "dofs that depend on each other": """
      <worldbody>
        <body>
          <joint type="slide" axis="1 0 0"/><joint type="slide" axis="0 1 0"/>
          <joint type="slide" axis="0 0 1"/><joint type="slide" axis="1 1 0"/>
          <geom type="box" size=".05 .05 .05" mass="1"/>
        </body>
      </worldbody>
    """,
    "welded child": f"""
      <worldbody>
        <body><joint axis="1 2 3" pos=".3 .2 .1"/>{BOX}<body pos="1 0 0">{BOX}</body></body>
      </worldbody>
    """,
    "massless link": f"""
      <worldbody>
        <body>
          <joint/><body pos="1 0 0">{BOX}<body><joint axis="0 1 0"/>{BOX}</body></body>
        </body>
      </worldbody>
    """,
    "tree": f"""
      <worldbody>
        <body pos="0 0 1"><freejoint/>{BOX}<site name="s0" pos=".1 .2 .3"/>
          <body pos=".4 0 0" euler="0 30 0"><joint type="ball" pos=".1 0 0" armature=".3"/>{BOX}
            <body pos=".4 0 0"><joint name="h" axis="1 2 3" ref="30"/><joint type="slide"/>{BOX}
              <site name="s1"/>
            </body>
          </body>
          <body pos="0 .4 0">
            <joint name="k" axis="0 1 0" pos="0 .1 .2"/>{BOX}<site name="s2"/>
          </body>
        </body>
        <body mocap="true" pos="1 1 1"><geom size=".1"/></body>
        <body pos="3 0 0"><joint name="l" axis="0 0 1"/>{BOX}</body>
      </worldbody>
      <tendon>
        <fixed name="f" armature="2">
          <joint joint="h" coef="1"/><joint joint="k" coef="-2"/><joint joint="l" coef="3"/>
        </fixed>
        <spatial name="s" armature=".5"><site site="s1"/><site site="s2"/></spatial>
      </tendon>
      <actuator>
        <motor joint="h" armature=".2" gear="3"/><motor tendon="s" armature=".1" gear="2"/>
        <motor site="s0" gear="1 2 3 4 5 6"/>
      </actuator>
    """,
}


def oracle(text: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(f"<mujoco>{text}</mujoco>")


def fields(m: mujoco.MjModel) -> dict:
    """MuJoCo's model as the compiler's table of arrays and sizes."""
    names = (name for name in dir(m) if not name.startswith("_"))
    values = {name: getattr(m, name) for name in names}
    return {name: value for name, value in values.items() if isinstance(value, np.ndarray | int)}


@pytest.mark.parametrize("text", MODELS.values(), ids=MODELS)
def test_constants(text):
    m = oracle(text)
    constants = Constants(fields(m))
    for name, value in constants.all().items():
        want = getattr(m, name)
        np.testing.assert_allclose(value, want, rtol=1e-9, atol=1e-12, err_msg=name)
        assert value.shape == want.shape, name
    for name, value in statistics(constants).items():
        want = np.squeeze(getattr(m.stat, name))
        np.testing.assert_allclose(value, want, rtol=1e-9, atol=1e-12, err_msg=name)


@pytest.mark.parametrize("seed", range(5))
def test_kinematics_away_from_the_reference_pose(seed):
    m = oracle(MODELS["tree"])
    d = mujoco.MjData(m)
    mujoco.mj_integratePos(m, d.qpos, np.random.default_rng(seed).normal(size=m.nv), 1.0)
    mujoco.mj_fwdPosition(m, d)
    pose = reference_pose(fields(m), d.qpos.copy())
    for name in ("xpos", "xipos", "subtree_com", "xanchor", "site_xpos", "geom_xpos", "cdof"):
        np.testing.assert_allclose(getattr(pose, name), getattr(d, name), atol=1e-12, err_msg=name)


def test_inertia_matrix():
    """Armature of tendons is added where two dofs are on one branch, and nowhere else."""
    m = oracle(MODELS["tree"])
    d = mujoco.MjData(m)
    mujoco.mj_forward(m, d)
    want = np.zeros((m.nv, m.nv))
    mujoco.mj_fullM(m, d, want)
    matrix = Constants(fields(m)).inertia
    got = np.zeros_like(want)
    for dofs, block in zip(matrix.blocks, matrix.M, strict=True):
        got[np.ix_(dofs, dofs)] = block
    np.testing.assert_allclose(got, want, atol=1e-12)
    rows = np.random.default_rng(0).normal(size=(3, m.nv))
    dofs = np.arange(m.nv)
    inverse = np.linalg.inv(want)
    np.testing.assert_allclose(matrix.solve(dofs, rows), rows @ inverse, rtol=1e-9)
    np.testing.assert_allclose(matrix.sandwich(dofs, rows), rows @ inverse @ rows.T, rtol=1e-9)


def test_a_free_body_gives_way_by_its_mass_and_mean_inertia():
    m = oracle(
        "<worldbody><body><freejoint/><geom type='box' size='1 2 3' mass='4'/></body></worldbody>"
    )
    weight = Constants(fields(m)).body_invweight0()[1]
    np.testing.assert_allclose(weight, [1 / 4, np.mean(1 / m.body_inertia[1])])


def test_a_thousand_dofs():
    """A long chain is one large block, a thousand bodies are many small ones."""
    link = '<body pos=".01 0 0"><joint axis="0 1 0" armature=".01"/><geom size=".01"/>'
    chain = oracle(f"<worldbody>{link * 200}{'</body>' * 200}</worldbody>")
    free = "<body><freejoint/><geom size='.1'/></body>"
    pile = oracle(f"<worldbody>{free * 1000}</worldbody>")
    for m in (chain, pile):
        got = Constants(fields(m)).all()
        np.testing.assert_allclose(got["body_invweight0"], m.body_invweight0, rtol=1e-7)
