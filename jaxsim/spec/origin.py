"""The model in which an attached element was written, which defines its units and file names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from jaxsim.mjcf.element import AttrValue


@dataclass(frozen=True, eq=False)
class Origin:
    """Properties of their own model that attached elements keep.

    Attributes:
      compiler: attributes of its `<compiler>` sections, merged; unset ones are absent.
      path: its file, relative to which its asset files are searched.
      files: its files in memory.
      prefix, suffix: added to its names by the attachment.
    """

    compiler: Mapping[str, AttrValue]
    path: str = ""
    files: Mapping[str, bytes] | None = None
    prefix: str = ""
    suffix: str = ""

    def name(self, own: str) -> str:
        """Return the present name of an object that is called `own` in that model."""
        return f"{self.prefix}{own}{self.suffix}"

    def nested_in(self, outer: Origin) -> Origin:
        """Return this origin in a model that is itself attached."""
        return replace(self, prefix=outer.prefix + self.prefix, suffix=self.suffix + outer.suffix)
