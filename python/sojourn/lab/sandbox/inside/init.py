"""PID 1 of a sandbox: one thread that answers requests, starts programs and reaps them.

The method `do_<op>` of `Init` handles the request `op`. It receives the request, with descriptors
if the request has any, and returns the reply, possibly with descriptors. A request that waits
(`await_*`) returns `Later`. Such a request is answered when its condition holds or its deadline
passes.
"""

from __future__ import annotations

import os
import resource
import select
import signal
import socket
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

from sojourn.lab import syscalls
from sojourn.lab.sandbox import messages
from sojourn.lab.sandbox.inside import ports
from sojourn.lab.sandbox.inside.network import Network, sysctl
from sojourn.lab.sandbox.inside.programs import Program, Stream, Watch, start
from sojourn.lab.sandbox.messages import Message

HOSTS = 1024
"""Maximum number of hosts."""
PROGRAMS = 1 << 16
"""Maximum number of programs that a sandbox starts."""
WAITING = 4096
"""Maximum number of requests that wait at the same time."""
OPEN_FILES = 1 << 18
"""Limit of open files for init. A running program needs four descriptors, a host about six."""
POLL_FIRST, POLL_MOST = 0.001, 0.02
"""First and longest interval between checks of a port, in seconds. The kernel does not report that
a port has been opened.
"""


class Answer(NamedTuple):
    """A reply, the descriptors to send with the reply, and the descriptors to close afterwards."""

    message: Message
    fds: Sequence[int] = ()
    close: Sequence[int] = ()


class Refused(Exception):
    """A request is invalid or exceeds a limit."""


class Later:
    """A waiting request.

    `look` returns the answer, or `None` as long as the condition does not hold. `look` is called
    after every event, with `poll` also at intervals. `timeout` is in seconds.
    """

    def __init__(self, look: Callable[[], Answer | None], timeout: float, poll: bool) -> None:
        self.look = look
        self.deadline = time.monotonic() + timeout
        self.interval = POLL_FIRST if poll else None
        self.number = 0


