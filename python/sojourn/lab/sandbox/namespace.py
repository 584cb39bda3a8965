"""Network namespaces of a sandbox, in which programs are started."""

from __future__ import annotations

import os
import shlex
import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field

from sojourn.lab.errors import DeadlinePassed, LabError
from sojourn.lab.machine.needs import find_program
from sojourn.lab.sandbox.keeper import Keeper
from sojourn.lab.sandbox.process import DEFAULT_LIMIT, Process


@dataclass(frozen=True)
class Resources:
    """Scheduling of a program, and limits of its resources."""

    nice: int | None = None
    """Nice value from -20 to 19."""
    fifo: int | None = None
    """Priority of SCHED_FIFO from 1 to 99."""
    cpus: Sequence[int] | None = None
    """Numbers of the processors that the program may use."""
    rlimits: Mapping[str, int] = field(default_factory=dict)
    """Limits of resources by name, such as `nofile`."""


class Namespace(ABC):
    """A network namespace of a sandbox."""

    number: int | None = None
    """Number of the host; `None` for the sandbox's empty namespace."""

    @property
    @abstractmethod
    def keeper(self) -> Keeper:
        """The keeper of the sandbox; raises `LabError` before the sandbox's start."""

    def spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        stdin: int | None = None,
        fds: Sequence[int] = (),
        limit: int = DEFAULT_LIMIT,
        resources: Resources = Resources(),
    ) -> Process:
        """Starts a program here; `argv` is its name and arguments, without a shell.

        The environment contains PATH, HOME, TMPDIR, PWD, LANG, and the variables in `env`. The
        working directory is `cwd`, or a new empty directory in memory, private to the sandbox.
        `stdin` is a descriptor, by default of /dev/null. `fds` become the program's descriptors 3,
        4, and so on. The first `limit` bytes of each output stream are stored.
        """
        executable = find_program(argv[0])
        keeper = self.keeper
        answer, received = keeper.request(
            "spawn",
            fds=[*fds, stdin] if stdin is not None else fds,
            host=self.number,
            executable=executable,
            argv=list(argv),
            env={"PATH": os.environ.get("PATH", os.defpath), **(env or {})},
            cwd=cwd,
            stdin=stdin is not None,
            limit=limit,
            **asdict(resources),
        )
        process = Process(keeper.request, tuple(argv), answer, received)
        keeper.follow(process)
        return process

    def run(self, argv: Sequence[str], timeout: float = 60.0) -> str:
        """Runs a program here to its end, and returns its standard output.

        Raises `LabError` with the end of the output if the program fails, and `DeadlinePassed` if
        it has not ended after `timeout` seconds; it is then killed.
        """
        process = self.spawn(argv)
        try:
            status = process.wait(timeout)
        except DeadlinePassed:
            process.signal(signal.SIGKILL)
            raise
        if status:
            raise LabError(f"{shlex.join(argv)} failed{process.complaint()}")
        return process.output().decode("utf-8", "replace")
