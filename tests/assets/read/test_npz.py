"""Arrays in .npz files: what numpy writes is read, and whatever is damaged has one error."""

import io
import random
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from jaxsim.assets.read.npz import read_npz
from jaxsim.assets.source.limits import limits

ARRAYS = {
    "real": np.arange(6.0).reshape(2, 3),
    "columns": np.asfortranarray(np.arange(6, dtype=np.int32).reshape(2, 3)),
    "big_endian": np.arange(3, dtype=">f4"),
    "truth": np.array([True, False]),
    "text": np.array("words"),
    "one": np.array(3, np.uint8),
    "none": np.zeros((4, 0, 2)),
}
PACKINGS = [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]


def member(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array)
    return stream.getvalue()


def with_header(text: str, numbers: bytes = bytes(8), version: int = 1) -> bytes:
    length = struct.pack("<H" if version == 1 else "<I", len(text))
    return b"\x93NUMPY" + bytes([version, 0]) + length + text.encode() + numbers


@pytest.fixture
def file(tmp_path):
    def write(packing: int = zipfile.ZIP_STORED, **members: bytes) -> str:
        path = tmp_path / "a.npz"
        with zipfile.ZipFile(path, "w", packing) as archive:
            for name, data in members.items():
                archive.writestr(f"{name}.npy", data)
        return str(path)

    return write


@pytest.mark.parametrize("packing", PACKINGS)
def test_arrays_written_by_numpy_are_read(file, packing):
    path = file(packing, **{name: member(array) for name, array in ARRAYS.items()})
    read = read_npz(path)
    assert list(read) == list(ARRAYS)
    for name, array in ARRAYS.items():
        assert read[name].dtype == array.dtype
        assert read[name].flags.writeable
        np.testing.assert_array_equal(read[name], array)
    assert list(read_npz(path, "one")) == ["one"]


DESCRIPTION = "{'descr': '<f8', 'fortran_order': False, 'shape': (1,), }"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"no array", "it is no array of numpy"),
        (with_header(DESCRIPTION, version=9), "version 9 of the format is not known"),
        (with_header(DESCRIPTION.replace("(1,)", "(2,)")), r"\(2,\) of float64 does not take 8 b"),
        (with_header(DESCRIPTION.replace("(1,)", "(10**9,)")), "makes no sense"),
        (with_header(DESCRIPTION.replace("(1,)", "(1000000000000,)")), "does not take 8 bytes"),
        (with_header(DESCRIPTION.replace("(1,)", f"({2**70}, 0)"), b""), "does not take 0 bytes"),
        (with_header(DESCRIPTION.replace("(1,)", "(-1,)")), "makes no sense"),
        (with_header(DESCRIPTION.replace("<f8", "|O")), r"it holds '\|O'; only numbers and texts"),
        (with_header(DESCRIPTION.replace("<f8", "<f7")), "only numbers and texts"),
        (with_header(DESCRIPTION.replace("<f8", "<U999999999")), "only numbers and texts"),
        (with_header("(" * 3000), "makes no sense"),
        (with_header("-" * 9999), "makes no sense"),
        (with_header("{[]: 1}"), "makes no sense"),
        (with_header("'''"), "makes no sense"),
        (with_header(" " * 20000), "header has 20000 bytes"),
        (with_header(DESCRIPTION)[:9], "it ends early|unpack requires"),
    ],
)
def test_malformed_headers_are_rejected(file, data, message):
    with pytest.raises(ValueError, match=rf"a\.npz: damaged \.npz file: .*({message})"):
        read_npz(file(x=data))


def test_an_encrypted_file_and_an_unknown_packing(file, tmp_path):
    data = bytearray(Path(file(x=member(np.zeros(3)))).read_bytes())
    central = data.rindex(b"PK\1\2")
    for at, value, message in ((8, 1, "encrypted; pack the archive without"), (10, 77, "not supp")):
        changed = bytearray(data)
        changed[central + at] = value
        changed[at - 2] = value
        path = tmp_path / "b.npz"
        path.write_bytes(changed)
        with pytest.raises(ValueError, match=message):
            read_npz(path)


def test_decompressed_size_is_limited(file):
    path = file(zipfile.ZIP_DEFLATED, x=member(np.zeros(100_000)), y=member(np.zeros(3)))
    with limits(archive_bytes=99_999):
        with pytest.raises(ValueError, match=r"a\.npz: .* limit is 99999: .* raise the limit by"):
            read_npz(path)
        assert len(read_npz(path, "y")["y"]) == 3
    assert len(read_npz(path)["x"]) == 100_000
    with limits(archive_bytes=0):
        assert len(read_npz(file(x=member(np.zeros(1000))))["x"]) == 1000


def said(path: str) -> str:
    try:
        read_npz(path)
    except ValueError as error:
        return str(error)
    return "nothing"


@pytest.mark.parametrize("packing", PACKINGS)
def test_damaged_files_have_one_error(file, tmp_path, packing):
    """Whatever bytes are changed or left out: arrays, or a ValueError."""
    chance = random.Random(packing)
    path = tmp_path / "b.npz"
    whole = Path(file(packing, **{n: member(x) for n, x in ARRAYS.items()})).read_bytes()
    refused = 0
    for _ in range(500):
        data = bytearray(whole)
        for _ in range(chance.randrange(1, 4)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        if chance.random() < 0.2:
            data = data[: chance.randrange(len(data))]
        path.write_bytes(data)
        refused += said(str(path)).startswith(str(path))
    assert refused > 100


@pytest.mark.parametrize("seed", range(3))
def test_headers_with_any_bytes(file, seed):
    """Members whose checksums are right."""
    chance = random.Random(seed)
    for _ in range(300):
        data = bytearray(member(np.zeros(3)))
        for _ in range(chance.randrange(1, 6)):
            data[chance.randrange(80)] = chance.choice(b"()[]{}'\",:\\\0\xff0123-<>fOxe ")
        path = file(x=bytes(data))
        assert said(path).startswith((f"{path}: damaged .npz file: ", "nothing"))
