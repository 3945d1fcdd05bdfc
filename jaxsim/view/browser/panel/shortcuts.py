"""Keyboard shortcuts of a page, and the help sheet that lists them.

They are commands of viser: the page compares the keys and sends the id of a command, and its
command palette (Ctrl-K) lists them as well. viser itself moves the camera with W, A, S, D, Q and E.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxsim.escape import markdown

_KEY_NAMES = {
    "space": "Space",
    "backspace": "Backspace",
    "arrowright": "Right arrow",
    "arrowleft": "Left arrow",
    "arrowup": "Up arrow",
    "arrowdown": "Down arrow",
}
HELP_KEY = "H"
_CAMERA_ROWS = (
    ("left, right button", "rotate, move the camera; the wheel zooms"),
    ("W A S D, Q E", "move the camera"),
    ("click", "describe the object under the mouse"),
    ("Ctrl (Cmd) and drag", "pull a body of a running model; the right button rotates it"),
)


class Shortcut(NamedTuple):
    """A key of a viser hotkey, and what it does."""

    key: str
    does: str


class Shortcuts:
    """Keyboard shortcuts of all pages of a server.

    Attributes:
      keys: the shortcuts, in the order in which they were added.
    """

    def __init__(self, server: Any):
        self._server = server
        self.keys: list[Shortcut] = []
        self._sheets: dict[int, Any] = {}  # open help sheet of each page
        self.add(HELP_KEY, "show or hide this list", lambda event: self.help(event.client))

    def add(self, key: str, does: str, act: Callable[[Any], None]) -> None:
        """Add a shortcut.

        Args:
          key: key of a viser hotkey, pressed without modifiers.
          does: description, in the imperative.
          act: called with viser's event, which has the `client` that sent it.

        Raises:
          ValueError: the key is in use.
        """
        if any(key == known.key for known in self.keys):
            raise ValueError(f"add: key: {key} is in use")
        self.keys.append(Shortcut(key, does))
        command = self._server.gui.add_command(does[0].upper() + does[1:], hotkey=key)
        command.on_trigger(act)

    def help(self, client: Any) -> None:
        """Show the help sheet on a page, or hide it."""
        open_sheet = self._sheets.pop(client.client_id, None)
        if open_sheet is not None and not open_sheet.closed:
            open_sheet.close()
            return
        sheet = self._sheets[client.client_id] = client.gui.add_modal("Keyboard and mouse")
        with sheet:
            client.gui.add_markdown(self.table())
            client.gui.add_button("Close").on_click(lambda _: sheet.closed or sheet.close())

    def table(self) -> str:
        """Return the shortcuts as a table in Markdown."""
        rows = [(_KEY_NAMES.get(k.key, k.key), k.does) for k in self.keys]
        lines = [f"| **{markdown(key)}** | {markdown(does)} |" for key, does in rows]
        lines += [f"| {markdown(where)} | {markdown(does)} |" for where, does in _CAMERA_ROWS]
        return "\n".join(["| key or mouse | |", "| --- | --- |", *lines])
