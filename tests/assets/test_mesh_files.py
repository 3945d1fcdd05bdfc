"""STL, MSH and Gmsh files, and which reader reads which file."""

import struct

import numpy as np
import pytest
from assets.surfaces import assert_same_surface, oracle_model
from compile.meshes import CUBE_FACE, CUBE_VERTEX, stl
from hypothesis import given, settings
from hypothesis import strategies as st

from jaxsim.assets.read.decode import read_surface
from jaxsim.assets.read.stl import MAXCOORD, MAXFACE
from jaxsim.errors import AssetError

TETRA = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
SIDES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
STL = stl(CUBE_VERTEX, CUBE_FACE)
OBJ = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"


def msh(vertex, normal=(), texcoord=(), face=()) -> bytes:
    tables = [np.asarray(t, "<f4").tobytes() for t in (vertex, normal, texcoord)]
    counts = struct.pack("<4i", *(len(t) for t in (vertex, normal, texcoord, face)))
    return counts + b"".join(tables) + np.asarray(face, "<i4").tobytes()


MSH = msh(TETRA, TETRA + 1, TETRA[:, :2], SIDES)


def stl_text(vertex, face) -> str:
    facets = [
        "facet normal 0 0 0\nouter loop\n"
        + "".join(f"vertex {x} {y} {z}\n" for x, y, z in vertex[corners])
        + "endloop\nendfacet\n"
        for corners in face
    ]
    return "solid cube\n" + "".join(facets) + "endsolid cube\n"


def test_a_binary_stl_has_the_corners_of_its_triangles():
    surface = read_surface("m.stl", STL)
    np.testing.assert_array_equal(surface.vertex[surface.face], CUBE_VERTEX[CUBE_FACE])
    assert surface.normal is None


def test_a_title_may_begin_as_the_text_form_does():
    titled = b"solid rock".ljust(80) + STL[80:]
    np.testing.assert_array_equal(
        read_surface("m.stl", titled).vertex, read_surface("m.stl", STL).vertex
    )
    assert oracle_model("m.stl", titled).nmeshface == len(CUBE_FACE)


@pytest.mark.parametrize("change", [str, str.upper, lambda text: text.replace("\n", "\r\n")])
def test_the_text_form_of_stl_is_read_too(change):
    text = change(stl_text(CUBE_VERTEX, CUBE_FACE)).encode()
    np.testing.assert_array_equal(
        read_surface("m.stl", text).vertex, read_surface("m.stl", STL).vertex
    )


def _count(n: int, data: bytes = STL) -> bytes:
    return data[:80] + struct.pack("<I", n) + data[84:]


BAD_STL = {
    "empty": (b"", "empty"),
    "short": (b"abc", "its header alone takes 84"),
    "cut off": (STL[:-1], "12 triangles need 684"),
    "too long": (STL + b"x", "12 triangles need 684"),
    "more promised": (_count(13), "13 triangles need 734"),
    "none": (_count(0, STL[:84]), "0 triangles"),
    "too many": (_count(MAXFACE + 1), f"from 1 to {MAXFACE}"),
    "far": (stl(CUBE_VERTEX * MAXCOORD * 1.01, CUBE_FACE), "scale the mesh"),
    "no number": (stl(CUBE_VERTEX * np.nan, CUBE_FACE), "is not a number"),
}


@pytest.mark.parametrize(("data", "words"), BAD_STL.values(), ids=BAD_STL)
def test_a_damaged_stl_is_refused_as_in_mujoco(data, words):
    _both_refuse("m.stl", data, words)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("solid a\nfacet\n", "no 'endsolid'"),
        ("solid a\nvertex 0 0 0\nendsolid", "not three for each facet"),
        ("solid a\n" + "vertex 0 0 x\n" * 3 + "endsolid", "not three numbers"),
        ("solid a\nendsolid", "0 triangles"),
    ],
)
def test_a_damaged_text_form_is_refused(text, words):
    with pytest.raises(AssetError, match=words):
        read_surface("m.stl", text.encode())


