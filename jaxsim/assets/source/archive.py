"""Zip archives from strangers: their members within limits, and one error for all their faults."""

from __future__ import annotations

import lzma
import os
import posixpath
import struct
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO

from jaxsim.assets.source.limits import check_limit, limit
from jaxsim.errors import AssetError

# What reading raises where an archive is damaged, encrypted, or packed in a way that is not known.
# bz2 says OSError, a wrong position too; a password that is missing is a RuntimeError, and so is
# NotImplementedError; a name that is no text is a ValueError.
DAMAGED = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    RuntimeError,
    ValueError,
    OverflowError,
    IndexError,
)
_ENCRYPTED = 0x1


class Archive:
    """The files in a zip archive; a context manager.

    Args:
      source: the archive, open for reading.
      shown: stands for it in messages.

    Raises:
      AssetError: it cannot be read; also by every method.
    """

    def __init__(self, source: BinaryIO, shown: str):
        self._shown = shown
        with self._named():
            self._zip = zipfile.ZipFile(source)
            self._size = source.seek(0, os.SEEK_END)
        self.members = [member for member in self._zip.infolist() if not member.is_dir()]
        for member in self.members:
            if member.flag_bits & _ENCRYPTED:
                remedy = "pack the archive without a password"
                raise AssetError(f"{shown}: '{member.filename}' is encrypted; {remedy}")

    def check_size(self, members: list[zipfile.ZipInfo]) -> None:
        """Refuse members that are together larger unpacked than the limit, and than the archive.

        What is stored as it is takes no more memory than it took of the disk.
        """
        size = sum(member.file_size for member in members)
        if size > max(limit("archive_bytes"), self._size):
            try:
                check_limit("archive_bytes", size)
            except AssetError as error:
                raise AssetError(f"{self._shown}: {error}") from None

    @contextmanager
    def open(self, member: zipfile.ZipInfo) -> Iterator[BinaryIO]:
        """The contents of a member; they are checked when the last byte has been read."""
        with self._named(), self._zip.open(member) as stream:
            yield stream  # type: ignore[misc]

    def read(self, member: zipfile.ZipInfo) -> bytes:
        """Return all of a member."""
        with self.open(member) as stream:
            return stream.read()

    def unpack(self) -> dict[str, bytes]:
        """Return the contents of all members by name, with plain slashes, if all names stay
        inside."""
        self.check_size(self.members)
        files: dict[str, bytes] = {}
        for member in self.members:
            name = member.filename.replace("\\", "/")
            if name.startswith("/") or ":" in name.split("/")[0] or ".." in name.split("/"):
                raise AssetError(
                    f"{self._shown}: the name '{member.filename}' leads out of the archive"
                )
            name = posixpath.normpath(name)
            if name in files:
                raise AssetError(f"{self._shown}: it has the file '{name}' twice; keep one")
            files[name] = self.read(member)
        return files

    @contextmanager
    def _named(self) -> Iterator[None]:
        """Turns what damaged archives raise into one error with a name."""
        try:
            yield
        except AssetError:
            raise
        except DAMAGED as error:
            message = f"not a zip archive that can be read: {error or type(error).__name__}"
            raise AssetError(f"{self._shown}: {message}") from None

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()
