"""The server sends the page's files to this machine, and nothing to other machines."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from sojourn.play.server import PlayServer
from sojourn.serving import HEADERS

PATIENCE = 120.0
"""Seconds after which a test has failed; on a quiet machine none waits for even one."""

FILES = {
    "play.html": b"<!DOCTYPE html><title>page</title>",
    "live.css": b"body {}",
    "page.js": b"// \xe2\x86\x92",
    "icon.svg": b"<svg/>",
}


@pytest.fixture(scope="module")
def server() -> Iterator[PlayServer]:
    with PlayServer(FILES) as running:
        yield running


def sent(server: PlayServer, data: bytes) -> bytes:
    """Everything that comes back for these bytes, until the server breaks the connection."""
    answer = b""
    with (
        socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection,
        suppress(OSError),
    ):
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        while piece := connection.recv(4096):
            answer += piece
    return answer


def ask(
    server: PlayServer, path: str = "/", method: str = "GET", host: str | None = None
) -> tuple[int, dict[str, str], bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    connection.request(method, path, headers={"Host": host or f"127.0.0.1:{server.port}"})
    response = connection.getresponse()
    found = response.status, dict(response.getheaders()), response.read()
    connection.close()
    return found


@pytest.mark.parametrize(
    ("path", "name", "kind"),
    [
        ("/", "play.html", "text/html; charset=utf-8"),
        ("/play.html", "play.html", "text/html; charset=utf-8"),
        ("/live.css", "live.css", "text/css; charset=utf-8"),
        ("/page.js?v=2", "page.js", "text/javascript; charset=utf-8"),
        ("/icon.svg", "icon.svg", "image/svg+xml"),
    ],
)
def test_files_are_sent_by_name(server: PlayServer, path: str, name: str, kind: str) -> None:
    status, headers, body = ask(server, path)
    assert (status, body) == (200, FILES[name])
    assert headers["Content-Type"] == kind
    assert ask(server, path, "HEAD") == (200, headers, b"")
    assert headers["Content-Length"] == str(len(body))


@pytest.mark.parametrize("path", ["/", "/missing"])
def test_answers_keep_browsers_strict(server: PlayServer, path: str) -> None:
    headers = ask(server, path)[1]
    assert headers.items() >= HEADERS.items()
    assert not [name for name in headers if name.startswith("Access-Control")]
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == "'self' 'wasm-unsafe-eval'"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Server"].strip() == "sojourn"


@pytest.mark.parametrize(
    "path",
    [
        "/missing",
        "/../server.py",
        "/%2e%2e/server.py",
        "/static/play.html",
        "/play.html/",
        "/play.html%00",
        "/..%2f..%2fetc%2fpasswd",
        "http://127.0.0.1/play.html",
    ],
)
def test_there_is_nothing_else(server: PlayServer, path: str) -> None:
    status, headers, body = ask(server, path)
    assert status == 404
    assert headers["Content-Type"] == "text/plain; charset=utf-8"
    assert body == b"no such page"


def test_both_names_of_this_machine_do(server: PlayServer) -> None:
    assert ask(server, host=f"localhost:{server.port}")[0] == 200


@pytest.mark.parametrize(
    "host", ["rebound.example", "rebound.example:{port}", "127.0.0.1", "127.0.0.1:1", "localhost"]
)
def test_another_name_gets_nothing(server: PlayServer, host: str) -> None:
    status, _, body = ask(server, host=host.format(port=server.port))
    assert status == 403
    assert b"html" not in body


def test_a_request_has_one_host(server: PlayServer) -> None:
    line = f"Host: 127.0.0.1:{server.port}\r\n"
    assert sent(server, f"GET / HTTP/1.1\r\n{line}\r\n".encode()).startswith(b"HTTP/1.0 200 ")
    for lines in ("", 2 * line):
        answer = sent(server, f"GET / HTTP/1.1\r\n{lines}\r\n".encode())
        assert answer.startswith(b"HTTP/1.0 403 "), lines


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH", "CONNECT", "get"])
def test_files_are_only_read(server: PlayServer, method: str) -> None:
    status, headers, _ = ask(server, "/", method)
    assert status == 501
    assert headers.items() >= HEADERS.items()


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 1000 + b"\r\n",
        b"GET / HTTP/1.1\r\na: " + b"b" * 100_000 + b"\r\n\r\n",
    ],
)
def test_bytes_that_are_no_request_get_no_page(
    server: PlayServer, data: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    answer = sent(server, data)
    assert b"<title>page" not in answer
    assert ask(server)[0] == 200
    assert capfd.readouterr().err == "", "nothing is printed"


def closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("trickle", [False, True])
def test_a_client_that_sends_slowly_is_disconnected(
    trickle: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PlayServer, "seconds", 0.2)
    over = threading.Event()

    def drip(connection: socket.socket) -> None:
        while not over.wait(0.02):
            try:
                connection.send(b"G")
            except OSError:
                return

    with (
        PlayServer(FILES) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection,
    ):
        if trickle:
            threading.Thread(target=drip, args=(connection,), daemon=True).start()
        assert closed(connection)
        over.set()


def test_connections_are_bounded() -> None:
    with PlayServer(FILES) as server:
        place = ("127.0.0.1", server.port)
        # Connections are accepted in their order.
        idle = [
            socket.create_connection(place, timeout=PATIENCE) for _ in range(PlayServer.connections)
        ]
        with socket.create_connection(place, timeout=PATIENCE) as further:
            assert closed(further)
        for connection in idle:
            connection.close()
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                assert ask(server)[0] == 200
                return
            except (ConnectionError, http.client.BadStatusLine):
                assert time.monotonic() < deadline, "the connections are never free again"
                time.sleep(0.01)
