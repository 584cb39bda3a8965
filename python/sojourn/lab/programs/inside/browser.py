"""A Web client and its users: `python -m ... SEED NODE`.

The plan is at descriptor 3, the flows' socket options at 4, as JSON; the log goes to 5. Users
behave as the engine's model says (`_core.web_sessions`); libcurl fetches what they ask for, each
object on a connection of its own. It says that it is ready, reads when the run starts, and goes on
until the run's end, or SIGTERM.

The log has a line of JSON for each object, when it has come or failed, and for each page.
"""

from __future__ import annotations

import heapq
import json
import os
import select
import signal
import socket
import sys
import time
from typing import IO, Any

import pycurl

from sojourn import _core
from sojourn.lab.programs.inside.nginx import set_options
from sojourn.lab.programs.web import body, request_padding, url

PLAN, OPTIONS, LOG = 3, 4, 5
SECOND = 1_000_000_000
MILLISECOND = 1_000_000


class Fetch:
    """An object on its way."""

    def __init__(
        self, session: _core.WebSession, asked: tuple[int, int, int, int, int, int]
    ) -> None:
        self.session = session
        self.due, self.page, self.object, self.server, self.request, self.answer = asked
        self.started = 0
        self.bytes = 0

    def entry(self) -> dict[str, Any]:
        """Return what the log says of it, as long as it has not ended."""
        return {
            "flow": self.session.flow,
            "page": self.page,
            "object": self.object,
            "server": self.server,
            "due": self.due,
            "started": self.started,
            "connect": 0,
            "first": 0,
            "ended": None,
            "asked": self.answer,
            "bytes": self.bytes,
        }

    def take(self, data: bytes) -> None:
        """Some of it came."""
        self.bytes += len(data)


