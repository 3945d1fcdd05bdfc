"""Dragging of drawn bodies with the mouse, which pulls and rotates them."""

from collections.abc import Callable
from typing import Any

import numpy as np

from jaxsim.view.browser.holding import Holder
from jaxsim.view.mouse import Mouse
from jaxsim.view.perturb import PertBit


def enable_dragging(
    handle: Any, body_of: Callable[[np.ndarray], int], holder: Callable[[], Holder]
) -> None:
    """Enable dragging with Ctrl or Cmd: the left button pulls, the right one rotates.

    Args:
      handle: the drawn object, of viser.
      body_of: returns the id of the body at a picked point (3,) [m]; 0: none.
      holder: returns the running world, which may be replaced.
    """

    def begin(event: Any, active: PertBit) -> None:
        point = np.array(event.start_position)
        body = body_of(point)
        if body > 0:
            holder().hold(body, point, int(active))

    # `async`, here and below, keeps the order of events from a page; threads would not
    @handle.on_drag("left", modifier="cmd/ctrl")
    async def _(event: Any) -> None:
        if event.phase == "start":
            begin(event, PertBit.TRANSLATE)
        elif event.phase == "update":
            holder().pull(np.array(event.end_position))
        else:
            holder().let_go()

    for modifier, action in (("cmd/ctrl", Mouse.ROTATE_V), ("cmd/ctrl+shift", Mouse.ROTATE_H)):
        _enable_rotation(handle, modifier, action, begin, holder)


def _enable_rotation(
    handle: Any,
    modifier: str,
    action: Mouse,
    begin: Callable[[Any, PertBit], None],
    holder: Callable[[], Holder],
) -> None:
    """Enable rotation with the right button and a modifier, by the mouse motion since the last
    event."""
    last = np.zeros(2)

    @handle.on_drag("right", modifier=modifier)
    async def _(event: Any) -> None:
        here = np.array(event.end_screen_pos)
        if event.phase == "start":
            begin(event, PertBit.ROTATE)
        elif event.phase == "update":
            camera = event.client.camera
            x, y = (here - last) * [camera.aspect, 1]
            ahead = np.array(camera.look_at) - np.array(camera.position)
            azimuth = float(np.rad2deg(np.arctan2(ahead[1], ahead[0])))
            holder().rotate(azimuth, float(x), float(y), action)
        else:
            holder().let_go()
        last[:] = here
