"""The web server of a drawing: viser, on the local interface only, without its own messages."""

import contextlib
import socket
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from jaxsim.extra import needed

HOST = "127.0.0.1"
PORTS = 65536  # that there are; 0 stands for any
PORT = 8080  # where it is tried first if no port is asked for
FOVY = 45.0  # of the camera of the page [degrees]
AZIMUTH, ELEVATION = 120.0, -20.0  # direction of that camera [degrees]
ABOVE = -40.0  # the second one where there are several worlds, lest they hide each other
ASPECT = 4 / 3  # least width of a page, in its heights
AWAY = 1.1  # its distance, in distances at which everything is just seen


class Balls(NamedTuple):
    """What a camera is to see: centers (n, 3) and radii (n,) [m]."""

    center: np.ndarray
    radius: np.ndarray


class PortInUse(OSError):
    """Somebody else listens on a port."""


def open_server(port: int | None = None, title: str = "jaxsim") -> Any:
    """Starts a server that listens on this machine only.

    Args:
      port: where it listens; 0: wherever there is room; None: at 8080, or the next free port.
      title: what the page is called.

    Raises:
      ValueError: there is no such port.
      PortInUse: the port is in use; names a remedy.
      MissingExtra: viser is not installed.
    """
    viser = needed("viser", "view")
    if port is not None and not 0 <= port < PORTS:
        raise ValueError(f"port: expected 0 to {PORTS - 1}, got {port}")
    if port:
        _check_free(port)
    with _quiet():
        server = viser.ViserServer(HOST, PORT if port is None else port, label=title, verbose=False)
    if port and server.get_port() != port:  # somebody was faster
        close_server(server)
        raise PortInUse(_in_use(port))
    # a link through somebody else's server shows the page to the world: never from here
    server.request_share_url = lambda *_, **__: None
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    return server


def close_server(server: Any) -> None:
    """Stops a server and waits for its threads."""
    with _quiet():
        server.stop()


def address(server: Any) -> str:
    """Where a browser finds the page."""
    return f"http://{HOST}:{server.get_port()}"


def aim(server: Any, balls: Balls, above: bool = False) -> None:
    """Points the camera of new pages at balls, as near as lets it see all of them.

    Args:
      server: of viser.
      balls: at least one.
      above: whether they are seen from farther above, as several worlds are.
    """
    center, radius = balls
    turn, rise = np.deg2rad(AZIMUTH), np.deg2rad(ABOVE if above else ELEVATION)
    forward = np.array([np.cos(rise) * np.cos(turn), np.cos(rise) * np.sin(turn), np.sin(rise)])
    right = np.array([np.sin(turn), -np.cos(turn), 0.0])
    middle = (center.min(axis=0) + center.max(axis=0)) / 2
    beside = center - middle
    distance = 0.0
    for way, wide in ((np.cross(right, forward), 1.0), (right, ASPECT)):
        half = np.arctan(wide * np.tan(np.deg2rad(FOVY) / 2))
        reach = np.abs(beside @ way) / np.tan(half) + radius / np.sin(half)
        distance = max(distance, float((reach - beside @ forward).max()))
    distance *= AWAY
    camera = server.initial_camera
    camera.position = middle - distance * forward
    camera.look_at = middle
    camera.fov = float(np.deg2rad(FOVY))
    camera.near, camera.far = 0.01 * float(radius.max()), 200 * distance


def _check_free(port: int) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            trial.bind((HOST, port))
        except OSError:
            raise PortInUse(_in_use(port)) from None


def _in_use(port: int) -> str:
    return f"port {port} is in use or may not be used; take another one, 0 for any that is free"


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Without what viser prints about itself."""
    console = needed("rich", "view").get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before
