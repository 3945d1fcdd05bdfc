"""Providers by URI prefix: the names they serve, the requests they receive, and their errors."""

import base64
import builtins
import importlib
import io
import os
import zipfile

import fsspec
import pytest

from jaxsim.assets.source.data_uri import content_type
from jaxsim.assets.source.filesystem import register_filesystems
from jaxsim.assets.source.provider import provider_of, register_provider, unregister_provider
from jaxsim.assets.source.resource import ResourceError, Resources, folder_name, join_uri
from jaxsim.assets.source.vfs import Vfs
from jaxsim.compile import compile_file, compile_string
from jaxsim.errors import ModelError

BALL = b"<mujoco><worldbody><geom size='%d'/></worldbody></mujoco>"
INCLUDING = b"<mujoco><worldbody><include file='%s'/></worldbody></mujoco>"
PART = b"<x><geom size='%d'/></x>"


@pytest.fixture
def register():
    """Registers providers for one test."""
    prefixes = []

    def provider(prefix, *args, **kwargs):
        register_provider(prefix, *args, **kwargs)
        prefixes.append(prefix)

    yield provider
    for prefix in prefixes:
        unregister_provider(prefix)


@pytest.fixture
def web(register):
    """A provider of `http` that serves what is in the dict."""
    pages: dict[str, bytes] = {}
    register("http", open=lambda name: io.BytesIO(pages[name]))
    return pages


def read(name: str) -> bytes:
    return Resources(None, "/nowhere").read(name)


def sizes(compiled) -> list[float]:
    return compiled.fields["geom_size"][:, 0].tolist()


@pytest.mark.parametrize("name", ["http://host/a.obj", "HTTP://host/a.obj", "hTTp:a.obj", "http:"])
def test_names_it_serves(web, name):
    web[name] = b"page"
    assert read(name) == b"page"


@pytest.mark.parametrize("name", ["https://host/a.obj", "http/a.obj", "http", "xhttp:a", " http:a"])
def test_names_it_does_not_serve(web, name):
    assert provider_of(name) is None
    with pytest.raises(ResourceError, match="cannot find"):
        read(name)


def test_unknown_scheme_is_reported():
    with pytest.raises(
        ResourceError, match=r"no provider is registered for 'https:', jaxsim\.extend\.regis"
    ):
        read("https://host/a.obj")
    with pytest.raises(ModelError, match=r"https://host/a\.xml: no provider is registered"):
        compile_file("https://host/a.xml")


@pytest.mark.parametrize("prefix", ["", "http:", "1a", "a_b", "a b", "é", "+a"])
def test_a_prefix_is_the_scheme_of_a_uri(prefix):
    with pytest.raises(ValueError, match="is not the scheme of a URI; it is a letter, then"):
        register_provider(prefix, open=open)


def test_a_prefix_has_one_provider(register):
    register("git+ssh", open=open)
    register_provider("GIT+ssh", open=open)
    with pytest.raises(ValueError, match=r"'git\+ssh' has another provider already; unregister_p"):
        register_provider("Git+SSH", open=io.BytesIO)
    with pytest.raises(ValueError, match="'data' has another provider"):
        register_provider("data", open=open)


def test_the_callbacks(register):
    said = []
    register(
        "my",
        open=lambda name: said.append(("open", name)) or name,
        read=lambda handle: said.append(("read", handle)) or b"bytes",
        close=lambda handle: said.append(("close", handle)),
        getdir=lambda name: "my:folder/",
        modified=lambda name, since: since < 5,
    )
    assert read("my:a") == b"bytes"
    assert said == [("open", "my:a"), ("read", "my:a"), ("close", "my:a")]
    assert folder_name("my:a") == "my:folder/"
    assert Resources().modified("my:a", 4)
    assert not Resources().modified("my:a", 6)


@pytest.mark.parametrize(
    ("name", "value"), [("open", None), ("open", b"data"), ("read", 5), ("close", True)]
)
def test_callbacks_are_functions(name, value):
    given = {"open": open} | {name: value}
    with pytest.raises(ValueError, match=f"^{name}: expected a function, got"):
        register_provider("my", **given)
    assert provider_of("my:a") is None
    with pytest.raises(ValueError, match="prefix: 'None' is not the scheme of a URI"):
        register_provider(None, open=open)


def test_folder_callback_of_none_uses_the_default(register):
    register("my", open=lambda name: b"", getdir=lambda name: None)
    assert folder_name("my:a/b.xml") == "my:a/"


