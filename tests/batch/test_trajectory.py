"""Trajectory files: whole or not there, checked when read."""

import errno
import json
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from jaxsim.assets.read.npz import read_npz
from jaxsim.batch.trajectory import NotWrittenError, Trajectory, TrajectoryWriter, load_trajectory

pytestmark = pytest.mark.kernels

HEADER = {"model": "arm.xml", "timestep": 0.01, "every": 1, "worlds": 2, "nq": 3, "nv": 3, "nu": 0}

WHOLE = {"format": "jaxsim trajectory", "version": 1, "records": 1, "worlds": 1, "fields": []}


def chunk(steps, start=0.0):
    qpos = start + np.arange(steps * 6, dtype=np.float32).reshape(steps, 2, 3)
    return {"time": qpos[..., 0].astype(np.float64), "qpos": qpos, "ctrl": np.zeros((steps, 2, 0))}


def write(path: Path, *chunks) -> None:
    with TrajectoryWriter(path, HEADER) as writer:
        for part in chunks:
            writer.append(part)


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "motion.npz"
    write(path, chunk(3), chunk(2, start=100))
    return path


def test_reads_back_what_was_written(written):
    motion = load_trajectory(written)
    np.testing.assert_array_equal(motion["qpos"][:3], chunk(3)["qpos"])
    np.testing.assert_array_equal(motion["qpos"][3:], chunk(2, start=100)["qpos"])
    assert motion["qpos"].dtype == np.float32
    assert motion["time"].dtype == np.float64
    assert motion["ctrl"].shape == (5, 2, 0)
    assert motion.header["records"] == 5
    assert motion.header["model"] == "arm.xml"


def test_numpy_alone_reads_it_too(written):
    with np.load(written) as file:
        assert file["qpos"].shape == (5, 2, 3)


def test_nothing_else_is_left_in_the_folder(written):
    assert [path.name for path in written.parent.iterdir()] == ["motion.npz"]


def test_an_interrupted_run_leaves_the_old_file(written):
    before = written.read_bytes()
    writer = TrajectoryWriter(written, HEADER)
    writer.__enter__()
    writer.append(chunk(3))
    assert len(list(written.parent.iterdir())) == 2
    writer.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
    assert written.read_bytes() == before
    assert [path.name for path in written.parent.iterdir()] == ["motion.npz"]


def test_a_link_is_followed_and_stays_a_link(tmp_path):
    (tmp_path / "far").mkdir()
    link = tmp_path / "near.npz"
    link.symlink_to(tmp_path / "far" / "motion.npz")
    for start in (0, 100):  # the first makes the file, the second replaces it
        with TrajectoryWriter(link, HEADER) as writer:
            writer.append(chunk(2, start))
            assert [p.name[:12] for p in (tmp_path / "far").glob(".*")] == [".motion.npz-"]
        assert link.is_symlink()
        np.testing.assert_array_equal(load_trajectory(link)["qpos"], chunk(2, start)["qpos"])
        assert [path.name for path in (tmp_path / "far").iterdir()] == ["motion.npz"]


@pytest.mark.parametrize(
    ("place", "message"),
    [
        ("no/motion.npz", r"there is no folder '.*no'; create it first"),
        ("", "is a folder; name a file"),
        ("link.npz", r"'.*link\.npz' is no regular file; name another one"),
    ],
)
def test_the_place_is_tried_before_the_run(tmp_path, place, message):
    (tmp_path / "link.npz").symlink_to("/dev/full")
    with pytest.raises(OSError, match=message):
        TrajectoryWriter(tmp_path / place, HEADER).__enter__()
    assert [path.name for path in tmp_path.iterdir()] == ["link.npz"]


def full(*_):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_finished_run_is_kept_where_the_file_cannot_be_replaced(written, monkeypatch):
    before = written.read_bytes()
    with monkeypatch.context() as patch:
        patch.setattr(os, "replace", full)
        with pytest.raises(NotWrittenError) as caught:
            write(written, chunk(4))
    assert written.read_bytes() == before
    kept = written.with_name("motion-1.npz")
    assert caught.value.kept == kept
    assert str(caught.value) == (
        f"'{written}' cannot be written: No space left on device; "
        f"4 records of each world are kept in the file '{kept}'"
    )
    np.testing.assert_array_equal(load_trajectory(kept)["qpos"], chunk(4)["qpos"])
    assert sorted(path.name for path in written.parent.iterdir()) == ["motion-1.npz", "motion.npz"]


@pytest.fixture
def small_disk(monkeypatch):
    """Makes writing fail: raw arrays beyond some bytes, and trajectories in some folders."""

    def limit(most: int, *folders: Path) -> None:
        add, write = TrajectoryWriter._add, TrajectoryWriter._write
        left = [most]

        def checked_add(self, name, values):
            left[0] -= values.nbytes
            if left[0] < 0:
                add(self, name, values[:1])  # some of it comes through
                full()
            add(self, name, values)

        def checked_write(self, finished):
            if any(finished.is_relative_to(folder) for folder in folders):
                finished.write_bytes(b"half")
                full()
            write(self, finished)

        monkeypatch.setattr(TrajectoryWriter, "_add", checked_add)
        monkeypatch.setattr(TrajectoryWriter, "_write", checked_write)

    return limit


