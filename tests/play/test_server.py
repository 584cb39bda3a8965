"""The page's door: who is let in, and what a request may do."""

from __future__ import annotations

import http.client
import json
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest

from sojourn.play import answer as answers
from sojourn.play import server as server_module
from sojourn.play.server import CONNECTIONS, HEAD, PlayServer
from sojourn.play.simulation import Bounds
from sojourn.play.state import State
from sojourn.play.turns import Busy, Superseded, Turns

PATIENCE = 120.0
"""Seconds after which a test has failed; on a quiet machine none waits for even one."""


@pytest.fixture(scope="module")
def server() -> Iterator[PlayServer]:
    with PlayServer(State.home()) as running:
        yield running


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, "it never came"
        time.sleep(0.01)


Answer = tuple[int, dict[str, str], bytes]


def ask(
    server: PlayServer,
    method: str = "POST",
    path: str = "/simulate",
    body: Any = None,
    headers: dict[str, str | None] | None = None,
) -> Answer:
    """A request as the page makes it, but for what is said otherwise; one of none is left out."""
    own = f"127.0.0.1:{server.port}"
    usual: dict[str, str | None] = {
        "Host": own,
        "Origin": f"http://{own}",
        "Sec-Fetch-Site": "same-origin",
        "Content-Type": "application/json",
        "X-Sojourn-Token": server.token,
    }
    usual |= headers or {}
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    data = body if isinstance(body, bytes) else json.dumps(body or {}).encode()
    if method == "POST" and "Content-Length" not in usual:
        usual["Content-Length"] = str(len(data))
    for name, value in usual.items():
        if value is not None:
            connection.putheader(name, value)
    connection.endheaders(data if method == "POST" else None)
    response = connection.getresponse()
    found = response.status, dict(response.getheaders()), response.read()
    connection.close()
    return found


def asked(number: int = 1, page: str = "a", **more: Any) -> dict[str, Any]:
    return {"page": page, "number": number, **more}


def error_of(found: Answer) -> str:
    return str(json.loads(found[2])["error"])


def test_the_page_is_there_and_tells_of_nothing(server: PlayServer) -> None:
    for path in (*server_module.PAGES, server_module.STYLE):
        status, headers, body = ask(
            server, "GET", path, headers={"X-Sojourn-Token": None, "Origin": None}
        )
        assert status == 200, path
        assert server.token.encode() not in body
        assert headers["Cache-Control"] == "no-store"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert not [name for name in headers if name.startswith("Access-Control")]
        policy = headers["Content-Security-Policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
        assert "unsafe" not in policy
        assert "http" not in policy


def test_the_pages_name_nothing_from_elsewhere(server: PlayServer) -> None:
    for path in (*server_module.PAGES, server_module.STYLE):
        text = ask(server, "GET", path)[2].decode()
        links = set(re.findall(r"https?://[^\"'\s)]*", text))
        assert links <= {"http://www.w3.org/2000/svg"}, path
        assert "innerHTML" not in text, path
        assert "eval(" not in text, path


def test_a_change_is_simulated(server: PlayServer) -> None:
    found = ask(server, body=asked(1, "change", changes={"rate": "5mbit"}))
    assert found[0] == 200, found[2]
    told = json.loads(found[2])
    assert len(told["runs"]) == 2
    assert State.read(told["fragment"]).scenario.bottleneck_rate == 5_000_000
    again = ask(server, body=asked(2, "change", fragment=told["fragment"], changes={"seed": 9}))
    state = State.read(json.loads(again[2])["fragment"])
    assert (state.seed, state.scenario.bottleneck_rate) == (9, 5_000_000)


HEADERS: list[tuple[dict[str, str | None], int]] = [
    ({"Host": "evil.example"}, 403),
    ({"Host": "evil.example:PORT", "Origin": "http://evil.example:PORT"}, 403),
    ({"Host": "127.0.0.1"}, 403),
    ({"Host": "127.0.0.1:1"}, 403),
    ({"Host": "127.0.0.1.evil.example:PORT"}, 403),
    ({"Host": "[::1]:PORT"}, 403),
    ({"Host": None}, 403),
    ({"Origin": None}, 403),
    ({"Origin": "null"}, 403),
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "https://127.0.0.1:PORT"}, 403),
    ({"Origin": "http://127.0.0.1:PORT.evil.example"}, 403),
    ({"Origin": "http://localhost:PORT"}, 403),
    ({"Sec-Fetch-Site": "cross-site"}, 403),
    ({"Sec-Fetch-Site": "same-site"}, 403),
    ({"X-Sojourn-Token": None}, 401),
    ({"X-Sojourn-Token": ""}, 401),
    ({"X-Sojourn-Token": "é"}, 401),
    ({"X-Sojourn-Token": "A" * 43}, 401),
    ({"Content-Type": "text/plain"}, 415),
    ({"Content-Type": None}, 415),
    ({"Content-Length": None, "Transfer-Encoding": "chunked"}, 411),
    ({"Content-Length": None}, 411),
    ({"Content-Length": "-1"}, 400),
    ({"Content-Length": "1_0"}, 400),
    ({"Content-Length": str(answers.BODY + 1)}, 413),
    ({"Content-Length": "9" * 400}, 413),
]