class Browser:
    """All users of one client."""

    def __init__(self, plan: str, seed: int, node: int, options: dict[str, Any]) -> None:
        self.sessions = _core.web_sessions(plan, seed, node)
        self.duration = int(json.loads(plan)["duration"])
        self.options = options
        self.multi = pycurl.CurlMulti()
        self.multi.setopt(pycurl.M_SOCKETFUNCTION, self.watch)
        self.multi.setopt(pycurl.M_TIMERFUNCTION, self.set_timer)
        # Nothing is kept for later: every object has a connection of its own.
        self.multi.setopt(pycurl.M_MAXCONNECTS, 1)
        self.epoll = select.epoll()
        self.watched: set[int] = set()
        self.timer: int | None = None
        # Made before they are needed, which takes a while.
        self.idle = [pycurl.Curl() for _ in self.sessions]
        self.going: dict[int, Fetch] = {}
        self.alarms: list[tuple[int, int]] = []
        self.numbers = {id(session): n for n, session in enumerate(self.sessions)}
        self.start = 0
        self.log: IO[str] = open(LOG, "w", encoding="utf-8")  # noqa: SIM115 - as long as we live

    def now(self) -> int:
        """Nanoseconds since the run's start."""
        return time.monotonic_ns() - self.start

    # What libcurl wants

    def watch(self, what: int, fd: int, multi: object, data: object) -> None:
        """Waits for one of libcurl's sockets, or no more."""
        del multi, data
        if what == pycurl.POLL_REMOVE:
            if fd in self.watched:
                self.watched.discard(fd)
                self.epoll.unregister(fd)
            return
        events = 0
        if what in (pycurl.POLL_IN, pycurl.POLL_INOUT):
            events |= select.EPOLLIN
        if what in (pycurl.POLL_OUT, pycurl.POLL_INOUT):
            events |= select.EPOLLOUT
        if fd in self.watched:
            self.epoll.modify(fd, events)
        else:
            self.watched.add(fd)
            self.epoll.register(fd, events)

    def set_timer(self, milliseconds: int) -> None:
        """Has libcurl called again after some time."""
        self.timer = None if milliseconds < 0 else self.now() + milliseconds * MILLISECOND

    # What users want

    def ask(self, session: _core.WebSession) -> None:
        """Asks for all that a user wants now, and notes when he wants more."""
        while (asked := session.poll(max(0, self.now()))) is not None:
            self.fetch(Fetch(session, asked))
        self.note(session)

    def note(self, session: _core.WebSession) -> None:
        """Notes when a user wants something, unless that depends on what he gets."""
        at = session.next_event()
        if at is not None:
            heapq.heappush(self.alarms, (at, self.numbers[id(session)]))

    def fetch(self, wanted: Fetch) -> None:
        """Begins to fetch an object."""
        curl = self.idle.pop() if self.idle else pycurl.Curl()
        options = self.options[str(wanted.session.flow)]

        def opened(fd: int, purpose: int) -> int:
            del purpose
            with socket.socket(fileno=os.dup(fd)) as made:
                set_options(made, options)
            return int(pycurl.SOCKOPT_OK)

        length = body(wanted.answer)
        target = url(wanted.server, wanted.session.port)
        bounds = f"0-{length - 1}"
        padding = request_padding(target, bounds, wanted.request)
        curl.reset()
        for option, value in (
            (pycurl.URL, target),
            (pycurl.RANGE, bounds),
            (pycurl.HTTPHEADER, ["Accept:", "User-Agent:", *padding]),
            (pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_0),
            (pycurl.FRESH_CONNECT, 1),
            (pycurl.FORBID_REUSE, 1),
            (pycurl.FAILONERROR, 1),
            (pycurl.HTTP09_ALLOWED, 0),
            (pycurl.PROXY, ""),
            (pycurl.NOSIGNAL, 1),
            (pycurl.BUFFERSIZE, 512 << 10),
            (pycurl.SOCKOPTFUNCTION, opened),
            (pycurl.WRITEFUNCTION, wanted.take),
        ):
            curl.setopt(option, value)
        self.going[id(curl)] = wanted
        wanted.started = self.now()
        self.multi.add_handle(curl)

    def done(self, curl: pycurl.Curl, error: str | None) -> None:
        """An object has come, or will not."""
        wanted = self.going.pop(id(curl))
        now = self.now()
        entry = wanted.entry() | {
            "connect": round(curl.getinfo(pycurl.CONNECT_TIME) * SECOND),
            "first": round(curl.getinfo(pycurl.STARTTRANSFER_TIME) * SECOND),
            "ended": now,
            "bytes": wanted.bytes + curl.getinfo(pycurl.HEADER_SIZE),
        }
        if error is not None:
            entry["error"] = error
        self.write(entry)
        self.multi.remove_handle(curl)
        self.idle.append(curl)
        # The user goes on, also past an object that could not be had.
        page = wanted.session.complete(now, wanted.page, wanted.object)
        if page is not None:
            number, started, objects = page
            self.write(
                {
                    "flow": wanted.session.flow,
                    "page": number,
                    "started": started,
                    "ended": now,
                    "objects": objects,
                    "whole": error is None,
                }
            )
        self.ask(wanted.session)

    def write(self, entry: dict[str, Any]) -> None:
        """Logs something."""
        self.log.write(json.dumps(entry, separators=(",", ":")) + "\n")

    def run(self, start: int, stop: int) -> None:
        """Plays until the run's end, or until `stop` can be read."""
        self.start = start
        self.epoll.register(stop, select.EPOLLIN)
        for session in self.sessions:
            self.note(session)
        while (now := self.now()) < self.duration:
            until = min(self.alarms[0][0] if self.alarms else self.duration, self.duration)
            if self.timer is not None:
                until = min(until, self.timer)
            # epoll waits for whole milliseconds; what is left is slept.
            events = self.epoll.poll(max(0, until - now) // MILLISECOND / 1_000)
            left = until - self.now()
            if not events and 0 < left < MILLISECOND:
                time.sleep(left / SECOND)
            for fd, mask in events:
                if fd == stop:
                    return
                self.tell(fd, mask)
            if self.timer is not None and self.timer <= self.now():
                self.timer = None
                self.multi.socket_action(pycurl.SOCKET_TIMEOUT, 0)
            self.gather()
            # One that was noted again since has nothing to ask for, and is only noted anew.
            due = []
            now = self.now()
            while self.alarms and self.alarms[0][0] <= now:
                due.append(heapq.heappop(self.alarms)[1])
            for number in dict.fromkeys(due):
                self.ask(self.sessions[number])

    def tell(self, fd: int, mask: int) -> None:
        """Tells libcurl what became of a socket."""
        bits = 0
        if mask & (select.EPOLLIN | select.EPOLLHUP):
            bits |= pycurl.CSELECT_IN
        if mask & select.EPOLLOUT:
            bits |= pycurl.CSELECT_OUT
        if mask & select.EPOLLERR:
            bits |= pycurl.CSELECT_ERR
        self.multi.socket_action(fd, bits)

    def gather(self) -> None:
        """Takes what libcurl has finished."""
        left = 1
        while left:
            left, good, bad = self.multi.info_read()
            for curl in good:
                self.done(curl, None)
            for curl, _, message in bad:
                self.done(curl, message)

    def close(self) -> None:
        """Logs what has not come, and ends the log."""
        for wanted in self.going.values():
            self.write(wanted.entry())
        self.log.close()


def main(seed: int, node: int) -> int:
    """Be the users of a client."""
    with open(PLAN, encoding="utf-8") as file:
        plan = file.read()
    with open(OPTIONS, encoding="utf-8") as file:
        options = json.load(file)
    browser = Browser(plan, seed, node, options)
    stop, stopped = os.pipe()
    os.set_blocking(stopped, False)
    signal.signal(signal.SIGTERM, lambda *_: None)
    signal.set_wakeup_fd(stopped, warn_on_full_buffer=False)
    print("ready", flush=True)
    start = sys.stdin.readline()
    if start:
        browser.run(int(start), stop)
    browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]), int(sys.argv[2])))
