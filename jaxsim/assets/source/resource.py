"""Resolve and read files from memory, a provider, or the disk, in this order.

All files of a model are opened here: the model itself, the files it includes or attaches, its
meshes, images and height fields. A name may be a path or a URI.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence

from jaxsim.assets.source.model_archive import ArchiveFiles
from jaxsim.assets.source.provider import ResourceError as ResourceError
from jaxsim.assets.source.provider import folder_of, provider_of

# Form of a URI; a single letter would be the drive of a Windows path.
_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):")

# Prefix that relative names cannot leave: `http://host/`, `file:/`, `http:`; in an archive, its
# scheme.
_ROOT = re.compile(r"[^:]*:(?:(//[^/]*/?)|/?)")
_ARCHIVE_ROOT = re.compile(r"[^:]*:(//)?")


class Resources:
    """The files that a model may refer to.

    A name that is not in memory as written is looked up there without its path, as in MuJoCo:
    `meshes/arm.stl` matches `arm.stl` and `other/arm.stl`. Matching is case-sensitive; if it fails,
    a unique name that differs only in case is used.

    Args:
      files: contents of files in memory, by name.
      folder: folder, or URI, to which names are relative; "" is the current folder.
    """

    def __init__(self, files: Mapping[str, bytes] | None = None, folder: str = ""):
        self.files: Mapping[str, bytes] = {} if files is None else files
        self.folder = folder
        self._bare: dict[str, list[str]] | None = None

    def read(self, name: str) -> bytes:
        """Return the contents of a file.

        Raises:
          ResourceError: there is no such file, or it cannot be read; the message lists the
            locations searched.
        """
        found = self.find(name, (self.folder,))
        if found is None:
            raise ResourceError(self._missing(name))
        return found[1]

    def find(self, name: str, folders: Sequence[str]) -> tuple[str, bytes] | None:
        """Return the path and contents of the first file of this name, relative to each folder in
        order.

        Returns None if there is no such file.

        Raises:
          ResourceError: there is one, but it cannot be read.
        """
        paths = list(dict.fromkeys(join_uri(folder, name) for folder in folders))
        archive = self.files if isinstance(self.files, ArchiveFiles) else None
        for files in (archive.given, archive.members) if archive is not None else (self.files,):
            for key in self._keys(paths, name):
                data = files.get(key)
                if data is not None:
                    return key, _check_contents(key, data)
        # an archive contains all files of its model
        for path in () if archive is not None else paths:
            provider = provider_of(path)
            data = provider.contents(path) if provider else _read_from_disk(path)
            if data is not None:
                return path, data
        return None

    def modified(self, name: str, since: float) -> bool:
        """Return whether a file has changed after a time, in seconds since the epoch.

        Files in memory, and those of a provider without that function, have not.
        """
        path = join_uri(self.folder, name)
        if any(key in self.files for key in self._keys([path], name)):
            return False
        provider = provider_of(path)
        if provider:
            return provider.changed(path, since)
        try:
            return os.path.getmtime(path) > since
        except OSError as error:
            raise ResourceError(f"'{path}' cannot be read: {error.strerror}") from None

    def _keys(self, paths: Sequence[str], name: str) -> Iterator[str]:
        """Yield the names under which a file may be in memory, the best first."""
        yield from paths
        yield name
        slashed = posixpath.normpath(name.replace("\\", "/"))
        yield slashed
        bare = posixpath.basename(slashed)
        yield bare
        alike = self._alike(bare)
        if len(alike) == 1:
            yield alike[0]

    def _alike(self, bare: str) -> list[str]:
        """Return the names in memory that end in this one; case-insensitively, if none matches
        exactly."""
        if self._bare is None:
            self._bare = {}
            for key in self.files:
                self._bare.setdefault(posixpath.basename(key).casefold(), []).append(key)
        names = self._bare.get(bare.casefold(), [])
        return [key for key in names if posixpath.basename(key) == bare] or names

    def _missing(self, name: str) -> str:
        """Return a message with the locations searched for a file, and a hint."""
        scheme = _URI.match(name) or _URI.match(self.folder)
        path = name if _URI.match(name) else join_uri(self.folder, name)
        places = [f"the {len(self.files)} files in memory"] if len(self.files) else []
        places.append(f"'{path}'")
        message = f"cannot find '{name}'; looked in {' and '.join(places)}"
        alike = self._alike(posixpath.basename(name.replace("\\", "/")))
        if len(alike) > 1:
            return f"{message}; {' and '.join(map(repr, alike))} are in memory: give the path"
        if isinstance(self.files, ArchiveFiles):
            return (
                f"cannot find '{name}' in the archive '{self.files.path}', which must have all "
                "files of its model"
            )
        if scheme and not provider_of(path):
            remedy = "jaxsim.extend.register_provider adds one"
            return f"{message}; no provider is registered for '{scheme[1]}:', {remedy}"
        return f"{message}, which is a folder" if os.path.isdir(path) else message


def join_uri(folder: str, name: str) -> str:
    """Return a name relative to a folder, either of which may be a URI; `..` and `.` are resolved.

    A relative name cannot leave the host of a URI, or an archive: surplus `..` are dropped, as in a
    browser. The part after `::`, as in `zip://arm::/data/robots.zip`, is the archive, and is
    unchanged.
    """
    if provider_of(name):
        return name
    if not provider_of(folder):
        return os.path.normpath(os.path.join(folder, name))
    inside, mark, archive = folder.partition("::")
    root = (_ARCHIVE_ROOT if mark else _ROOT).match(inside)
    assert root is not None, "a provider's name has a scheme"
    start = root[0] + "/" if root[1] and not root[0].endswith("/") else root[0]
    # below "/", so that names cannot lead above it
    path = posixpath.normpath(posixpath.join("/", inside[root.end() :], name.replace("\\", "/")))
    return f"{start}{path[1:]}{mark}{archive}"


def is_uri(name: str) -> bool:
    """Return whether a name has the form of a URI, whether or not a provider reads it."""
    return _URI.match(name) is not None


def folder_name(path: str) -> str:
    """Return the folder of a path or a URI, to which names in the file are relative."""
    return folder_of(path) if provider_of(path) else os.path.dirname(path)


def _check_contents(key: str, data: object) -> bytes:
    if isinstance(data, bytes):
        return data
    if isinstance(data, bytearray | memoryview):
        return bytes(data)
    kind = type(data).__name__
    raise ResourceError(f"the file '{key}' in memory is of type {kind}; give its bytes")


def _read_from_disk(path: str) -> bytes | None:
    if "\0" in path:
        raise ResourceError(f"{path!r} cannot be read: embedded null byte")
    try:
        if not os.path.isfile(path):
            slashed = path.replace("\\", "/")
            if slashed == path or not os.path.isfile(slashed):
                return None
            path = slashed
        with open(path, "rb") as stream:
            return stream.read()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ResourceError(f"'{path}' cannot be read: {reason}") from None
