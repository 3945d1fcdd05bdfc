"""Faces in the order in which MuJoCo's tree of boxes has them."""

import mujoco
import numpy as np
import pytest

from jaxsim.assets.mesh.face_order import face_order
from jaxsim.io.bridge import put_model

MESHES = {
    "ball": 'builtin="sphere" params="3" scale=".4 .3 .5"',
    "even ball": 'builtin="sphere" params="3"',
    "cube": 'vertex="-1 -1 -1 1 -1 -1 -1 1 -1 1 1 -1 -1 -1 1 1 -1 1 -1 1 1 1 1 1"',
    "ring": 'builtin="supertorus" params="12 .3 .5 1.5"',
}


def oracle_order(mj: mujoco.MjModel) -> np.ndarray:
    """The leaves of the tree of the first mesh, as a stack of nodes yields them."""
    waiting, order = [int(mj.mesh_bvhadr[0])], []
    start = waiting[0]
    while waiting:
        node = waiting.pop()
        if mj.bvh_nodeid[node] >= 0:
            order.append(mj.bvh_nodeid[node])
        waiting += [start + child for child in mj.bvh_child[node] if child >= 0]
    return np.array(order)


def model(mesh: str, extra: str = "") -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(
        f"""<mujoco><asset><mesh name="m" {MESHES[mesh]}/></asset><worldbody>
        <geom type="mesh" mesh="m"/>{extra}</worldbody></mujoco>"""
    )


@pytest.mark.parametrize("mesh", MESHES)
def test_order(mesh):
    """Exact, but where centers are equal up to the single precision in which vertices are kept."""
    mj = model(mesh)
    order = face_order(mj.mesh_vert, mj.mesh_face)
    assert sorted(order) == list(range(mj.nmeshface))
    same = (order == oracle_order(mj)).mean()
    assert same > 0.95 if mesh == "ring" else same == 1


def test_a_face_without_area():
    vertex = np.array([[0.0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0]])
    order = face_order(vertex, np.array([[0, 1, 2], [0, 1, 3], [1, 2, 3]]))
    assert sorted(order) == [0, 1, 2]


def test_only_meshes_that_meet_sdf_geoms_are_ordered():
    alone = put_model(model("ball"))
    np.testing.assert_array_equal(alone.mesh_faceorder, np.arange(alone.nmeshface))
    body = '<body><freejoint/><geom type="sdf" mesh="m"/></body>'
    mj = model("ball", body)
    np.testing.assert_array_equal(put_model(mj).mesh_faceorder, oracle_order(mj))
