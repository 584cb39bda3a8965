"""A real Dask scheduler and worker processes on this machine, and engines to try them with."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn.plan import Plan
from sojourn.study.cluster import connected
from tests.study.fakes import FakeEngine, FakeRecord
from tests.waiting import until

if TYPE_CHECKING:
    from sojourn.scenario.engine import RunProgress

Process = subprocess.Popen[bytes]

ROOT = Path(__file__).parents[2]
MARK = "SOJOURN_TEST_MARK"
"""Variable by which a worker's engine is another one."""
PATIENCE = 60.0
"""Seconds after which what was waited for will not come."""


class TracedEngine(FakeEngine):
    """Writes what it does to a file: other processes make the runs."""

    def __init__(self, trace: Path, pause: float = 0.0, fatal: int | None = None) -> None:
        super().__init__(pause=pause)
        self.trace = trace
        self.fatal = fatal

    def fingerprint(self) -> str:
        return f"{super().fingerprint()}{os.environ.get(MARK, '')}"

    def simulate(self, plan: Plan, seed: int, progress: RunProgress | None = None) -> FakeRecord:
        name = f"{json.loads(plan.text)['queue']} {seed}"
        self._write(f"began {name}")
        if seed == self.fatal:
            os._exit(1)
        record = super().simulate(plan, seed, progress)
        self._write(f"{'made' if record.complete else 'dropped'} {name}")
        return record

    def _write(self, line: str) -> None:
        with self.trace.open("a") as file:
            file.write(f"{line} by {os.getpid()}\n")

    def lines(self, word: str) -> list[str]:
        """Return the runs that this word is written of."""
        if not self.trace.exists():
            return []
        lines = [line.split() for line in self.trace.read_text().splitlines()]
        return [f"{queue} {seed}" for what, queue, seed, _, _ in lines if what == word]


@contextmanager
def process(*words: str, **variables: str) -> Iterator[Process]:
    """Run a Python module while the context lasts."""
    path = f"{ROOT / 'python'}{os.pathsep}{ROOT}"
    env = {**os.environ, "PYTHONPATH": path, "DASK_LOGGING__DISTRIBUTED": "error", **variables}
    started = subprocess.Popen(
        [sys.executable, "-m", *words], env=env, cwd=ROOT, stderr=subprocess.DEVNULL
    )
    try:
        yield started
    finally:
        started.kill()
        started.wait()


@contextmanager
def scheduler(folder: Path, *options: str) -> Iterator[str]:
    """Run a scheduler on a free port; gives its address."""
    file = folder / "scheduler.json"
    words = ("--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--idle-timeout", "120 s")
    with process(
        "distributed.cli.dask_scheduler", *words, *options, "--scheduler-file", str(file)
    ) as run:
        until(lambda: file.exists() or run.poll() is not None)
        until(lambda: run.poll() is not None or file.read_text().endswith("}"))
        yield str(json.loads(file.read_text())["address"])


@contextmanager
def worker(address: str, folder: Path, *options: str, **variables: str) -> Iterator[Process]:
    """Run a worker of one thread, which may or may not have joined yet."""
    words = ("--host", "127.0.0.1", "--nthreads", "1", "--no-nanny", "--no-dashboard")
    home = ("--local-directory", str(folder), "--death-timeout", "30")
    with process(
        "distributed.cli.dask_worker", address, *words, *home, *options, **variables
    ) as run:
        yield run


class Cluster:
    """A scheduler with two workers that come back when they were killed."""

    def __init__(self, address: str, folder: Path, stack: ExitStack) -> None:
        self.address = address
        self.folder = folder
        self.client: Any = stack.enter_context(connected(address))
        self._stack = stack
        self.workers: list[Process] = []

    def ready(self) -> None:
        """Wait until there are two workers again, and no others."""
        self.workers = [w for w in self.workers if w.poll() is None]
        while len(self.workers) < 2:
            self.workers.append(self._stack.enter_context(self.another()))
        self.joined(2)

    def another(self, *options: str, **variables: str) -> AbstractContextManager[Process]:
        """Start a further worker."""
        return worker(self.address, self.folder, *options, **variables)

    def joined(self, workers: int) -> None:
        """Wait until there are so many."""
        until(lambda: len(self.client.nthreads()) == workers)

    def idle(self) -> None:
        """Wait until nothing is under way."""
        until(lambda: not any(self.client.processing().values()))
