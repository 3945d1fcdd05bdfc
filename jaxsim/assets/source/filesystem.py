"""Read files from the file systems of fsspec: zip, s3, gs, http, github, memory and many more.

    register_filesystems("zip", "s3", anon=True)
    load_model("s3://robots/arm/arm.xml")
    load_model("zip://arm/arm.xml::/data/robots.zip")

Only registered file systems are readable: an untrusted model cannot open other addresses. Needs the
extra `fsspec`, and for some file systems a package that fsspec names.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Any

from jaxsim.assets.source.provider import register_provider
from jaxsim.optional import require


def register_filesystems(*protocols: str, **options: Any) -> None:
    """Register providers that read by fsspec.

    Args:
      protocols: names of fsspec file systems, which are the schemes of their URIs.
      options: passed to fsspec when a file is opened, such as `anon=True` for `s3`.

    Raises:
      MissingExtra: the extra `fsspec` is not installed.
      ValueError: fsspec does not know a protocol, or it has another provider.
    """
    known = _fsspec().available_protocols()
    for protocol in protocols:
        if protocol not in known:
            names = ", ".join(sorted(known))
            raise ValueError(f"protocols: fsspec knows no '{protocol}'; it knows {names}")
    for protocol in protocols:
        register_provider(
            protocol,
            open=_Open(options),
            read=_read,
            close=_close_handle_quietly,
            modified=_Modified(options),
        )


# Classes rather than closures, so that a repeated registration compares equal.
@dataclass(frozen=True)
class _Open:
    """Callable that opens a file: the fsspec file, which closes what it depends on, and its
    stream."""

    options: dict[str, Any]

    def __call__(self, name: str) -> tuple[Any, Any]:
        file = _fsspec().open(name, "rb", **self.options)
        return file, file.open()


def _read(handle: tuple[Any, Any]) -> bytes:
    return handle[1].read()


def _close_handle_quietly(handle: tuple[Any, Any]) -> None:
    handle[1].close()
    handle[0].close()


@dataclass(frozen=True)
class _Modified:
    """Callable that returns whether a file has changed since a time."""

    options: dict[str, Any]

    def __call__(self, name: str, since: float) -> bool:
        system, path = _fsspec().url_to_fs(name, **self.options)
        return system.modified(path).timestamp() > since


def _fsspec() -> ModuleType:
    return require("fsspec", "fsspec")
