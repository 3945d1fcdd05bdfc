"""Registry of providers, which read files named by a URI.

A provider has a prefix, the scheme of the URIs that it reads: one for `http` reads
`http://host/arm.obj` and `HTTP:arm.obj`, but neither `https://host/arm.obj` nor `http/arm.obj`.
Once registered it is used for every file that a model names: the model itself, files it includes or
attaches, and its assets. Built in: `data:`, files contained in their own name.

    register_provider("http", open=urllib.request.urlopen)
"""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from jaxsim.assets.source import data_uri
from jaxsim.errors import LocatedProblem, ModelError, SourceLocation

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*")  # RFC 3986, section 3.1


class ResourceError(Exception):
    """A file that cannot be read; the message gives the reason, and where it was searched."""


@dataclass(frozen=True)
class Provider:
    """Functions that read the files of one scheme.

    Attributes:
      prefix: the scheme, in lower case and without its colon.
      open: name -> handle; the name is the whole URI, as written in the model. If there is no such
        file it raises, or returns None or False.
      read: handle -> contents.
      close: handle -> anything; called once for every handle, also if reading failed.
      getdir: name -> the folder to which names in the file are relative; None: the name up to its
        last slash, or the last one before `::` if it is inside an archive.
      modified: name, time in seconds since the epoch -> whether the file has changed since; None:
        it never changes.
    """

    prefix: str
    open: Callable[[str], Any]
    read: Callable[[Any], bytes]
    close: Callable[[Any], Any]
    getdir: Callable[[str], str] | None = None
    modified: Callable[[str, float], bool] | None = None

    def contents(self, name: str) -> bytes:
        """Return the bytes of a file.

        Raises:
          ResourceError: the provider has no such file, or failed.
        """
        handle = self._call("open", self.open, name, name)
        if handle is None or handle is False:
            raise ResourceError(f"the provider of '{self.prefix}:' has no '{display_name(name)}'")
        try:
            data = self._call("read", self.read, name, handle)
        except ResourceError:
            with contextlib.suppress(ResourceError):  # the first failure is the cause
                self._call("close", self.close, name, handle)
            raise
        self._call("close", self.close, name, handle)
        if not isinstance(data, bytes | bytearray | memoryview):
            raise ResourceError(self._wrong_result("read", name, data, "bytes"))
        return bytes(data)

    def changed(self, name: str, since: float) -> bool:
        """Return whether a file has changed after a time, in seconds since the epoch.

        Raises:
          ResourceError: the provider failed.
        """
        if self.modified is None:
            return False
        answer = self._call("ask for changes of", self.modified, name, name, since)
        # a flag of any library, as numpy's; not None, which a function without `return` gives
        if answer is None or isinstance(answer, str | bytes):
            raise ResourceError(self._wrong_result("modified", name, answer, "True or False"))
        return bool(answer)

    def folder(self, name: str) -> str:
        """Return the folder to which names in a file are relative.

        Raises:
          ModelError: the provider failed; its location is the file.
        """
        given = None
        try:
            if self.getdir is not None:
                given = self._call("find the folder of", self.getdir, name, name)
            if given is not None:
                if not isinstance(given, str | os.PathLike) or isinstance(os.fspath(given), bytes):
                    raise ResourceError(self._wrong_result("getdir", name, given, "str or None"))
                return os.fspath(given)
        except ResourceError as error:
            location = SourceLocation(display_name(name), None)
            raise ModelError(LocatedProblem(location, str(error))) from error
        inside, mark, archive = name.partition("::")
        folder = inside[: inside.rfind("/") + 1] or f"{self.prefix}:"
        return f"{folder}{mark}{archive}"

    def _call(self, what: str, function: Callable[..., Any], name: str, *args: Any) -> Any:
        """Call the provider's function, and convert its exceptions."""
        try:
            return function(*args)
        except Exception as error:
            kind = type(error).__name__
            reason = f"{str(error) or kind} ({kind} in the provider of '{self.prefix}:')"
            raise ResourceError(f"cannot {what} '{display_name(name)}': {reason}") from error

    def _wrong_result(self, hook: str, name: str, result: Any, expected: str) -> str:
        """Return the message for a function that returned a value of a wrong type."""
        return (
            f"the provider of '{self.prefix}:' gave {type(result).__name__} for "
            f"'{display_name(name)}', expected {expected}; correct its function '{hook}'"
        )


