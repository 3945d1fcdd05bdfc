"""Virtual file system: files in memory that a model may refer to.

    with jaxsim.Vfs() as vfs:
        vfs["robot.xml"] = xml
        vfs.add_file("meshes/arm.stl", "/data/robot")
        m = jaxsim.load_model("robot.xml", vfs)

A `Vfs` is a mapping of names to contents, like a plain dict of assets. It adds the features of
MuJoCo's: normalized names, no duplicate names, folders whose files come from a provider, zip
archives.
"""

from __future__ import annotations

import errno
import io
import os
import posixpath
from collections.abc import Iterator, MutableMapping

from jaxsim.assets.source.archive import Archive
from jaxsim.assets.source.provider import provider_of
from jaxsim.assets.source.resource import ResourceError, Resources


class Vfs(MutableMapping[str, bytes]):
    """A virtual file system; a context manager, which removes its files at the end.

    Return codes of MuJoCo's functions correspond to exceptions here:

        1   the number of files is limited   OSError, with errno.ENOSPC
        2   the name exists already          FileExistsError
        -1  the file cannot be loaded        FileNotFoundError or another OSError; ValueError for an
                                             invalid name, or a damaged archive
        -1  there is nothing to delete       FileNotFoundError; KeyError for `del vfs[name]`

    Names are normalized with their path: `./a//b.stl` and `a\b.stl` are `a/b.stl`. A relative name
    that leads out of the file system, such as `../b.stl`, is rejected. `Resources` describes how a
    model finds a file under a different path.

    Args:
      max_files: largest number of files; None: no limit.
    """

    def __init__(self, *, max_files: int | None = None):
        self.max_files = max_files
        self._files: dict[str, bytes] = {}
        self._mounts: dict[str, str] = {}

    def add_file(self, name: str | os.PathLike[str], directory: str = "") -> str:
        """Add a file from the disk or a provider, under its name; return the normalized name.

        Args:
          name: the file, relative to the directory.
          directory: folder or URI of the file; it is no part of the name.
        """
        spelled = self._free(name)
        try:
            data = Resources(None, os.fspath(directory)).read(os.fspath(name))
        except ResourceError as error:
            raise FileNotFoundError(errno.ENOENT, str(error)) from None
        self._files[spelled] = data
        return spelled

    def add_buffer(self, name: str, data: bytes) -> str:
        """Add a file with the given contents; return its normalized name."""
        if not isinstance(data, bytes | bytearray | memoryview):
            raise ValueError(f"data of '{name}': expected bytes, got {type(data).__name__}")
        spelled = self._free(name)
        self._files[spelled] = bytes(data)
        return spelled

    def add_archive(self, archive: str | os.PathLike[str] | bytes, folder: str = "") -> list[str]:
        """Add all files of a zip archive, or none; return their names.

        Args:
          archive: path of the archive, or its contents.
          folder: prepended to the names; a name inside cannot lead out of it.
        """
        shown = "the archive" if isinstance(archive, bytes) else os.fspath(archive)
        with (
            io.BytesIO(archive) if isinstance(archive, bytes) else open(shown, "rb") as source,
            Archive(source, shown) as opened,
        ):
            files = opened.unpack()
        spelled = {self._free(posixpath.join(folder, name)): data for name, data in files.items()}
        if self.max_files is not None and len(self) + len(spelled) > self.max_files:
            raise self._full()
        self._files.update(spelled)
        return list(spelled)

    def delete_file(self, name: str) -> None:
        """Remove a file."""
        if name not in self._files and normalize_name(name) not in self._files:
            raise FileNotFoundError(errno.ENOENT, "there is no such file in memory", name)
        del self[name]

    def contains(self, name: str) -> bool:
        """Return whether there is a file of this name, including its path."""
        return name in self

    def mount(self, folder: str, uri: str) -> None:
        """Let a provider serve all files below a folder, exclusively.

        Args:
          folder: the folder in this file system.
          uri: replaces the folder in the names, such as `https://host/meshes`.

        Raises:
          FileExistsError: the folder is mounted already.
          ValueError: the URI has no provider.
        """
        spelled = normalize_name(folder)
        if spelled in self._mounts:
            raise FileExistsError(errno.EEXIST, "the folder is mounted already", folder)
        if provider_of(uri) is None:
            raise ValueError(f"uri: no provider reads '{uri}'; register_provider adds one")
        self._mounts[spelled] = uri.rstrip("/")

    def unmount(self, folder: str) -> None:
        """Remove a mount; FileNotFoundError if there is none."""
        if self._mounts.pop(normalize_name(folder), None) is None:
            raise FileNotFoundError(errno.ENOENT, "nothing is mounted there", folder)

    def close(self) -> None:
        """Remove all files and mounts."""
        self._files.clear()
        self._mounts.clear()

    def __enter__(self) -> Vfs:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __getitem__(self, name: str) -> bytes:
        spelled = _normalized_or_none(name)
        if spelled in self._files:
            return self._files[spelled]
        folder = spelled
        while folder and folder != "/":
            folder = posixpath.dirname(folder)
            if folder in self._mounts:
                below = posixpath.relpath(spelled or "", folder)
                return Resources().read(f"{self._mounts[folder]}/{below}")
        raise KeyError(name)

    def __setitem__(self, name: str, data: bytes) -> None:
        self.add_buffer(name, data)

    def __delitem__(self, name: str) -> None:
        spelled = _normalized_or_none(name)
        if spelled not in self._files:
            raise KeyError(name)
        del self._files[spelled]

    def __contains__(self, name: object) -> bool:
        if not isinstance(name, str):
            return False
        try:
            self[name]
        except (KeyError, ResourceError):
            return False
        return True

    def __iter__(self) -> Iterator[str]:
        """Return an iterator over the names of files in memory; those below a mount cannot be
        listed."""
        return iter(self._files)

    def __len__(self) -> int:
        return len(self._files)

    def __repr__(self) -> str:
        return f"Vfs({list(self._files)})"

    def _free(self, name: str | os.PathLike[str]) -> str:
        """Return the normalized name, if a file can be added under it."""
        spelled = normalize_name(name)
        if spelled in self._files:
            remedy = "the name is there already; delete that file first"
            raise FileExistsError(errno.EEXIST, remedy, spelled)
        if self.max_files is not None and len(self) >= self.max_files:
            raise self._full()
        return spelled

    def _full(self) -> OSError:
        return OSError(errno.ENOSPC, f"the file system is limited to {self.max_files} files")


def normalize_name(name: str | os.PathLike[str]) -> str:
    """Return a normalized name; ValueError if it leads out of the file system, or is no file
    name."""
    given = os.fspath(name)
    if provider_of(given):
        return given
    spelled = posixpath.normpath(given.replace("\\", "/")) if given else ""
    if spelled in ("", ".", "/"):
        raise ValueError(f"name: '{given}' names no file")
    if spelled == ".." or spelled.startswith("../"):
        raise ValueError(
            f"name: '{given}' leads out of the file system; drop the '..' it begins with"
        )
    return spelled


def _normalized_or_none(name: str) -> str | None:
    try:
        return normalize_name(name)
    except ValueError:
        return None
