"""Files in memory: names, collisions, archives, mounts; and models that are made of them."""

import errno
import io
import random
import zipfile

import mujoco
import pytest

from jaxsim.assets.source.limits import limits
from jaxsim.assets.source.resource import ResourceError, Resources
from jaxsim.assets.source.vfs import Vfs
from jaxsim.compile import compile_file
from jaxsim.errors import ModelError

BALL = b"<mujoco><worldbody><body><freejoint/><geom size='%s'/></body></worldbody></mujoco>"


def zipped(compression: int = zipfile.ZIP_STORED, **files: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return stream.getvalue()


def test_it_is_a_mapping():
    vfs = Vfs()
    vfs["a.stl"] = b"a"
    assert vfs.add_buffer("b/c.stl", bytearray(b"c")) == "b/c.stl"
    assert dict(vfs) == {"a.stl": b"a", "b/c.stl": b"c"}
    assert len(vfs) == 2
    assert "a.stl" in vfs
    assert vfs.contains("b/c.stl")
    assert "c.stl" not in vfs
    assert vfs.get("d.stl") is None
    assert vfs.pop("a.stl") == b"a"
    assert repr(vfs) == "Vfs(['b/c.stl'])"


def test_closing_removes_the_files():
    with Vfs() as vfs:
        vfs["a"] = b"a"
    assert not vfs


@pytest.mark.parametrize("name", ["./a//b.stl", "a/./b.stl", "x/../a/b.stl", "a\\b.stl"])
def test_a_name_has_one_spelling(name):
    vfs = Vfs()
    assert vfs.add_buffer(name, b"") == "a/b.stl"
    assert name in vfs
    assert "a/b.stl" in vfs
    with pytest.raises(FileExistsError):
        vfs["a/b.stl"] = b""


@pytest.mark.parametrize("name", ["../a", "a/../../b", ".."])
def test_a_name_that_leads_out_is_refused(name):
    with pytest.raises(ValueError, match="leads out of the file system; drop the"):
        Vfs().add_buffer(name, b"")
    assert name not in Vfs()


@pytest.mark.parametrize("name", ["", ".", "/", "a/.."])
def test_a_name_of_no_file_is_refused(name):
    with pytest.raises(ValueError, match="names no file"):
        Vfs().add_buffer(name, b"")


def test_contents_are_bytes():
    with pytest.raises(ValueError, match=r"data of 'a': expected bytes, got str"):
        Vfs()["a"] = "text"


def test_collision():
    """Code 2 of the documentation."""
    vfs = Vfs()
    vfs["a"] = b"1"
    with pytest.raises(FileExistsError, match="delete that file first"):
        vfs["./a"] = b"2"
    assert vfs["a"] == b"1"
    del vfs["a"]
    vfs["a"] = b"2"


def test_full():
    """Code 1 of the documentation."""
    vfs = Vfs(max_files=1)
    vfs["a"] = b""
    with pytest.raises(OSError, match="is limited to 1 files") as caught:
        vfs["b"] = b""
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(OSError, match="is limited to 2 files"):
        Vfs(max_files=2).add_archive(zipped(a=b"", b=b"", c=b""))


def test_missing_file_raises():
    """Code -1 of the documentation, of adding and of deleting."""
    vfs = Vfs()
    with pytest.raises(FileNotFoundError, match=r"cannot find 'no\.stl'; looked in '/nowhere/no"):
        vfs.add_file("no.stl", "/nowhere")
    with pytest.raises(FileNotFoundError, match="there is no such file in memory"):
        vfs.delete_file("no.stl")
    for name in ("no.stl", "../no.stl"):
        with pytest.raises(KeyError):
            del vfs[name]
        with pytest.raises(KeyError):
            vfs[name]


def test_files_of_the_disk(tmp_path):
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "a.stl").write_bytes(b"a")
    vfs = Vfs()
    assert vfs.add_file("m/a.stl", str(tmp_path)) == "m/a.stl"
    vfs.add_file("data:text/plain;base64,YQ==")
    assert vfs["m/a.stl"] == b"a"
    vfs.delete_file("./m/a.stl")
    assert "m/a.stl" not in vfs


def test_archives(tmp_path):
    data = zipped(**{"m/a.stl": b"a", "b.xml": b"b", "m/": b""})
    vfs = Vfs()
    assert vfs.add_archive(data, "robot") == ["robot/m/a.stl", "robot/b.xml"]
    (tmp_path / "r.zip").write_bytes(data)
    vfs.add_archive(tmp_path / "r.zip")
    assert vfs["m/a.stl"] == vfs["robot/m/a.stl"] == b"a"
    with pytest.raises(FileExistsError):
        vfs.add_archive(data)


@pytest.mark.parametrize("name", ["../a", "/a", "a/../../b", "a/../b", "..\\a", "C:\\a"])
def test_names_in_an_archive_stay_inside(name):
    vfs = Vfs()
    with pytest.raises(ValueError, match="leads out of the archive"):
        vfs.add_archive(zipped(**{"good": b"", name: b""}), "folder")
    assert not vfs


