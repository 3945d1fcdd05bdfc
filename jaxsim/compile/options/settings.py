"""The pass that reads the merged `<compiler>` sections of a model."""

from __future__ import annotations

from jaxsim.compile.context import Compilation
from jaxsim.compile.settings import Settings
from jaxsim.compile.step import declare_pass


@declare_pass(gives="settings")
def read_settings(c: Compilation) -> None:
    """Read the `<compiler>` sections into `c.settings`."""
    given = c.spec.settings("compiler")
    if given.get("coordinate") == "global":
        c.fault(c.spec.author("compiler", "coordinate"), "coordinate='global' is gone; use 'local'")
    c.settings = Settings.of(given)
