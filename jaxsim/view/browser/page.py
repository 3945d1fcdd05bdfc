"""Write a motion as a standalone HTML page, which needs no server or network."""

import os

import numpy as np

from jaxsim.atomic_write import write_whole
from jaxsim.batch.trajectory import target_of
from jaxsim.model.model import Model
from jaxsim.view.browser.draw.poses import Posing
from jaxsim.view.browser.draw.scene import BrowserScene
from jaxsim.view.browser.framing import around_motion
from jaxsim.view.browser.motion import Recorded, RecordedMotion, motion_of
from jaxsim.view.browser.server import aim_camera, close_server, open_server

_RECORD_RATE = 60.0  # frames per second
_MAX_PAGE_WORLDS = 64  # default limit on the number of worlds


def record(
    m: Model,
    motion: Recorded,
    path: str | os.PathLike[str],
    *,
    worlds: int | None = None,
    ghosts: bool = False,
    rate: float = _RECORD_RATE,
) -> int:
    """Write a motion as a standalone HTML page.

    The page contains everything it needs; it can be opened in any browser, without jaxsim, a server
    or a network.

    Args:
      m: the model.
      motion: a trajectory, its file, or arrays by name: qpos (records, nq) or (records, worlds,
        nq), as `rollout` returns them, and optionally time, mocap_pos and mocap_quat.
      path: the file; it is written atomically.
      worlds: number of worlds shown; None: all of them, at most 64.
      ghosts: whether they overlap, all but the first faintly, instead of being side by side.
      rate: frames per second; records between them are skipped.

    Returns:
      The number of frames.

    Raises:
      ValueError: this is no motion of the model, or there would be no frames.
      OSError: the file cannot be written.
      MissingExtra: viser is not installed.
    """
    if not rate > 0:
        raise ValueError(f"record: rate: expected pictures a second, got {rate}")
    target, moving = target_of(path), motion_of(m, motion)
    number = moving.num_shown(worlds, _MAX_PAGE_WORLDS)
    times = np.arange(0, moving.time[-1] + 0.5 / rate, 1 / rate)
    records = np.clip(np.searchsorted(moving.time, times + 1e-9, side="right") - 1, 0, None)
    html = _film(m, moving, number, ghosts, records, rate)
    write_whole(target, html)
    return len(records)


def _film(
    m: Model, moving: RecordedMotion, number: int, ghosts: bool, records: np.ndarray, rate: float
) -> str:
    """Return the page of some records of the first worlds."""
    posing, chosen = Posing(m), slice(0, number)
    server = open_server(0)  # without visitors: viser records the messages it would send
    try:
        start = posing.of(moving.at(0, slice(0, 1)))
        scene = BrowserScene(server, m, start)
        first = posing.of(moving.at(0, chosen))
        if number > 1:
            scene.lay_out(number, ghosts)
            scene.show(first)
        aim_camera(server, around_motion(scene, posing, moving, chosen), above=number > 1)
        film = server.get_scene_serializer()
        for i in records:
            scene.show(posing.of(moving.at(int(i), chosen)))
            film.insert_sleep(1 / rate)
        if scene.settle():
            film.insert_sleep(1 / rate)
        html: str = film.as_html()
        return html
    finally:
        close_server(server)
