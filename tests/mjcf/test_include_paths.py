"""Files that an included file names are found where MuJoCo finds them."""

import mujoco
import pytest
from compile.everything import FILES

from jaxsim.compile import compile_file, compile_spec, compile_string
from jaxsim.errors import ModelError
from jaxsim.spec import Spec

MODEL = b"<mujoco><worldbody><body name='%s'><geom size='1'/></body></worldbody></mujoco>"

# For each kind of file: the text that names it, its name, its contents.
KINDS = {
    "texture": ('<texture name="t" type="2d" file="{}"/>', "t.png", FILES["image.png"]),
    "cube": ('<texture name="t" type="cube" fileright="{}"/>', "t.png", FILES["image.png"]),
    "mesh": ('<mesh name="t" file="{}"/>', "t.obj", FILES["tetra.obj"]),
    "hfield": ('<hfield name="t" file="{}" size="1 1 1 1"/>', "t.png", FILES["image.png"]),
}
MAIN = '<mujoco>{}<include file="sub/part.xml"/></mujoco>'
PART = "<mujocoinclude><asset>{}</asset></mujocoinclude>"

# The settings of the main model, the name of the file, and where it is; "-" is the bare name.
PLACES = {
    "next to the part": ("", "-", ("sub/-",)),
    "next to the main model": ("", "-", ("-",)),
    "in both places": ("", "-", ("-", "sub/-")),
    "below the part": ("", "x/-", ("sub/x/-",)),
    "next to the part's folder": ("", "../other/-", ("other/-",)),
    "in meshdir": ('<compiler assetdir="as"/>', "-", ("as/-", "sub/-")),
    "next to the part, not in meshdir": ('<compiler assetdir="as"/>', "-", ("sub/-",)),
    "meshdir of the part": ('<compiler meshdir="as" texturedir="as"/>', "-", ("sub/as/-",)),
    "stripped": ('<compiler strippath="true"/>', "x/-", ("sub/-",)),
    "nowhere": ("", "-", ()),
}


def _write(folder, files: dict[str, bytes]) -> str:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return str(folder / "main.xml")


def _agree(main: str) -> None:
    """Check that both compilers resolve all files to the same paths, or neither does."""
    try:
        theirs = mujoco.MjModel.from_xml_path(main)
    except ValueError:
        with pytest.raises(ModelError, match="cannot find"):
            compile_file(main)
        return
    assert compile_file(main).fields["paths"] == theirs.paths


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_file_named_in_an_included_file(tmp_path, kind, place):
    text, name, data = KINDS[kind]
    settings, named, there = PLACES[place]
    part = PART.format(text.format(named.replace("-", name)))
    files = {"main.xml": MAIN.format(settings).encode(), "sub/part.xml": part.encode()}
    files |= {path.replace("-", name): data for path in there}
    _agree(_write(tmp_path, files))


@pytest.mark.parametrize("there", ["sub/deep/t.obj", "sub/t.obj", "t.obj"])
def test_an_included_file_that_includes(tmp_path, there):
    part = b'<m><include file="deep/part.xml"/></m>'
    deep = PART.format(KINDS["mesh"][0].format("t.obj")).encode()
    files = {"main.xml": MAIN.format("").encode(), "sub/part.xml": part, "sub/deep/part.xml": deep}
    _agree(_write(tmp_path, files | {there: FILES["tetra.obj"]}))


def test_an_attached_model_is_found_next_to_the_part(tmp_path):
    part = (
        b'<m><asset><model name="m" file="child.xml"/></asset>'
        b'<worldbody><attach model="m" prefix="p_"/></worldbody></m>'
    )
    files = {"main.xml": MAIN.format("").encode(), "sub/part.xml": part}
    main = _write(tmp_path, files | {"child.xml": MODEL % b"far", "sub/child.xml": MODEL % b"near"})
    assert mujoco.MjModel.from_xml_path(main).body(1).name == "p_near"
    assert compile_file(main).names["body"][1] == "p_near"


def test_the_model_can_be_written_next_to_the_main_file(tmp_path):
    text, name, data = KINDS["mesh"]
    files = {"main.xml": MAIN.format("").encode(), "sub/part.xml": PART.format(text.format(name))}
    files = {key: f if isinstance(f, bytes) else f.encode() for key, f in files.items()}
    spec = Spec.from_file(_write(tmp_path, files | {f"sub/{name}": data}))
    (tmp_path / "again.xml").write_text(spec.to_xml())
    again = compile_file(tmp_path / "again.xml")
    assert again.fields["paths"] == compile_spec(spec).fields["paths"]


def test_files_in_memory():
    text, name, data = KINDS["mesh"]
    files = {"sub/part.xml": PART.format(text.format(name)).encode(), f"sub/{name}": data}
    other = {f"other/{name}": FILES["tetra.obj"].replace(b"1", b"2")}
    found = compile_string(MAIN.format(""), files).fields["mesh_vert"]
    assert (compile_string(MAIN.format(""), files | other).fields["mesh_vert"] == found).all()
