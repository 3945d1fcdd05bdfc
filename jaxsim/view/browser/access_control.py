"""Access control of a page: token in its address, host name, and origin of requests.

A server on the local machine is exposed to more than its user: every web page in the browser can
send requests to it, and an attacker's host name can be made to resolve to it (DNS rebinding), so
that the browser considers the two one site. Three checks on each request, for pages and web sockets
alike, prevent both:

- the path begins with a token, which is new for every server and cannot be guessed;
- `Host` is a name of this machine or an address, never a foreign name;
- `Origin`, which browsers send with web sockets, is the page served here.
"""

import hmac
import ipaddress
import re
import secrets
import socket
from collections.abc import Iterable
from typing import Protocol
from urllib.parse import urlsplit

TOKEN_BYTES = 24  # bytes of a token, 32 characters
AUTHORITY = re.compile(r"(\[[0-9a-fA-F:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")


class Headers(Protocol):
    """The headers of a request."""

    def get_all(self, key: str) -> list[str]:
        """Return the values of all headers with this name."""
        ...


class Guard:
    """Check of the requests to a server.

    Args:
      host: the address or name where it listens.
      names: additional host names accepted from browsers.

    Attributes:
      token: prefix of valid paths.
      is_exposed: whether other machines can reach the server.
    """

    def __init__(self, host: str, names: Iterable[str] = ()):
        self.token = secrets.token_urlsafe(TOKEN_BYTES)
        self.is_exposed = not is_loopback(host)
        own = {host, socket.gethostname(), socket.getfqdn()} if self.is_exposed else {host}
        self._names = {name.lower().rstrip(".") for name in (*own, *names, "localhost")}

    def refusal(self, path: str, headers: Headers) -> str | None:
        """Return why a request is rejected; None: it is accepted."""
        hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return "Host: this page is not served under that name; see --allow-host"
        if len(origins) > 1 or any(not _is_page_of(origin, hosts[0]) for origin in origins):
            return "Origin: another page asks for this one"
        if not self._has_token(path):
            return "the address has no token or an old one; open the address that was printed"
        return None

    def inner(self, path: str) -> str:
        """Return a path without its token."""
        return "/" + path.removeprefix("/")[len(self.token) :].removeprefix("/")

    def _has_token(self, path: str) -> bool:
        given = path.partition("?")[0].removeprefix("/").partition("/")[0]
        return hmac.compare_digest(given.encode("utf-8", "replace"), self.token.encode())

    def _is_own(self, authority: str) -> bool:
        """Return whether the value of a Host header names this machine."""
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
        # an address cannot be rebound, so any address of this machine is accepted
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
    """Return whether an origin is a page of the requested host, through a proxy or not."""
    try:
        parts = urlsplit(origin)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and parts.netloc.lower() == host.lower()
