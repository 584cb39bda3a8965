"""`command`: the user's own programs as client and server of a flow, in real or virtual time."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import signal
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from sojourn.data import Object
from sojourn.lab.programs import stack
from sojourn.lab.programs.errors import Problem
from sojourn.lab.programs.plan import SECOND, Run, address
from sojourn.lab.programs.program import Ended, Program, Ready
from sojourn.lab.programs.results import CommandResult, FlowResult, ProgramEnd
from sojourn.metrics import registry
from sojourn.plan.flows import Flow
from sojourn.scenario import reported
from sojourn.scenario.commands import filled

APP = "command"
KEPT = 64 << 10
"""Number of bytes at the end of each standard stream that are saved."""
ENVIRONMENT = {"PYTHONHASHSEED": "0"}
"""Additional environment variables of the programs, on this machine and in guests."""
LINE = 300
"""Maximum number of characters of a program's last line in messages."""

Find = Callable[[str, Path], str | None]
"""Function that returns the path of a program, or `None`, from its name and the scenario's folder.
"""


@dataclass(frozen=True)
class Command:
    """The program of a flow's client or server, with its arguments."""

    flow: Flow
    role: str
    """`client` or `server`."""
    words: tuple[str, ...]
    """Name of the program and arguments, without placeholders."""
    folder: Path
    """Folder of the scenario, which is the working folder."""
    listens: bool
    """Whether other programs wait until this program listens on the flow's port."""

    @property
    def name(self) -> str:
        """Name of the program in a run, with which the names of its files begin."""
        return f"command-{self.role}-{self.flow.label}"

    @property
    def label(self) -> str:
        """Name of the program in messages."""
        return f"{self.role} of `{self.flow.label}`: `{shlex.join(self.words)}`"

    @property
    def node(self) -> int:
        """Number of the host that runs the program."""
        return self.flow.sender if self.role == "client" else self.flow.receiver

    @property
    def start(self) -> int | None:
        """Start time in nanoseconds after the start of the run; `None` (servers): before it."""
        return self.flow.start if self.role == "client" else None


def commands(run: Run) -> list[Command]:
    """Returns the programs of all flows that start during the run, servers first."""
    found = []
    for role in ("server", "client"):
        for flow in run.flows:
            if flow.command is None or flow.start is None:
                continue
            line = flow.command.server if role == "server" else flow.command.client
            if line:
                listens = role == "server" and any("{port}" in word for word in line)
                words, folder = (
                    filled(list(line), values(flow, run.seed)),
                    Path(flow.command.folder),
                )
                found.append(Command(flow, role, words, folder, listens))
    return found


def values(flow: Flow, seed: int) -> dict[str, str]:
    """Returns the values of the placeholders in a flow's command lines, by name."""
    seconds = (flow.stop - (flow.start or 0)) / SECOND
    return {
        "from": address(flow.sender),
        "to": address(flow.receiver),
        "port": str(flow.port),
        "number": str(flow.number),
        "seed": str(seed),
        "duration": f"{seconds:.9f}".rstrip("0").rstrip("."),
    }


def here(word: str, folder: Path) -> str | None:
    """Returns the path of a program on this machine; `None` if there is no such executable file."""
    if "/" not in word:
        return shutil.which(word)
    path = folder / word
    return str(path) if path.is_file() and os.access(path, os.X_OK) else None


ALLOWED = (
    "use an absolute path, a path from the scenario's folder such as ./server, or a program in PATH"
)
"""Advice on the first word of a command line."""


def problems(run: Run, find: Find, allowed: str = ALLOWED) -> list[Problem]:
    """Returns the reasons why programs cannot be started, once for each group and role."""
    found: dict[Problem, None] = {}
    groups: set[tuple[int, str]] = set()
    for command in commands(run):
        if (command.flow.group, command.role) in groups:
            continue
        groups.add((command.flow.group, command.role))
        place, declared = command.flow.label, command.flow.command
        if not command.folder.is_dir():
            found[Problem(place, str(command.folder), "no such folder")] = None
            continue
        if find(command.words[0], command.folder) is None:
            has = f"no such program for the {command.role}: {allowed}"
            found[Problem(place, command.words[0], has)] = None
        for name, digest in declared.files.items() if declared else ():
            if _digest(command.folder / name) != digest:
                has = "the file was changed after the scenario was read"
                found[Problem(place, name, has)] = None
    return list(found)


def _digest(path: Path) -> str:
    try:
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except OSError:
        return ""


