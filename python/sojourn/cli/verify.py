"""`sojourn verify`: comparison of our queues with queue decisions recorded from Linux."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

import typer

from sojourn import _core
from sojourn.cli import bars, exits, options, output
from sojourn.settings import Option

LARGEST = 512 * 1024 * 1024
"""Largest unpacked size of a vector file in bytes; recorded scenarios are much smaller."""


RECORDED = Path("crates/vectors/data")
"""Folder of the vectors, relative to the folder of a clone of the repository."""


def register(app: typer.Typer) -> None:
    """Adds `sojourn verify` to `app`."""
    app.command()(verify)


@exits.command
def verify(
    folder: Annotated[
        Path | None,
        Option(
            "[DIR]",
            positional=True,
            help="Folder of decision vectors (.jsonl[.gz|.xz]). By default crates/vectors/data, "
            "as in a clone of the repository.",
            readable=False,
        ),
    ] = None,
    queue: Annotated[
        str | None,
        Option(
            "FILE:CLASS",
            help="Replay the vectors through your own queue, for example mine.py:Codel.",
        ),
    ] = None,
    as_json: options.AsJson = False,
) -> None:
    """Compare the decisions of our queues with decisions recorded from Linux.

    The exit status is 0 only if every scenario of every known discipline agrees. Scenarios of
    unknown disciplines are listed and do not count; if there are no others, the status is 1.

    With `--queue`, the comparison covers verdicts, drops, marks, random draws, the backlog, and the
    state that the class's method `state` returns.
    """
    if folder is None:
        folder = RECORDED
        if not folder.exists():
            exits.fail(
                "the folder of decision vectors is missing: give DIR; in a clone of the "
                f"repository it is {RECORDED.as_posix()}",
                as_json=as_json,
            )
    if not folder.exists():
        exits.fail(f"{folder}: no such folder", as_json=as_json)
    files = find(folder)
    if not files:
        exits.fail(f"{folder}: no decision vectors (*.jsonl) here", as_json=as_json)
    reports, interrupted = replay_all(files, folder, replayer(queue))
    known = [r for r in reports if r["outcome"] != "unknown_discipline"]
    agree = bool(known) and all(r["outcome"] == "agrees" for r in known) and not interrupted
    disciplines = by_discipline(reports)
    if as_json:
        output.print_data({"agrees": agree, "disciplines": disciplines, "scenarios": reports})
    else:
        show(disciplines, agree, len(known))
    if interrupted:
        raise typer.Exit(exits.INTERRUPTED)
    if not agree:
        raise typer.Exit(exits.FINDINGS)


def _openers() -> dict[str, Callable[[Path], BinaryIO]]:
    def gzip_(path: Path) -> BinaryIO:
        import gzip

        return cast("BinaryIO", gzip.open(path))

    def lzma_(path: Path) -> BinaryIO:
        import lzma

        return cast("BinaryIO", lzma.open(path))

    return {".jsonl": lambda path: path.open("rb"), ".jsonl.gz": gzip_, ".jsonl.xz": lzma_}


def _suffix(path: Path) -> str | None:
    return next((s for s in _openers() if path.name.endswith(s)), None)


def find(folder: Path) -> list[Path]:
    """Returns all vector files below `folder`, sorted by name."""
    if folder.is_file():
        return [folder] if _suffix(folder) else []
    return sorted(p for p in folder.rglob("*.jsonl*") if _suffix(p) and p.is_file())


def read(path: Path) -> str:
    """Returns a vector file's text; raises `ValueError` or `OSError`."""
    import lzma
    import zlib

    try:
        with _openers()[_suffix(path) or ".jsonl"](path) as file:
            raw = file.read(LARGEST + 1)
    except (EOFError, zlib.error, lzma.LZMAError) as error:
        raise ValueError(f"cannot be unpacked: {error}") from None
    if len(raw) > LARGEST:
        raise ValueError(f"larger than {LARGEST >> 20} MiB")
    return raw.decode("utf-8")


def scenarios(text: str) -> list[tuple[int, str]]:
    """Returns the scenarios in a file, usually one, each with the number of lines before it.

    A scenario begins with a header line.
    """
    parts: list[tuple[int, list[str]]] = [(0, [])]
    for number, line in enumerate(text.splitlines(keepends=True)):
        if line.startswith('{"format"') and parts[-1][1]:
            parts.append((number, []))
        parts[-1][1].append(line)
    return [(before, "".join(lines)) for before, lines in parts]


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


