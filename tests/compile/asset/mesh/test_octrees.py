"""Octrees of mesh distances equal MuJoCo's: cells, their order and boxes, and all distances."""

import mujoco
import numpy as np
import pytest
from compile.asset.mesh.test_meshes import HULL_ORDER
from compile.meshes import CUBE_FACE, CUBE_VERTEX, rock, stl, written
from compile.oracle import assert_agrees

from jaxsim import load_model, put_model
from jaxsim.assets.mesh.distance import SurfaceDistance
from jaxsim.assets.octree.build import octree
from jaxsim.assets.octree.cells import CHILD_OFFSETS, NO_CHILD
from jaxsim.compile import compile_spec, compile_string
from jaxsim.io.save import from_bytes, to_bytes
from jaxsim.spec import Spec

FIELDS = "noct mesh_octadr mesh_octnum oct_depth oct_child oct_aabb oct_coeff".split()
INERTIAL = '<inertial pos="0 0 0" mass="1" diaginertia="1 1 1"/>'

TETRAHEDRON = "0 0.01 0  1 0.02 0  0.03 1 0.04  0.05 0.06 1.3"
CURL = rock(30, 1, bend=1.5)
OPEN = {"vertex": CURL["vertex"], "face": CURL["face"][:-7], "inertia": "shell"}
SHAPES = {
    "tetrahedron": {"vertex": TETRAHEDRON},
    "box": {"vertex": CUBE_VERTEX, "face": CUBE_FACE},
    "stretched box": {"vertex": CUBE_VERTEX, "face": CUBE_FACE, "scale": [1, 2, 0.01]},
    "curl": {**CURL, "inertia": "exact"},
    "mirrored curl": {**CURL, "scale": [1, -2, 0.5], "refquat": [1, 0.5, 0.2, 0]},
    "small curl": {**CURL, "scale": [1e-3, 1e-3, 1e-3], "refpos": [1, 2, 3]},
    "open": OPEN,
    "inside out": {**CURL, "face": CURL["face"][:, ::-1], "inertia": "shell"},
    "sphere": {"builtin": "sphere", "params": "2"},
    "cone with acute edges": {"builtin": "cone", "params": "8 0.3"},
    "wedge": {"builtin": "wedge", "params": "4 4 30 30 0"},
    "supertorus": {"builtin": "supertorus", "params": "8 0.3 0.5 0.6"},
    "flat plate": {"builtin": "plate", "params": "2 2", "inertia": "shell"},
}


def model(mesh: dict, geom: str = 'contype="0" conaffinity="0"') -> str:
    """A model with one mesh and a geom that is its signed distance."""
    return f"""
        <mujoco>
          <asset><mesh name="m" {written(**mesh)}/></asset>
          <worldbody><body>{INERTIAL}<geom type="sdf" mesh="m" {geom}/></body></worldbody>
        </mujoco>"""


@pytest.mark.parametrize("mesh", SHAPES.values(), ids=SHAPES)
def test_octree(mesh):
    assert_agrees(model(mesh), skip=HULL_ORDER)


@pytest.mark.parametrize("depth", [0, 1, 2, 4, 5])
def test_depth(depth):
    """MJCF has no attribute for the depth; MuJoCo's own interface sets it."""
    text = model({**CURL, "inertia": "exact"})
    spec = mujoco.MjSpec.from_string(text)
    spec.meshes[0].octree_maxdepth = depth
    want = spec.compile()
    ours = compile_string(text).fields
    vertex, face = _double(ours), ours["mesh_face"]
    low, high = ours["oct_aabb"][0].reshape(2, 3)
    middle, half = low, high / 1.1
    tree = octree(vertex[face], middle - half, middle + half, SurfaceDistance(vertex, face), depth)
    np.testing.assert_array_equal(tree.cells.child, want.oct_child)
    np.testing.assert_array_equal(tree.cells.level, want.oct_depth)
    np.testing.assert_allclose(tree.cells.aabb, want.oct_aabb, atol=1e-12)
    np.testing.assert_allclose(tree.value, want.oct_coeff, atol=1e-6)  # of single vertices


def _double(fields) -> np.ndarray:
    return fields["mesh_vert"].astype(np.float64)


def test_meshes_of_a_file():
    files = {"curl.stl": stl(CURL["vertex"], CURL["face"])}
    assert_agrees(model({"file": "curl.stl", "scale": [0.1, 0.2, 0.3]}), files=files)


