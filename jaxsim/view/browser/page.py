"""A motion as one HTML page that plays by itself, without a server or a network."""

import os
import tempfile
from pathlib import Path

import numpy as np

from jaxsim.model.model import Model
from jaxsim.rollout.trajectory import target_of
from jaxsim.view.browser.draw.poses import Posing
from jaxsim.view.browser.draw.scene import Scene
from jaxsim.view.browser.framing import around_motion
from jaxsim.view.browser.motion import Motion, Recorded, motion_of
from jaxsim.view.browser.server import aim, close_server, open_server

RATE = 30.0  # pictures a second
MOST = 64  # worlds at most, unless more are asked for


def record(
    m: Model,
    motion: Recorded,
    path: str | os.PathLike[str],
    *,
    worlds: int | None = None,
    ghosts: bool = False,
    rate: float = RATE,
) -> int:
    """Write a motion as an HTML page that plays by itself.

    The page has all that it needs in itself; it is looked at in any browser, without jaxsim, a
    server or a network.

    Args:
      m: the model.
      motion: a trajectory, its file, or arrays by name: qpos (records, nq) or (records, worlds,
        nq), as `rollout` gives them, and likewise time, mocap_pos and mocap_quat.
      path: the file; it is written as a whole or not at all.
      worlds: how many worlds are shown; None: as many as there are, at most 64.
      ghosts: whether they stand in one place, all but the first faintly, and not side by side.
      rate: pictures a second; records between them are left out.

    Returns:
      The number of pictures.

    Raises:
      ValueError: this is no motion of the model, or there would be no pictures.
      OSError: the file cannot be written.
      MissingExtra: viser is not installed.
    """
    if not rate > 0:
        raise ValueError(f"record: rate: expected pictures a second, got {rate}")
    target, moving = target_of(path), motion_of(m, motion)
    number = moving.shown(worlds, MOST)
    times = np.arange(0, moving.time[-1] + 0.5 / rate, 1 / rate)
    records = np.clip(np.searchsorted(moving.time, times + 1e-9, side="right") - 1, 0, None)
    html = _film(m, moving, number, ghosts, records, rate)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as folder:
        written = Path(folder) / target.name
        written.write_text(html, encoding="utf-8")
        os.replace(written, target)
    return len(records)


def _film(
    m: Model, moving: Motion, number: int, ghosts: bool, records: np.ndarray, rate: float
) -> str:
    """Return the page of some records of the first worlds."""
    posing, chosen = Posing(m), slice(0, number)
    server = open_server(0)  # that nobody visits: viser records what it would send
    try:
        start = posing.of(moving.at(0, slice(0, 1)))
        scene = Scene(server, m, start)
        first = posing.of(moving.at(0, chosen))
        if number > 1:
            scene.lay_out(number, ghosts)
            scene.show(first)
        aim(server, around_motion(scene, posing, moving, chosen), above=number > 1)
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
