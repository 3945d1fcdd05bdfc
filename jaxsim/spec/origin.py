"""The model that an attached element was written in: what its numbers and file names mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jaxsim.mjcf.element import Value


@dataclass(frozen=True, eq=False)
class Origin:
    """What attached elements keep of their own model.

    Attributes:
      compiler: attributes of its `<compiler>` sections, merged; what nobody wrote is absent.
      path: its file, from whose folder its asset files are looked up.
      files: its files in memory.
    """

    compiler: Mapping[str, Value]
    path: str = ""
    files: Mapping[str, bytes] | None = None
