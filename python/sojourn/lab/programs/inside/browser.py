"""A Web client with its users: `python -m ... SEED NODE`.

The program reads the plan from descriptor 3 and the flows' socket options as JSON from descriptor
4, and writes its log to descriptor 5. The engine's model decides the users' requests
(`_core.web_sessions`). libcurl fetches each requested object on a separate connection. The program
reports that it is ready, reads the start time of the run from its standard input, and ends at the
end of the run or at SIGTERM.

The log has a line of JSON for each completed, failed or unfinished object and for each page.
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
from collections.abc import Mapping
from typing import IO

import pycurl

from sojourn import _core
from sojourn.data import Object
from sojourn.lab.programs.inside.nginx import set_options
from sojourn.lab.programs.web import body, request_padding, url

PLAN, OPTIONS, LOG = 3, 4, 5
"""Descriptors of the files."""
SECOND = 1_000_000_000
MILLISECOND = 1_000_000


class Fetch:
    """An object in progress."""

    def __init__(
        self, session: _core.WebSession, asked: tuple[int, int, int, int, int, int]
    ) -> None:
        self.session = session
        self.due, self.page, self.object, self.server, self.request, self.answer = asked
        self.started = 0
        self.bytes = 0

    def entry(self) -> Object:
        """Returns the log entry of an unfinished object."""
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
        """Counts received bytes of the body."""
        self.bytes += len(data)


class Browser:
    """All users of one host, in one thread."""

    def __init__(
        self, plan: str, seed: int, node: int, options: Mapping[str, dict[str, int | str | None]]
    ) -> None:
        self.sessions = _core.web_sessions(plan, seed, node)
        self.duration = int(json.loads(plan)["duration"])
        self.options = options
        self.multi = pycurl.CurlMulti()
        self.multi.setopt(pycurl.M_SOCKETFUNCTION, self.watch)
        self.multi.setopt(pycurl.M_TIMERFUNCTION, self.set_timer)
        # Each object has its own connection, so libcurl needs no cache of connections.
        self.multi.setopt(pycurl.M_MAXCONNECTS, 1)
        self.epoll = select.epoll()
        self.watched: set[int] = set()
        self.timer: int | None = None
        # Handles are created before the run, because their creation takes time.
        self.idle = [pycurl.Curl() for _ in self.sessions]
        self.going: dict[int, Fetch] = {}
        self.alarms: list[tuple[int, int]] = []
        self.numbers = {id(session): n for n, session in enumerate(self.sessions)}
        self.start = 0
        self.log: IO[str] = open(LOG, "w", encoding="utf-8")  # noqa: SIM115 - open to the end

    def now(self) -> int:
        """Returns the time since the start of the run in nanoseconds."""
        return time.monotonic_ns() - self.start

    def watch(self, what: int, fd: int, *_: object) -> None:
        """Sets or removes the events of libcurl's socket `fd` that the program waits for."""
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
        """Sets the time of the next call of libcurl; a negative value removes it."""
        self.timer = None if milliseconds < 0 else self.now() + milliseconds * MILLISECOND

    def ask(self, session: _core.WebSession) -> None:
        """Requests all objects of a user that are due, and schedules the user's next request."""
        while (request := session.poll(max(0, self.now()))) is not None:
            self.fetch(Fetch(session, request))
        self.note(session)

    def note(self, session: _core.WebSession) -> None:
        """Schedules a user's next request, unless it depends on objects in progress."""
        at = session.next_event()
        if at is not None:
            heapq.heappush(self.alarms, (at, self.numbers[id(session)]))

    def fetch(self, wanted: Fetch) -> None:
        """Begins the request of an object."""
        curl = self.idle.pop() if self.idle else pycurl.Curl()
        options = self.options[str(wanted.session.flow)]

        def opened(fd: int, _: int) -> int:
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
        """Logs the end of a request; `error` is `None` if it succeeded.

        Requests the next objects.
        """
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
        # A user also continues after a failed object.
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

    def write(self, entry: Object) -> None:
        """Writes an entry to the log, as a line of JSON."""
        self.log.write(json.dumps(entry, separators=(",", ":")) + "\n")

    def run(self, start: int, stop: int) -> None:
        """Plays the users until the end of the run, or until the descriptor `stop` is readable."""
        self.start = start
        self.epoll.register(stop, select.EPOLLIN)
        for session in self.sessions:
            self.note(session)
        while (now := self.now()) < self.duration:
            until = min(self.alarms[0][0] if self.alarms else self.duration, self.duration)
            if self.timer is not None:
                until = min(until, self.timer)
            # epoll waits for whole milliseconds; `sleep` waits for the remaining fraction.
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
            # A user may have several entries in `alarms`. For a user without a due request, `ask`
            # only adds an entry.
            due = []
            now = self.now()
            while self.alarms and self.alarms[0][0] <= now:
                due.append(heapq.heappop(self.alarms)[1])
            for number in dict.fromkeys(due):
                self.ask(self.sessions[number])

    def tell(self, fd: int, mask: int) -> None:
        """Informs libcurl of events at a socket."""
        bits = 0
        if mask & (select.EPOLLIN | select.EPOLLHUP):
            bits |= pycurl.CSELECT_IN
        if mask & select.EPOLLOUT:
            bits |= pycurl.CSELECT_OUT
        if mask & select.EPOLLERR:
            bits |= pycurl.CSELECT_ERR
        self.multi.socket_action(fd, bits)

    def gather(self) -> None:
        """Handles the requests that libcurl has completed."""
        left = 1
        while left:
            left, good, bad = self.multi.info_read()
            for curl in good:
                self.done(curl, None)
            for curl, _, message in bad:
                self.done(curl, message)

    def close(self) -> None:
        """Logs unfinished objects and closes the log."""
        for wanted in self.going.values():
            self.write(wanted.entry())
        self.log.close()


def main(seed: int, node: int) -> int:
    """Runs the users of a host; returns the exit status."""
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
