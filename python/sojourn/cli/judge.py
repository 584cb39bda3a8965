"""`sojourn judge`: whether a queue's decisions are those that an RFC permits."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sojourn.cli import bars, exits, options, output
from sojourn.settings import Option, settings

if TYPE_CHECKING:
    from sojourn.judge.judge import Judgement

NAMES = ("codel", "fq_codel", "pie", "dualpi2")
"""Disciplines whose text is known."""


@settings
class Judged:
    """The queue to judge, and the way."""

    subject: Annotated[list[str] | None, Option("[--] QUEUE|COMMAND...", positional=True)] = None
    """A command that answers on its standard output; or a queue: FILE:CLASS, or a name such as
    codel. With `--level linux`, all of our queues by default.
    """
    discipline: Annotated[str | None, Option("NAME")] = None
    """Discipline that the queue implements: codel, fq_codel, pie, dualpi2. Without it, QUEUE must
    be one.
    """
    level: Literal["rfc", "linux"] = "rfc"
    """Whether the text of the RFC decides, or Linux's recorded decisions, bit for bit."""
    allow: Annotated[Literal["linux"] | None, Option("linux")] = None
    """Permit also the known deviations of Linux."""
    seeds: Annotated[int, Option("N", min=1)] = 3
    """Number of seeds; each has a schedule of each kind of traffic."""
    recordings: Annotated[Path | None, Option("DIR", readable=False)] = None
    """Folder of recordings whose schedules are played too. By default crates/vectors/data, as in a
    clone of the repository, if it exists.
    """
    junit: Annotated[Path | None, Option("FILE", readable=False)] = None
    """Write the result as XML of JUnit."""
    markdown: Annotated[Path | None, Option("FILE", readable=False)] = None
    """Write the result as Markdown."""


@exits.command
def judge(asked: Judged, as_json: options.AsJson = False) -> None:
    """Judge any implementation of a queue discipline by the text of its RFC.

    The queue gets schedules of arrivals and departures. A monitor follows its decisions, and says
    for each which decisions the text permits. The first breach is shown in the smallest schedule;
    the status is then 1.
    """
    from sojourn.cli.verify import compare
    from sojourn.judge import judge as judging
    from sojourn.judge import report
    from sojourn.judge.recordings import RECORDED
    from sojourn.judge.subjects import Bench, Command, JudgeError
    from sojourn.own.sources import is_own

    words, linux = asked.subject or [], asked.level == "linux"
    is_queue = len(words) == 1 and (words[0] in NAMES or is_own(words[0]))
    name = asked.discipline or (words[0] if words and words[0] in NAMES else None)
    if linux and (is_queue or not words):
        queue = words[0] if is_queue and words[0] not in NAMES else None
        compare(asked.recordings, queue, as_json=as_json, discipline=name)
        return
    if name not in NAMES:
        what = f"unknown discipline `{name}`: there are" if name else "give the discipline:"
        exits.fail(f"{what} {', '.join(f'--discipline {known}' for known in NAMES)}")
    if not words:
        exits.fail("give a queue, or a command after `--`")
    folder = asked.recordings or (RECORDED if RECORDED.is_dir() else None)
    if folder is not None and not folder.is_dir():
        exits.fail(f"{folder}: no such folder")
    if linux and folder is None:
        exits.fail(f"Linux's decisions are in a folder of recordings: --recordings {RECORDED}")
    try:
        with (
            closing(Bench(words[0]) if is_queue else Command(words)) as subject,
            bars.interruptible() as interrupt,
            bars.waiting(f"judging {subject.name}"),
        ):
            if linux and folder is not None:
                schedules = judging.recorded(name, folder)
            else:
                schedules = judging.offered(name, range(1, asked.seeds + 1), folder)
            found = judging.judge(
                subject,
                name,
                schedules,
                allow_linux=asked.allow == "linux",
                stop=lambda: interrupt.asked,
            )
    except JudgeError as error:
        exits.fail(str(error))
    for path, text in ((asked.junit, report.junit), (asked.markdown, report.markdown)):
        if path is not None:
            path.write_text(text(found), encoding="utf-8")
    if as_json:
        output.print_data(asdict(found))
    else:
        show(found, linux=linux)
    if interrupt.asked:
        raise typer.Exit(exits.INTERRUPTED)
    exits.negative(found.case is not None)


def show(found: Judgement, *, linux: bool) -> None:
    """Prints a judgement."""
    from sojourn.judge import report

    typer.echo(report.summary(found))
    if found.case is not None:
        for line in report.shown(found.case):
            typer.echo(line)
    elif not linux:
        rows = list(report.freedoms(found))
        output.table(rows, ["freedom", "used", "place"], "Freedoms of the text:")
