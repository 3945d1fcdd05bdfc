"""Files are written as a whole or not at all, through links, under names that nothing has."""

import ast
import os
import threading
from pathlib import Path

import pytest

from jaxsim import atomic_write as whole
from jaxsim.atomic_write import discard_unfinished, target_of, unfinished, whole_file, write_whole


def names(folder):
    return sorted(p.name for p in folder.iterdir())


def test_a_file_is_replaced_or_stays_as_it_was(tmp_path):
    path = tmp_path / "a.txt"
    write_whole(path, "é")
    assert path.read_bytes() == "é".encode()
    path.chmod(0o640)

    def fail():
        with whole_file(path) as part:
            part.write_text("half")
            assert path.read_text() == "é"
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    assert path.read_text() == "é"
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert names(tmp_path) == ["a.txt"]


def test_a_link_stays_and_its_target_is_written(tmp_path):
    (tmp_path / "far").mkdir()
    link = tmp_path / "a.png"
    link.symlink_to(tmp_path / "far" / "b.png")
    write_whole(link, b"1")  # what it leads to is not there yet
    write_whole(link, b"2")
    assert link.is_symlink()
    assert (tmp_path / "far" / "b.png").read_bytes() == b"2"
    assert names(tmp_path / "far") == ["b.png"]


def test_two_that_write_the_same_file_do_not_meet(tmp_path):
    path, seen = tmp_path / "a.gif", []
    with whole_file(path) as one, whole_file(path) as other:
        assert one != other
        assert one.suffix == other.suffix == ".gif"
        one.write_text("one")
        other.write_text("other")
    assert path.read_text() == "one"

    def write(text):
        for _ in range(20):
            write_whole(path, text)
            seen.append(path.read_text())

    threads = [threading.Thread(target=write, args=(c * 10_000,)) for c in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(text == text[0] * 10_000 for text in seen)
    assert names(tmp_path) == ["a.gif"]


@pytest.mark.parametrize("kind", ["folder", "circle", "device", "no folder", "below a file"])
def test_what_cannot_be_written_is_refused_and_stays(tmp_path, kind):
    path = tmp_path / "a"
    if kind == "folder":
        path.mkdir()
    elif kind == "circle":
        path.symlink_to(path)
    elif kind == "device":
        path.symlink_to("/dev/null")
    elif kind == "no folder":
        path = tmp_path / "b" / "a"
    else:
        path.write_text("")
        path = path / "b"
    before = names(tmp_path)
    with pytest.raises(OSError, match=str(tmp_path)):
        write_whole(path, "x")
    with pytest.raises(OSError, match=str(tmp_path)):
        target_of(path)
    assert names(tmp_path) == before


def test_a_long_name_has_a_temporary_one(tmp_path):
    path = tmp_path / ("x" * 250 + ".txt")
    write_whole(path, "1")
    assert target_of(path).read_text() == "1"


def test_a_process_that_ends_at_once_leaves_nothing(tmp_path):
    with unfinished(tmp_path / ".folder-01234567") as folder, whole_file(tmp_path / "a") as part:
        folder.mkdir()
        (folder / "b").write_text("")
        part.write_text("half")
        discard_unfinished()
        assert names(tmp_path) == []
        part.write_text("")
    assert names(tmp_path) == ["a"]


def test_what_a_killed_process_left_is_deleted(tmp_path):
    left = [".50-01234567", ".a-89abcdef.npz", ".50-01234567.orbax-checkpoint-tmp"]
    stays = ["50", ".hidden", "a-01234567", ".a-012345678"]
    for name in left + stays:
        (tmp_path / name).mkdir()
    whole.discard_left_over(tmp_path)
    assert names(tmp_path) == sorted(stays)


def test_a_full_disk_leaves_the_file_as_it_was(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_text("before")

    def full(file):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(path, "after")
    assert path.read_text() == "before"
    assert names(tmp_path) == ["a"]


# who writes other than by `write_whole` and `whole_file`, and why nothing half-written is left
OTHERS = {
    "atomic_write.py": "is the writer",
    "batch/trajectory.py": "a hidden folder of raw numbers, from which the file is then made",
    "learn/checkpoint.py": "a file of an unfinished folder, which then gets its name",
    "cli/process/distributed.py": "the null device",
    "view/export/gltf.py": "the temporary file of view/export/formats.py, `whole_file`",
    "view/export/mcap.py": "the temporary file of view/export/formats.py, `whole_file`",
    "learn/sweep/log.py": "a log that grows while a training runs; its exit code ends it",
}


def writes(path):
    """Lines of calls that write a file under its own name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            modes = [a.value for a in node.args if isinstance(a, ast.Constant)]
            opens = name == "open" and any(
                isinstance(mode, str) and set(mode) & set("wax+") and set(mode) <= set("wabtx+r")
                for mode in modes
            )
            if opens or name in ("write_text", "write_bytes"):
                yield node.lineno


def test_no_file_is_written_in_place():
    package = Path(whole.__file__).parent
    found = {
        f"{name}:{number}"
        for path in package.rglob("*.py")
        if (name := path.relative_to(package).as_posix()) not in OTHERS
        for number in writes(path)
    }
    # the part of a file that gets its name when it is complete
    assert {place.partition(":")[0] for place in found} <= {"identify/timeseries.py"}
