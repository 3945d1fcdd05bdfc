"""Intruders at a running page: strangers, other pages, false names, and messages that are none."""

import http.client
import logging
import random
import socket

import msgspec
import pytest
from view.visitor import CAMERA, Visitor

import jaxsim
from jaxsim.cli import main
from jaxsim.view.browser import guarded_server
from jaxsim.view.browser.access_control import Guard, is_loopback
from jaxsim.view.browser.guarded_server import NotGuarded
from jaxsim.view.browser.live import Live
from jaxsim.view.browser.server import ExposedWarning, HostUnknown, close_server, open_server

viser = pytest.importorskip("viser", reason="the extra view is not installed")
connect = pytest.importorskip("websockets.sync.client").connect
InvalidStatus = pytest.importorskip("websockets.exceptions").InvalidStatus
ConnectionClosed = pytest.importorskip("websockets.exceptions").ConnectionClosed

MODEL = """<mujoco>
  <worldbody>
    <body name="arm"><joint name="elbow" axis="0 1 0"/><geom name="arm" size="0.1" pos="0 0 1"/>
    </body>
  </worldbody>
  <actuator><motor name="push" joint="elbow" ctrlrange="-1 1"/></actuator></mujoco>"""
PROTOCOL = f"viser-v{viser.__version__}"


@pytest.fixture(scope="module")
def page():
    live = Live(jaxsim.load_model(MODEL), port=0)
    yield live
    live.viewer.close()


@pytest.fixture
def server(page):
    return page.viewer.server


@pytest.fixture(autouse=True)
def nothing_is_printed(capfd, caplog):
    """No attack leaves a traceback or a line, wherever viser and asyncio write."""
    caplog.set_level(logging.WARNING)
    yield
    out, err = capfd.readouterr()
    assert (out, err) == ("", "")
    assert not caplog.records


def get(server, path: str, **headers: str) -> int:
    """The status of a page."""
    connection = http.client.HTTPConnection("127.0.0.1", server.get_port(), timeout=30)
    connection.putrequest("GET", path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value)
    connection.endheaders()
    try:
        return connection.getresponse().status
    finally:
        connection.close()


def enter(server, path: str | None = None, origin: str | None = None, host: str | None = None):
    """Open a web socket; `host` is its Host header, whatever the address."""
    port = server.get_port()
    path = f"/{server.guard.token}" if path is None else path
    way = socket.create_connection(("127.0.0.1", port))
    return connect(
        f"ws://{host or f'127.0.0.1:{port}'}{path}",
        sock=way,
        origin=origin,
        subprotocols=[PROTOCOL],
        max_size=None,
    )


def test_a_page_is_served_to_those_who_know_its_address(server):
    port, token = server.get_port(), server.guard.token
    assert get(server, f"/{token}/") == 200
    assert get(server, f"/{token}") == 200
    assert get(server, f"/{token}/?darkMode") == 200
    assert get(server, f"/{token}/none") == 404
    for host in (f"localhost:{port}", "LOCALHOST", f"[::1]:{port}", "127.0.0.1:9000"):
        assert get(server, f"/{token}/", Host=host) == 200  # a tunnel may have another port
    with enter(server, origin=f"http://127.0.0.1:{port}") as entered:
        assert entered.recv(timeout=30)
    with enter(server) as entered:  # no browser: it sends no origin
        assert entered.recv(timeout=30)


@pytest.mark.parametrize("path", ["/", "", "/index.html", "/x/", "//", "/{half}/", "/{other}/"])
def test_without_the_token_nothing_is_answered(server, path):
    path = path.format(half=server.guard.token[:-1], other=Guard("127.0.0.1").token)
    assert get(server, path or "/") == 403
    with pytest.raises(InvalidStatus) as refused:
        enter(server, path)
    assert refused.value.response.status_code == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example", "localhost.evil.example", "8.8.8.8", "a:b:c"]
)
def test_a_name_of_another_machine_is_refused(server, host):
    token = server.guard.token
    assert get(server, f"/{token}/", Host=f"{host}:{server.get_port()}") == 403
    assert get(server, f"/{token}/", Host="") == 403
    if host.count(":") == 0:
        with pytest.raises(InvalidStatus):
            enter(server, host=f"{host}:{server.get_port()}", origin=f"http://{host}")


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "http://127.0.0.1",
        "http://localhost:{port}",
        "http://127.0.0.1:{port}.evil.example",
        "http://x@127.0.0.1:{port}",
        "file://127.0.0.1:{port}",
        "null",
        "http://[",
    ],
)
def test_another_page_is_refused(server, origin):
    """Also one that this machine serves at another port."""
    told = origin.format(port=server.get_port())
    with pytest.raises(InvalidStatus) as refused:
        enter(server, origin=told)
    assert refused.value.response.status_code == 403