@pytest.mark.parametrize(
    "data",
    [
        MSH,
        msh(TETRA, face=SIDES),
        msh(TETRA),
        msh(TETRA, texcoord=TETRA[:, 1:], face=SIDES),
    ],
)
def test_msh_reads_as_in_mujoco(data):
    surface, m = read_surface("m.msh", data), oracle_model("m.msh", data)
    if surface.normal is not None:  # MuJoCo gives them length 1 afterwards
        normal = surface.normal / np.linalg.norm(surface.normal, axis=1, keepdims=True)
        surface = type(surface)(**{**vars(surface), "normal": normal})
    assert_same_surface(surface, m)


BAD_MSH = {
    "empty": (b"", "empty"),
    "short": (MSH[:10], "its header alone takes 16"),
    "cut off": (MSH[:-4], "truncated"),
    "too long": (MSH + b"1234", "truncated"),
    "few": (msh(TETRA[:3], face=SIDES[:1]), "4 vertices or more"),
    "normals": (msh(TETRA, TETRA[:2], face=SIDES), "as many normals"),
    "textures": (msh(TETRA, texcoord=TETRA[:2, :2], face=SIDES), "texture"),
    "negative": (struct.pack("<4i", 4, 0, 0, -1), "-1 faces"),
    "huge": (struct.pack("<4i", 2**31 - 1, 0, 0, 0), "it is damaged"),
    "index": (msh(TETRA, face=[[0, 1, 9]]), "face 0 of the MSH file has vertex 9"),
    "negative index": (msh(TETRA, face=[[0, 1, -1]]), "vertex -1"),
    "no number": (msh(TETRA * np.nan, face=SIDES), "not a finite number"),
}


@pytest.mark.parametrize(("data", "words"), BAD_MSH.values(), ids=BAD_MSH)
def test_a_damaged_msh_is_refused_as_in_mujoco(data, words):
    _both_refuse("m.msh", data, words)


GMSH = b"""$MeshFormat
2.2 0 8
$EndMeshFormat
$Nodes
5
1 0 0 0
2 1 0 0
3 0 1 0
4 0 0 1
5 1 1 1
$EndNodes
$Elements
2
1 4 2 0 1 1 2 3 4
2 4 2 0 1 2 3 4 5
$EndElements
"""


def test_mesh_of_tetrahedra_has_their_outer_triangles():
    surface = read_surface("m.gmsh", GMSH)
    assert len(surface.face) == 6
    assert_same_surface(surface, oracle_model("m.gmsh", GMSH))


@pytest.mark.parametrize(
    ("name", "content_type"),
    [
        ("a.STL", None),
        ("x.y/a.b.stl", None),
        ("x\\a.stl", None),
        (".stl", None),
        ("a.stl", "model/obj"),
        ("a", "model/stl"),
        ("a.bin", "MODEL/STL"),
    ],
)
def test_format_is_selected_by_extension_then_media_type(name, content_type):
    assert len(read_surface(name, STL, content_type).face) == len(CUBE_FACE)


@pytest.mark.parametrize("name", ["a.usd", "a.fbx", "a", "a.txt", "stl"])
def test_other_files_are_refused_by_name(name):
    with pytest.raises(AssetError) as caught:
        read_surface(name, STL)
    assert name in str(caught.value)
    assert ".stl, .obj, .msh, .gmsh" in str(caught.value)


@settings(max_examples=300, deadline=None)
@given(
    st.sampled_from([("m.stl", STL), ("m.obj", OBJ), ("m.msh", MSH), ("m.gmsh", GMSH)]), st.data()
)
def test_random_file_contents_raise_only_asset_errors(file, draw):
    name, data = file
    damaged = bytearray(data)
    for _ in range(draw.draw(st.integers(1, 4))):
        place = draw.draw(st.integers(0, len(damaged)))
        end = draw.draw(st.integers(place, len(damaged)))
        damaged[place:end] = draw.draw(st.binary(max_size=8))
    try:
        surface = read_surface(name, bytes(damaged))
    except AssetError:
        return
    assert np.all((surface.face >= 0) & (surface.face < len(surface.vertex)))


def _both_refuse(name: str, data: bytes, words: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - the oracle's own texts
        oracle_model(name, data)
    with pytest.raises(AssetError) as caught:
        read_surface(name, data)
    assert words in str(caught.value)
