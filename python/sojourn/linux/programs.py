"""The user's own programs in a guest: their paths and results.

A guest can read some folders of this machine (`SHOWN`) and the folders of scenarios with programs.
"""

from __future__ import annotations

import io
import os
import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from sojourn.lab.programs import command
from sojourn.lab.programs.command import Command
from sojourn.lab.programs.errors import Problem
from sojourn.lab.programs.plan import Run
from sojourn.lab.programs.results import CommandResult
from sojourn.lab.typed import typed
from sojourn.linux.guest import SHOWN
from sojourn.linux.job import Job, Program

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""Folders in which programs are searched."""
ENVIRONMENT = {
    "PATH": PATH,
    "HOME": "/tmp",  # noqa: S108 - a folder of the guest
    "TMPDIR": "/tmp",  # noqa: S108
    "LANG": "C",
    **command.ENVIRONMENT,
}
"""Environment of the programs, which is equal on all machines."""
HIDDEN = ("/", "/tmp", "/run", "/out", "/proc", "/sys", "/dev")  # noqa: S108
"""Folders that a guest has itself, so that it cannot show this machine's folder of the same name.
"""
ALLOWED = (
    f"a guest has only {', '.join(SHOWN)} and the scenario's folder; it searches programs in {PATH}"
)
"""Advice on the first word of a command line."""


def problems(run: Run) -> list[Problem]:
    """Returns the reasons why the programs of a run cannot be started in a guest."""
    found = command.problems(run, seen, ALLOWED)
    for folder in sorted({one.folder for one in command.commands(run)}):
        if str(folder) in HIDDEN:
            has = "a guest has its own folder with this path: move the scenario"
            found.append(Problem("", str(folder), has))
    return found


def seen(word: str, folder: Path) -> str | None:
    """Returns the path of a program in a guest; `None` if the guest cannot execute it."""
    if "/" not in word:
        found = shutil.which(word, path=PATH)
    else:
        path = folder / word
        found = str(path) if path.is_file() and os.access(path, os.X_OK) else None
    if found is None:
        return None
    folders = [Path(name).resolve() for name in (*SHOWN, folder) if Path(name).exists()]
    there = Path(found).resolve()
    return found if any(there.is_relative_to(each) for each in folders) else None


def folders(run: Run) -> tuple[str, ...]:
    """Returns the folders of this machine that a guest reads for the programs of a run."""
    own = {str(one.folder) for one in command.commands(run)}
    return (*SHOWN, *sorted(own)) if own else ()


def with_programs(run: Run, job: Job) -> Job:
    """Returns the job of a guest with the programs of a run."""
    listed = command.commands(run)
    if not listed:
        return job
    hosts = {host.node: i for i, host in enumerate(job.hosts) if host.node is not None}
    programs = [_described(one, hosts[one.node]) for one in listed]
    return replace(job, programs=programs, folders=SHOWN)


def _described(one: Command, host: int) -> Program:
    return Program(
        name=one.label,
        host=host,
        words=(seen(one.words[0], one.folder) or one.words[0], *one.words[1:]),
        folder=str(one.folder),
        environment=list({**ENVIRONMENT, "PWD": str(one.folder)}.items()),
        start=one.start,
        stop=one.flow.stop,
        port=one.flow.port if one.listens else None,
    )


@dataclass(frozen=True)
class End:
    """The end of a program in a guest. Times are in nanoseconds after the start of the run."""

    status: int | None
    started: int | None
    ended: int | None
    stopped: int | None
    killed: bool


def collect(run: Run, files: Mapping[str, bytes]) -> dict[int, CommandResult]:
    """Returns the results of the user's programs, by the number of their flow."""
    listed = command.commands(run)
    if not listed:
        return {}
    ends = []
    found = typed(list[End], files["programs.json"])
    for number, (one, end) in enumerate(zip(listed, found, strict=True)):
        streams = [files.get(f"program-{number}.{suffix}", b"") for suffix in ("out", "err")]
        times = end.status, end.started, end.ended, end.stopped
        ended = command.end_of(one, *times, *streams, killed=end.killed)
        ends.append((one, ended, streams[0]))
    return command.results(run, ends)


def outputs(run: Run, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Returns the output of the programs as `programs.zip`; empty for a run without programs."""
    listed = command.commands(run)
    if not listed:
        return {}
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, one in enumerate(listed):
            for suffix in ("out", "err"):
                if text := files.get(f"program-{number}.{suffix}"):
                    archive.writestr(zipfile.ZipInfo(f"{one.name}.{suffix}"), text)
    return {"programs.zip": memory.getvalue()}
