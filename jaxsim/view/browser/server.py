"""The web server of a viewer: viser behind a guard, by default for this machine alone."""

import contextlib
import socket
import warnings
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from jaxsim.optional import require
from jaxsim.view.browser.access_control import Guard, is_loopback
from jaxsim.view.browser.guarded_server import check_guarded, guarded_server

DEFAULT_HOST = "127.0.0.1"
# wildcard addresses, and a loopback address of each
_LOOPBACK_OF_ANY = {"": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1"}
_NUM_PORTS = 65536  # number of ports; 0 means any
_DEFAULT_PORT = 8080  # first port tried by default
EXPOSED_MESSAGE = (
    "other machines can reach this page at {host}: whoever knows its address sees the model and "
    "can drive it, and nothing is encrypted; a tunnel is safer: ssh -L 8080:127.0.0.1:8080 MACHINE"
)
PAGE_FOVY = 45.0  # field of view of the page's camera [degrees]
AZIMUTH, ELEVATION = 120.0, -20.0  # direction of that camera [degrees]
# elevation for several worlds, so that they do not occlude each other
_MANY_WORLDS_ELEVATION = -40.0
_MIN_ASPECT = 4 / 3  # smallest width of a page, relative to its height
_VIEW_MARGIN = 1.1  # distance relative to the closest one from which everything is visible


class Balls(NamedTuple):
    """Spheres to frame by a camera: centers (n, 3) and radii (n,) [m]."""

    center: np.ndarray
    radius: np.ndarray


class PortInUse(OSError):
    """The port is used by another program."""


class HostUnknown(OSError):
    """The host is no address of this machine."""


class ExposedWarning(UserWarning):
    """Warning that other machines can reach a page."""


def open_server(
    port: int | None = None,
    title: str = "jaxsim",
    *,
    host: str = DEFAULT_HOST,
    names: Iterable[str] = (),
) -> Any:
    """Start a server behind a guard, by default one that this machine alone can reach.

    It answers only requests to its address, which has a token that is new each time.

    Args:
      port: port to listen on; 0: any free port; None: 8080, or the next free port.
      title: title of the page.
      host: address or name of this machine to listen on; "0.0.0.0": all of them.
      names: additional host names accepted from browsers, such as that of a proxy.

    Raises:
      ValueError: there is no such port.
      PortInUse: the port is in use; names a remedy.
      HostUnknown: the host is no address of this machine.
      NotGuarded: this version of viser cannot be guarded.
      MissingExtra: viser is not installed.

    Warns:
      ExposedWarning: other machines can reach it.
    """
    require("viser", "view")
    if port is not None and not 0 <= port < _NUM_PORTS:
        raise ValueError(f"port: expected 0 to {_NUM_PORTS - 1}, got {port}")
    _check_host(host)
    if port:
        _check_free(host, port)
    if not is_loopback(host):
        warnings.warn(EXPOSED_MESSAGE.format(host=host), ExposedWarning, stacklevel=2)
    guard = Guard(host, names)
    with _silence_viser():
        server = guarded_server(host, _DEFAULT_PORT if port is None else port, title, guard)
    try:
        if port and server.get_port() != port:  # another program took it in the meantime
            raise PortInUse(_is_port_in_use(port))
        check_guarded(_LOOPBACK_OF_ANY.get(host, host), server.get_port(), guard)
    except BaseException:
        close_server(server)
        raise
    # Share links would publish the page through a foreign server: disabled.
    server.request_share_url = lambda *_, **__: None
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    return server


def close_server(server: Any) -> None:
    """Stop a server and wait for its threads."""
    with _silence_viser():
        server.stop()


def address(server: Any) -> str:
    """Return the address of the page, with its token."""
    host = _LOOPBACK_OF_ANY.get(server.get_host(), server.get_host())
    name = f"[{host}]" if ":" in host else host
    return f"http://{name}:{server.get_port()}/{server.guard.token}/"


def aim_camera(server: Any, balls: Balls, above: bool = False) -> None:
    """Set the initial camera of new pages to the closest view of all spheres.

    Args:
      server: viser server.
      balls: at least one sphere.
      above: whether the elevation is that for several worlds.
    """
    center, radius = balls
    azimuth, rise = np.deg2rad(AZIMUTH), np.deg2rad(_MANY_WORLDS_ELEVATION if above else ELEVATION)
    forward = np.array(
        [np.cos(rise) * np.cos(azimuth), np.cos(rise) * np.sin(azimuth), np.sin(rise)]
    )
    right = np.array([np.sin(azimuth), -np.cos(azimuth), 0.0])
    middle = (center.min(axis=0) + center.max(axis=0)) / 2
    offset = center - middle
    distance = 0.0
    for way, wide in ((np.cross(right, forward), 1.0), (right, _MIN_ASPECT)):
        half = np.arctan(wide * np.tan(np.deg2rad(PAGE_FOVY) / 2))
        reach = np.abs(offset @ way) / np.tan(half) + radius / np.sin(half)
        distance = max(distance, float((reach - offset @ forward).max()))
    distance *= _VIEW_MARGIN
    camera = server.initial_camera
    camera.position = middle - distance * forward
    camera.look_at = middle
    camera.fov = float(np.deg2rad(PAGE_FOVY))
    camera.near, camera.far = 0.01 * float(radius.max()), 200 * distance


def _check_host(host: str) -> None:
    try:
        with _open_test_socket(host) as (trial, where):
            trial.bind(where)
    except OSError as error:
        raise HostUnknown(
            f"'{host}' is no address of this machine ({error.strerror or error}); take one that "
            "is, or 0.0.0.0 for all of them"
        ) from None


@contextlib.contextmanager
def _open_test_socket(host: str, port: int = 0) -> Iterator[tuple[socket.socket, Any]]:
    """Yield a socket, and the address to bind it to."""
    found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    family, kind, protocol, _, where = found[0]
    with socket.socket(family, kind, protocol) as trial:
        trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        yield trial, where


def _check_free(host: str, port: int) -> None:
    with _open_test_socket(host, port) as (trial, where):
        try:
            trial.bind(where)
        except OSError:
            raise PortInUse(_is_port_in_use(port)) from None


def _is_port_in_use(port: int) -> str:
    return f"port {port} is in use or may not be used; take another one, 0 for any that is free"


@contextlib.contextmanager
def _silence_viser() -> Iterator[None]:
    """Suppress viser's startup messages."""
    console = require("rich", "view").get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before
