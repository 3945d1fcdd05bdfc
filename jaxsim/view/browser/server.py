"""The web server of a drawing: viser behind a guard, by default for this machine alone."""

import contextlib
import socket
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from jaxsim.extra import needed
from jaxsim.view.browser.guard import Guard, is_loopback
from jaxsim.view.browser.guarded import check_guarded, guarded_server

HOST = "127.0.0.1"
ANY = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}  # all addresses, and one of them
PORTS = 65536  # that there are; 0 stands for any
PORT = 8080  # where it is tried first if no port is asked for
EXPOSED = (
    "other machines can reach this page at {host}: whoever knows its address sees the model and "
    "can drive it, and nothing is encrypted; a tunnel is safer: ssh -L 8080:127.0.0.1:8080 MACHINE"
)
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


class HostUnknown(OSError):
    """A host is no address of this machine."""


class ExposedWarning(UserWarning):
    """Other machines can reach a page."""


def open_server(
    port: int | None = None,
    title: str = "jaxsim",
    *,
    host: str = HOST,
    names: Iterable[str] = (),
) -> Any:
    """Start a server behind a guard, by default one that this machine alone can reach.

    It answers those who know its address, which has a token that is new each time.

    Args:
      port: where it listens; 0: wherever there is room; None: at 8080, or the next free port.
      title: what the page is called.
      host: address or name of this machine where it listens; "0.0.0.0": at all of them.
      names: further names by which browsers call this machine, such as that of a proxy.

    Raises:
      ValueError: there is no such port.
      PortInUse: the port is in use; names a remedy.
      HostUnknown: the host is no address of this machine.
      NotGuarded: this version of viser cannot be guarded.
      MissingExtra: viser is not installed.

    Warns:
      ExposedWarning: other machines can reach it.
    """
    needed("viser", "view")
    if port is not None and not 0 <= port < PORTS:
        raise ValueError(f"port: expected 0 to {PORTS - 1}, got {port}")
    _check_host(host)
    if port:
        _check_free(host, port)
    if not is_loopback(host):
        warnings.warn(EXPOSED.format(host=host), ExposedWarning, stacklevel=2)
    guard = Guard(host, names)
    with _quiet():
        server = guarded_server(host, PORT if port is None else port, title, guard)
    try:
        if port and server.get_port() != port:  # somebody was faster
            raise PortInUse(_in_use(port))
        check_guarded(ANY.get(host, host), server.get_port(), guard)
    except BaseException:
        close_server(server)
        raise
    # a link through somebody else's server shows the page to the world: never from here
    server.request_share_url = lambda *_, **__: None
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    return server


def close_server(server: Any) -> None:
    """Stop a server and wait for its threads."""
    with _quiet():
        server.stop()


def address(server: Any) -> str:
    """Return where a browser finds the page, with the token that opens it."""
    host = ANY.get(server.get_host(), server.get_host())
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{server.get_port()}/{server.guard.token}/"


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


def _check_host(host: str) -> None:
    try:
        with _trial(host) as (trial, where):
            trial.bind(where)
    except OSError as error:
        raise HostUnknown(
            f"'{host}' is no address of this machine ({error.strerror or error}); take one that "
            "is, or 0.0.0.0 for all of them"
        ) from None


@contextlib.contextmanager
def _trial(host: str, port: int = 0) -> Iterator[tuple[socket.socket, Any]]:
    """A socket, and where it is to be bound."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, where = found[0]
    with socket.socket(family, kind, protocol) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        yield trial, where


def _check_free(host: str, port: int) -> None:
    with _trial(host, port) as (trial, where):
        try:
            trial.bind(where)
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