@pytest.mark.parametrize(("headers", "status"), HEADERS)
def test_who_is_not_let_in(server: PlayServer, headers: dict[str, str | None], status: int) -> None:
    port = str(server.port)
    named = {k: v and v.replace("PORT", port) for k, v in headers.items()}
    found = ask(server, body=asked(10**6, "stranger"), headers=named)
    assert found[0] == status, found
    assert not [name for name in found[1] if name.startswith("Access-Control")]
    assert b"fragment" not in found[2]
    assert b"runs" not in found[2]


def test_by_its_other_name_too(server: PlayServer) -> None:
    own = f"localhost:{server.port}"
    found = ask(server, body=asked(1, "other"), headers={"Host": own, "Origin": f"http://{own}"})
    assert found[0] == 200


def test_a_rebound_name_gets_no_page(server: PlayServer) -> None:
    assert ask(server, "GET", "/", headers={"Host": f"evil.example:{server.port}"})[0] == 403


@pytest.mark.parametrize("method", ["OPTIONS", "PUT", "DELETE", "HEAD", "TRACE", "CONNECT"])
def test_other_methods(server: PlayServer, method: str) -> None:
    status, headers, _ = ask(server, method, "/simulate")
    assert status == 501
    assert not [name for name in headers if name.startswith("Access-Control")]


@pytest.mark.parametrize(
    "path",
    [
        "/nothing",
        "/../server.py",
        "/static/play.js",
        "/%2e%2e/server.py",
        "/play.css/",
    ],
)
def test_other_paths(server: PlayServer, path: str) -> None:
    assert ask(server, "GET", path)[0] == 404
    assert ask(server, "POST", path, body=asked(1, "paths"))[0] == 404


def test_two_names_at_once(server: PlayServer) -> None:
    own = f"127.0.0.1:{server.port}"
    text = f"GET / HTTP/1.1\r\nHost: {own}\r\nHost: {own}\r\n\r\n"
    assert b" 403 " in raw(server, text.encode()).partition(b"\r\n")[0]


def raw(server: PlayServer, data: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)
        found = b""
        while piece := connection.recv(65536):
            found += piece
        return found


@pytest.mark.parametrize(
    "data",
    [
        b"\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"GET\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\n" + b"A: b\r\n" * 500 + b"\r\n",
        b"GET / HTTP/1.1\r\nA: " + b"b" * (HEAD + answers.BODY + 65536) + b"\r\n\r\n",
        b"POST /simulate HTTP/1.1\r\nContent-Length: 5\r\n\r\n{}",
    ],
)
def test_what_is_no_request(server: PlayServer, data: bytes) -> None:
    try:
        found = raw(server, data)
    except TimeoutError:
        raise
    except OSError:  # closed before we had said everything
        found = b""
    assert b" 200 " not in found.partition(b"\r\n")[0]
    assert ask(server, "GET", "/")[0] == 200


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        (b"", 400, "EOF"),
        (b"[]", 400, "object"),
        (b"{" * 50_000, 400, ""),
        (b"\xff\xfe", 400, ""),
        (asked(-1), 400, "number"),
        (asked(1, "<b>"), 400, "page"),
        (asked(1, "bad", more=1), 400, "more"),
        (asked(1, "bad", changes={"rate": 5}), 400, "changes.rate"),
        (asked(1, "bad", changes={"counts": {"0": 10**9}}), 400, "changes.counts.0"),
        (asked(2, "bad", fragment="1.garbage"), 422, "damaged"),
        (asked(3, "bad", changes={"rate": "fast"}), 422, "links.uplink.rate"),
        (asked(4, "bad", changes={"queue": "codle"}), 422, "did you mean `codel`"),
        (asked(5, "bad", changes={"counts": {"7": 3}}), 422, "no `7` here"),
        (asked(6, "bad", changes={"rate": "100gbit"}), 422, "million packets"),
        (asked(7, "bad", changes={"counts": {"0": 30_000}}), 422, "30001 flows"),
    ],
)  # fmt: skip
def test_what_is_asked_wrongly_is_said(
    server: PlayServer, body: Any, status: int, message: str
) -> None:
    found = ask(server, body=body)
    assert found[0] == status, found
    assert message in error_of(found)


