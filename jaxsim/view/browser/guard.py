"""Who may see and drive a page: the token of its address, the host it was asked from, the origin.

A server on the local machine is open to more than its user: every web page that the browser shows
can send requests to it, and a name that an attacker owns can be made to point at it (DNS
rebinding), upon which the browser takes the two for one site. Three checks on each request, of
pages and of web sockets alike, shut both out:

- the path begins with a token, which is new for every server and cannot be guessed;
- `Host` is a name of this machine or an address, never a name that somebody else owns;
- `Origin`, which browsers send with web sockets, is the page that this server has served.
"""

import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Iterable
from typing import Protocol
from urllib.parse import urlsplit

TOKEN_BYTES = 24  # of a token, 32 characters
AUTHORITY = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")


class Headers(Protocol):
    """The headers of a request."""

    def get_all(self, key: str) -> list[str]:
        """Return the values of all headers with this name."""
        ...


class Guard:
    """Decides which requests a server answers.

    Args:
      host: the address or name where it listens.
      names: further names by which browsers may call this machine.

    Attributes:
      token: what paths begin with.
      is_exposed: whether other machines can reach the server.
    """

    def __init__(self, host: str, names: Iterable[str] = ()):
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self.is_exposed = not is_loopback(host)
        own = {host, socket.gethostname(), socket.getfqdn()} if self.is_exposed else {host}
        self._names = {name.lower().rstrip(".") for name in (*own, *names, "localhost")}

    def refusal(self, path: str, headers: Headers) -> str | None:
        """Return why a request is not answered; None: it is."""
        hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return "Host: this page is not served under that name; see --allow-host"
        if len(origins) > 1 or any(not _is_page_of(origin, hosts[0]) for origin in origins):
            return "Origin: another page asks for this one"
        if not self._has_token(path):
            return "the address has no token or an old one; open the address that was printed"
        return None

    def inner(self, path: str) -> str:
        """Return a path without the token that it begins with."""
        return "/" + path.removeprefix("/")[len(self.token) :].removeprefix("/")

    def _has_token(self, path: str) -> bool:
        given = path.partition("?")[0].removeprefix("/").partition("/")[0]
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())

    def _is_own(self, authority: str) -> bool:
        """Return whether the value of a Host header is this machine."""
        found = AUTHORITY.fullmatch(authority)
        if found is None:
            return False
        name = found[1].lower().rstrip(".")
        if name in self._names:
            return True
        try:
            address = ipaddress.ip_address(name.strip("[]"))
        except ValueError:
            return False
        # an address cannot be made to point elsewhere, so any of this machine will do
        return self.is_exposed or address.is_loopback


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a server that listens at a host."""
    if host.lower().rstrip(".") == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _is_page_of(origin: str, host: str) -> bool:
    """Return whether an origin is a page of the host that was asked, through a proxy or not."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()
