"""GMSH files give the points and elements that MuJoCo reads from them."""

import struct

import numpy as np
import pytest
from compile.oracle import assert_agrees, refusal

from jaxsim.assets.read.gmsh import read_gmsh
from jaxsim.errors import AssetError

POINT = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1.5, 1, 1]])
TETRA = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
TRIANGLE = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2]])
KINDS = {3: 2, 4: 4}  # nodes of an element: its type


def text_2(element):
    kind = KINDS[element.shape[1]]
    nodes = "\n".join(f"{i + 1} {x} {y} {z}" for i, (x, y, z) in enumerate(POINT))
    rows = "\n".join(
        f"{i + 1} {kind} 2 0 1 {' '.join(str(n + 1) for n in row)}" for i, row in enumerate(element)
    )
    return (
        f"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n{len(POINT)}\n{nodes}\n$EndNodes\n"
        f"$Elements\n{len(element)}\n{rows}\n$EndElements\n"
    ).encode()


def binary_2(element, spare=b"\0" * 8):
    """Return a file in GMSH's layout, each element with a header; MuJoCo needs spare bytes."""
    kind = KINDS[element.shape[1]]
    nodes = b"".join(struct.pack("<i3d", i + 1, *p) for i, p in enumerate(POINT))
    rows = b"".join(
        struct.pack(f"<{6 + len(row)}i", kind, 1, 2, i + 1, 0, 1, *(row + 1))
        for i, row in enumerate(element)
    )
    one = struct.pack("<i", 1)
    return (
        b"$MeshFormat\n2.2 1 8\n" + one + b"\n$EndMeshFormat\n"
        b"$Nodes\n%d\n" % len(POINT) + nodes + spare + b"\n$EndNodes\n"
        b"$Elements\n%d\n" % len(element) + rows + spare + b"\n$EndElements\n"
    )


def text_4(element):
    kind, dim, n = KINDS[element.shape[1]], element.shape[1] - 1, len(POINT)
    tags = "\n".join(str(i + 1) for i in range(n))
    nodes = "\n".join(f"{x} {y} {z}" for x, y, z in POINT)
    rows = "\n".join(
        f"{i + 1} {' '.join(str(v + 1) for v in row)}" for i, row in enumerate(element)
    )
    m = len(element)
    return (
        f"$MeshFormat\n4.1 0 8\n$EndMeshFormat\n"
        f"$Nodes\n1 {n} 1 {n}\n{dim} 1 0 {n}\n{tags}\n{nodes}\n"
        f"$EndNodes\n$Elements\n1 {m} 1 {m}\n{dim} 1 {kind} {m}\n{rows}\n$EndElements\n"
    ).encode()


def binary_4(element):
    kind, dim, n, m = KINDS[element.shape[1]], element.shape[1] - 1, len(POINT), len(element)
    nodes = struct.pack("<4Q3iQ", 1, n, 1, n, dim, 1, 0, n)
    nodes += struct.pack(f"<{n}Q", *range(1, n + 1)) + POINT.astype("<f8").tobytes()
    rows = struct.pack("<4Q3iQ", 1, m, 1, m, dim, 1, kind, m)
    rows += b"".join(
        struct.pack(f"<{1 + len(row)}Q", i + 1, *(row + 1)) for i, row in enumerate(element)
    )
    one = struct.pack("<i", 1)
    return (
        b"$MeshFormat\n4.1 1 8\n" + one + b"\n$EndMeshFormat\n"
        b"$Nodes\n" + nodes + b"\n$EndNodes\n$Elements\n" + rows + b"\n$EndElements\n"
    )


FORMS = [text_2, binary_2, text_4, binary_4]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("element", [TETRA, TRIANGLE])
def test_forms(form, element):
    mesh = read_gmsh(form(element))
    assert np.array_equal(mesh.element, element)
    assert np.array_equal(mesh.point, POINT)
    assert mesh.dim == element.shape[1] - 1