def test_damaged_archives():
    data = bytearray(zipped(a=bytes(1000)))
    with pytest.raises(ValueError, match="the archive: not a zip archive that can be read"):
        Vfs().add_archive(bytes(data[:-30]))
    data[40] ^= 1
    with pytest.raises(ValueError, match="not a zip archive that can be read: Bad CRC"):
        Vfs().add_archive(bytes(data))


def test_an_archive_that_unpacks_to_too_much():
    packed = zipped(a=bytes(100_000), compression=zipfile.ZIP_DEFLATED)
    message = "the archive: 100000 bytes that an archive unpacks to, the limit is 99999: .*--limit"
    with limits(archive_bytes=99_999), pytest.raises(ValueError, match=message):
        Vfs().add_archive(packed)
    with limits(archive_bytes=100_000):
        assert Vfs().add_archive(packed) == ["a"]
    # what is not packed has been on the disk already
    with limits(archive_bytes=0):
        assert Vfs().add_archive(zipped(a=bytes(100_000))) == ["a"]


PACKINGS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]


@pytest.mark.parametrize("packing", PACKINGS)
def test_damaged_archives_have_one_error(packing):
    """Whatever bytes are changed or left out: files, or an error with a name."""
    chance = random.Random(packing)
    whole = zipped(compression=packing, a=b"a" * 300, b=bytes(range(256)))
    refused = 0
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.2:
            data = data[: chance.randrange(len(data))]
        try:
            Vfs().add_archive(bytes(data))
        except (ValueError, FileExistsError):
            refused += 1
    assert refused > 200


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("a.stl", "a.stl"),
        ("a.stl", "m/a.stl"),
        ("m/a.stl", "a.stl"),
        ("m/a.stl", "n/a.stl"),
        ("A.stl", "a.STL"),
        ("m/a.stl", "m\\a.stl"),
        ("http://x/a.stl", "http://x/a.stl"),
    ],
)
def test_look_up_with_and_without_path(stored, asked, tmp_path):
    assert Resources({stored: b"memory"}, str(tmp_path)).read(asked) == b"memory"


def test_closest_path_match_is_used():
    files = {"a.stl": b"bare", "m/a.stl": b"m", "n/a.stl": b"n", "B.stl": b"B", "x/b.stl": b"b"}
    assert Resources(files).read("n/a.stl") == b"n"
    assert Resources(files, "m").read("a.stl") == b"m"
    assert Resources(files, "q").read("a.stl") == b"bare"
    assert Resources(files).read("b.stl") == b"b"


def test_memory_comes_before_the_disk(tmp_path):
    (tmp_path / "a.stl").write_bytes(b"disk")
    assert Resources({}, str(tmp_path)).read("a.stl") == b"disk"
    assert Resources({"a.stl": b"memory"}, str(tmp_path)).read("a.stl") == b"memory"


def test_a_name_that_fits_two_files_is_not_guessed():
    files = Resources({"m/a.stl": b"m", "n/a.stl": b"n"}, "/nowhere")
    with pytest.raises(ResourceError, match=r"'m/a\.stl' and 'n/a\.stl' are in memory: give"):
        files.read("a.stl")


def test_messages(tmp_path):
    files = Resources({"b": "text"}, str(tmp_path))
    with pytest.raises(ResourceError) as caught:
        files.read("a")
    assert (
        str(caught.value) == f"cannot find 'a'; looked in the 1 files in memory and '{tmp_path}/a'"
    )
    with pytest.raises(ResourceError, match="the file 'b' in memory is of type str; give its byt"):
        files.read("b")
    with pytest.raises(ResourceError, match="which is a folder"):
        files.read(".")
    with pytest.raises(ResourceError, match="cannot be read: embedded null byte"):
        files.read("\0")


def test_modified(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"")
    changed = path.stat().st_mtime
    files = Resources({"b": b""}, str(tmp_path))
    assert files.modified("a", changed - 1)
    assert not files.modified("a", changed + 1)
    assert not files.modified("b", 0)
    with pytest.raises(ResourceError, match="cannot be read"):
        files.modified("c", 0)


def test_a_model_of_files_in_memory():
    """The main file, what it includes and what it attaches; as MuJoCo finds them."""
    files = {
        "robots/main.xml": b"<mujoco><asset><model name='b' file='ball.xml'/></asset><worldbody>"
        b"<include file='parts/box.xml'/><attach model='b' prefix='x'/></worldbody></mujoco>",
        "robots/parts/box.xml": b"<x><geom type='box' size='1 2 3'/></x>",
        "robots/ball.xml": BALL % b"4",
    }
    vfs, theirs = Vfs(), mujoco.MjVfs()
    for name, data in files.items():
        vfs[name] = data
        theirs[name] = data
    oracle = mujoco.MjModel.from_xml_path("robots/main.xml", vfs=theirs)
    for given in (files, vfs):
        mine = compile_file("robots/main.xml", given).fields
        assert (mine["geom_size"] == oracle.geom_size).all()


def test_a_missing_main_file():
    with pytest.raises(ModelError, match=r"a\.xml: there is no such file; the current folder is"):
        compile_file("a.xml", Vfs())
