"""Mesh files by registered decoders: a user's own, and those of trimesh where it is installed."""

import base64
import json

import numpy as np
import pytest

import jaxsim
from jaxsim.assets.read import scene as scene_file
from jaxsim.assets.read.decode import read_surface
from jaxsim.compile import compile_string
from jaxsim.errors import AssetError, ModelError
from jaxsim.optional import MissingExtra, install_hint

TETRA = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
SIDES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
MODEL = """<mujoco><asset><mesh name="m" file="{}" {}/></asset>
<worldbody><geom type="mesh" mesh="m"/></worldbody></mujoco>"""


@pytest.fixture
def mine():
    """A decoder of files that are vertices as text."""

    def decode(data):
        return np.array(data.split(), float).reshape(-1, 3), SIDES

    jaxsim.extend.register_decoder(".Mine", decode, content_type="model/mine")
    yield decode
    jaxsim.extend.unregister_decoder(".mine")


TEXT = b"0 0 0 1 0 0 0 1 0 0 0 1"


def test_files_go_to_the_decoder_of_their_name_or_type(mine):
    code = base64.b64encode(TEXT).decode()
    expected = compile_string(
        MODEL.format("m.obj", ""),
        {"m.obj": b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"},
    ).fields
    for name, type_ in (
        ("m.mine", ""),
        ("M.MINE", ""),
        ("m.data", 'content_type="Model/Mine"'),
        (f"data:model/mine;base64,{code}", ""),
    ):
        found = compile_string(MODEL.format(name, type_), {name: TEXT}).fields
        np.testing.assert_allclose(found["mesh_vert"], expected["mesh_vert"])
        np.testing.assert_allclose(found["geom_size"], expected["geom_size"])


def test_builtin_decoders_cannot_be_replaced(mine):
    jaxsim.extend.register_decoder(
        ".mine", mine, content_type="model/mine"
    )  # the same decoder again
    for wrong, message in (
        ((".STL", mine), "extension: .stl is built in"),
        ((".mine", len), "extension: .mine has a decoder; unregister_decoder"),
        ((".glb", mine), "extension: .glb has a decoder"),
        (("mine", mine), "expected a dot and letters"),
        ((".other", 3), "decode: expected a function of bytes, got int"),
    ):
        with pytest.raises(ValueError, match=message):
            jaxsim.extend.register_decoder(*wrong)
    with pytest.raises(
        AssetError, match=r"convert it to one of \.stl, .*\.mine, name one of model"
    ):
        read_surface("a.fbx", b"")
    with pytest.raises(KeyError):
        jaxsim.extend.unregister_decoder(".other")


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda: 1 / 0, r"the decoder of \.bad files fails: division by zero"),
        (lambda: None, "returned NoneType; expected vertices"),
        (lambda: (TETRA[:, :2], SIDES), "expected vertices"),
        (lambda: (TETRA, SIDES * 1.0), "faces .* of integers"),
        (lambda: (TETRA, SIDES + 1), "a face names a vertex beyond the 4"),
        (lambda: (TETRA * np.nan, SIDES), "is not a finite number"),
    ],
)
def test_decoders_that_fail_are_one_kind_of_error(returned, message):
    jaxsim.extend.register_decoder(".bad", lambda data: returned())
    try:
        with pytest.raises(ModelError, match=message):
            compile_string(MODEL.format("a.bad", ""), {"a.bad": b"x"})
    finally:
        jaxsim.extend.unregister_decoder(".bad")


@pytest.mark.parametrize(("kind", "package"), [("glb", "trimesh"), ("dae", "collada")])
def test_missing_extra_is_named_in_the_error(monkeypatch, kind, package):
    def missing(name, extra):
        if name == package:
            raise MissingExtra(f"this needs {name}; {install_hint(extra)}")

    monkeypatch.setattr(scene_file, "require", missing)
    with pytest.raises(ModelError, match=f"{package}; install the extra 'meshes': pip"):
        compile_string(MODEL.format(f"a.{kind}", ""), {f"a.{kind}": b"x"})


