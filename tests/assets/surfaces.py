"""The surface that MuJoCo reads from a mesh file, for comparison with ours."""

from __future__ import annotations

import mujoco
import numpy as np
from tolerance import STORED_SINGLE

from jaxsim.assets.surface import Surface

# Vertices come back from MuJoCo turned and moved, in single precision.
ATOL = 2e-5


def oracle_model(name: str, data: bytes, **attrs: str) -> mujoco.MjModel:
    """A compiled model with one mesh, made from a file; ValueError where MuJoCo refuses it."""
    given = "".join(f' {key}="{value}"' for key, value in ({"inertia": "shell"} | attrs).items())
    xml = f'<mujoco><asset><mesh name="m" file="{name}"{given}/></asset></mujoco>'
    return mujoco.MjModel.from_xml_string(xml, assets={name: data})


def assert_same_surface(ours: Surface, m: mujoco.MjModel) -> None:
    """Points and triangles equal those of a compiled mesh, and so do normals and textures."""
    turn = np.zeros(9)
    mujoco.mju_quat2Mat(turn, m.mesh_quat[0])
    turn = turn.reshape(3, 3)
    vertex = m.mesh_vert @ turn.T + m.mesh_pos[0]
    assert ours.vertex.shape == vertex.shape
    np.testing.assert_allclose(ours.vertex, vertex, atol=ATOL * np.abs(vertex).max())
    if len(ours.face):
        np.testing.assert_array_equal(ours.face, m.mesh_face)
    if ours.normal is not None:
        np.testing.assert_allclose(ours.normal, m.mesh_normal @ turn.T, atol=ATOL)
        np.testing.assert_array_equal(ours.face_normal, m.mesh_facenormal)
    assert (0 if ours.texcoord is None else len(ours.texcoord)) == m.nmeshtexcoord
    if ours.texcoord is not None:
        np.testing.assert_allclose(ours.texcoord, m.mesh_texcoord, **STORED_SINGLE)
        np.testing.assert_array_equal(ours.face_texcoord, m.mesh_facetexcoord)