def test_only_meshes_of_sdf_geoms_have_one():
    curl = written(**CURL)
    ours = assert_agrees(
        f"""
        <mujoco>
          <default><default class="far"><geom type="sdf"/></default></default>
          <asset>
            <mesh name="a" {curl}/><mesh name="b" {curl} scale="1 2 3"/>
            <mesh name="c" {curl}/><mesh name="d" vertex="{TETRAHEDRON}"/>
          </asset>
          <worldbody>
            <body>
              {INERTIAL}
              <geom type="box" mesh="c" contype="0" conaffinity="0"/>
              <geom type="mesh" mesh="a" contype="0" conaffinity="0"/>
              <geom class="far" mesh="d" contype="0" conaffinity="0"/>
              <geom type="sdf" mesh="b" contype="0" conaffinity="0"/>
              <geom type="sdf" mesh="d" pos="1 0 0" contype="0" conaffinity="0"/>
            </body>
          </worldbody>
        </mujoco>""",
        skip=HULL_ORDER,
    )
    np.testing.assert_array_equal(ours.fields["mesh_octnum"] > 0, [False, True, False, True])


def test_discarded_sdf_geom_creates_no_octree():
    ours = assert_agrees(
        f"""
        <mujoco>
          <compiler discardvisual="true"/>
          <asset><mesh name="m" vertex="{TETRAHEDRON}"/></asset>
          <worldbody>
            <body>
              {INERTIAL}
              <geom type="sdf" mesh="m" contype="0" conaffinity="0"/>
              <geom type="mesh" mesh="m" pos="1 2 3"/>
            </body>
          </worldbody>
        </mujoco>""",
        skip=HULL_ORDER,
    )
    assert ours.fields["noct"] == 0


@pytest.mark.parametrize("geom", ["<plugin instance='i'/>", ""])
def test_a_mesh_of_a_plugin_has_none(geom):
    text = f"""
        <mujoco>
          <extension>
            <plugin plugin="mujoco.sdf.torus"><instance name="i"/></plugin>
          </extension>
          <asset><mesh name="m"><plugin instance="i"/></mesh></asset>
          <worldbody>
            <body>{INERTIAL}<geom type="sdf" mesh="m">{geom}</geom></body>
          </worldbody>
        </mujoco>"""
    ours, theirs = compile_string(text).fields, mujoco.MjModel.from_xml_string(text)
    for name in FIELDS:
        np.testing.assert_array_equal(ours[name], getattr(theirs, name), err_msg=name)


def test_models_keep_their_octrees():
    """In a model of ours, of MuJoCo's, in a saved one and in one that was written and read."""
    text = model({"vertex": TETRAHEDRON})
    compiled = compile_string(text).fields
    again = compile_spec(Spec.from_string(Spec.from_string(text).to_xml())).fields
    ours, theirs = load_model(text), put_model(mujoco.MjModel.from_xml_string(text))
    loaded = from_bytes(to_bytes(ours))
    for name in FIELDS:
        np.testing.assert_array_equal(again[name], compiled[name], err_msg=name)
        np.testing.assert_array_equal(getattr(loaded, name), getattr(ours, name), err_msg=name)
        np.testing.assert_allclose(getattr(theirs, name), getattr(ours, name), atol=1e-12)


def test_interpolation_is_continuous_across_cells():
    """On both sides of every border between leaves the interpolated distances are the same."""
    fields = compile_string(model({**CURL, "inertia": "exact"})).fields
    child, aabb, coeff = (fields[f"oct_{name}"] for name in ("child", "aabb", "coeff"))
    leaf = np.flatnonzero(child[:, 0] == NO_CHILD)
    rng = np.random.default_rng(0)
    leaf = rng.choice(leaf, 2000)
    axis = rng.integers(3, size=2000)
    at = rng.uniform(0.01, 0.99, (2000, 3))
    at[np.arange(2000), axis] = 1.0
    center, half = aabb[leaf, :3], aabb[leaf, 3:]
    point = center + half * (2 * at - 1)
    beyond = point.copy()
    beyond[np.arange(2000), axis] += 1e-9
    inside = np.all(np.abs(beyond - aabb[0, :3]) < aabb[0, 3:], axis=1)
    other = np.array([_leaf(child, aabb, p) for p in beyond[inside]])
    assert np.any(fields["oct_depth"][other] < fields["oct_depth"][leaf[inside]])
    np.testing.assert_allclose(
        _interpolated(aabb[other], coeff[other], point[inside]),
        _interpolated(aabb[leaf[inside]], coeff[leaf[inside]], point[inside]),
        atol=1e-9,
    )


def _leaf(child, aabb, point) -> int:
    cell = 0
    while child[cell, 0] != NO_CHILD:
        cell = child[cell, int((point > aabb[cell, :3]) @ (1, 2, 4))]
    return cell


def _interpolated(aabb, coeff, point) -> np.ndarray:
    share = ((point - aabb[:, :3]) / aabb[:, 3:] + 1) / 2
    weight = np.prod(np.where(CHILD_OFFSETS, share[:, None], 1 - share[:, None]), axis=2)
    return (weight * coeff).sum(axis=1)