def test_headers_that_are_there_twice_are_refused(server):
    port, token = server.get_port(), server.guard.token
    for line in (f"Host: 127.0.0.1:{port}", "Origin: http://127.0.0.1\r\nOrigin: http://a"):
        with socket.create_connection(("127.0.0.1", port)) as way:
            way.sendall(
                f"GET /{token}/ HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n{line}\r\n\r\n".encode()
            )
            assert way.recv(100).startswith(b"HTTP/1.1 403")


@pytest.mark.parametrize(
    "data", [b"\x00\xff" * 50, b"\x16\x03\x01\x02", b"GET\r\n\r\n", b"POST / HTTP/1.1\r\n\r\n", b""]
)
def test_what_is_no_request_is_closed_without_a_word(server, data):
    with socket.create_connection(("127.0.0.1", server.get_port())) as way:
        way.sendall(data)
        way.shutdown(socket.SHUT_WR)
        while way.recv(1000):
            pass


def listen(entered) -> None:
    """Read all messages until the connection ends."""
    while True:
        entered.recv(timeout=30)


def packed(message: object) -> bytes:
    return msgspec.msgpack.encode(message)


def nested(depth: int) -> bytes:
    return b"\x91" * depth + b"\xc0"


RANDOM = random.Random(0)
CLICK = {
    "type": "SceneNodeClickMessage",
    "name": "/bodies/arm/arm",
    "instance_index": 0,
    "ray_origin": (0.0, 0.0, 0.0),
    "ray_direction": (0.0, 0.0, 1.0),
    "screen_pos": (0.5, 0.5),
    "modifier": None,
}
NO_MESSAGES = {
    "empty": b"",
    "text": "hello",
    "json": '{"type": "GuiUpdateMessage"}',
    "nothing": packed(None),
    "number": packed(3),
    "list": packed([1, 2]),
    "no type": packed({}),
    "type of none": packed({"type": None}),
    "type of a list": packed({"type": [1]}),
    "unknown": packed({"type": "Nobody"}),
    "of the server": packed({"type": "RunJavascriptMessage", "source": "alert(1)"}),
    "of the scene": packed({"type": "RemoveSceneNodeMessage", "name": "/bodies"}),
    "abstract": packed({"type": "Message"}),
    "share": packed({"type": "ShareUrlRequest"}),
    "deep": nested(100_000),
    "deep in a field": packed({"type": "GuiUpdateMessage"})[:-1] + nested(5_000),
    "cut": packed(CAMERA)[:-5],
    "more": packed(CAMERA) + b"\x00",
    "large": b"\x00" * 8_000_000,
    "keys": packed({1: 2, "type": "GuiUpdateMessage"}),
    "camera of nothing": packed({"type": "ViewerCameraMessage"}),
    "camera of text": packed({**CAMERA, "wxyz": "abcd"}),
    "short camera": packed({**CAMERA, "position": (1.0, 2.0)}),
    "height of text": packed({**CAMERA, "image_height": "tall"}),
    "update of a list": packed({"type": "GuiUpdateMessage", "uuid": "x", "updates": [1]}),
    "uuid of a number": packed({"type": "GuiUpdateMessage", "uuid": 3, "updates": {}}),
    "phase": packed({**CLICK, "type": "SceneNodeDragMessage", "phase": "never"}),
    "modifier": packed({**CLICK, "modifier": "win"}),
    "extension": b"\xc7\x08\x05" + b"x" * 8,
    "surrogate": b"\x81\xa4type\xa3\xed\xa0\x80",
    **{f"random {i}": RANDOM.randbytes(1 + 7 * i) for i in range(20)},
}


@pytest.mark.parametrize("data", NO_MESSAGES.values(), ids=NO_MESSAGES)
def test_what_is_no_message_ends_the_connection_and_nothing_else(server, data):
    with enter(server) as entered:
        entered.send(data)
        with pytest.raises(ConnectionClosed) as closed:
            listen(entered)
    assert closed.value.rcvd.code == 1008


def test_a_message_beyond_the_limit_ends_the_connection(server):
    with enter(server) as entered:
        entered.send(b"\x00" * 60_000_000)
        with pytest.raises(ConnectionClosed):
            listen(entered)


