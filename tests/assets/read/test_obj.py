"""OBJ files: every spelling gives MuJoCo's surface; what is damaged is refused with its line."""

import numpy as np
import pytest
from assets.surfaces import assert_same_surface, oracle_model

from jaxsim.assets.read.obj import read_obj
from jaxsim.errors import AssetError

VERTEX = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nv 1 1 0\nv 1 1 1\nv 2 0 0\n"
FACE = "f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
MORE = "vt 0 0\nvt 1 0\nvt 0.25 1\nvt 1 1\nvn 0 0 2\nvn 1 0 0\n"
FULL = "f 1/1/1 3/3/1 2/2/1\nf 1/1/2 2/2/2 4/4/2\nf 1/1/1 4/4/1 3/3/1\nf 2/1/1 3/2/1 4/3/1\n"
TEXTURED = "f 1/1 3/3 2/2\nf 1/1 2/2 4/4\nf 1/1 4/4 3/3\nf 2/1 3/2 4/3\n"
SMOOTH = "f 1//1 3//1 2//1\nf 1//2 2//2 4//2\nf 1//1 4//1 3//1\nf 2//1 3//1 4//1\n"

SAME = {
    "plain": VERTEX + FACE,
    "negative": VERTEX + FACE + "f -1 -2 -3\n",
    "negative before the end": VERTEX + "f -7 -5 -6\n" + FACE + "v 9 9 9\n",
    "all indices": MORE + VERTEX + FULL,
    "all negative": MORE + VERTEX + FULL.replace("1/1/1", "-7/-4/-2"),
    "texture": MORE.split("vn")[0] + VERTEX + TEXTURED,
    "normals": "vn 0 0 1\nvn 1 0 0\n" + VERTEX + SMOOTH,
    "texture incomplete": MORE.split("vn")[0] + VERTEX + TEXTURED + "f 1 2 3\n",
    "texture out of range": MORE.split("vn")[0] + VERTEX + TEXTURED.replace("1/1", "1/9"),
    "texture unused": "vt 0 0\n" + VERTEX + FACE,
    "empty places": VERTEX + FACE.replace("f 1", "f 1/").replace("f 2", "f 2//"),
    "quad": VERTEX + FACE + "f 1 2 5 3\nf 1 2 6 3\nf 3 1 2 6\n",
    "pentagon": VERTEX + "v 2 2 0\n" + FACE + "f 1 7 8 5 3\nf 3 5 8 7 1\n",
    "too few corners": VERTEX + FACE + "f 1\nf 1 2\n",
    "a corner twice": VERTEX + FACE + "f 1 1 2\n",
    "lines and points": VERTEX + FACE + "l 1 2\np 1\n",
    "groups": VERTEX + "g a\n" + FACE + "g b\nf 5 6 7\n",
    "objects": VERTEX + "o a\nf 1 2\no b\n" + FACE + "o c\nf 5 6 7\n",
    "materials": "mtllib x.mtl\n" + VERTEX + "usemtl a\n" + FACE + "usemtl b\ns 1\nf 5 6 7\n",
    "unknown words": VERTEX + FACE + "vp 1 2\ncurv 1 2\nfoo bar\nF 1 2 5\n",
    "carriage returns": (VERTEX + FACE).replace("\n", "\r\n"),
    "only carriage returns": (VERTEX + FACE).replace("\n", "\r"),
    "blanks": VERTEX.replace("v 1 0 0", " \tv\t1e0   +.0 -0. ") + FACE.replace("f ", "f  "),
    "weights and colors": VERTEX.replace("v 1 0 0", "v 1 0 0 0.1 0.2 0.3") + FACE,
    "short vertex": VERTEX + "v 1\n" + FACE,
    "comments": "# one\n" + VERTEX + "# two 1 2 3\n" + FACE,
    "no last line end": (VERTEX + FACE).rstrip(),
    "faces first": FACE + VERTEX,
    "no faces": VERTEX,
    "digits": VERTEX + "v 0.12345678901 1e-3 123456.789\n" + FACE,
}


@pytest.mark.parametrize("text", SAME.values(), ids=SAME)
def test_every_spelling_reads_as_in_mujoco(text):
    data = text.encode()
    assert_same_surface(read_obj(data), oracle_model("m.obj", data))


REFUSED = {
    "f 0 1 2\n": "line 12 of the OBJ file: the corner '0' of a face is none of its 7 vertices",
    "f 1 2 8\n": "'8'",
    "f -1 -2 -8\n": "'-8'",
    "f 1 x 3\n": "'x' is no corner of a face",
    "f 1/2/3/4 2 3\n": "'1/2/3/4'",
    "vn 1 0 0\n": "line 8 of the OBJ file: a corner has no normal",
}


