"""The server of a wire's control channel: clients read counters and change links.

Requests and answers are JSON objects, one per line. Every answer has `ok`. An answer with
`"ok": false` also has `error`. A request may have an `id`, which its answers repeat.

The requests are `about`, `counters`, `watch`, `set` and `stop`. The guide of `sojourn wire` shows
each request with its answer.

A thread of the wire's process serves the clients. The thread that carries packets executes requests
between two iterations of its loop.
"""

from __future__ import annotations

import asyncio
import json
import os
import socket
import threading
import time
from contextlib import suppress
from typing import Protocol, Self

from sojourn import _core
from sojourn.data import Json, Object
from sojourn.plan import Plan

LINE = 1 << 16
"""Longest request in bytes."""
CLIENTS = 32
"""Maximum number of simultaneous connections; further clients receive an error."""
RATE, BURST = 200.0, 400.0
"""Limits of a connection: requests per second, and requests at once. Further requests wait."""
KEYS = ("rate", "netem", "queue", "params")
"""Keys of `set` in addition to `link`; `params` are the parameters of a queue as in a plan."""
EVERY = (0.05, 3600.0)
"""Shortest and longest interval of a watch, in seconds."""
BEHIND = 10.0
"""Time in seconds after which a client that does not read its answers is disconnected."""
JOIN_SECONDS = 5.0
"""Time limit for the server's thread to end, in seconds."""


class Bad(ValueError):
    """A request is invalid; the message is the `error` of the answer."""


def describe(plan: Plan, name: str) -> Object:
    """Returns the answer to `about`: the wire's name, version, process and links."""
    nodes = plan.nodes
    return {
        "wire": name,
        "version": _core.version(),
        "pid": os.getpid(),
        "links": [
            {
                "link": link.name,
                "from": nodes[link.from_].name,
                "to": None if link.to is None else nodes[link.to].name,
            }
            for link in plan.links
        ],
    }


class Answering(Protocol):
    """A wire that executes requests: `_core.Wire`, or `Turns`."""

    def counters(self) -> str | None:
        """Returns all counters as JSON; `None` after the end of the run."""

    def set(self, change_json: str, /) -> None:
        """Changes a link as JSON describes; raises `ValueError` if the change is invalid."""

    def stop(self) -> bool:
        """Ends the run; returns `False` if it had ended already."""


class ControlServer:
    """Serves the clients of `listener` from a separate thread, during the context.

    `about` is the answer to a request `about`. Requests before the wire's start wait for the start.
    """

    def __init__(self, wire: Answering, listener: socket.socket, about: Object) -> None:
        self.wire = wire
        self.listener = listener
        self.about = about
        self._serving: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._over = asyncio.Event()
        self._thread = threading.Thread(target=self._run, name="control", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(RuntimeError):  # the thread has failed and reported its error
            self._loop.call_soon_threadsafe(self._over.set)
        self._thread.join(JOIN_SECONDS)

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._listen())
        finally:
            self._loop.close()

    async def _listen(self) -> None:
        self.listener.setblocking(False)
        server = await asyncio.start_unix_server(self._serve, sock=self.listener, limit=LINE)
        await self._over.wait()
        # If the server is closed while it accepts a connection, the connection stays open. The
        # server therefore stops accepting first, and the event loop handles pending connections.
        self._loop.remove_reader(self.listener)
        await asyncio.sleep(0)
        server.close()
        # A task that has not begun is not cancelled, because its connection would stay open. It
        # finds `_over` set and ends by itself.
        for task in self._serving:
            task.cancel()
        while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
            await asyncio.wait(tasks)
        for _ in range(2):  # the event loop needs two more iterations to close connections
            await asyncio.sleep(0)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)
        writer.transport.set_write_buffer_limits(0)  # `drain` waits until all data are sent
        connection = _Connection(self, reader, writer)
        try:
            if self._over.is_set():
                await connection.say({"ok": True, "ended": True})
            elif len(self._serving) > CLIENTS:
                await connection.say({"ok": False, "error": f"{CLIENTS} clients are connected"})
            else:
                await connection.serve()
        except (ConnectionError, TimeoutError):
            pass  # the client has closed the connection or does not read
        except asyncio.CancelledError:
            with suppress(ConnectionError, TimeoutError, asyncio.CancelledError):
                await connection.say({"ok": True, "ended": True})
        finally:
            self._serving.discard(task)
            writer.transport.abort()