def test_out_of_range_widget_values_are_ignored(page, server):
    with Visitor(server) as visitor:
        visitor.wait(lambda: any(c["label"] == "push" for c in visitor.controls.values()))
        ids = {c["label"]: u for u, c in visitor.controls.items() if c["label"]}
        updates = [
            *(("push", {"value": x}) for x in (1e300, float("nan"), "1", True, [0.5], None, 3.0)),
            *(("speed", {"value": x}) for x in ("warp", 1, "", ["1"], "x" * 2_000_000)),
            *(("frames of bodies", {"value": x}) for x in ("yes", 1, None)),
            ("push", {"value": 0.5, "removed": True}),
            ("push", {"update_cb": 3}),
            ("push", {"min": -1e9}),
            ("push", {}),
        ]
        for label, update in updates:
            message = {"type": "GuiUpdateMessage", "uuid": ids[label], "updates": update}
            visitor.send(message)
        visitor.send({"type": "GuiUpdateMessage", "uuid": "none", "updates": {"value": 1}})
        for change in (
            {"wxyz": (0.0, 0.0, 0.0, 0.0)},
            {"position": (float("inf"), 0.0, 0.0)},
            {"image_height": 0},
            {"fov": -1.0},
            {"near": 5.0, "far": 1.0},
        ):
            visitor.send({**CAMERA, **change})
        for change in (
            {"instance_index": -1},
            {"name": "/none"},
            {"ray_origin": (float("nan"), 0.0, 0.0)},
        ):
            visitor.send({**CLICK, **change})
        visitor.send({"type": "GuiFormDirtyMessage", "uuid": "none"})
        upload = {"transfer_uuid": "a", "filename": "a", "mime_type": "a", "part_count": 1}
        visitor.send(
            {"type": "FileTransferStartUpload", "source_component_uuid": ids["push"], **upload}
            | {"size_bytes": 1}
        )
        # what comes after in the same connection is done
        visitor.set("push", 0.25)
        visitor.wait(lambda: page.simulation.ctrl[0] == 0.25)
        assert page.simulation.speed == 1.0
        visitor.set("push", 1.0)  # the end of its range
        visitor.wait(lambda: page.simulation.ctrl[0] == 1.0)


def test_a_click_and_a_drag_of_a_visitor_are_done(page, server):
    with Visitor(server) as visitor:
        visitor.wait(lambda: len(server.get_clients()) > 0)
        visitor.send(CLICK)
        visitor.wait(lambda: "arm" in visitor.text())


@pytest.mark.parametrize(
    ("host", "names", "good", "bad"),
    [
        ("127.0.0.1", (), ["127.0.0.1:1", "localhost", "127.9.9.9"], ["10.0.0.1", "lab", ""]),
        ("0.0.0.0", ("lab",), ["10.0.0.1:80", "lab:8080", "LAB.", "[fe80::1]:8"], ["evil.com"]),
        ("robot.lan", (), ["robot.lan:80", "192.168.1.2"], ["robot.lan.evil.com", "x:y@robot.lan"]),
        ("::1", (), ["[::1]:80", "localhost"], ["[::2]", "::1", "[::1"]),
    ],
)
def test_hosts_that_are_admitted(host, names, good, bad):
    guard = Guard(host, names)

    class Headers(dict):
        def get_all(self, key):
            return [self[key]] if key in self else []

    for name in good:
        assert guard.refusal(f"/{guard.token}/", Headers(Host=name)) is None
    for name in bad:
        assert "Host" in guard.refusal(f"/{guard.token}/", Headers(Host=name))


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1", "127.3.2.1", "::1"])
def test_loopback(host):
    assert is_loopback(host)
    assert not is_loopback("0.0.0.0")
    assert not is_loopback("::")
    assert not is_loopback("")


def test_other_machines_are_let_in_with_a_warning():
    with pytest.warns(ExposedWarning, match="other machines can reach this page at 0.0.0.0"):
        server = open_server(0, host="0.0.0.0", names=["lab.example"])
    try:
        path = f"/{server.guard.token}/"
        assert get(server, path) == 200
        assert get(server, path, Host="lab.example:80") == 200
        assert get(server, path, Host="evil.example") == 403
        assert get(server, "/") == 403
    finally:
        close_server(server)


def test_an_address_that_is_not_of_this_machine_is_refused(tmp_path):
    with pytest.raises(HostUnknown, match=r"'192\.0\.2\.1' is no address of this machine"):
        open_server(0, host="192.0.2.1")


def test_a_server_that_cannot_be_guarded_is_not_opened(monkeypatch):
    def run(self, ready):
        """One whose thread reads other names."""

    monkeypatch.setattr(viser.infra.WebsockServer, "_background_worker", run)
    with pytest.raises(NotGuarded, match="has no _message_consumer; install another version"):
        open_server(0)
    monkeypatch.undo()
    # and one that reads them, but answers all the same
    monkeypatch.setattr(guarded_server.Guard, "refusal", lambda *_: None)
    with pytest.raises(NotGuarded, match="the page would be open to all"):
        open_server(0)


def test_a_command_tells_of_a_host_that_there_is_not(tmp_path, capfd):
    path = tmp_path / "arm.xml"
    path.write_text(MODEL)
    assert main(["view", str(path), "--host", "192.0.2.1", "--port", "0", "--no-cache"]) == 2
    assert "--host: '192.0.2.1' is no address of this machine" in capfd.readouterr().err