def test_many_flows_end_at_a_bound() -> None:
    bounds = replace(Bounds(), events=200_000, packets=10**9)
    with PlayServer(State.home(), bounds=bounds) as server:
        changes = {"rate": "100gbit", "counts": {"0": 10_000}}
        found = ask(server, body=asked(1, changes=changes))
        assert found[0] == 422
        assert "stopped: more than 0 million events" in error_of(found)
        assert ask(server, body=asked(2))[0] == 200


LONG = {"rate": "1gbit", "duration": "600s"}
"""Changes that keep the engine busy for far longer than any test."""


def test_a_newer_request_ends_the_older() -> None:
    bounds = Bounds(packets=10**12, events=10**12, seconds=1e9, memory=1 << 50)
    with PlayServer(State.home(), bounds=bounds) as server:
        older: list[Answer] = []
        thread = threading.Thread(
            target=lambda: older.append(ask(server, body=asked(1, changes=LONG)))
        )
        thread.start()
        until(lambda: server.turns.running == 1)
        assert ask(server, body=asked(1))[0] == 409, "as new as the one that runs is not newer"
        other = ask(server, body=asked(1, "b"))
        assert other[0] == 200, "another page does not end it"
        assert not older
        assert ask(server, body=asked(2))[0] == 200
        thread.join(PATIENCE)
        assert [found[0] for found in older] == [409]
        assert "newer" in error_of(older[0])


def test_the_end_of_the_server_ends_its_requests() -> None:
    bounds = Bounds(packets=10**12, events=10**12, seconds=1e9, memory=1 << 50)
    found: list[Answer] = []
    with PlayServer(State.home(), bounds=bounds) as server:
        thread = threading.Thread(
            target=lambda: found.append(ask(server, body=asked(1, changes=LONG)))
        )
        thread.start()
        until(lambda: server.turns.running == 1)
    thread.join(PATIENCE)
    assert [status for status, _, _ in found] == [409]


def test_turns() -> None:
    turns = Turns(most=2)
    with turns.take("a", 1) as first:
        with pytest.raises(Superseded), turns.take("a", 1):
            pass
        with turns.take("b", 5), pytest.raises(Busy), turns.take("c", 1):
            pass
        assert not first.is_set()
        with turns.take("a", 2) as second:
            assert first.is_set()
            assert not second.is_set()
        with turns.take("c", 1):
            assert turns.running == 2
    with pytest.raises(Superseded), turns.take("a", 2):
        pass
    for number in range(1000):
        with turns.take(f"p{number}", 1):
            pass
    assert len(turns._latest) <= 64
    assert turns.running == 0
    turns.close()
    with pytest.raises(Superseded), turns.take("z", 1):
        pass


def closed(connection: socket.socket) -> bool:
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


@pytest.mark.parametrize("trickle", [False, True])
def test_who_sends_slowly_is_let_go(trickle: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "SECONDS", 0.2)
    with (
        PlayServer(State.home()) as server,
        socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as connection,
    ):
        over = threading.Event()

        def drip() -> None:
            while not over.wait(0.02):
                try:
                    connection.send(b"G")
                except OSError:
                    return

        if trickle:
            threading.Thread(target=drip, daemon=True).start()
        assert closed(connection)
        over.set()


def test_connections_are_counted(server: PlayServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "SECONDS", PATIENCE)
    # Others may still be on their way out.
    idle: list[socket.socket] = []
    try:
        until(lambda: server.connections == 0)
        idle += [
            socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
            for _ in range(CONNECTIONS)
        ]
        until(lambda: server.connections == CONNECTIONS)
        with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as further:
            assert closed(further)
    finally:
        for connection in idle:
            connection.close()
    until(lambda: server.connections == 0)
    assert ask(server, "GET", "/")[0] == 200