def test_elements_under_one_header():
    """The format lets elements share a header, and ends without bytes to spare."""
    together = struct.pack("<3i", 4, 2, 2)
    together += b"".join(struct.pack("<7i", i + 1, 0, 1, *(row + 1)) for i, row in enumerate(TETRA))
    data = binary_2(TETRA, spare=b"")
    start, end = data.index(b"$Elements\n2\n") + 12, data.index(b"\n$EndElements")
    assert np.array_equal(read_gmsh(data[:start] + together + data[end:]).element, TETRA)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("element", [TETRA, TRIANGLE])
def test_flexcomps_of_them(form, element, tmp_path):
    path = tmp_path / "mesh.msh"
    path.write_bytes(form(element))
    comp = f'<flexcomp name="G" type="gmsh" file="{path}" scale="1 2 3" pos="1 0 0"/>'
    assert_agrees(f"<mujoco><worldbody>{comp}</worldbody></mujoco>")


@pytest.mark.parametrize(
    ("data", "word"),
    [
        (b"", "MeshFormat"),
        (b"$MeshFormat\n3.0 0 8\n$EndMeshFormat\n", "version 3.0"),
        (text_2(TETRA).replace(b"$EndNodes", b""), "Nodes"),
        (text_2(TETRA).replace(b" 4 2 0 1 ", b" 5 2 0 1 "), "type 5"),
        (text_2(TETRA).replace(b"2 4 2 0 1 2 3 4 5", b"2 4 2 0 1 2 3 4 9"), "node 9"),
        (text_2(TETRA).replace(b"$Elements\n2", b"$Elements\n3"), "2 of 3 elements"),
        (
            text_2(TETRA)
            .replace(b"$Elements\n2", b"$Elements\n3")
            .replace(b"$EndElements", b"3 2 2 0 1 1 2 3\n$EndElements"),
            "both triangles and",
        ),
        (text_4(TETRA).replace(b"1 5 1 5\n", b"2 5 1 5\n"), "2 blocks"),
        (text_4(TETRA).replace(b"1 5 1 5\n", b"1 6 1 5\n"), "6 nodes are in 1 blocks"),
        (text_4(TETRA).replace(b"1 5 1 5\n", b"1 5 1 9\n"), "tags 1 to 9"),
        (text_4(TETRA).replace(b"\n3 1 0 5\n", b"\n0 1 0 5\n"), "of dimension 0"),
        (text_4(TETRA).replace(b"\n1\n2\n3\n", b"\n2\n1\n3\n"), "in this order"),
        (text_4(TETRA).replace(b"1 2 1 2\n", b"1 3 1 2\n"), "3 elements are in 1 blocks"),
        (text_4(TETRA).replace(b"\n3 1 4 2\n", b"\n2 1 4 2\n"), "of dimension 2"),
        (text_2(TETRA).replace(b"$Nodes\n5\n", b"$Nodes\n7\n"), "not a valid"),
        (binary_4(TETRA)[:120] + b"\n$EndNodes\n$Elements\n\n$EndElements\n", "not a valid"),
    ],
)
def test_damaged_files_are_refused(data, word):
    with pytest.raises(AssetError, match=word):
        read_gmsh(data)
    comp = '<flexcomp name="G" type="gmsh" file="a.msh"/>'
    assert refusal(f"<mujoco><worldbody>{comp}</worldbody></mujoco>", {"a.msh": data}) is not None


@pytest.mark.filterwarnings("ignore")
def test_tags_of_version_2_are_passed_over(tmp_path):
    data = text_2(TETRA).replace(b"\n1 0.0 0.0 0.0\n2 1.0", b"\n2 0.0 0.0 0.0\n1 1.0")
    assert data != text_2(TETRA)
    comp = '<flexcomp name="G" type="gmsh" file="a.msh"/>'
    text = f"<mujoco><worldbody>{comp}</worldbody></mujoco>"
    assert_agrees(text, files={"a.msh": data})
