"""Lookup of asset files: MuJoCo's rules on folders, for every kind."""

import mujoco
import numpy as np
import pytest
from compile.images import hf, png, skn
from compile.meshes import CUBE_FACE, CUBE_VERTEX, stl
from compile.oracle import assert_agrees, assert_file_agrees

from jaxsim.compile import compile_file, compile_string
from jaxsim.errors import ModelError

FILES = {
    "a.stl": stl(CUBE_VERTEX, CUBE_FACE),
    "a.hf": hf(2, 2, [1, 2, 3, 4]),
    "a.png": png(np.zeros((2, 2, 3), np.uint8)),
    "a.skn": skn(
        np.eye(3), [], [[0, 1, 2]], [("world", [0, 0, 0], [1, 0, 0, 0], [0, 1, 2], [1] * 3)]
    ),
}
ELEMENTS = {
    "a.stl": "<mesh {}/>",
    "a.hf": '<hfield size="1 1 1 1" {}/>',
    "a.png": '<texture type="2d" {}/>',
    "a.skn": "<skin {}/>",
}
MESH_RULE = ("a.stl", "a.hf", "a.skn")


def write(folder, compiler: str, name: str, file: str, place: str) -> str:
    """A model that names one file as `file`, which lies at `place`; returns the path."""
    path = folder / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(FILES[name])
    element = ELEMENTS[name].format(f'name="x" file="{file}"')
    model = folder / "model.xml"
    model.write_text(f"<mujoco>{compiler}<asset>{element}</asset></mujoco>")
    return str(model)


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize(
    ("compiler", "file", "place"),
    [
        ("", "{}", "{}"),
        ("", "sub/{}", "sub/{}"),
        ("", "sub\\{}", "sub/{}"),
        ('<compiler assetdir="d"/>', "{}", "d/{}"),
        ('<compiler assetdir="d/"/>', "e/{}", "d/e/{}"),
        ('<compiler assetdir="d"/>', "../{}", "{}"),
        ('<compiler assetdir="d" strippath="true"/>', "x/y/{}", "d/{}"),
        ('<compiler assetdir="d" strippath="true"/>', "x\\y\\{}", "d/{}"),
        ('<compiler strippath="true"/>', "/absent/{}", "{}"),
        ('<compiler assetdir="{folder}/d"/>', "{}", "d/{}"),
        ('<compiler assetdir="d"/>', "{folder}/{}", "{}"),
        ('<compiler assetdir="d" meshdir="e" texturedir="e"/>', "{}", "e/{}"),
    ],
)
def test_folders_are_put_together_as_in_mujoco(tmp_path, name, compiler, file, place):
    compiler, file, place = (
        text.replace("{folder}", str(tmp_path)).replace("{}", name)
        for text in (compiler, file, place)
    )
    assert_file_agrees(write(tmp_path, compiler, name, file, place))


@pytest.mark.parametrize(
    ("compiler", "place"),
    [
        ('<compiler meshdir="d"/><compiler assetdir="e"/>', "e/a.stl"),
        ('<compiler assetdir="d"/><compiler meshdir="e"/>', "e/a.stl"),
        ('<compiler meshdir="d"/><compiler assetdir="d"/><compiler meshdir="e"/>', "e/a.stl"),
        ('<compiler meshdir="e" assetdir="d"/>', "e/a.stl"),
        ('<compiler assetdir="d"/><compiler meshdir=""/>', "a.stl"),
        ('<compiler meshdir="d"/><compiler assetdir=""/>', "a.stl"),
    ],
)
def test_the_later_of_two_folders_counts(tmp_path, compiler, place):
    assert_file_agrees(write(tmp_path, compiler, "a.stl", "a.stl", place))


@pytest.mark.parametrize("name", FILES)
def test_textures_have_a_folder_of_their_own(tmp_path, name):
    own, other = ("meshdir", "texturedir") if name in MESH_RULE else ("texturedir", "meshdir")
    assert_file_agrees(write(tmp_path, f'<compiler {own}="d"/>', name, name, f"d/{name}"))
    path = write(tmp_path, f'<compiler {other}="e"/>', name, name, f"e/{name}")
    with pytest.raises(ValueError):  # noqa: PT011 - the oracle's own texts
        mujoco.MjModel.from_xml_path(path)
    with pytest.raises(ModelError) as caught:
        compile_file(path)
    assert f"model.xml:1: <{ELEMENTS[name][1:].split()[0]} name='x'>" in str(caught.value)
    assert f"looked in '{tmp_path / name}'" in str(caught.value)


def test_files_in_memory_are_found_with_and_without_their_folder():
    xml = '<mujoco><compiler meshdir="d"/><asset><mesh file="e/a.stl"/></asset></mujoco>'
    assert_agrees(xml, files={"d/e/a.stl": FILES["a.stl"]})
    compile_string(xml, {"a.stl": FILES["a.stl"]})


def test_an_attached_model_keeps_its_folders(tmp_path):
    (tmp_path / "part" / "fields").mkdir(parents=True)
    (tmp_path / "part" / "fields" / "a.hf").write_bytes(FILES["a.hf"])
    (tmp_path / "part" / "part.xml").write_text(
        '<mujoco><compiler meshdir="fields"/>'
        '<asset><hfield file="a.hf" size="1 1 1 1"/></asset>'
        '<worldbody><body name="b"><geom type="hfield" hfield="a"/></body></worldbody></mujoco>'
    )
    path = tmp_path / "model.xml"
    path.write_text(
        '<mujoco><compiler meshdir="other"/><asset><model name="p" file="part/part.xml"/></asset>'
        '<worldbody><attach model="p" body="b" prefix="p-"/></worldbody></mujoco>'
    )
    assert_file_agrees(str(path))
