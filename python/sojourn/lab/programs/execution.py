"""Executes a run: starts and stops its programs at their times.

Servers are started first. The run begins when all programs without a start time are ready. The
calling thread does everything and sleeps between events.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Self

from sojourn.lab.errors import DeadlinePassed, LabError, SandboxDied
from sojourn.lab.machine.waiting import Waits
from sojourn.lab.programs.errors import NotPossible, Problem
from sojourn.lab.programs.plan import SECOND, address
from sojourn.lab.programs.program import READY, Ended, Program, Ready
from sojourn.lab.programs.run_setup import Collected, RunSetup
from sojourn.lab.sandbox.host import Host
from sojourn.lab.sandbox.process import Process

READY_TIMEOUT = 30.0
"""Time limit for programs to become ready, in seconds."""
LEAD = SECOND // 5
"""Time from the readiness of all programs to the start of the run, in nanoseconds. In this time,
waiting programs receive the time of the start.
"""
GRACE = 10.0
"""Time limit for a program to write its results and to end, in seconds. The time begins with the
stop signal, or for a server with the end of its client. A loaded machine needs several seconds.
"""
POLL = 0.01
"""Interval between checks whether one program of a set `one_of` has ended, in seconds."""
NICE = -15
"""Nice value of the run's programs: a higher priority than other programs, because a wait for a
processor would change the measurements.
"""


class Execution:
    """The programs of a run from their start to their end.

    `configure`, `ready`, `play` and `collect` are called in this order. At its end, the context
    manager kills the programs that still run. The programs' output is saved in the folder `raw`.
    """

    def __init__(self, setup: RunSetup, hosts: Mapping[int, Host], raw: Path) -> None:
        self.setup = setup
        self.hosts = hosts
        self.raw = raw
        self.start = 0
        """Start of the run by `CLOCK_MONOTONIC` in nanoseconds; 0 until `begin` sets it."""
        self.wall = 0
        """Start of the run by `CLOCK_REALTIME` in nanoseconds; 0 until `begin` sets it."""
        self.ended = setup.run.duration
        """End of the run, in nanoseconds since its start."""
        self._running: dict[str, Process] = {}
        self._started: dict[str, int] = {}
        self._signalled: dict[str, int] = {}
        self._waiting: list[int] = []
        self._waits = Waits()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for running in self._running.values():
            if running.running:
                running.signal(signal.SIGKILL)
        for fd in self._waiting:
            os.close(fd)
        self._waiting.clear()

    def configure(self, link: str = "eth0") -> None:
        """Sets the sysctls and routes of all hosts; routes use the device `link`."""
        for node, settings in self.setup.settings.items():
            host = self.hosts[node]
            host.sysctl(settings.sysctls)
            for to, route in settings.routes.items():
                there = f"{address(to)}/32"
                host.add_route(there, link=link, replace=True, metrics=route.metrics())

    def ready(self) -> None:
        """Starts all programs without a start time, and waits until they are ready.

        Raises `NotPossible` with a reason for each program that does not become ready.
        """
        self.raw.mkdir(parents=True, exist_ok=True)
        before = [program for program in self.setup.programs if program.start_at is None]
        for program in before:
            self._start(program)
        deadline = time.monotonic() + READY_TIMEOUT
        problems = []
        for program in before:
            running = self._running[program.name]
            left = max(0.0, deadline - time.monotonic())
            try:
                if program.ready is Ready.LISTENING:
                    self.hosts[program.node].wait_port(program.port, left, by=running)
                elif program.ready is Ready.BOUND:
                    host = self.hosts[program.node]
                    host.wait_port(program.port, left, protocol="any", by=running)
                elif program.ready is Ready.SAYS_SO:
                    running.wait_output(READY, left)
            except SandboxDied:
                raise
            except DeadlinePassed:
                problems.append(Problem("", program.name, f"not ready after {READY_TIMEOUT:g} s"))
            except LabError as error:
                why = _json_error(running.output())
                problems.append(Problem("", program.name, why or str(error)))
        if problems:
            raise NotPossible(problems)

    def begin(self, lead: int = LEAD) -> int:
        """Sets and returns the run's start by `CLOCK_MONOTONIC`, `lead` nanoseconds from now."""
        now = time.monotonic_ns()
        self.start = now + lead
        self.wall = time.time_ns() - now + self.start
        for fd in self._waiting:
            with suppress(BrokenPipeError):  # `collect` reports programs that have ended
                os.write(fd, b"%d\n" % self.start)
        return self.start

    def now(self) -> int:
        """Returns the time since the start of the run, in nanoseconds."""
        return time.monotonic_ns() - self.start

    def play(self, tick: Callable[[int], bool] | None = None, every: float = 0.5) -> bool:
        """Starts and stops programs at their times, until the end of the run.

        `tick(now)` is called about every `every` seconds; `now` is in nanoseconds since the start
        of the run. If `tick` returns `False`, the run ends early and `play` returns `False`. The
        run also ends with its `decisive` programs, at the earliest after the warm-up.
        """
        if not self.start:
            self.begin()
        step = round(every * SECOND)
        looked = -step
        decisive = self.setup.decisive
        for at, act, program in self._schedule():
            while (now := self.now()) < at:
                awaited = [one for one in decisive if not self._ended_alone(one)]
                if decisive and not awaited and now >= self.setup.run.warmup:
                    self.ended = now
                    self._stop_all()
                    return True
                if tick is not None and now >= looked + step:
                    looked = now
                    self._watch()
                    if not tick(now):
                        self.ended = now
                        self._stop_all()
                        return False
                    continue
                until = at if tick is None else min(at, looked + step)
                known = [self._running[one] for one in awaited if one in self._running]
                started = [one for one in known if one.running]
                if started:
                    keeper = self.hosts[self.setup.programs[0].node].keeper
                    keeper.wait_any(started, (until - now) / SECOND)
                else:
                    time.sleep((until - now) / SECOND)
            act(program)
        return True

    def _ended_alone(self, name: str) -> bool:
        """Returns whether a program has ended without a signal."""
        running = self._running.get(name)
        return running is not None and not running.running and name not in self._signalled

    def _watch(self, *names: str) -> None:
        """Records how long these programs, or all running programs, waited for a processor."""
        pids = {
            name: running.pid
            for name, running in self._running.items()
            if running.running and running.pid and (not names or name in names)
        }
        self._waits.look(pids, time.monotonic())

    def _schedule(self) -> list[tuple[int, Callable[[Program], None], Program]]:
        """Returns starts and stops in order of time; a stop precedes a start at the same time."""
        duration = self.setup.run.duration
        acts: list[tuple[int, Callable[[Program], None], Program]] = []
        for program in self.setup.programs:
            if program.start_at is not None:
                stop = duration if program.stop_at is None else min(program.stop_at, duration)
                acts.append((program.start_at, self._start, program))
                acts.append((stop, self._stop, program))
            elif program.stop_at is not None:
                acts.append((min(program.stop_at, duration), self._stop, program))
            # The run lasts for its whole duration, unless its `decisive` programs end earlier.
            acts.append((duration, _nothing, program))
        return sorted(acts, key=lambda act: (act[0], act[1] == self._start))

    def collect(self) -> Collected:
        """Ends all programs, saves their output, and returns their results."""
        for program in self.setup.programs:
            if program.start_at is not None or program.ends:
                self._wait(program, GRACE)
        self._wait_for_chosen()
        for program in self.setup.programs:
            if self._wait(program, 0.0) is None:
                self._stop(program)
        ended = {program.name: self._ended(program) for program in self.setup.programs}
        for one in ended.values():
            for suffix, text in (("out", one.stdout), ("err", one.stderr)):
                if text:
                    last = text[-(one.program.written or len(text)) :]
                    (self.raw / f"{one.program.name}.{suffix}").write_bytes(last)
        collected = self.setup.collect(ended, self.wall, self.ended)
        return replace(collected, waits=self._waits.shares())

    def _start(self, program: Program) -> None:
        with ExitStack() as mine:
            fds = [mine.enter_context(_contents(item)) for item in program.inputs]
            if program.log:
                flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
                fds.append(os.open(self._log(program), flags, 0o600))
                mine.callback(os.close, fds[-1])
            stdin = None
            if program.waits:
                stdin, tell = os.pipe()
                mine.callback(os.close, stdin)
                self._waiting.append(tell)
            self._started[program.name] = time.monotonic_ns()
            self._running[program.name] = self.hosts[program.node].spawn(
                program.argv,
                env=program.environment,
                cwd=program.folder,
                stdin=stdin,
                fds=fds,
                limit=program.kept,
            )
        # A program that waits for a processor acknowledges late.
        self._running[program.name].prefer(NICE)

    def _log(self, program: Program) -> Path:
        return self.raw / f"{program.name}.log"

    def _stop(self, program: Program) -> None:
        running = self._running.get(program.name)
        if running is not None:
            self._watch(program.name)
            self._signalled.setdefault(program.name, time.monotonic_ns())
            running.signal(program.stop_signal, group=program.group)

    def _stop_all(self) -> None:
        for program in self.setup.programs:
            if program.start_at is not None or program.waits:
                self._stop(program)

    def _wait(self, program: Program, timeout: float) -> int | None:
        """Returns a program's exit status, 0 if it never started, `None` if it still runs.

        Waits at most `timeout` seconds.
        """
        running = self._running.get(program.name)
        if running is None:
            return 0
        with suppress(DeadlinePassed):
            return running.wait(timeout)
        return None

    def _wait_for_chosen(self) -> None:
        """Waits until one program of each set `one_of` has ended, at most `GRACE` seconds."""
        sets: dict[str, list[Program]] = {}
        for program in self.setup.programs:
            if program.one_of:
                sets.setdefault(program.one_of, []).append(program)
        deadline = time.monotonic() + GRACE
        for members in sets.values():
            while all(self._wait(program, 0.0) is None for program in members):
                if time.monotonic() > deadline:
                    return
                time.sleep(POLL)

    def _ended(self, program: Program) -> Ended:
        running = self._running.get(program.name)
        if running is None:
            return Ended(program, None)
        if self._wait(program, GRACE) is None:
            running.signal(signal.SIGKILL)
        status = running.wait(GRACE)
        log = self._log(program)
        signalled = self._signalled.get(program.name)
        return Ended(
            program,
            status,
            stdout=running.output(),
            stderr=running.errors(),
            log=log if program.log else None,
            started=self._started[program.name] - self.start,
            signalled=None if signalled is None else signalled - self.start,
            ended=None if running.ended_at is None else running.ended_at - self.start,
        )


def _json_error(text: bytes) -> str | None:
    """Returns the value of `error` in the JSON output of a program; `None` without an error."""
    with suppress(ValueError):
        said = json.loads(text)
        if isinstance(said, dict) and isinstance(said.get("error"), str):
            return str(said["error"])
    return None


def _nothing(program: Program) -> None:
    """Does nothing; makes `play` wait until the end of the run."""


@contextmanager
def _contents(item: bytes | int) -> Iterator[int]:
    """Gives a file in memory with these bytes; a number gives a sparse file of so many zeros."""
    fd = os.memfd_create("sojourn", os.MFD_CLOEXEC)
    try:
        if isinstance(item, int):
            os.ftruncate(fd, item)
        else:
            with open(fd, "wb", closefd=False) as file:
                file.write(item)
            os.lseek(fd, 0, os.SEEK_SET)
        yield fd
    finally:
        os.close(fd)
