"""`sojourn verify`: comparison of our queues with queue decisions recorded from Linux."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from typing import Annotated

import typer

from sojourn import _core, former
from sojourn.cli import bars, exits, options, output
from sojourn.data import Object
from sojourn.judge.recordings import RECORDED, find, read, scenarios
from sojourn.settings import Option, settings


@settings
class Replayed:
    """The vectors to replay."""

    folder: Annotated[Path | None, Option("[DIR]", positional=True, readable=False)] = None
    """Folder of decision vectors (.jsonl[.gz|.xz]). By default crates/vectors/data, as in a clone
    of the repository.
    """
    queue: Annotated[str | None, Option("FILE:CLASS")] = None
    """Replay the vectors through your own queue, for example mine.py:Codel."""


@exits.command
def verify(asked: Replayed, as_json: options.AsJson = False) -> None:
    """Compare the decisions of our queues with decisions recorded from Linux.

    Deprecated: `sojourn judge --level linux` does the same. The exit status is 0 only if every
    scenario of every known discipline agrees. Scenarios of unknown disciplines are listed and do
    not count; if there are no others, the status is 1.

    With `--queue`, the comparison covers verdicts, drops, marks, random draws, the backlog, and the
    state that the class's method `state` returns.
    """
    former.warn("`sojourn verify`", "`sojourn judge --level linux`")
    compare(asked.folder, asked.queue, as_json=as_json)


def compare(
    folder: Path | None, queue: str | None, *, as_json: bool, discipline: str | None = None
) -> None:
    """Compares our queues, or the user's `queue`, with recordings, and prints the result.

    With a discipline, only its recordings are replayed.
    """
    if folder is None:
        folder = RECORDED
        if not folder.exists():
            exits.fail(
                "the folder of decision vectors is missing: give DIR; in a clone of the "
                f"repository it is {RECORDED.as_posix()}"
            )
    if not folder.exists():
        exits.fail(f"{folder}: no such folder")
    files = find(folder)
    if discipline is not None:
        files = [path for path in files if re.fullmatch(f"{discipline}[-.].*", path.name)]
    if not files:
        exits.fail(f"{folder}: no decision vectors (*.jsonl) here")
    reports, interrupted = replay_all(files, folder, replayer(queue))
    known = [r for r in reports if r.outcome != "unknown_discipline"]
    agree = bool(known) and all(r.outcome == "agrees" for r in known) and not interrupted
    disciplines = by_discipline(reports)
    if as_json:
        output.print_data(
            {
                "agrees": agree,
                "disciplines": [discipline.as_dict() for discipline in disciplines],
                "scenarios": [report.as_dict() for report in reports],
            }
        )
    else:
        show(disciplines, agree, len(known))
    if interrupted:
        raise typer.Exit(exits.INTERRUPTED)
    if not agree:
        raise typer.Exit(exits.FINDINGS)


def listed(folder: Path) -> dict[Path, int]:
    """Returns the number of operations of each file, as far as a recording's manifest states it.

    A recording of single calls has no final row, so only the manifest reveals missing rows.
    """
    operations = {}
    for path in [folder / "manifest.json", *folder.rglob("*/manifest.json")]:
        try:
            entries = json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            continue
        for entry in entries if isinstance(entries, list) else []:
            match entry:
                case {"file": str(file), "ops": int(count)}:
                    operations[path.parent / file] = count
                case _:
                    pass
    return operations


@dataclass(frozen=True)
class Report:
    """The result of a scenario's replay; `sojourn-vectors` describes the fields."""

    file: str
    """Path of the scenario's file in the folder."""
    scenario: str
    discipline: str = ""
    operations: int = 0
    timers: Mapping[str, int] | None = None
    outcome: str = "malformed"
    line: int | None = None
    what: str | None = None
    expected: str | None = None
    found: str | None = None
    why: str | None = None

    def as_dict(self) -> Object:
        """Returns the known fields."""
        return {name: value for name, value in vars(self).items() if value is not None}

    def __str__(self) -> str:
        head = f"{self.file}, line {self.line or 1}: "
        if self.outcome == "malformed":
            return f"{head}cannot be replayed: {self.why}"
        return f"{head}{self.what}: recorded {self.expected}, found {self.found}"


@dataclass(frozen=True)
class Summary:
    """The reports on a discipline together."""

    discipline: str
    known: bool
    scenarios: int
    agree: int = 0
    operations: int = 0
    first_difference: str | None = None

    def as_dict(self) -> Object:
        """Returns the fields; of an unknown discipline, only the first three."""
        return dict(islice(vars(self).items(), None if self.known else 3))