@pytest.mark.parametrize(("line", "words"), REFUSED.items())
def test_a_bad_face_is_refused_as_in_mujoco(line, words):
    data = (VERTEX + FACE + line).encode()
    with pytest.raises(ValueError):  # noqa: PT011 - the oracle's own texts
        oracle_model("m.obj", data)
    with pytest.raises(AssetError) as caught:
        read_obj(data)
    assert words in str(caught.value)


@pytest.mark.parametrize("line", ["v 1 2 abc", "v 1 2 3-4", "vt 1,5 0", "vn 0 0 one"])
def test_a_bad_number_is_refused_with_its_line(line):
    with pytest.raises(AssetError, match=r"line 8 of the OBJ file: '.*' is not a number"):
        read_obj(f"{VERTEX}{line}\n{FACE}".encode())


def test_lines_can_be_continued_and_end_in_comments():
    plain = read_obj((VERTEX + FACE).encode())
    other = read_obj((VERTEX + FACE).replace("f 1 3 2", "f 1 \\\n3 2 # first").encode())
    np.testing.assert_array_equal(other.face, plain.face)


@pytest.mark.parametrize("text", ["", "\n\n", "f", "f \n", "v \n", "garbage\0\1"])
def test_a_file_without_content_has_no_faces(text):
    assert len(read_obj(text.encode()).face) == 0


def test_polygons_are_cut_as_in_mujoco():
    rng = np.random.default_rng(0)
    lines = ["v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1"]
    faces, count = ["f 1 2 3"], 4
    for i in range(300):
        n = int(rng.integers(4, 12))
        lines += ["v {:.9g} {:.9g} {:.9g}".format(*point) for point in _polygon(rng, n, i)]
        faces.append("f " + " ".join(str(count + k + 1) for k in range(n)))
        count += n
    data = "\n".join([*lines, *faces, ""]).encode()
    ours = read_obj(data)
    assert len(ours.face) > 300 * 4
    np.testing.assert_array_equal(ours.face, oracle_model("m.obj", data).mesh_face)


@pytest.mark.parametrize("corners", [100, 101])
def test_polygons_with_more_than_a_hundred_corners_are_dropped(corners):
    angle = np.arange(corners) * 2 * np.pi / corners
    points = ["v 0 0 0\nv 3 0 0\nv 0 3 0\nv 0 0 3"]
    points += [f"v {np.cos(a):.9g} {np.sin(a):.9g} 1" for a in angle]
    faces = ["f 1 3 2\nf 1 2 4\nf 2 3 4\nf 3 1 4"]
    faces += ["f " + " ".join(str(5 + k) for k in range(corners))]
    data = "\n".join([*points, *faces, ""]).encode()
    ours = read_obj(data)
    assert len(ours.face) == (4 if corners > 100 else 4 + 98)
    np.testing.assert_array_equal(ours.face, oracle_model("m.obj", data).mesh_face)


def _polygon(rng: np.random.Generator, n: int, kind: int) -> np.ndarray:
    """Star-shaped, sometimes on a lattice and with corners in line, in any plane and sense."""
    angle = np.sort(rng.uniform(0, 2 * np.pi, n)) if kind % 3 else 2 * np.pi * np.arange(n) / n
    radius = rng.uniform(0.1, 1, n) if kind % 2 else rng.integers(1, 4, n)
    point = np.stack([radius * np.cos(angle), radius * np.sin(angle), 0 * angle], axis=1)
    if kind % 5 == 0:
        point = np.round(point)
    if kind % 7 < 5:
        turn = np.linalg.qr(rng.normal(size=(3, 3)))[0]
        turn = np.eye(3)[rng.permutation(3)] if kind % 7 > 2 else turn
        point = point @ turn + (rng.normal(size=3) if kind % 4 else 0)
    return point[::-1] if rng.random() < 0.5 else point


@pytest.mark.parametrize("face", [b"f 1 / 3", b"f 1 // 2 3", b"f 1\x00 3 2 /", b"f 1 2 \x00x"])
def test_a_corner_without_a_number_is_named(face):
    """Slashes alone, and words that a control character parts, on a face after a good one."""
    text = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n" + face + b"\n"
    with pytest.raises(AssetError, match=r"line 5 of the OBJ file: .* is no corner"):
        read_obj(text)
