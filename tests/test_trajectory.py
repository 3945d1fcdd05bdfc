"""Trajectory files: whole or not there, checked when read."""

import json

import numpy as np
import pytest

from jaxsim.trajectory import TrajectoryWriter, load_trajectory, read_npz

HEADER = {"model": "arm.xml", "timestep": 0.01, "every": 1, "worlds": 2, "nq": 3, "nv": 3, "nu": 0}


def chunk(steps, start=0.0):
    qpos = start + np.arange(steps * 6, dtype=np.float32).reshape(steps, 2, 3)
    return {"time": qpos[..., 0].astype(np.float64), "qpos": qpos, "ctrl": np.zeros((steps, 2, 0))}


@pytest.fixture
def written(tmp_path):
    path = tmp_path / "motion.npz"
    with TrajectoryWriter(path, HEADER) as writer:
        writer.append(chunk(3))
        writer.append(chunk(2, start=100))
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


def test_records_must_keep_their_shape(tmp_path):
    with TrajectoryWriter(tmp_path / "a.npz", HEADER) as writer:
        writer.append(chunk(3))
        with pytest.raises(ValueError, match=r"qpos: records of shape .*\(2, 4\)"):
            writer.append({"qpos": np.zeros((1, 2, 4), np.float32)})


def test_a_cut_file(written):
    written.write_bytes(written.read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"motion\.npz: not an \.npz file, or cut off at its end"):
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
