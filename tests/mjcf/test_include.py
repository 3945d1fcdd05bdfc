"""Files are included by MuJoCo's rules."""

import mujoco
import pytest

from jaxsim.errors import ModelError
from jaxsim.mjcf import read_file, read_string
from jaxsim.mjcf.include import MAX_INCLUDES


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub" / "deep").mkdir(parents=True)
    return tmp_path


def _write(folder, **files: str) -> None:
    for name, text in files.items():
        (folder / (name.replace("__", "/") + ".xml")).write_text(text)


def _main(text: str) -> str:
    return f"<mujoco>\n<worldbody>\n{text}\n</worldbody>\n</mujoco>"


def _geom(name: str) -> str:
    return f"<m><geom name='{name}' size='.1'/></m>"


def _names(folder) -> list[str]:
    """Names of all geoms, which must be those that the oracle finds."""
    path = str(folder / "main.xml")
    ours = [e.attrs["name"] for e in read_file(path).walk() if e.tag == "geom"]
    assert ours == [geom.name for geom in mujoco.MjSpec.from_file(path).geoms]
    return ours


def _said(folder) -> list[str]:
    """Return the error; the oracle must reject the model too. Paths are cut to names."""
    with pytest.raises(ValueError, match="XML Error"):
        mujoco.MjSpec.from_file(str(folder / "main.xml"))
    with pytest.raises(ModelError) as caught:
        read_file(folder / "main.xml")
    return str(caught.value).replace(f"{folder}/", "").splitlines()


@pytest.mark.parametrize("root", ["mujoco", "mujocoinclude", "anything"])
def test_the_root_of_an_included_file_is_dropped(folder, root):
    _write(folder, main=_main("<include file='g.xml'/>"))
    _write(folder, g=f"<{root} model='x'><geom name='g' size='.1'/></{root}>")
    assert _names(folder) == ["g"]


def test_order_and_nesting(folder):
    _write(
        folder,
        main=_main("<geom name='a' size='1'/><include file='b.xml'/><geom name='d' size='1'/>"),
    )
    _write(folder, b="<m><geom name='b' size='1'/><include file='c.xml'/></m>", c=_geom("c"))
    assert _names(folder) == ["a", "b", "c", "d"]


def test_main_folder_before_the_including_files(folder):
    _write(folder, main=_main("<include file='sub/s.xml'/>"))
    _write(folder, sub__s="<m><include file='t.xml'/></m>", sub__t=_geom("beside"))
    assert _names(folder) == ["beside"]
    _write(folder, t=_geom("main"))
    assert _names(folder) == ["main"]


def test_folders_add_up(folder):
    _write(folder, main=_main("<include file='sub/s.xml'/>"))
    _write(folder, sub__s="<m><include file='deep/u.xml'/></m>")
    _write(folder, sub__deep__u="<m><include file='v.xml'/></m>", sub__deep__v=_geom("v"))
    assert _names(folder) == ["v"]


def test_absolute_and_upward_paths(folder):
    _write(folder, g=_geom("g"), h=_geom("h"))
    _write(folder, main=_main(f"<include file='{folder}/g.xml'/><include file='sub/../h.xml'/>"))
    assert _names(folder) == ["g", "h"]


def test_places_are_those_of_the_included_file(folder):
    _write(folder, main=_main("<include file='g.xml'/>"), g="<m>\n\n<geom size='x'/></m>")
    assert _said(folder) == ["g.xml:3: <geom>: size needs numbers, got 'x'"]


TWICE = "main.xml:3: <include> includes '{}' a second time; a file may be part of a model only once"


@pytest.mark.parametrize("again", ["g.xml", "./g.xml", "sub/../g.xml"])
def test_a_file_counts_once(folder, again):
    _write(folder, main=_main(f"<include file='g.xml'/><include file='{again}'/>"), g=_geom("g"))
    assert _said(folder) == [TWICE.format(again)]


def test_cycles(folder):
    _write(folder, main=_main("<include file='main.xml'/>"))
    assert _said(folder) == [TWICE.format("main.xml")]
    _write(folder, main=_main("<include file='a.xml'/>"))
    _write(folder, a="<m><include file='b.xml'/></m>", b="<m><include file='a.xml'/></m>")
    assert "a second time" in _said(folder)[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<include/>", "main.xml:3: <include> needs the attribute 'file'"),
        ("<include file='no.xml'/>", "main.xml:3: <include> cannot find 'no.xml'; looked in '"),
        ("<include file='sub'/>", "main.xml:3: <include> cannot find 'sub'; looked in '"),
        (
            "<include file='g.xml'><geom/></include>",
            "main.xml:3: <include> of 'g.xml' cannot have elements inside; put them next to it",
        ),
        ("<include file='e.xml'/>", "e.xml:1: the file has no elements; remove its <include> (m"),
        (
            "<include file='z.xml'/>",
            "z.xml: the file is empty; a model needs at least <mujoco/>; i",
        ),
        (
            "<include file='x.xml'/>",
            "x.xml:2: broken XML, mismatched tag; <geom> of line 2 is not closed yet; included by",
        ),
    ],
)
def test_messages(folder, text, message):
    _write(folder, main=_main(text), g=_geom("g"), e="<m>text</m>", z="", x="<m>\n<geom></m>")
    said = _said(folder)
    assert len(said) == 1
    assert said[0].startswith(message)


def test_unknown_attributes_are_refused(folder):
    _write(folder, main=_main("<include file='g.xml' files='h.xml'/>"), g=_geom("g"))
    with pytest.raises(ModelError, match="<include> has no attribute 'files'; did you mean 'file'"):
        read_file(folder / "main.xml")


def test_too_many_levels(folder):
    for i in range(MAX_INCLUDES + 1):
        _write(folder, **{f"c{i}": f"<m><include file='c{i + 1}.xml'/></m>"})
    _write(folder, main=_main("<include file='c0.xml'/>"))
    with pytest.raises(ModelError, match=f"of 'c{MAX_INCLUDES}.xml' makes more than 100 includes"):
        read_file(folder / "main.xml")


def test_depth_counts_through_files(folder):
    _write(folder, main=_main("<body>" * 300 + "<include file='d.xml'/>" + "</body>" * 300))
    _write(folder, d="<m>" + "<body>" * 300 + "</body>" * 300 + "</m>")
    with pytest.raises(ModelError, match="nested more than 499 elements deep"):
        read_file(folder / "main.xml")


def test_contents_in_memory_come_first(folder):
    _write(folder, main=_main("<include file='g.xml'/>"), g=_geom("disk"))
    assets = {"g.xml": _geom("memory").encode()}
    root = read_file(folder / "main.xml", assets=assets)
    assert root.find("worldbody").children[0].attrs["name"] == "memory"
    root = read_string(_main("<include file='some/where/g.xml'/>"), assets=assets)
    assert root.find("worldbody").children[0].attrs["name"] == "memory"


@pytest.mark.parametrize(
    "secret", ["root:x:0:0:root\n", "key = a & b\n", "a <b> c <d\n", "user: <name>\n"]
)
def test_a_file_that_is_no_model_is_not_quoted(folder, secret):
    (folder / "secret").write_text(secret)
    with pytest.raises(ModelError) as caught:
        read_string(_main("<include file='secret'/>"))
    said = str(caught.value)
    assert "secret" in said
    assert "included by <string>:3" in said or "remove its <include>" in said
    assert not any(word in said for word in ("root", "key", "user", "& b", "c <d"))