def test_what_was_simulated_is_kept_when_the_disk_is_full(tmp_path, small_disk, monkeypatch):
    run, temporary = tmp_path / "run", tmp_path / "temporary"
    run.mkdir()
    temporary.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    size = sum(x.nbytes for x in chunk(2).values())
    small_disk(size + chunk(2)["time"].nbytes, run)
    with pytest.raises(NotWrittenError, match="2 records of each world are kept in the file") as e:
        write(run / "motion.npz", chunk(2), chunk(2, 100), chunk(2, 200))
    assert e.value.kept == temporary / "motion-1.npz"
    motion = load_trajectory(e.value.kept)
    np.testing.assert_array_equal(motion["qpos"], chunk(2)["qpos"])
    np.testing.assert_array_equal(motion["time"], chunk(2)["time"])
    assert not list(run.iterdir())


def test_raw_arrays_are_kept_when_no_disk_has_room(tmp_path, small_disk, monkeypatch):
    run = tmp_path / "run"
    run.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    small_disk(10**9, tmp_path)
    with (
        pytest.raises(
            NotWrittenError, match=r"kept in raw arrays, with header\.json, in"
        ) as caught,
        TrajectoryWriter(run / "motion.npz", HEADER) as writer,
    ):
        writer.append(chunk(3))
    kept = caught.value.kept
    assert [path.name for path in run.iterdir()] == [kept.name]
    fields = json.loads((kept / "header.json").read_text())["fields"]
    for name, values in chunk(3).items():
        if values.size:
            raw = np.fromfile(kept / name, fields[name]["dtype"]).reshape(fields[name]["shape"])
            np.testing.assert_array_equal(raw, values)


def test_what_is_printed_is_short(written):
    text = repr(load_trajectory(written))
    assert text == (
        "Trajectory(model='arm.xml', records=5, worlds=2, timestep=0.01, every=1, "
        "time=float64[5, 2], qpos=float32[5, 2, 3], ctrl=float64[5, 2, 0])"
    )
    assert repr(Trajectory({}, {"qpos": np.zeros(10**6)})) == "Trajectory(qpos=float64[1000000])"


def test_records_must_keep_their_shape(tmp_path):
    with TrajectoryWriter(tmp_path / "a.npz", HEADER) as writer:
        writer.append(chunk(3))
        with pytest.raises(ValueError, match=r"qpos: records of shape .*\(2, 4\)"):
            writer.append({"qpos": np.zeros((1, 2, 4), np.float32)})


def test_a_cut_file(written):
    written.write_bytes(written.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"motion\.npz: not an \.npz file, or truncated"):
        load_trajectory(written)


def test_a_damaged_file(written):
    data = written.read_bytes()
    number = np.float32(105).tobytes()
    assert number in data
    written.write_bytes(data.replace(number, np.float32(106).tobytes()))
    with pytest.raises(ValueError, match=r"motion\.npz: damaged"):
        load_trajectory(written)


def test_a_file_that_is_something_else(tmp_path):
    text = tmp_path / "text.npz"
    text.write_text("hello")
    with pytest.raises(ValueError, match=r"text\.npz: not an \.npz file"):
        load_trajectory(text)
    other = tmp_path / "other.npz"
    np.savez(other, qpos=np.zeros(3))
    with pytest.raises(ValueError, match="not a jaxsim trajectory: it has no header"):
        load_trajectory(other)
    assert list(read_npz(other)) == ["qpos"]


@pytest.mark.parametrize(
    ("header", "message"),
    [
        ("{", "its header is not JSON"),
        ("[]", "its header names another format"),
        ({"format": "other"}, "its header names another format"),
        ({"format": "jaxsim trajectory", "version": 9}, "version 9 of the format; this .* reads 1"),
        ({"format": "jaxsim trajectory", "version": 1}, "damaged: its header lacks 'records'"),
        ({**WHOLE, "fields": 3}, "damaged: its header lacks 'fields'"),
        ({**WHOLE, "fields": [[]]}, "damaged: its header has field names that are no strings"),
        ({**WHOLE, "worlds": [2]}, "damaged: its header lacks 'worlds'"),
        (100_000 * "[", "its header is not JSON"),
        ("9" * 5000, "its header is not JSON"),
    ],
)
def test_a_header_that_is_not_ours(tmp_path, header, message):
    path = tmp_path / "a.npz"
    np.savez(path, header=header if isinstance(header, str) else json.dumps(header))
    with pytest.raises(ValueError, match=message):
        load_trajectory(path)


def test_arrays_that_do_not_fit_the_header(written):
    arrays = read_npz(written)
    np.savez(written, **{**arrays, "qpos": arrays["qpos"][:2]})
    with pytest.raises(
        ValueError, match=r"damaged: 'qpos' has shape \(2, 2, 3\), expected \(5, 2\)"
    ):
        load_trajectory(written)
    del arrays["qpos"]
    np.savez(written, **arrays)
    with pytest.raises(ValueError, match="damaged: the array 'qpos' is missing"):
        load_trajectory(written)


def test_no_pickle_is_opened(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, header=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match=r"a\.npz: damaged"):
        load_trajectory(path)
