"""A child process for commands that execute policies of the user.

When a command loads its first policy, the process divides (`fork`): the child continues the
command, the parent waits, passes signals, and reports how the child ended. Regardless of the code
of a policy, the command ends with a message and a status. The child has a process group of its own,
so that a signal from the terminal reaches it once, from the parent.
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import re
import resource
import select
import signal
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn, TextIO

from sojourn._core import PolicyError
from sojourn.cli import output
from sojourn.own import guard

GRACE = 2.0
"""Seconds after a second Ctrl-C, or after a call's longest duration, until the child is killed."""
STOPS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
FINISHED = guard.WORDS * guard.SLOTS - 1
"""Place in the memory of the exit status plus 1."""
_PLACE = re.compile(r'File "((?!/|<)[^"]+\.py)", line (\d+) in (\S+)')
_exit = os._exit
_ENDINGS = {
    signal.SIGSEGV: "crashed (segmentation fault)",
    signal.SIGABRT: "aborted",
    signal.SIGKILL: "was killed (SIGKILL); perhaps the machine ran out of memory",
}


def begin() -> None:
    """Divides this process; returns in the child.

    In the parent, this function ends the process with the child's exit status, or raises
    `PolicyError` if a policy ended the child.
    """
    guard.enter = None
    output.life.stop()  # a process with several threads cannot divide
    if not hasattr(os, "fork") or threading.active_count() > 1:
        output.life.start()
        return
    sys.stdout.flush()
    sys.stderr.flush()
    dump = tempfile.TemporaryFile("w+")  # noqa: SIM115 - both processes use it until they end
    alive, mine = os.pipe()
    parent = os.getpid()
    # A signal before the parent's handlers exist is delivered after them.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPS)
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        os.close(alive)
        _in_child(dump, parent)
        output.life.start()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        return
    os.close(mine)
    with suppress(OSError):
        os.setpgid(child, child)
    _Parent(child, dump).wait(alive)


def _in_child(dump: TextIO, parent: int) -> None:
    faulthandler.enable(dump)
    signal.signal(signal.SIGTTOU, signal.SIG_IGN)
    guard.leave = _leave
    if sys.platform == "linux":
        from sojourn.lab import syscalls

        syscalls.die_with_parent(signal.SIGKILL)
        if os.getppid() != parent:
            os.kill(os.getpid(), signal.SIGKILL)
        _limit_memory()
    me = os.getpid()

    def ended(status: int) -> NoReturn:
        if os.getpid() == me and any(
            call.thread == threading.get_ident() for _, call in guard.calls()
        ):
            raise SystemExit(f"os._exit({status})")
        _exit(status)

    os._exit = ended
    from sojourn.own import notices

    notices.begin(output.note)


def _limit_memory() -> None:
    """Limits the process's data to half of the memory that is available; a core file to nothing."""
    with suppress(OSError, ValueError, KeyError):
        kib = {
            name: int(value.split()[0])
            for path in ("/proc/meminfo", "/proc/self/status")
            for name, _, value in (
                line.partition(":") for line in Path(path).read_text().splitlines()
            )
            if name in ("MemAvailable", "VmData")
        }
        most = (kib["VmData"] + kib["MemAvailable"] // 2) << 10
        soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
        if soft == resource.RLIM_INFINITY or soft > most:
            resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


def _leave(code: object) -> NoReturn:
    """Ends the child: its other threads may never end."""
    status = code if isinstance(code, int) else 0 if code is None else 1
    if isinstance(code, str):
        print(code, file=sys.stderr)
    guard.leave = None
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    guard.memory[FINISHED] = status + 1
    _exit(status)


class _Parent:
    """The process that waits for the child."""

    def __init__(self, child: int, dump: TextIO) -> None:
        self._child = child
        self._dump = dump
        self._stops: list[int] = []
        self._kill_at = float("inf")
        self._stuck: guard.Call | None = None

    def wait(self, alive: int) -> NoReturn:
        """Waits for the child's end; see `begin`."""
        for number in STOPS:
            if signal.getsignal(number) != signal.SIG_IGN:
                signal.signal(number, self._stop)
        signal.signal(signal.SIGTSTP, self._pause)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
        readings = guard.Readings()
        read = time.monotonic()
        while True:
            if select.select([alive], [], [], guard.PERIOD)[0]:
                time.sleep(0.005)  # the child ends, or its policy has closed the pipe
            done, status = os.waitpid(self._child, os.WNOHANG | os.WUNTRACED)
            if done and os.WIFSTOPPED(status):
                self._lend_terminal(os.WSTOPSIG(status))
            elif done:
                self._report(status)
            elif self._stuck is None and time.monotonic() >= read + guard.PERIOD:
                read = time.monotonic()
                self._look(readings)
            if time.monotonic() > self._kill_at:
                os.kill(self._child, signal.SIGKILL)

    def _look(self, readings: guard.Readings) -> None:
        """Ends a call that no exception has stopped; the child then writes its place."""
        longest = guard.SECONDS + GRACE
        found = readings.long(1.0 if self._stops else longest)
        for seconds, call in found:
            if call.method == "import" and not self._stops and seconds < guard.LOADING * longest:
                continue
            self._stuck = call
            self._kill_at = min(self._kill_at, time.monotonic() + GRACE)
            os.kill(self._child, signal.SIGABRT)
            return

    def _stop(self, number: int, _frame: object) -> None:
        self._stops.append(number)
        wait = GRACE if len(self._stops) > 1 else float("inf")
        self._kill_at = min(self._kill_at, time.monotonic() + wait)
        with suppress(ProcessLookupError):
            os.kill(self._child, number)

    def _pause(self, _number: int, _frame: object) -> None:
        os.killpg(self._child, signal.SIGSTOP)
        os.kill(os.getpid(), signal.SIGSTOP)
        os.killpg(self._child, signal.SIGCONT)

    def _lend_terminal(self, number: int) -> None:
        """Gives the terminal to a child that reads from it, such as a debugger."""
        if number in (signal.SIGTTIN, signal.SIGTTOU):
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            with suppress(OSError):
                os.tcsetpgrp(0, self._child)
            os.killpg(self._child, signal.SIGCONT)

    def _report(self, status: int) -> NoReturn:
        finished = guard.memory[FINISHED]
        if finished:
            os._exit(finished - 1)
        if self._stops:
            raise KeyboardInterrupt(self._interrupted())
        call = self._stuck or next((call for _, call in guard.calls()), None)
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        if self._stuck is not None:
            how = f"does not return: more than {guard.SECONDS:g} s in one call"
        elif number is None:
            how = f"ended the process with status {os.waitstatus_to_exitcode(status)}"
        else:
            name = signal.Signals(number).name
            how = _ENDINGS.get(signal.Signals(number), f"ended the process ({name})")
        where = self._place()
        text = (
            f"{call or 'the command'} {how}"
            if not where
            else f"{call or 'a policy'}, {where}: {how}"
        )
        raise PolicyError(text)

    def _interrupted(self) -> str:
        where = self._place()
        return f"interrupted in {where}" if where else "interrupted"

    def _place(self) -> str:
        """Returns the innermost line of the user's code from the child's dump of its threads."""
        self._dump.seek(0)
        stacks = self._dump.read().split("\n\n")
        stacks.sort(key=lambda stack: "Current thread" not in stack)
        found = next((place for stack in stacks if (place := _PLACE.search(stack))), None)
        return "" if found is None else f"{found[1]}, line {found[2]} (in {found[3]})"