def test_first_of_two_errors_is_reported(register):
    def fails(handle):
        raise OSError("the cause" if handle == "my:a" else "another")

    register("my", open=lambda name: name, read=fails, close=lambda handle: fails(None))
    with pytest.raises(ResourceError, match="cannot read 'my:a': the cause"):
        read("my:a")


def test_a_provider_that_cannot_tell_has_no_changes(web):
    assert not Resources().modified("http://a", 0)


def test_a_handle_is_closed_when_reading_fails(register):
    closed = []

    def fail(handle):
        raise RuntimeError("the line is cut")

    register("my", open=lambda name: 7, read=fail, close=closed.append)
    with pytest.raises(ResourceError, match="cannot read 'my:a': the line is cut"):
        read("my:a")
    assert closed == [7]


@pytest.mark.parametrize("nothing", [None, False])
def test_a_provider_that_has_no_such_file(register, nothing):
    register("my", open=lambda name: nothing)
    with pytest.raises(ResourceError, match="the provider of 'my:' has no 'my:a'"):
        read("my:a")


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_a_provider_may_return_the_bytes_themselves(register, kind):
    register("direct", open=lambda name: kind(b"page"))
    assert read("direct:a") == b"page"


def test_a_handle_need_not_have_a_close(register):
    class Handle:
        def read(self):
            return b"page"

    register("bare", open=lambda name: Handle())
    assert read("bare:a") == b"page"


@pytest.mark.parametrize("handle", ["text", 3, object()])
def test_a_handle_that_cannot_be_read_is_told_with_the_remedy(register, handle):
    register("odd", open=lambda name: handle)
    kind = type(handle).__name__
    with pytest.raises(ResourceError, match=f"open returned {kind}, .* return bytes or an open"):
        read("odd:a")


def test_a_provider_that_gives_something_else(register):
    register("my", open=io.StringIO)
    with pytest.raises(ResourceError, match="gave str for 'my:a', expected bytes"):
        read("my:a")


def test_memory_comes_before_a_provider(web):
    web["http://host/a.obj"] = b"page"
    assert Resources({"http://host/a.obj": b"memory"}).read("http://host/a.obj") == b"memory"
    assert Resources({"a.obj": b"memory"}).read("http://host/a.obj") == b"memory"


@pytest.mark.parametrize(
    ("folder", "name", "path"),
    [
        ("http://host/a/b/", "c.obj", "http://host/a/b/c.obj"),
        ("http://host/a/b/", "../m/c.obj", "http://host/a/m/c.obj"),
        ("http://host/a/", "../../../c.obj", "http://host/c.obj"),
        ("http://host/a/", "/c.obj", "http://host/c.obj"),
        ("http://host", "c.obj", "http://host/c.obj"),
        ("http:a/b", "../c", "http:a/c"),
        ("http:/a/b", "../../../c", "http:/c"),
        ("http:", "c", "http:c"),
        ("http://host/a/", "data:,", "data:,"),
        ("http://a/b/::/x/r.zip", "../c", "http://a/c::/x/r.zip"),
        ("http://a/::/x/r.zip", "../../c", "http://c::/x/r.zip"),
        ("a/b", "../c", os.path.join("a", "c")),
    ],
)
def test_names_seen_from_a_folder(web, folder, name, path):
    assert join_uri(folder, name) == path


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("HTTP://host/a/b.xml", "HTTP://host/a/"),
        ("http:b.xml", "http:"),
        ("http://a/b.xml::/x/r.zip", "http://a/::/x/r.zip"),
        ("a/b.xml", "a"),
    ],
)
def test_the_folder_of_a_name(web, name, folder):
    assert folder_name(name) == folder


def test_a_model_of_a_provider(web):
    """Relative names are resolved against the URI of the model; source locations show the URI."""
    web["http://host/a/main.xml"] = INCLUDING % b"../b/part.xml"
    web["http://host/b/part.xml"] = PART % 3
    assert sizes(compile_file("http://host/a/main.xml")) == [3]
    web["http://host/b/part.xml"] = PART % 3 + b"<"
    with pytest.raises(ModelError, match=r"^http://host/b/part\.xml:1: "):
        compile_file("http://host/a/main.xml")
    del web["http://host/b/part.xml"]
    with pytest.raises(ModelError, match=r"cannot open 'http://host/b/part\.xml'"):
        compile_file("http://host/a/main.xml")
    del web["http://host/a/main.xml"]
    with pytest.raises(ModelError, match=r"^http://host/a/main\.xml: cannot open"):
        compile_file("http://host/a/main.xml")


