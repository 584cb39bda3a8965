"""The keeper of a sandbox: a thread that starts init, receives its messages, and awaits its end.

Init asks the kernel to kill it when its parent ends (PR_SET_PDEATHSIG). To the kernel, the parent
is the *thread* that created init. This thread must therefore live as long as the sandbox, and the
caller's thread need not.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Collection, Sequence
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import suppress
from pathlib import Path

from sojourn.lab.errors import DeadlinePassed, RequestFailed, SandboxDied
from sojourn.lab.sandbox import messages
from sojourn.lab.sandbox.process import Process

START_SECONDS = 60.0
"""Time limit for the start of init in seconds; an idle machine needs a tenth of a second."""
END_SECONDS = 10.0
"""Time limit for init to end after its socket was closed, in seconds; then init is killed."""

_START = (
    "import json,sys;c=json.loads(sys.argv[1]);sys.path[:]=c['path'];"
    "from sojourn.lab.sandbox.inside.namespaces import main;main(c)"
)


class CannotStart(Exception):
    """A step of init's start failed; `errno` is the kernel's error number, or 0."""

    def __init__(self, step: str, errno: int, message: str) -> None:
        super().__init__(f"{step}: {message}")
        self.step = step
        self.errno = errno


class Keeper:
    """The keeper's thread, and the state of init as seen from this process.

    `user` selects a user namespace. `memory` limits the files in the sandbox, in bytes.
    """

    def __init__(self, user: bool, memory: int) -> None:
        self.control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.errors = os.memfd_create("sojourn-init", os.MFD_CLOEXEC)
        self.lock = threading.Lock()
        self.ending = threading.Condition(self.lock)
        self.pending: dict[int, Future[tuple[messages.Message, list[int]]]] = {}
        self.processes: dict[int, Process] = {}
        self.unclaimed: dict[int, messages.Message] = {}
        self.count = 0
        self.can: frozenset[str] = frozenset()
        self.ended: str | None = None
        self.wanted = True
        self.started: Future[frozenset[str]] = Future()
        self.popen_pid = 0
        arguments = [
            sys.executable,
            "-I",
            "-S",
            "-B",
            "-c",
            _START,
            json.dumps(
                {
                    "parent": os.getpid(),
                    "control": theirs.fileno(),
                    "user": user,
                    "memory": memory,
                    "path": [str(Path(__file__).parents[2]), *filter(None, sys.path)],
                }
            ),
        ]
        self.keeper = threading.Thread(
            target=self._keep, args=(arguments, theirs), name="sandbox keeper", daemon=True
        )
        self.keeper.start()
        try:
            self.can = self.started.result(START_SECONDS)
        except BaseException as error:
            self.end()
            if isinstance(error, FutureTimeout):
                raise CannotStart(
                    "start", 0, f"init did not answer within {START_SECONDS:.0f} s"
                ) from None
            raise

    def _keep(self, arguments: list[str], theirs: socket.socket) -> None:
        """Starts init, receives its messages, and awaits its end: the keeper's thread."""
        try:
            with theirs:
                popen = subprocess.Popen(  # noqa: S603 - our own program
                    arguments,
                    stdin=subprocess.DEVNULL,
                    stdout=self.errors,
                    stderr=self.errors,
                    pass_fds=(theirs.fileno(),),
                    start_new_session=True,
                )
        except OSError as error:
            self.started.set_exception(CannotStart("start", error.errno or 0, str(error)))
            self.ended = str(error)
            return
        self.popen_pid = popen.pid
        try:
            while True:
                received = messages.receive(self.control)
                if received is None:
                    break
                self._take(*received)
        except (OSError, ValueError, TypeError) as error:
            if self.wanted:
                self.ended = f"the sandbox's init sent an invalid message: {error}"
        if self.wanted:
            popen.kill()
        try:
            status = popen.wait(END_SECONDS)
        except subprocess.TimeoutExpired:
            popen.kill()
            status = popen.wait()
        self._end(status)

    def _take(self, message: messages.Message, fds: list[int]) -> None:
        """Handles one message: sets the result that a caller waits for."""
        event = message.get("event")
        if event == "ready":
            self.started.set_result(frozenset(message["can"]))
        elif event == "failed":
            self.started.set_exception(
                CannotStart(message["step"], message["errno"], message["message"])
            )
        elif event == "exit":
            with self.lock:
                process = self.processes.get(message["program"])
                if process is None:
                    self.unclaimed[message["program"]] = message
            if process is not None:
                process.end(message)
                with self.lock:
                    self.processes.pop(process.number, None)
                    self.ending.notify_all()
        else:
            with self.lock:
                future = self.pending.pop(message.get("id", -1), None)
            if future is None:
                messages.close_all(fds)
            elif "ok" in message:
                future.set_result((message["ok"], fds))
            else:
                error = message["error"]
                kind = DeadlinePassed if error["kind"] == "deadline" else RequestFailed
                future.set_exception(
                    DeadlinePassed(error["message"])
                    if kind is DeadlinePassed
                    else RequestFailed(error["message"], error["errno"])
                )

    def _end(self, status: int) -> None:
        """Gives all waiting callers the error that init has ended."""
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        if status == 128 + signal.SIGKILL:
            how = "signal SIGKILL"
        text = os.pread(self.errors, 65536, 0).decode(errors="replace").strip()
        os.close(self.errors)
        with self.lock:
            if self.ended is None:
                self.ended = f"the sandbox's init has ended ({how})"
            if text:
                self.ended += f":\n{text}"
            pending, self.pending = list(self.pending.values()), {}
            processes, self.processes = list(self.processes.values()), {}
        if not self.started.done():
            self.started.set_exception(CannotStart("start", 0, self.ended))
        for future in pending:
            future.set_exception(SandboxDied(self.ended))
        for process in processes:
            process.lost(self.ended)
        with self.lock:
            self.ending.notify_all()

    def follow(self, process: Process) -> None:
        """Registers a process whose end init will report, or has reported already."""
        with self.lock:
            message = self.unclaimed.pop(process.number, None)
            ended = self.ended
            if message is None and ended is None:
                self.processes[process.number] = process
        if message is not None:
            process.end(message)
        elif ended is not None:
            process.lost(ended)

    def request(
        self,
        op: str,
        fds: Sequence[int] = (),
        seconds: float = messages.REQUEST_SECONDS,
        **arguments: object,
    ) -> tuple[messages.Message, list[int]]:
        """Sends a request to init and returns the reply with its descriptors.

        Raises `DeadlinePassed` if init does not reply within `seconds`, `RequestFailed` if init
        refuses the request, and `SandboxDied` if init has ended.
        """
        future: Future[tuple[messages.Message, list[int]]] = Future()
        with self.lock:
            if self.ended is not None:
                raise SandboxDied(self.ended)
            self.count += 1
            number = self.count
            self.pending[number] = future
            try:
                messages.send(self.control, {"id": number, "op": op, **arguments}, fds)
            except messages.TooLong as error:
                del self.pending[number]
                raise RequestFailed(str(error)) from None
            except OSError:
                pass  # init has ended; the keeper's thread sets the error
        try:
            return future.result(seconds)
        except FutureTimeout:
            with self.lock:
                self.pending.pop(number, None)
            raise DeadlinePassed(
                f"the sandbox's init did not answer `{op}` within {seconds:.0f} s"
            ) from None

    def wait_any(self, processes: Collection[Process], timeout: float) -> list[Process]:
        """Waits at most `timeout` seconds until one process has ended; returns all ended ones."""
        deadline = time.monotonic() + timeout
        with self.lock:
            while True:
                ended = [process for process in processes if not process.running]
                left = deadline - time.monotonic()
                if ended or not processes or left <= 0:
                    return ended
                self.ending.wait(left)

    def end(self) -> None:
        """Ends init, and with it the sandbox; waits for the end."""
        self.wanted = False
        with suppress(OSError):
            self.control.shutdown(socket.SHUT_RDWR)
        self.keeper.join()
        self.control.close()