class _Connection:
    """One client."""

    def __init__(
        self, server: ControlServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self.server = server
        self.reader = reader
        self.writer = writer
        self.allowance = BURST
        self.at = time.monotonic()

    async def say(self, line: Json) -> None:
        self.writer.write(json.dumps(line, separators=(",", ":")).encode() + b"\n")
        async with asyncio.timeout(BEHIND):
            await self.writer.drain()

    async def serve(self) -> None:
        while True:
            try:
                line = await self.reader.readuntil(b"\n")
            except asyncio.IncompleteReadError:
                return
            except asyncio.LimitOverrunError:
                await self.say({"ok": False, "error": f"a request has at most {LINE} bytes"})
                return
            await self._throttle()
            request: Object = {}
            try:
                request = _request(line)
                await self._do(request)
            except Bad as error:
                await self.say({**_echo(request), "ok": False, "error": str(error)})

    async def _throttle(self) -> None:
        now = time.monotonic()
        self.allowance = min(BURST, self.allowance + (now - self.at) * RATE)
        self.at = now
        self.allowance -= 1
        if self.allowance < 0:
            await asyncio.sleep(-self.allowance / RATE)

    async def _do(self, request: Object) -> None:
        echo = {**_echo(request), "ok": True}
        match request.get("do"):
            case "about":
                _only(request)
                await self.say({**echo, **self.server.about})
            case "counters":
                _only(request, "links")
                await self.say({**echo, "counters": self._counters(request)})
            case "watch":
                _only(request, "links", "every")
                await self._watch(request, echo)
            case "set":
                _only(request, "link", *KEYS)
                self._set(request)
                await self.say(echo)
            case "stop":
                _only(request)
                await self.say(echo)
                self.server.wire.stop()
            case other:
                raise Bad(f"`do` must be about, counters, watch, set or stop; found {other!r}")

    def _counters(self, request: Object) -> Object:
        wanted = request.get("links")
        if wanted is not None and (
            not isinstance(wanted, list) or not all(isinstance(name, str) for name in wanted)
        ):
            raise Bad("`links` must be a list of names")
        text = self.server.wire.counters()
        if text is None:
            raise Bad("the wire has ended")
        counters = json.loads(text)
        links = {link["link"]: link for link in counters["links"]}
        for link in links.values():
            link["dropped"] = dict(link["dropped"])
        if wanted is not None:
            if lacking := [name for name in wanted if name not in links]:
                raise Bad(_unknown(lacking[0], list(links)))
            counters["links"] = [links[name] for name in wanted]
        return dict(counters)

    async def _watch(self, request: Object, echo: Object) -> None:
        every = request.get("every", 0.5)
        low, high = EVERY
        if (
            isinstance(every, bool)
            or not isinstance(every, int | float)
            or not low <= every <= high
        ):
            raise Bad(f"`every` must be {low:g} to {high:g} seconds; found {every!r}")
        due = time.monotonic()
        gone = asyncio.ensure_future(self.reader.read(1))
        try:
            while True:
                try:
                    counters = self._counters(request)
                except Bad as error:
                    if self.server.wire.counters() is None:
                        await self.say({**echo, "ended": True})
                        return
                    raise error from None
                await self.say({**echo, "counters": counters})
                due = max(due + every, time.monotonic())
                done, _ = await asyncio.wait({gone}, timeout=max(due - time.monotonic(), 0.001))
                if done:
                    # A watch ends when the client closes the connection or sends anything.
                    raise ConnectionResetError
        finally:
            gone.cancel()

    def _set(self, request: Object) -> None:
        if not isinstance(request.get("link"), str):
            raise Bad("`link` must be the name of a link")
        wanted = {key: request[key] for key in ("link", *KEYS) if key in request}
        if len(wanted) == 1:
            raise Bad("nothing to set: add rate, netem or queue")
        for key in ("netem", "queue"):
            if not isinstance(wanted.get(key, ""), str):
                raise Bad(f"`{key}` must be a text")
        if "rate" in wanted:
            wanted |= {"rate": _rate(request["rate"])}
        try:
            self.server.wire.set(json.dumps(wanted))
        except ValueError as error:
            raise Bad(str(error)) from None


def _request(line: bytes) -> Object:
    try:
        request = json.loads(line)
    except (ValueError, RecursionError):
        raise Bad("not JSON: a request must be one object in one line") from None
    if not isinstance(request, dict):
        raise Bad('a request must be an object, such as {"do": "counters"}')
    return request


def _echo(request: Object) -> Object:
    return {"id": request["id"]} if isinstance(request.get("id"), str | int) else {}


def _only(request: Object, *keys: str) -> None:
    for key in request:
        if key not in ("do", "id", *keys):
            allowed = ", ".join(("id", *keys))
            raise Bad(f"`{key}` is not a key of {request['do']}; allowed: {allowed}")


def _rate(value: Json) -> int:
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 63:
        return value
    if not isinstance(value, str):
        raise Bad(f"`rate` must be a text such as 5mbit, or bit/s as a number; found {value!r}")
    try:
        return int(_core.parse_quantity("rate", value))
    except _core.WordError as error:
        raise Bad(f"rate: {error}") from None


def _unknown(name: str, known: list[str]) -> str:
    near = _core.nearest(name, known[:1000])
    hint = f": did you mean `{near}`?" if near else ""
    return f"there is no link `{name}`{hint}"
