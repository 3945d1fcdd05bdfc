"""A real headless browser, driven as by a user: with mouse and keys, observed by screenshots.

The protocol is that of Chromium's developer tools (DevTools protocol), over a socket.
"""

import base64
import io
import json
import shutil
import subprocess
import time
import urllib.request
from pathlib import Path

import numpy as np
import pytest

connect = pytest.importorskip(
    "websockets.sync.client", reason="the extra view is not installed"
).connect

WIDTH, HEIGHT = 900, 600
FLAGS = """
--headless=new --no-sandbox --use-gl=angle --use-angle=swiftshader --enable-unsafe-swiftshader
--disable-background-networking --disable-component-update --disable-sync --no-first-run
--disable-quic --hide-scrollbars --remote-debugging-port=0
""".split()
LATE = 180.0  # longest time that a slow machine may take [s]
FIELD = """(() => {
  const label = [...document.querySelectorAll("label")].find(x => x.innerText == %s);
  let at = label && document.getElementById(label.htmlFor);
  if (at && at.tagName != "INPUT") at = at.parentElement.querySelector("input:not([type=hidden])");
  if (!at) return null;
  at.scrollIntoView({block: "nearest"});
  const b = at.getBoundingClientRect();
  if (%s) { at.focus(); at.select(); }
  return b.width ? [b.x + b.width / 2, b.y + b.height / 2, at.value] : null;
})()"""
PLACE = """(() => {
  // what is written is in the innermost element
  const at = [...document.querySelectorAll(%s)].filter(
    x => x.innerText.trim() == %s && x.getBoundingClientRect().width).pop();
  if (!at) return null;
  at.scrollIntoView({block: "nearest"});
  const b = at.getBoundingClientRect();
  return b.width ? [b.x + b.width / 2, b.y + b.height / 2] : null;
})()"""
CTRL = 2  # the modifier of mouse events
CLICKABLE = "button, [role=option], p, div, span"