def test_a_scene_of_several_nodes_is_one_surface():
    """A node moves, one mirrors; the same mesh in both."""
    trimesh = pytest.importorskip("trimesh", reason="the extra meshes is not installed")
    mesh = trimesh.Trimesh(TETRA, SIDES, process=False)
    scene = trimesh.Scene()
    moved, mirror = np.eye(4), np.diag([-2.0, 2, 2, 1])
    moved[:3, 3] = 5, 0, 0
    scene.add_geometry(mesh, geom_name="t", node_name="a", transform=moved)
    scene.graph.update(frame_to="b", matrix=mirror, geometry="t")
    surface = read_surface("a.glb", scene.export(file_type="glb"))
    assert len(surface.vertex) == 8
    assert len(surface.face) == 8
    volumes = np.einsum(
        "ij,ij->i",
        surface.vertex[surface.face[:, 0]],
        np.cross(surface.vertex[surface.face[:, 1]], surface.vertex[surface.face[:, 2]]),
    )
    assert volumes.sum() / 6 == pytest.approx(1 / 6 + 8 / 6)
    assert surface.vertex[:, 0].max() == pytest.approx(6)
    assert surface.vertex[:, 0].min() == pytest.approx(-2)


@pytest.mark.parametrize("kind", ["glb", "ply", "off"])
def test_files_of_trimesh_are_the_same_mesh(kind):
    trimesh = pytest.importorskip("trimesh", reason="the extra meshes is not installed")
    data = trimesh.Trimesh(TETRA, SIDES, process=False).export(file_type=kind)
    data = data.encode() if isinstance(data, str) else data
    surface = read_surface(f"a.{kind}", data)
    np.testing.assert_allclose(surface.vertex, TETRA, atol=1e-7)
    np.testing.assert_array_equal(np.sort(surface.face), np.sort(SIDES))
    fields = compile_string(MODEL.format(f"a.{kind}", ""), {f"a.{kind}": data}).fields
    assert fields["nmeshface"] == 4


DAE = """<?xml version="1.0"?><COLLADA xmlns="http://www.collada.org/2005/11/COLLADASchema"
 version="1.4.1"><asset><unit name="inch" meter="0.0254"/><up_axis>Z_UP</up_axis></asset>
<library_geometries><geometry id="g"><mesh>
<source id="p"><float_array id="pa" count="12">{}</float_array><technique_common>
<accessor source="#pa" count="4" stride="3"><param name="X" type="float"/>
<param name="Y" type="float"/><param name="Z" type="float"/></accessor></technique_common></source>
<vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
<triangles count="4"><input semantic="VERTEX" source="#v" offset="0"/><p>{}</p></triangles>
</mesh></geometry></library_geometries>
<library_visual_scenes><visual_scene id="s"><node id="n"><translate>10 0 0</translate>
<instance_geometry url="#g"/></node></visual_scene></library_visual_scenes>
<scene><instance_visual_scene url="#s"/></scene></COLLADA>"""


def test_collada_is_in_meters():
    pytest.importorskip("trimesh", reason="the extra meshes is not installed")
    pytest.importorskip("collada", reason="the extra meshes is not installed")
    numbers = (" ".join(map(str, a.ravel())) for a in (TETRA, SIDES))
    data = DAE.format(*numbers).encode()
    surface = read_surface("a.dae", data)
    np.testing.assert_allclose(
        np.unique(surface.vertex, axis=0),
        np.unique(0.0254 * (TETRA + np.array([10, 0, 0])), axis=0),
    )
    with pytest.raises(AssetError, match="is no length"):
        read_surface("a.dae", data.replace(b"0.0254", b"-1"))


@pytest.mark.parametrize("kind", ["glb", "gltf", "ply", "off"])
def test_damaged_files_are_one_kind_of_error(kind):
    pytest.importorskip("trimesh", reason="the extra meshes is not installed")
    outside = json.dumps({"asset": {"version": "2.0"}, "buffers": [{"uri": "/etc/passwd"}]})
    for data in (b"", b"x" * 40, outside.encode()):
        with pytest.raises(AssetError, match=f"(?i)the {kind} file"):
            read_surface(f"a.{kind}", data)
