"""Somebody who visits a page: the protocol of viser, without a browser."""

import time
from typing import Any

import numpy as np
import pytest

MISSING = "the extra view is not installed"
viser = pytest.importorskip("viser", reason=MISSING)
msgspec = pytest.importorskip("msgspec", reason=MISSING)
zstandard = pytest.importorskip("zstandard", reason=MISSING)
connect = pytest.importorskip("websockets.sync.client", reason=MISSING).connect

CAMERA = {
    "type": "ViewerCameraMessage",
    "wxyz": (1.0, 0.0, 0.0, 0.0),
    "position": (3.0, 3.0, 3.0),
    "fov": 0.8,
    "near": 0.01,
    "far": 100.0,
    "image_height": 600,
    "image_width": 800,
    "look_at": (0.0, 0.0, 0.0),
    "up_direction": (0.0, 0.0, 1.0),
}
LATE = 60.0  # longest time that something is waited for [s]


class Visitor:
    """A connection to a page; a context manager.

    Attributes:
      nodes: what is in the scene, by name: the properties that it was made with and their changes.
      controls: what is in the panel, by label or name: (uuid, properties).
      camera: what the camera of the page was told last, but for where it starts.
    """

    def __init__(self, server: Any):
        url = f"ws://127.0.0.1:{server.get_port()}/{server.guard.token}"
        protocol = f"viser-v{viser.__version__}"
        self._socket = connect(url, subprotocols=[protocol], max_size=None)
        self.nodes: dict[str, dict] = {}
        self.controls: dict[str, dict] = {}
        self.camera: dict[str, Any] = {}
        self._send(CAMERA)

    def __enter__(self) -> "Visitor":
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def wait(self, until) -> None:
        """Listens until something is so."""
        end = time.monotonic() + LATE
        while not until():
            assert time.monotonic() < end, "waited in vain"
            try:
                data = self._socket.recv(timeout=0.1)
            except TimeoutError:
                continue
            for message in _messages(data):
                self._hear(message)

    def set(self, label: str, value: Any) -> None:
        """Moves a slider, ticks a box, chooses or presses."""
        self.wait(lambda: any(c["label"] == label for c in self.controls.values()))
        uuid = next(u for u, c in self.controls.items() if c["label"] == label)
        self._send({"type": "GuiUpdateMessage", "uuid": uuid, "updates": {"value": value}})

    def press(self, label: str) -> None:
        """Presses a button."""
        self.set(label, True)

    def text(self) -> str:
        """All that is written in the panel."""
        return "\n".join(str(c["_markdown"]) for c in self.controls.values() if "_markdown" in c)

    def send(self, message: dict) -> None:
        """Send any other message."""
        self._send(message)

    def _send(self, message: dict) -> None:
        self._socket.send(msgspec.msgpack.encode(message))

    def _hear(self, message: dict) -> None:
        kind, props = message["type"], message.get("props")
        if kind == "RemoveSceneNodeMessage":
            self.nodes.pop(message["name"], None)
        elif kind == "GuiRemoveMessage":
            self.controls.pop(message["uuid"], None)
        elif kind == "GuiUpdateMessage":
            self.controls.get(message["uuid"], {}).update(message["updates"])
        elif kind == "SceneNodeUpdateMessage":
            self.nodes.setdefault(message["name"], {}).update(message["updates"])
        elif kind in ("SetPositionMessage", "SetOrientationMessage"):
            self.nodes.setdefault(message["name"], {}).update(message)
        elif kind == "SetSceneNodeVisibilityMessage":
            self.nodes.setdefault(message["name"], {})["visible"] = message["visible"]
        elif kind.startswith("SetCamera") and not message.get("initial", True):
            self.camera[kind] = message
        elif props is not None and "uuid" in message:
            self.controls[message["uuid"]] = {"label": None, **props}
        elif props is not None and "name" in message:
            self.nodes[message["name"]] = dict(props)


def _messages(data: bytes) -> list[dict]:
    """The messages of a packet, with their arrays."""
    whole, short = (int.from_bytes(data[i : i + 8], "little") for i in (0, 8))
    text = zstandard.ZstdDecompressor().decompress(data[16 : 16 + short], max_output_size=whole)
    packet = msgspec.msgpack.decode(text)
    buffers, place = [], 16 + short
    for length in packet["binaryBufferLengths"]:
        place += -place % 8
        buffers.append(data[place : place + length])
        place += length
    return [_with_arrays(m, buffers) for m in packet["messages"]]


def _with_arrays(value: Any, buffers: list[bytes]) -> Any:
    """Return a value with arrays in place of the indices of buffers."""
    if isinstance(value, dict):
        if "__binary_index" in value:
            return np.frombuffer(buffers[value["__binary_index"]], value["dtype"])
        return {k: _with_arrays(v, buffers) for k, v in value.items()}
    if isinstance(value, list):
        return [_with_arrays(v, buffers) for v in value]
    return value
