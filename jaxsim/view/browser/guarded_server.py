"""The viser server behind a guard. With message.py the only file that uses viser's internals.

viser accepts any connection and trusts its messages: it has no hook for checks. Checks are added
here by rebinding: a function of viser runs with other values for some of its global names, in a
subclass of ours, so that viser itself is unchanged for other users in the same process. Three names
are rebound: `infra` in the constructor, so that our web socket server is created; `websockets` in
the thread of that server, so that requests pass `Guard`; and `_message_consumer`, so that messages
pass `Inbox.read`. Before a server is returned, it is probed without a token and with a wrong
name; one that answers is closed (`check_guarded`).
"""

import dataclasses
import http
import http.client
import logging
import types
from collections.abc import Callable
from typing import Any

from jaxsim.optional import require
from jaxsim.view.browser.access_control import Guard
from jaxsim.view.browser.message import Inbox

_VISER_REMEDY = "install another version of viser, such as 1.1.1"
_SECURITY_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
POLICY_VIOLATION = 1008  # close code of the web socket
# Failed handshakes are irrelevant for this program, and so are their log messages.
_log = logging.getLogger("jaxsim.view.websocket")
_log.addHandler(logging.NullHandler())
_log.propagate = False


class NotGuarded(RuntimeError):
    """This version of viser cannot be guarded."""


def guarded_server(host: str, port: int, title: str, guard: Guard) -> Any:
    """Start a viser server that answers only the requests that its guard accepts.

    Args:
      host: address to listen on.
      port: first port to try; used ports are skipped.
      title: title of the page.
      guard: check of the requests.

    Returns:
      A `viser.ViserServer` with the attribute `guard`.

    Raises:
      NotGuarded: viser's internals are not as expected.
    """
    viser = require("viser", "view")
    inbox = Inbox()
    sockets = type(
        "GuardedSockets",
        (viser.infra.WebsockServer,),
        {
            "_background_worker": _rebind_globals(
                viser.infra.WebsockServer,
                "_background_worker",
                websockets=_guarded_websockets(guard),
                _message_consumer=_consumer(inbox),
            )
        },
    )
    made = type(
        "GuardedServer",
        (viser.ViserServer,),
        {
            "__init__": _rebind_globals(
                viser.ViserServer, "__init__", infra=_Instead(viser.infra, WebsockServer=sockets)
            ),
            "guard": guard,
        },
    )
    server = made(host, port, label=title, verbose=False)
    inbox.server = server
    return server


def check_guarded(host: str, port: int, guard: Guard) -> None:
    """Probe a server as an intruder would.

    Raises:
      NotGuarded: it answers.
    """
    own = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
    }
    trials: list[tuple[str, dict[str, str]]] = [
        ("/", {"Host": own}),
        (f"/{guard.token}/", {"Host": f"not-this-machine.invalid:{port}"}),
        ("/", {"Host": own, **upgrade}),
        (f"/{guard.token}", {"Host": own, "Origin": "http://not-this.invalid", **upgrade}),
    ]
    for path, headers in trials:
        connection = http.client.HTTPConnection(host, port, timeout=10)
        try:
            connection.request("GET", path, headers=headers)
            status = connection.getresponse().status
        finally:
            connection.close()
        if status != http.HTTPStatus.FORBIDDEN:
            raise NotGuarded(
                f"the page would be open to all (viser answers {status}); {_VISER_REMEDY}"
            )


def _guarded_websockets(guard: Guard) -> Any:
    """Return the package websockets, with servers that check requests by a guard first."""
    websockets = require("websockets", "view")
    home = require("websockets.asyncio.server", "view")

    def serve(handler: Any, host: str, port: int, **options: Any) -> Any:
        pages = options.pop("process_request", None)
        if pages is None:
            raise NotGuarded(f"viser serves no page here; {_VISER_REMEDY}")
        gate = _request_check(guard, pages)
        return home.serve(handler, host, port, process_request=gate, logger=_log, **options)

    server = _Instead(home, serve=serve)
    return _Instead(websockets, asyncio=_Instead(websockets.asyncio, server=server))


def _request_check(guard: Guard, pages: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Return the function that checks a request before viser handles it."""
    protocol = f"viser-v{require('viser', 'view').__version__}"

    def process_request(connection: Any, request: Any) -> Any:
        refused = guard.refusal(request.path, request.headers)
        if refused is not None:
            return connection.respond(http.HTTPStatus.FORBIDDEN, f"{refused}\n")
        upgrades = request.headers.get_all("Upgrade")
        if upgrades:
            # viser prints the protocols it receives: pass only its own
            told = ",".join(request.headers.get_all("Sec-WebSocket-Protocol")).split(",")
            if upgrades != ["websocket"] or [name.strip() for name in told] != [protocol]:
                return connection.respond(http.HTTPStatus.BAD_REQUEST, f"expected {protocol}\n")
            return None
        response = pages(connection, dataclasses.replace(request, path=guard.inner(request.path)))
        if response is not None:
            for name, value in _SECURITY_HEADERS.items():
                response.headers[name] = value
        return response

    return process_request


def _consumer(inbox: Inbox) -> Callable[..., Any]:
    """Return the function that reads a web socket; an invalid message closes it."""

    async def consume(websocket: Any, handle: Callable[[Any], None], _: type) -> None:
        while True:
            raw = await websocket.recv()
            try:
                message = inbox.read(raw)
            except Exception:  # noqa: BLE001  (anything a malicious message may cause)
                await websocket.close(POLICY_VIOLATION, "not a message of this page")
                continue  # the next iteration detects that it is closed
            if message is not None:
                handle(message)

    return consume


class _Instead:
    """A module with other values for some of its names."""

    def __init__(self, module: Any, **names: Any):
        self.__dict__.update(names)
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


def _rebind_globals(home: type, name: str, **names: Any) -> Any:
    """Return a method with other values for some of the global names that it reads."""
    function = vars(home).get(name)
    used = _global_names(function.__code__) if isinstance(function, types.FunctionType) else set()
    lacking = sorted(set(names) - used)
    if not isinstance(function, types.FunctionType) or lacking:
        raise NotGuarded(f"{home.__name__}.{name} of viser has no {lacking[0]}; {_VISER_REMEDY}")
    made = types.FunctionType(
        function.__code__,
        {**function.__globals__, **names},
        name,
        function.__defaults__,
        function.__closure__,
    )
    made.__kwdefaults__ = function.__kwdefaults__
    return made


def _global_names(code: types.CodeType) -> set[str]:
    """Return the global names and attributes that a function reads, including nested functions."""
    inner = (_global_names(c) for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*inner)
