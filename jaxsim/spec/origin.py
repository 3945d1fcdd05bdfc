"""The model that an attached element was written in: what its numbers and file names mean."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from jaxsim.mjcf.element import Value


@dataclass(frozen=True, eq=False)
class Origin:
    """What attached elements keep of their own model.

    Attributes:
      compiler: attributes of its `<compiler>` sections, merged; what nobody wrote is absent.
      path: its file, from whose folder its asset files are looked up.
      files: its files in memory.
      prefix, suffix: what its names have got around them.
    """

    compiler: Mapping[str, Value]
    path: str = ""
    files: Mapping[str, bytes] | None = None
    prefix: str = ""
    suffix: str = ""

    def name(self, own: str) -> str:
        """What is called `own` in that model, as it is called here."""
        return f"{self.prefix}{own}{self.suffix}"

    def within(self, outer: Origin) -> Origin:
        """Return this origin in a model that is itself attached."""
        return replace(self, prefix=outer.prefix + self.prefix, suffix=self.suffix + outer.suffix)