def program() -> str:
    """Return the path of the browser; skip the test without one."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("chromium is not installed")
    return found


class NotNow(Exception):
    """The browser refuses: a page is being loaded."""


def wait(until, why: str = ""):
    """Waits until something is so, and returns it."""

    def now():
        try:
            return until()
        except NotNow:
            return None

    end = time.monotonic() + LATE
    while not (found := now()):
        assert time.monotonic() < end, f"waited in vain {why}"
        time.sleep(0.3)
    return found


class Browser:
    """A browser with one page; a context manager.

    Args:
      folder: where it keeps its files.
      address: the page.

    Attributes:
      asked: addresses that the page has asked a network for.
      errors: what went wrong in its programs.
    """

    def __init__(self, folder: Path, address: str):
        command = [program(), *FLAGS, f"--user-data-dir={folder}", "about:blank"]
        quiet = subprocess.DEVNULL
        self._process = subprocess.Popen(command, stdout=quiet, stderr=quiet)
        self.asked: list[str] = []
        self.errors: list[str] = []
        self._number = 0
        try:
            self._socket = connect(self._door(folder), max_size=None, ping_interval=None)
            for domain in ("Page", "Runtime", "Network"):
                self.call(f"{domain}.enable")
            size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
            self.call("Emulation.setDeviceMetricsOverride", **size)
            self.call("Page.navigate", url=address)
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        self._process.wait(timeout=30)

    @staticmethod
    def _door(folder: Path) -> str:
        """Return the address at which the page takes commands."""
        told = folder / "DevToolsActivePort"
        wait(lambda: told.exists() and told.read_text().count("\n"), "for the browser")
        port = told.read_text().split()[0]

        def pages() -> list[str]:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/json") as answer:
                found = json.load(answer)
            return [x["webSocketDebuggerUrl"] for x in found if x["type"] == "page"]

        return wait(pages, "for a page")[0]

    def call(self, method: str, **params) -> dict:
        """Has the browser do something."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv(timeout=LATE))
            if message.get("id") == self._number:
                if "error" in message:
                    raise NotNow(message["error"])
                return message["result"]
            if message.get("method") == "Network.requestWillBeSent":
                self.asked.append(message["params"]["request"]["url"])
            elif message.get("method") == "Runtime.exceptionThrown":
                self.errors.append(str(message["params"]["exceptionDetails"]))

    def ask(self, script: str):
        """The value of a script in the page."""
        found = self.call("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def text(self) -> str:
        """All that is written on the page."""
        return self.ask("document.body ? document.body.innerText : ''")

    def picture(self) -> np.ndarray:
        """Return a screenshot, (HEIGHT, WIDTH, 3) bytes."""
        image = pytest.importorskip("PIL.Image", reason="the extra view is not installed")
        data = base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"])
        return np.asarray(image.open(io.BytesIO(data)).convert("RGB"))

    def mouse(self, kind: str, x: float, y: float, **more) -> None:
        """One event of the mouse: `Moved`, `Pressed` or `Released`."""
        self.call("Input.dispatchMouseEvent", type=f"mouse{kind}", x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        """Click at a position."""
        self.mouse("Moved", x, y)
        for kind in ("Pressed", "Released"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def drag(self, start: np.ndarray, end: np.ndarray) -> None:
        """Move the mouse from one position to another, with Ctrl and the left button held."""
        self.mouse("Moved", *start, modifiers=CTRL)
        self.mouse("Pressed", *start, button="left", buttons=1, clickCount=1, modifiers=CTRL)
        for part in np.linspace(0, 1, 6):
            here = start + part * (end - start)
            self.mouse("Moved", *here, button="left", buttons=1, modifiers=CTRL)

    def drop(self, place: np.ndarray) -> None:
        """Lets go of the left button."""
        self.mouse("Released", *place, button="left", clickCount=1, modifiers=CTRL)

    def key(self, name: str, code: str, number: int) -> None:
        """Press and release a key, given by `key`, `code` and `keyCode` of DOM events."""
        same = {"key": name, "code": code, "windowsVirtualKeyCode": number}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, **same)

    def press(self, name: str) -> None:
        """Clicks on a button, the head of a folder or an option, by what is written on it."""
        place = PLACE % (json.dumps(CLICKABLE), json.dumps(name))
        self.click(*wait(lambda: self.at_rest(place), f"for '{name}'")[:2])

    def value(self, label: str) -> str:
        """Return the content of the field with a label."""
        script = FIELD % (json.dumps(label), "false")
        return wait(lambda: self.ask(script), f"for '{label}'")[2]

    def tick(self, label: str) -> None:
        """Clicks on the field with a label."""
        script = FIELD % (json.dumps(label), "false")
        self.click(*wait(lambda: self.at_rest(script), f"for '{label}'")[:2])

    def at_rest(self, script: str):
        """Return the result of a script once it is stable: folders open slowly."""
        found = self.ask(script)
        time.sleep(1)
        return found if found == self.ask(script) else None

    def choose(self, label: str, option: str) -> None:
        """Chooses from a list, which a page that is being laid out may close again."""
        place = PLACE % (json.dumps("[role=option]"), json.dumps(option))

        def opened():
            self.tick(label)
            time.sleep(1)
            return self.ask(place)

        self.click(*wait(opened, f"for '{option}'"))

    def fill(self, label: str, value: str) -> None:
        """Writes a number into the field of a slider."""
        wait(lambda: self.ask(FIELD % (json.dumps(label), "true")), f"for '{label}'")
        self.call("Input.insertText", text=value)


def red(picture: np.ndarray) -> np.ndarray | None:
    """The middle of what is red, from the left and from above; None: there is too little."""
    r, g, b = np.moveaxis(picture.astype(int), -1, 0)
    y, x = np.nonzero((r > 100) & (r > 3 * g) & (r > 3 * b))
    return np.array([x.mean(), y.mean()]) if len(x) > 150 else None