def checked(reports: list[Report], listed: int | None) -> list[Report]:
    """Returns the reports, the last as different if `listed` operations were not replayed.

    `listed` is None without a manifest. Reports that already differ are not changed.
    """
    found = sum(r.operations for r in reports)
    if listed in (None, found) or any(r.outcome != "agrees" for r in reports):
        return reports
    last = replace(
        reports[-1],
        outcome="differs",
        line=reports[-1].operations + 1,
        what="number of operations in manifest.json",
        expected=str(listed),
        found=str(found),
    )
    return [*reports[:-1], last]


Replayer = Callable[[str, str], str]
"""Function that replays a scenario's text under a name and returns the report as JSON."""


def replayer(queue: str | None) -> Replayer:
    """Returns the replayer that uses the engine's queues, or the user's queue `queue`."""
    if queue is None:
        return _core.verify
    from sojourn.own.recorded import Recorded

    own = Recorded(queue)
    return lambda name, text: _core.verify_own(name, text, own.maker())


def replay(path: Path, folder: Path, replayer: Replayer) -> list[Report]:
    """Returns a report on the replay of each scenario in a file.

    A file that cannot be read has one report, with the outcome `malformed`.
    """
    name = str(path.relative_to(folder)) if folder.is_dir() else path.name
    try:
        text = read(path)
    except (ValueError, OSError) as error:
        why = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
        return [Report(name, name, line=1, why=why)]
    reports = []
    for before, part in scenarios(text):
        report = Report(name, **json.loads(replayer(name, part)))
        if report.line is not None:
            report = replace(report, line=report.line + before)
        reports.append(report)
    return reports


def replay_all(files: list[Path], folder: Path, replayer: Replayer) -> tuple[list[Report], bool]:
    """Returns the reports on all files, replayed in parallel, and whether the user interrupted."""
    with (
        bars.interruptible() as interrupt,
        bars.counting("replaying", "files") as tell,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        done = count(1)
        operations = listed(folder) if folder.is_dir() else {}

        def one(path: Path) -> list[Report]:
            if interrupt.asked:
                return []
            reports = checked(replay(path, folder, replayer), operations.get(path))
            tell(next(done), len(files))
            return reports

        found = list(pool.map(one, files))
    return [report for reports in found for report in reports], not all(found)


def by_discipline(reports: list[Report]) -> list[Summary]:
    """Returns one summary for each discipline, sorted by name."""
    names = sorted({r.discipline for r in reports}, key=lambda n: (n == "", n))
    return [_summary(name, [r for r in reports if r.discipline == name]) for name in names]


def _summary(name: str, reports: list[Report]) -> Summary:
    if all(r.outcome == "unknown_discipline" for r in reports):
        return Summary(name, known=False, scenarios=len(reports))
    first = next((r for r in reports if r.outcome != "agrees"), None)
    return Summary(
        name,
        known=True,
        scenarios=len(reports),
        agree=sum(r.outcome == "agrees" for r in reports),
        operations=sum(r.operations for r in reports),
        first_difference=None if first is None else str(first),
    )


def show(disciplines: list[Summary], agree: bool, replayed: int) -> None:
    """Prints the table of disciplines, the first differences, and the overall result."""
    rows = []
    for item in disciplines:
        name = item.discipline or "(no discipline)"
        if item.known:
            verdict = "agrees" if item.first_difference is None else "DIFFERS"
            counts = f"{item.agree} of {item.scenarios}"
            operations = str(item.operations)
        else:
            verdict, counts, operations = "unknown, not counted", f"- of {item.scenarios}", "-"
        rows.append(
            {
                "discipline": name,
                "scenarios that agree": counts,
                "operations": operations,
                "verdict": verdict,
            }
        )
    output.table(rows, ["discipline", "scenarios that agree", "operations", "verdict"])
    for line in differences(disciplines):
        typer.echo(line)
    if agree:
        typer.echo(f"\nall {replayed} scenarios of known disciplines agree")
    elif not replayed:
        typer.echo("\nno scenario was replayed: none is of a known discipline")


def differences(disciplines: list[Summary]) -> Iterator[str]:
    """Yields the first difference of each discipline that has one."""
    for item in disciplines:
        if item.known and item.first_difference is not None:
            yield f"\nfirst difference of {item.discipline or '(no discipline)'}:"
            yield f"  {item.first_difference}"
