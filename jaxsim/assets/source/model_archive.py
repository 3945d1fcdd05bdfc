"""Model archives: a model and all its files in one zip file, `.mjz` by convention (MuJoCo's MJZ).

The files of an archive are files in memory whose names begin with the path of the archive, as if it
were a folder: `arm.mjz/model.xml`, `arm.mjz/meshes/arm.obj`. A model in an archive can access only
those files, so that an untrusted archive opens no other file on the disk.
"""

from __future__ import annotations

import io
import os
import posixpath
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from jaxsim.assets.source.archive import Archive
from jaxsim.assets.source.provider import provider_of
from jaxsim.errors import AssetError

_ARCHIVE_EXTENSIONS = (".mjz", ".zip")
ARCHIVE_MODEL = "model.xml"  # the model in an archive written by us
_ZIP = (b"PK\x03\x04", b"PK\x05\x06")  # signatures of an archive, and of an empty one
_MAX_LISTED_FILES = 5  # number of files of an archive that a message lists


class ArchiveFiles(Mapping[str, bytes]):
    """The files that a model in an archive may refer to.

    Args:
      members: contents of the files of the archive, by path.
      given: contents of files in memory by name, searched before those of the archive.
      path: the archive, for messages.
    """

    def __init__(self, members: Mapping[str, bytes], given: Mapping[str, bytes], path: str):
        self.members, self.given, self.path = members, given, path

    def __getitem__(self, name: str) -> bytes:
        return self.given[name] if name in self.given else self.members[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.given
        yield from (name for name in self.members if name not in self.given)

    def __len__(self) -> int:
        return sum(1 for _ in self)


class OpenedArchive(NamedTuple):
    """The model of an archive: the path and contents of its file, and the files it may refer to."""

    path: str
    data: bytes
    files: ArchiveFiles


def is_archive(path: str, data: bytes) -> bool:
    """Return whether a model file is an archive, by its signature or, if damaged, its extension."""
    return data[:4] in _ZIP or (
        path.lower().endswith(_ARCHIVE_EXTENSIONS) and data.lstrip()[:1] != b"<"
    )


def open_archive(path: str, data: bytes, given: Mapping[str, bytes] | None = None) -> OpenedArchive:
    """Return the model in an archive.

    As in MuJoCo, the model is `model.xml`, `<stem>.xml`, `<stem>/<stem>.xml` or `<stem>/model.xml`
    in `<stem>.mjz`; otherwise the only model file in it.

    Args:
      path: path or URI of the archive.
      data: its contents.
      given: files in memory, searched before those of the archive.

    Raises:
      AssetError: it is damaged, too large, has a name that leads out of it, no model, or several.
    """
    with Archive(io.BytesIO(data), path) as archive:
        files = archive.unpack()
    root = _find_model_member(path, files)
    members = {_member_path(path, name): contents for name, contents in files.items()}
    return OpenedArchive(
        _member_path(path, root), files[root], ArchiveFiles(members, given or {}, path)
    )


def _find_model_member(path: str, files: Mapping[str, bytes]) -> str:
    """Return the name of the member that is the model."""
    base = posixpath.basename(path.replace("\\", "/").partition("::")[0])
    stem = base.rpartition(".")[0] or base
    for name in (ARCHIVE_MODEL, f"{stem}.xml", f"{stem}/{stem}.xml", f"{stem}/{ARCHIVE_MODEL}"):
        if name in files:
            return name
    for extension in (".xml", ".urdf"):
        found = sorted(name for name in files if name.lower().endswith(extension))
        if len(found) == 1:
            return found[0]
        if found:
            raise AssetError(
                f"the archive has several model files, {_list_names(found)}, and none is "
                f"'{ARCHIVE_MODEL}'; name "
                "the model so, or load it by name: vfs = jaxsim.Vfs(); vfs.add_archive(path); "
                f"load_model({found[0]!r}, vfs)"
            )
    has = _list_names(sorted(files)) if files else "no file"
    raise AssetError(
        f"the archive has no model file, it has {has}; put the model in as '{ARCHIVE_MODEL}'"
    )


def _list_names(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_LISTED_FILES} more" if len(names) > _MAX_LISTED_FILES else ""
    return ", ".join(map(repr, names[:_MAX_LISTED_FILES])) + more


def _member_path(path: str, name: str) -> str:
    """Return the path of a member; for a nested archive it is inserted before the `::`."""
    inside, mark, outer = path.partition("::") if provider_of(path) else (path, "", "")
    if not provider_of(path):
        inside = os.path.normpath(path)
    return f"{posixpath.join(inside, name)}{mark}{outer}"