_providers: dict[str, Provider] = {}


def register_provider(
    prefix: str,
    *,
    open: Callable[[str], Any],
    read: Callable[[Any], bytes] | None = None,
    close: Callable[[Any], Any] | None = None,
    getdir: Callable[[str], str] | None = None,
    modified: Callable[[str, float], bool] | None = None,
) -> None:
    """Register a provider of files, for all models loaded from now on.

    Args:
      prefix: scheme of the URIs, without the colon; case-insensitive.
      open: name -> handle, or the bytes themselves; raises if there is no such file.
      read: handle -> bytes; None: `handle.read()`, or the handle if it is bytes.
      close: handle -> anything; None: `handle.close()`, if it exists.
      getdir: name -> folder; None, or a folder that is None: the name up to its last slash.
      modified: name, seconds since the epoch -> whether the file has changed; None: never.

    Raises:
      ValueError: the prefix is not the scheme of a URI, or has another provider; or what should be
        a function is none.
    """
    callbacks = {"open": open, "read": read, "close": close, "getdir": getdir, "modified": modified}
    for name, function in callbacks.items():
        if not callable(function) and (function is not None or name == "open"):
            raise ValueError(f"{name}: expected a function, got {type(function).__name__}")
    if not isinstance(prefix, str) or not _SCHEME.fullmatch(prefix):
        rule = "a letter, then letters, digits, '+', '-' or '.', without the colon"
        raise ValueError(f"prefix: '{prefix}' is not the scheme of a URI; it is {rule}")
    provider = Provider(
        prefix.lower(), open, read or _read_handle, close or _close_handle, getdir, modified
    )
    # registering the same provider again, as in a reloaded module, has no effect
    if _providers.setdefault(provider.prefix, provider) != provider:
        remedy = "unregister_provider removes it"
        raise ValueError(f"prefix: '{provider.prefix}' has another provider already; {remedy}")


def unregister_provider(prefix: str) -> None:
    """Unregister a provider.

    Raises:
      KeyError: there is none for this prefix.
    """
    del _providers[prefix.lower()]


def provider_of(name: str) -> Provider | None:
    """Return the provider that reads a name, or None if it is a path."""
    scheme, colon, _ = name.partition(":")
    return _providers.get(scheme.lower()) if colon else None


def folder_of(name: str) -> str:
    """Return the folder to which names in a file of a provider are relative."""
    provider = provider_of(name)
    assert provider is not None
    return provider.folder(name)


def _read_handle(handle: Any) -> Any:
    """Return the contents of a handle: bytes themselves, other handles are read."""
    if isinstance(handle, bytes | bytearray | memoryview):
        return handle
    if not callable(getattr(handle, "read", None)):
        kind = type(handle).__name__
        raise TypeError(
            f"open returned {kind}, which cannot be read; return bytes or an open binary file, or "
            "register the provider with read="
        )
    return handle.read()


def _close_handle(handle: Any) -> None:
    """Close a handle, if it can be closed."""
    close = getattr(handle, "close", None)
    if callable(close):
        close()


def display_name(name: str) -> str:
    """Return a name for a message, shortened; that of a `data:` URI may be the whole file."""
    return name if len(name) <= 120 else f"{name[:100]}... ({len(name)} characters)"


register_provider(
    "data", open=data_uri.decode, read=bytes, close=lambda data: None, getdir=lambda name: ""
)
