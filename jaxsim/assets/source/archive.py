"""Read untrusted zip archives: size limits on their members, and one error for all faults."""

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

# Exceptions for archives that are damaged, encrypted, or compressed by an unknown method. bz2
# raises OSError, as does a wrong offset; a missing password is a RuntimeError, as is
# NotImplementedError; an undecodable name is a ValueError.
_DAMAGED_ARCHIVE_ERRORS = (
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
      shown: name of the archive for messages.

    Raises:
      AssetError: it cannot be read; also by every method.
    """

    def __init__(self, source: BinaryIO, shown: str):
        self._shown = shown
        with self._with_file_name():
            self._zip = zipfile.ZipFile(source)
            self._size = source.seek(0, os.SEEK_END)
        self.members = [member for member in self._zip.infolist() if not member.is_dir()]
        for member in self.members:
            if member.flag_bits & _ENCRYPTED:
                remedy = "pack the archive without a password"
                raise AssetError(f"{shown}: '{member.filename}' is encrypted; {remedy}")

    def check_size(self, members: list[zipfile.ZipInfo]) -> None:
        """Reject members whose total decompressed size exceeds the limit, and the size of the
        archive.

        Uncompressed members need no more memory than their size on the disk.
        """
        size = sum(member.file_size for member in members)
        if size > max(limit("archive_bytes"), self._size):
            try:
                check_limit("archive_bytes", size)
            except AssetError as error:
                raise AssetError(f"{self._shown}: {error}") from None

    @contextmanager
    def open(self, member: zipfile.ZipInfo) -> Iterator[BinaryIO]:
        """Yield the contents of a member; the checksum is verified at the last byte."""
        with self._with_file_name(), self._zip.open(member) as stream:
            yield stream  # type: ignore[misc]

    def read(self, member: zipfile.ZipInfo) -> bytes:
        """Return the contents of a member."""
        with self.open(member) as stream:
            return stream.read()

    def unpack(self) -> dict[str, bytes]:
        """Return the contents of all members by name, with forward slashes, if all names stay
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
    def _with_file_name(self) -> Iterator[None]:
        """Convert exceptions of damaged archives to one error with a name."""
        try:
            yield
        except AssetError:
            raise
        except _DAMAGED_ARCHIVE_ERRORS as error:
            message = f"not a zip archive that can be read: {error or type(error).__name__}"
            raise AssetError(f"{self._shown}: {message}") from None

    def __enter__(self) -> Archive:
        return self

    def __exit__(self, *error: object) -> None:
        self._zip.close()