def test_a_model_that_attaches_one_of_a_provider(web):
    web["http://host/a/ball.xml"] = INCLUDING % b"ball/part.xml"
    web["http://host/a/ball/part.xml"] = PART % 3
    text = (
        "<mujoco><asset><model name='m' file='http://host/a/ball.xml'/></asset>"
        "<worldbody><attach model='m' prefix='p'/></worldbody></mujoco>"
    )
    assert sizes(compile_string(text)) == [3]


def test_data():
    """The example of the documentation; base64 spelled in all ways that XML allows."""
    text = b"#my object\r\nv 1 0 0\r\nv 0 1 0\r\nv 0 0 1"
    coded = base64.b64encode(text).decode()
    assert read(f"data:model/obj;base64,{coded}") == text
    assert read(f"DATA:;charset=utf-8;BASE64,{coded[:8]} {coded[8:]}") == text
    assert read("data:;base64,%2B%2F%3D%3D") == read("data:;base64,+/==") == b"\xfb"
    assert read("data:;base64,") == b""


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("data:model/obj;base65,AAAA", "it has ';base65'; the data must be ';base64', as in data:"),
        ("data:,abc", "it has no encoding; the data must be ';base64'"),
        ("data:text/plain;charset=utf-8,abc", "it has ';charset=utf-8'; the data must be"),
        ("data:;base64", "it has no comma before the data; expected a form such as data:model/obj"),
        ("data:;base64,AAA", "the data after the comma are not base64: Incorrect padding"),
        ("data:;base64,A*AA", "the data after the comma are not base64"),
        ("data:;base64,\u00e9AAA", "the data after the comma are not base64"),
        ("data:;base64," + "A" * 201, r"\.\.\. \(214 characters\)': the data"),
    ],
)
def test_data_that_is_refused(uri, message):
    with pytest.raises(ResourceError, match=message):
        read(uri)


def test_content_types():
    assert content_type("data:model/OBJ;charset=x;base64,AA,AA") == "model/obj"
    assert content_type("Data:;base64,") is None
    assert content_type("data/model.obj") is None
    assert content_type("http:model/obj,") is None


def test_a_model_in_a_name():
    uri = "data:text/xml;base64," + base64.b64encode(BALL % 2).decode()
    assert sizes(compile_file(uri)) == [2]
    broken = (BALL % 2).replace(b"</mujoco>", b"</mujocco>") + b" " * 999
    with pytest.raises(ModelError) as caught:
        compile_file("data:text/xml;base64," + base64.b64encode(broken).decode())
    assert len(str(caught.value)) < 400


def test_mounts(web):
    vfs = Vfs()
    vfs.mount("robot/meshes", "http://host/m/")
    web["http://host/m/fine/a.stl"] = b"a"
    assert vfs["robot/meshes/fine/a.stl"] == b"a"
    assert "robot/./meshes/fine/a.stl" in vfs
    assert "robot/meshes/b.stl" not in vfs
    assert "robot/b.stl" not in vfs
    assert Resources(vfs, "robot").read("meshes/fine/a.stl") == b"a"
    with pytest.raises(ResourceError, match=r"cannot open 'http://host/m/b\.stl'"):
        vfs["robot/meshes/b.stl"]
    with pytest.raises(FileExistsError):
        vfs.mount("robot//meshes", "http://other")
    with pytest.raises(ValueError, match="no provider reads 'ftp://host'"):
        vfs.mount("other", "ftp://host")
    vfs.unmount("robot/meshes")
    assert "robot/meshes/fine/a.stl" not in vfs
    with pytest.raises(FileNotFoundError, match="nothing is mounted there"):
        vfs.unmount("robot/meshes")


@pytest.fixture
def filesystems():
    """Registers file systems for one test."""
    prefixes = []

    def registered(*protocols, **options):
        register_filesystems(*protocols, **options)
        prefixes.extend(protocols)

    yield registered
    for prefix in prefixes:
        unregister_provider(prefix)


def test_archives_by_fsspec(filesystems, tmp_path):
    filesystems("zip")
    with zipfile.ZipFile(tmp_path / "r.zip", "w") as archive:
        archive.writestr("robot/main.xml", INCLUDING % b"../parts/part.xml")
        archive.writestr("parts/part.xml", PART % 3)
    (tmp_path / "secret.xml").write_bytes(PART % 4)
    assert sizes(compile_file(f"zip://robot/main.xml::{tmp_path}/r.zip")) == [3]
    for name in ("secret.xml", "../secret.xml", "../../secret.xml"):
        with pytest.raises(ResourceError, match="cannot open"):
            read(f"zip://{name}::{tmp_path}/r.zip")


