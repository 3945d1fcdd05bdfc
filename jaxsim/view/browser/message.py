"""Validate messages from a page to its server.

viser builds a message from anything it receives and calls handlers with it, including those of this
package. Here a message must first be of a kind that pages send, with fields of the declared types
and finite numbers; a change of a control must set its value, to one that the control allows.
"""

import math
import typing
from collections.abc import Callable
from typing import Any

from jaxsim.cache import bounded_cache
from jaxsim.optional import require

_MAX_PAGE_COORDINATE = 1e9  # limit on coordinates
MAX_TEXT = 1_000_000  # limit on the characters of a text
MAX_NODES = 100_000  # limit on the parts of a message
# Messages that pages send; share links are not allowed.
_SENT_MESSAGES = """
ViewerCameraMessage SceneNodeClickMessage SceneNodeDragMessage ScenePointerMessage
TransformControlsDragStartMessage TransformControlsUpdateMessage TransformControlsDragEndMessage
GuiUpdateMessage GuiButtonHoldMessage GuiFormSubmitMessage GuiFormDirtyMessage
CommandTriggerMessage FileTransferStartUpload FileTransferPart GetRenderResponseMessage
""".split()


class Inbox:
    """Reader of messages.

    Attributes:
      server: server of the page; None during startup.
    """

    def __init__(self) -> None:
        self.server: Any = None

    def read(self, raw: Any) -> Any:
        """Return the message of viser; None if it requests something impossible, and is dropped.

        Raises:
          ValueError: it is no message that a page sends.
        """
        if not isinstance(raw, bytes):
            raise ValueError("expected bytes")
        msgspec = require("msgspec", "view")
        try:
            mapping = msgspec.msgpack.decode(raw)
            kind = mapping.pop("type", None) if isinstance(mapping, dict) else None
            cls = _classes().get(kind) if isinstance(kind, str) else None
            if cls is None:
                raise ValueError("no page sends this")
            message = msgspec.convert(_with_integers(cls, mapping), cls)
        except (msgspec.MsgspecError, RecursionError, TypeError, OverflowError) as error:
            raise ValueError(f"not a message: {type(error).__name__}") from None
        if self.server is None or not _is_sound(mapping):
            return None
        check = CHECKS.get(type(message).__name__)
        return message if check is None or check(self.server, message) else None


@bounded_cache(1)
def _classes() -> dict[str, type]:
    """Return the classes of the messages that pages send, by name."""
    home = require("viser._messages", "view")
    return {name: getattr(home, name) for name in _SENT_MESSAGES if hasattr(home, name)}


def _with_integers(cls: type, mapping: dict[str, Any]) -> dict[str, Any]:
    """Return the fields of a message, with integers where they are declared: pages send only
    floats."""
    hints = typing.get_type_hints(cls)
    return {
        name: int(value)
        if isinstance(value, float)
        and hints.get(name) in (int, int | None)
        and math.isfinite(value)
        else value
        for name, value in mapping.items()
    }


def _is_sound(value: Any) -> bool:
    """Return whether all numbers in a message are finite and bounded, and texts of limited
    length."""
    stack, count = [value], 0
    while stack:
        part = stack.pop()
        count += 1
        if count > MAX_NODES:
            return False
        if isinstance(part, dict):
            stack += [*part, *part.values()]
        elif isinstance(part, list):
            stack += part
        elif isinstance(part, str):
            if len(part) > MAX_TEXT:
                return False
        elif isinstance(part, int | float) and not abs(part) <= _MAX_PAGE_COORDINATE:
            return False
    return True


def _is_camera(_: Any, message: Any) -> bool:
    return (
        math.hypot(*message.wxyz) > 0.1
        and 0 < message.fov < math.pi
        and 0 < message.near < message.far
        and message.image_height > 0
        and message.image_width > 0
        and message.position != message.look_at
        and math.hypot(*message.up_direction) > 0.1
    )


def _is_instance(_: Any, message: Any) -> bool:
    return message.instance_index is None or message.instance_index >= 0


def _is_pointer(_: Any, message: Any) -> bool:
    if message.event_type == "click":
        return None not in (message.ray_origin, message.ray_direction) and bool(message.screen_pos)
    return len(message.screen_pos) >= 2


def _is_upload(server: Any, message: Any) -> bool:
    control = _control(server, message.source_component_uuid)
    return (
        control is not None
        and type(control).__name__ == "GuiUploadButtonHandle"
        and message.part_count >= 0
        and message.size_bytes >= 0
    )


def _is_container(server: Any, message: Any) -> bool:
    return any(message.uuid in gui._container_handle_from_uuid for gui in _panels(server))


def _is_update(server: Any, message: Any) -> bool:
    """Return whether a control is set to a value that it allows."""
    control = _control(server, message.uuid)
    if control is None or set(message.updates) != {"value"}:
        return False
    low, high = getattr(control, "min", None), getattr(control, "max", None)
    return _value_fits(control, message.updates["value"], control._impl.value, low, high)


def _value_fits(control: Any, value: Any, present: Any, low: Any, high: Any) -> bool:
    """Return whether a value has the type of the present one, and is within the bounds of its
    control."""
    if isinstance(present, bool):
        return isinstance(value, bool)
    if isinstance(present, int | float):
        return (
            isinstance(value, int | float)
            and not isinstance(value, bool)
            and (low is None or value >= low - _slider_tolerance(low, high))
            and (high is None or value <= high + _slider_tolerance(low, high))
        )
    if isinstance(present, str):
        options = getattr(control, "options", None)
        return isinstance(value, str) and (options is None or value in options)
    if isinstance(present, tuple) and isinstance(value, list):
        if present and not isinstance(present[0], str) and len(value) != len(present):
            return False
        # vectors have a bound for each component, other lists one for all
        lows, highs = (b if isinstance(b, tuple) else (b,) * len(value) for b in (low, high))
        like = present[0] if present else None
        return all(
            _value_fits(control, x, x if like is None else like, *bounds)
            for x, *bounds in zip(value, lows, highs, strict=True)
        )
    return False


def _slider_tolerance(low: float | None, high: float | None) -> float:
    """Return the rounding tolerance at the ends of a slider, which a page counts in steps."""
    return 1e-6 * max(1.0, abs(low or 0.0), abs(high or 0.0))


def _control(server: Any, uuid: str | None) -> Any:
    """Return a control of the panel of all pages, or of one; None if there is none with this id."""
    found = (gui._gui_input_handle_from_uuid.get(uuid) for gui in _panels(server))
    return next((control for control in found if control is not None), None)


def _panels(server: Any) -> list[Any]:
    return [server.gui, *(client.gui for client in server.get_clients().values())]


CHECKS: dict[str, Callable[[Any, Any], bool]] = {
    "ViewerCameraMessage": _is_camera,
    "SceneNodeClickMessage": _is_instance,
    "SceneNodeDragMessage": _is_instance,
    "ScenePointerMessage": _is_pointer,
    "GuiUpdateMessage": _is_update,
    "GuiFormDirtyMessage": _is_container,
    "FileTransferStartUpload": _is_upload,
}