def demand(flow: Flow, settings: stack.Settings) -> None:
    """Adds the flow's requirements on TCP to the settings of its hosts.

    Requirements that only the program can satisfy, by an option of its socket, become problems.
    """
    tcp = flow.tcp
    if tcp is None:
        return
    ways = [(flow.sender, flow.receiver), (flow.receiver, flow.sender)]
    settings.add(flow, flow.sender, ways)
    for sender, receiver in ways:
        settings.control(flow, sender, receiver, tcp.congestion.TAG)
    asked, usual = stack.socket(tcp), stack.socket(stack.default())
    for name, word in (
        ("mss", "mss"),
        ("paced", "pacing"),
        ("nodelay", "nagle"),
        ("blocking", "blocking"),
    ):
        if getattr(asked, name) != getattr(usual, name):
            has = "only the program can set this option of its socket"
            settings.problems.append(Problem(flow.label, word, has))


def programs(run: Run) -> list[Program]:
    """Returns the programs of all flows for the hosts on this machine, servers first."""
    return [
        Program(
            name=command.name,
            node=command.node,
            argv=(here(command.words[0], command.folder) or command.words[0], *command.words[1:]),
            start_at=command.start,
            stop_at=command.flow.stop,
            ready=Ready.BOUND if command.listens else Ready.AT_ONCE,
            port=command.flow.port,
            environment=dict(ENVIRONMENT),
            folder=str(command.folder),
            group=True,
            written=KEPT,
            kept=KEPT_HERE,
        )
        for command in commands(run)
    ]


KEPT_HERE = 16 << 20
"""Maximum number of bytes of each standard stream that are held in memory, on this machine."""


def collect(run: Run, ended: Mapping[str, Ended]) -> dict[int, CommandResult]:
    """Returns the results of flows with their own programs, by the number of the flow."""
    ends = []
    for command in commands(run):
        one = ended[command.name]
        stopped = one.signalled
        if one.ended is not None and stopped is not None and one.ended < stopped:
            stopped = None
        end = end_of(
            command, one.status, one.started, one.ended, stopped, one.stdout, one.stderr,
            killed=one.status == -signal.SIGKILL,
        )  # fmt: skip
        ends.append((command, end, one.stdout))
    return results(run, ends)


def end_of(
    command: Command,
    status: int | None,
    started: int | None,
    ended: int | None,
    stopped: int | None,
    stdout: bytes,
    stderr: bytes,
    *,
    killed: bool,
) -> ProgramEnd:
    """Returns the description of a program's end.

    `stopped` is the time of the stop signal; `None` if the program had ended before. Times are in
    nanoseconds after the start of the run.
    """
    first, second = (stdout, stderr) if status == 0 else (stderr, stdout)
    said = (first.strip() or second.strip()).decode("utf-8", "replace").splitlines()
    return ProgramEnd(
        role=command.role,
        command=shlex.join(command.words),
        status=status,
        started=started,
        ended=ended,
        stopped=stopped is not None,
        killed=killed and stopped is not None,
        last=said[-1][-LINE:] if said else "",
    )


def results(
    run: Run, ends: Iterable[tuple[Command, ProgramEnd, bytes]]
) -> dict[int, CommandResult]:
    """Returns the results of flows by number, from the end and standard output of each program."""
    by_flow: dict[int, list[ProgramEnd]] = {}
    outputs: dict[int, list[str]] = {}
    for command, end, stdout in ends:
        number = command.flow.flow
        by_flow.setdefault(number, []).append(end)
        # The client's output is searched first; `ends` has the servers first.
        outputs.setdefault(number, []).insert(0, stdout.decode("utf-8", "replace"))
    found = {}
    for flow in run.flows:
        if flow.flow not in by_flow or flow.command is None:
            continue
        failures = [end.failure for end in by_flow[flow.flow] if end.failure]
        metrics = {}
        for name, source in flow.command.metrics.items() if not failures else ():
            try:
                unit = registry()[name].unit
                metrics[name] = reported.number(source, outputs[flow.flow], unit)
            except reported.NotReported as error:
                failures.append(f"did not report {name}: {error}")
        why, ended = "; ".join(failures) or None, tuple(by_flow[flow.flow])
        found[flow.flow] = CommandResult(
            flow.flow, flow.name, flow.number, why, programs=ended, metrics=metrics
        )
    return found


def records(results: Sequence[FlowResult]) -> list[Object]:
    """Returns the ends of all programs as dictionaries with the name of the flow."""
    return [
        {"flow": f"{result.name}.{result.number}", **asdict(end)}
        for result in results
        if isinstance(result, CommandResult)
        for end in result.programs
    ]