def test_other_systems_of_fsspec(filesystems):
    filesystems("memory")
    with fsspec.open("memory://robot/main.xml", "wb") as stream:
        stream.write(BALL % 5)
    assert sizes(compile_file("memory://robot/main.xml")) == [5]
    assert Resources(None, "memory://robot").read("main.xml") == BALL % 5
    assert Resources().modified("memory://robot/main.xml", 0)
    register_filesystems("memory")
    with pytest.raises(ValueError, match="'memory' has another provider already"):
        register_filesystems("memory", other=1)
    with pytest.raises(ValueError, match="fsspec knows no 'nonsense'; it knows "):
        register_filesystems("nonsense")


def test_without_fsspec(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(
        ImportError, match="needs fsspec; install the extra 'fsspec': pip install '"
    ):
        register_filesystems("zip")


TETRAHEDRON = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
MESH = (
    "<mujoco><asset><mesh name='m' {}/></asset>"
    "<worldbody><geom type='mesh' mesh='m'/></worldbody></mujoco>"
)


def test_meshes_come_from_all_places(web, tmp_path, monkeypatch):
    """Meshes from the disk, memory, a provider, a folder and their own name are equal."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.obj").write_bytes(TETRAHEDRON)
    web["http://host/meshes/m.obj"] = TETRAHEDRON
    coded = base64.b64encode(TETRAHEDRON).decode()
    vfs = Vfs()
    vfs.add_archive(zipped("parts/n.obj"))
    of_disk = compile_string(MESH.format("file='m.obj'")).fields["mesh_vert"]
    folder = "<mujoco><compiler meshdir='http://host/meshes'/>"
    for text, assets in (
        (MESH.format("file='n.obj'"), vfs),
        (MESH.format("file='x/n.obj'"), {"n.obj": TETRAHEDRON}),
        (MESH.format("file='http://host/meshes/m.obj'"), None),
        (MESH.format("file='m.obj'").replace("<mujoco>", folder), None),
        (MESH.format(f"content_type='model/obj' file='data:model/obj;base64,{coded}'"), None),
        (MESH.format(f"file='data:model/obj;base64,{coded}'"), None),
    ):
        assert (compile_string(text, assets).fields["mesh_vert"] == of_disk).all(), text


def zipped(name: str) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, TETRAHEDRON)
    return stream.getvalue()


BAD_RESULTS = {"none": None, "bytes": b"<mujoco/>", "int": 7, "text": "text", "object": object()}
# what a hook may return: `open` any handle, `close` anything
RIGHT = {
    "open": {"bytes"},
    "read": {"bytes"},
    "close": set(BAD_RESULTS),
    "getdir": {"none", "text"},
    "modified": {"int", "object"},
}


def broken(hook: str, outcome: str):
    """Functions of a provider of which one raises an exception or returns a wrong type."""

    def fails(*args):
        if outcome in BAD_RESULTS:
            return BAD_RESULTS[outcome]
        raise getattr(builtins, outcome)("the cause")

    hooks = {"open": lambda name: io.BytesIO(b"<mujoco/>"), hook: fails}
    if hook == "read":
        hooks["close"] = lambda handle: None
    return hooks


OUTCOMES = [*BAD_RESULTS, "ValueError", "KeyError", "RuntimeError", "TypeError", "OSError"]


@pytest.mark.parametrize("outcome", OUTCOMES)
@pytest.mark.parametrize("hook", RIGHT)
def test_failures_of_any_function_name_the_provider_and_the_file(register, hook, outcome):
    register("my", **broken(hook, outcome))

    def use():
        if hook == "modified":
            return Resources().modified("my:dir/a.xml", 0)
        return compile_file("my:dir/a.xml").fields["nbody"]

    if outcome in RIGHT[hook]:
        assert use() == 1
        return
    with pytest.raises(ResourceError if hook == "modified" else ModelError) as caught:
        use()
    message = str(caught.value)
    assert "my:dir/a.xml" in message
    assert "provider of 'my:'" in message
    if outcome not in BAD_RESULTS:
        assert "the cause" in message
        assert f"({outcome} in the provider" in message


def test_a_failing_folder_of_an_included_file_is_a_fault_of_the_model(register):
    def folder(name):
        return {"my:a.xml": ""}[name]

    pages = {"my:a.xml": b"<mujoco><include file='my:b.xml'/></mujoco>", "my:b.xml": b"<mujoco/>"}
    register("my", open=pages.__getitem__, getdir=folder)
    with pytest.raises(ModelError, match=r"cannot find the folder of 'my:b\.xml': .*\(KeyError in"):
        compile_file("my:a.xml")