def check_number(reports: list[dict[str, Any]], listed: int | None) -> None:
    """Marks the last report as different if the number of operations is not the listed one.

    `listed` is None without a manifest. Reports that already differ are not changed.
    """
    found = sum(r["operations"] for r in reports)
    if listed in (None, found) or any(r["outcome"] != "agrees" for r in reports):
        return
    what = "number of operations in manifest.json"
    reports[-1] |= {"outcome": "differs", "what": what, "expected": str(listed)}
    reports[-1] |= {"found": str(found), "line": reports[-1]["operations"] + 1}


Replayer = Callable[[str, str], str]
"""Function that replays a scenario's text under a name and returns the report as JSON."""


def replayer(queue: str | None) -> Replayer:
    """Returns the replayer that uses the engine's queues, or the user's queue `queue`."""
    if queue is None:
        return _core.verify
    from sojourn.own.recorded import Recorded

    own = Recorded(queue)
    return lambda name, text: _core.verify_own(name, text, own.maker())


def replay(path: Path, folder: Path, replayer: Replayer) -> list[dict[str, Any]]:
    """Returns a report on the replay of each scenario in a file.

    A file that cannot be read has one report, with the outcome `malformed`.
    """
    name = str(path.relative_to(folder)) if folder.is_dir() else path.name
    try:
        text = read(path)
    except (ValueError, OSError) as error:
        why = "not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
        return [
            {
                "file": name,
                "scenario": name,
                "discipline": "",
                "operations": 0,
                "outcome": "malformed",
                "line": 1,
                "why": why,
            }
        ]
    reports = []
    for before, part in scenarios(text):
        report: dict[str, Any] = {"file": name, **json.loads(replayer(name, part))}
        if "line" in report:
            report["line"] += before
        reports.append(report)
    return reports


def replay_all(
    files: list[Path], folder: Path, replayer: Replayer
) -> tuple[list[dict[str, Any]], bool]:
    """Returns the reports on all files, replayed in parallel, and whether the user interrupted."""
    with (
        bars.interruptible() as interrupt,
        bars.counting("replaying", "files") as tell,
        ThreadPoolExecutor(os.cpu_count()) as pool,
    ):
        done = itertools.count(1)
        operations = listed(folder) if folder.is_dir() else {}

        def one(path: Path) -> list[dict[str, Any]]:
            if interrupt.asked:
                return []
            reports = replay(path, folder, replayer)
            check_number(reports, operations.get(path))
            tell(next(done), len(files))
            return reports

        found = list(pool.map(one, files))
    return [report for reports in found for report in reports], not all(found)


def by_discipline(reports: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns one summary for each discipline, sorted by name."""
    names = sorted({r["discipline"] for r in reports}, key=lambda n: (n == "", n))
    return [_summary(name, [r for r in reports if r["discipline"] == name]) for name in names]


def _summary(name: str, reports: list[dict[str, Any]]) -> dict[str, Any]:
    if all(r["outcome"] == "unknown_discipline" for r in reports):
        return {"discipline": name, "known": False, "scenarios": len(reports)}
    first = next((r for r in reports if r["outcome"] != "agrees"), None)
    return {
        "discipline": name,
        "known": True,
        "scenarios": len(reports),
        "agree": sum(r["outcome"] == "agrees" for r in reports),
        "operations": sum(r["operations"] for r in reports),
        "first_difference": None if first is None else describe(first),
    }


def describe(report: dict[str, Any]) -> str:
    """Returns the difference or error of a report in one line."""
    head = f"{report['file']}, line {report.get('line', 1)}: "
    if report["outcome"] == "malformed":
        return head + f"cannot be replayed: {report['why']}"
    return head + f"{report['what']}: recorded {report['expected']}, found {report['found']}"


def show(disciplines: list[dict[str, Any]], agree: bool, replayed: int) -> None:
    """Prints the table of disciplines, the first differences, and the overall result."""
    rows = []
    for item in disciplines:
        name = item["discipline"] or "(no discipline)"
        if item["known"]:
            verdict = "agrees" if item["first_difference"] is None else "DIFFERS"
            counts = f"{item['agree']} of {item['scenarios']}"
            operations = str(item["operations"])
        else:
            verdict, counts, operations = "unknown, not counted", f"- of {item['scenarios']}", "-"
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


def differences(disciplines: list[dict[str, Any]]) -> Iterator[str]:
    """Yields the first difference of each discipline that has one."""
    for item in disciplines:
        if item["known"] and item["first_difference"] is not None:
            yield f"\nfirst difference of {item['discipline'] or '(no discipline)'}:"
            yield f"  {item['first_difference']}"