class Init:
    """The state of init; `control` is the socket to the process outside."""

    def __init__(self, control: socket.socket) -> None:
        self.control = control
        self.poller = select.epoll()
        self.readers: dict[int, Callable[[], None]] = {}
        self.home = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        self.hosts: list[int] = []
        self.programs: dict[int, Program] = {}
        self.started = 0
        self.running: dict[int, Program] = {}
        self.waiting: list[Later] = []
        self.network = Network(self.home)
        self.open = True

    def run(self) -> None:
        """Serves requests until the process outside closes the connection."""
        wakeup, woken = os.pipe()
        os.set_blocking(wakeup, False)
        os.set_blocking(woken, False)
        soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, OPEN_FILES)), hard))
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.set_wakeup_fd(woken, warn_on_full_buffer=False)

        def on_child_end() -> None:
            with suppress(BlockingIOError):
                os.read(wakeup, 4096)
            self.reap()

        self.watch(wakeup, on_child_end)
        self.watch(self.control.fileno(), self.serve)
        messages.send(self.control, {"event": "ready", "can": abilities()})
        self.network.load()
        while self.open:
            for fd, _ in self.poller.poll(self.patience()):
                reader = self.readers.get(fd)
                if reader is not None:
                    reader()
            self.look()

    def watch(self, fd: int, reader: Callable[[], None]) -> None:
        """Calls `reader` whenever `fd` is readable."""
        self.readers[fd] = reader
        self.poller.register(fd, select.EPOLLIN)

    def forget(self, fd: int) -> None:
        """Ends the calls for `fd` that `watch` began."""
        del self.readers[fd]
        self.poller.unregister(fd)

    def patience(self) -> float | None:
        """Returns the seconds until the next check of a waiting request; `None` without one."""
        now = time.monotonic()
        times = [later.interval for later in self.waiting if later.interval is not None]
        times += [later.deadline - now for later in self.waiting]
        return max(0.0, min(times)) if times else None

    def look(self) -> None:
        """Answers the waiting requests whose condition holds or whose deadline has passed."""
        still = []
        for later in self.waiting:
            try:
                answer = later.look()
                if answer is not None:
                    self.reply(later.number, answer)
                elif time.monotonic() >= later.deadline:
                    self.refuse(later.number, "deadline", "the deadline has passed", 0)
                else:
                    if later.interval is not None:
                        later.interval = min(2 * later.interval, POLL_MOST)
                    still.append(later)
            except (OSError, Refused) as error:
                self.refuse(later.number, "failed", str(error), getattr(error, "errno", 0) or 0)
        self.waiting = still

    def serve(self) -> None:
        """Receives and handles one request."""
        received = messages.receive(self.control)
        if received is None:
            self.open = False
            return
        request, fds = received
        number = request.get("id", 0)
        try:
            method = getattr(self, f"do_{request.get('op')}", None)
            if method is None:
                raise Refused(f"no such request: {request.get('op')!r}")
            answer = method(request, fds) if fds else method(request)
            if isinstance(answer, Later):
                if len(self.waiting) >= WAITING:
                    raise Refused(f"at most {WAITING} requests may wait")
                answer.number = number
                self.waiting.append(answer)
            else:
                self.reply(number, answer)
        except OSError as error:
            text = str(error) if error.errno is None else f"{error.strerror or error}"
            if error.filename:
                text += f": {error.filename!r}"
            self.refuse(number, "failed", text, error.errno or 0)
        except (Refused, KeyError, TypeError, ValueError, IndexError) as error:
            self.refuse(number, "failed", f"{type(error).__name__}: {error}", 0)
        finally:
            messages.close_all(fds)

    def reply(self, number: int, answer: Answer) -> None:
        """Sends the reply to the request `number`."""
        try:
            self.tell({"id": number, "ok": answer.message}, answer.fds)
        finally:
            messages.close_all(answer.close)

    def refuse(self, number: int, kind: str, text: str, errno: int) -> None:
        """Sends an error as the reply to the request `number`."""
        self.tell({"id": number, "error": {"kind": kind, "message": text[:8192], "errno": errno}})

    def tell(self, message: Message, fds: Sequence[int] = ()) -> None:
        """Sends a message; ends init if the process outside has closed the connection."""
        try:
            messages.send(self.control, message, fds)
        except (BrokenPipeError, ConnectionResetError):
            self.open = False

    def do_host(self, _: Message) -> Answer:
        """Creates a host: a network namespace."""
        if len(self.hosts) >= HOSTS:
            raise Refused(f"at most {HOSTS} hosts")
        syscalls.unshare(syscalls.CLONE_NEWNET)
        try:
            fd = os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        finally:
            syscalls.setns(self.home, syscalls.CLONE_NEWNET)
        self.hosts.append(fd)
        return Answer({"host": len(self.hosts) - 1, "fd": fd, "inode": os.fstat(fd).st_ino}, [fd])

    def netns(self, request: Message) -> int:
        """Returns the network namespace that a request names, by default the empty one of init."""
        number = request.get("host")
        if number is None:
            return self.home
        if not isinstance(number, int) or not 0 <= number < len(self.hosts):
            raise Refused(f"no host {number!r}")
        return self.hosts[number]

    def program(self, request: Message) -> Program:
        """Returns the program that a request names."""
        number = request["program"]
        if number not in self.programs:
            raise Refused(f"no program {number!r}")
        return self.programs[number]

    def do_spawn(self, request: Message, fds: Sequence[int] = ()) -> Answer:
        """Starts a program; `fds` become its descriptors."""
        if self.started >= PROGRAMS:
            raise Refused(f"at most {PROGRAMS} programs")
        number = self.started
        program = start(number, request, fds, self.netns(request))
        self.started += 1
        self.programs[number] = program
        self.running[program.pid] = program
        for stream in program.streams:
            if stream.pipe is not None:
                self.watch(stream.pipe, partial(self.read, stream))
        handle = os.pidfd_open(program.pid)
        return Answer(
            {"program": number, "pid": program.pid, "directory": program.directory},
            [*(stream.kept for stream in program.streams), handle],
            close=[handle],
        )

    def read(self, stream: Stream) -> None:
        """Stores available output of a program; closes the stream at its end."""
        pipe = stream.pipe
        if pipe is not None and not stream.take():
            self.forget(pipe)
            stream.close()

    def reap(self) -> None:
        """Reaps all ended processes, also orphans, and reports the ends of programs."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            program = self.running.pop(pid, None)
            if program is None:
                continue
            for stream in program.streams:
                self.read(stream)
            program.ended(status, usage)
            self.tell({"event": "exit", "program": program.number, **program.result})

    def do_signal(self, request: Message) -> Answer:
        """Sends a signal to a program or its process group, unless the program has ended."""
        program = self.program(request)
        if program.result:
            return Answer({"sent": False})
        number = signal.Signals(request["signal"])
        try:
            (os.killpg if request.get("group", True) else os.kill)(program.pid, number)
        except ProcessLookupError:
            return Answer({"sent": False})
        return Answer({"sent": True})

    def do_schedule(self, request: Message) -> Answer:
        """Sets the priority of a running program."""
        program = self.program(request)
        if program.result:
            raise Refused("the program has ended")
        if request.get("nice") is not None:
            os.setpriority(os.PRIO_PROCESS, program.pid, request["nice"])
        if request.get("fifo") is not None:
            os.sched_setscheduler(program.pid, os.SCHED_FIFO, os.sched_param(request["fifo"]))
        return Answer({})

    def do_await_output(self, request: Message) -> Later:
        """Waits until a program has written a text to a stream, or can no longer write it."""
        program = self.program(request)
        stream = program.streams[request.get("stream", 0)]
        watch = Watch(stream, request["text"].encode())

        def look() -> Answer | None:
            end = watch.look()
            if end is not None:
                return Answer({"found": True, "end": end})
            if program.result and stream.pipe is None:
                return Answer({"found": False, **program.result})
            return None

        return Later(look, request["timeout"], poll=False)

    def do_await_port(self, request: Message) -> Later:
        """Waits until a port of a host is open, or until the program that should open it ends."""
        program = self.program(request) if request.get("program") is not None else None
        looker = ports.Looker(self.netns(request), self.home, request["protocol"])

        def look() -> Answer | None:
            if looker.open(request["port"]):
                return Answer({"found": True})
            if program is not None and program.result:
                return Answer({"found": False, **program.result})
            return None

        return Later(look, request["timeout"], poll=True)

    def do_network(self, request: Message) -> Answer:
        """Executes a call of `Network` in a host, such as `link_add`."""
        others = {
            key: self.netns({"host": number}) for key, number in request.get("hosts", {}).items()
        }
        arguments = {**request.get("arguments", {}), **others}
        return Answer(self.network.call(self.netns(request), request["call"], arguments))

    def do_sysctl(self, request: Message) -> Answer:
        """Sets the sysctls of a host that have a value in the request; returns all values."""
        with self.network.inside(self.netns(request)):
            values = {name: sysctl(name, value) for name, value in request["values"].items()}
        return Answer({"values": values})

    def do_open(self, request: Message) -> Answer:
        """Opens a file by its path inside the sandbox, and sends its descriptor."""
        flags = {
            "r": os.O_RDONLY,
            "w": os.O_WRONLY | os.O_CREAT | os.O_TRUNC,
            "a": os.O_WRONLY | os.O_CREAT | os.O_APPEND,
        }[request["mode"]]
        fd = os.open(request["path"], flags | os.O_CLOEXEC | os.O_NONBLOCK, 0o644)
        os.set_blocking(fd, True)
        return Answer({}, [fd], close=[fd])


def abilities() -> list[str]:
    """Returns the optional abilities of this sandbox, each found by a trial."""
    can = []
    with suppress(OSError):
        os.close(os.open("/dev/net/tun", os.O_RDWR | os.O_CLOEXEC))
        can.append("tun")
    with suppress(OSError):
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        can.append("realtime")
    with suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, 33, 4096)  # SO_RCVBUFFORCE
        can.append("force-buffers")
    return can
