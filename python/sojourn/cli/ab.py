"""`sojourn ab`: whether program B is worse than program A."""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from sojourn import engines
from sojourn.cli import bars, exits, output
from sojourn.cli.options import AsJson, tell_programs
from sojourn.settings import Option, settings

if TYPE_CHECKING:
    from sojourn.ab.alone import Alone
    from sojourn.ab.over import Over
    from sojourn.ab.trial import Trial, Which


@settings
class Asked:
    """Options of the comparison."""

    over: Annotated[str | None, Option("FILE")] = None
    """Run the programs over the links of a scenario, between the hosts of its first flow with own
    programs, or else of its first flow; its other flows run too. `{to}`, `{from}` and `{port}` in
    the commands are the hosts' addresses and the flow's port. In place of a file, the link in
    words: "rate 20mbit netem 'delay 15ms' queue codel". By default the programs run on this machine
    without a link.
    """
    server: Annotated[str | None, Option("COMMAND")] = None
    """Command line of the server, started at the other host before each run (`--over`)."""
    metric: Annotated[str | None, Option("KEY|PATTERN")] = None
    """Number that the programs print: the path of a key in the last line, which is JSON, or a
    regular expression with one group, such as 'goodput=([0-9.]+)Mbit/s'. By default the completion
    time.
    """
    better: Literal["lower", "higher"] | None = None
    """Direction in which the number is better. By default that of the metric with which --metric
    begins, such as goodput; of completion times lower.
    """
    margin: Annotated[str | None, Option("SHARE")] = None
    """Ask whether B is at most this share worse, such as 3%."""
    smallest: Annotated[str, Option("SHARE")] = "3%"
    """Smallest difference of interest: pairs are planned to find it, and smaller ones are equal."""
    pairs: Annotated[int, Option(min=8)] = 303
    """Largest number of pairs."""
    seed: Annotated[int, Option(min=0)] = 1
    """Seed of the order within the pairs; the runs have the following seeds."""
    limit: Annotated[str | None, Option("TIME")] = None
    """Longest time of a run. By default 60s, or the scenario's duration."""
    engine: Annotated[
        str,
        Option(
            "NAME", help=f"Engine of the runs (--over): {engines.help_text(engines.LABORATORY)}."
        ),
    ] = engines.WIRE
    junit: Annotated[Path | None, Option("FILE")] = None
    """Write the result as JUnit's XML."""
    markdown: Annotated[Path | None, Option("FILE")] = None
    """Append the result as Markdown, for example to "$GITHUB_STEP_SUMMARY"."""


@exits.command
def ab(
    commands: Annotated[
        list[str],
        Option(
            "-- A -- B", positional=True, help="Commands of the programs A and B, without a shell."
        ),
    ],
    asked: Asked,
    as_json: AsJson = False,
) -> None:
    """Decide whether program B is worse than program A, by pairs of runs in random order.

    First A runs against itself, which shows the noise and how many pairs are needed. The pairs end
    at the first look that decides; the looks together err in at most 5 % of comparisons. The status
    is 1 if B is worse (with --margin: by more than the margin), 3 if the pairs do not decide.
    """
    from sojourn.ab.alone import Alone
    from sojourn.ab.report import Report
    from sojourn.ab.trial import Question, TrialError, trial
    from sojourn.scenario import reported
    from sojourn.scenario.words import time_of
    from sojourn.stopping import interrupting

    sides = _sides(commands)
    better = _better(asked)
    if asked.metric is not None and (why := reported.wrong(asked.metric)):
        exits.fail(f"--metric {why}")
    margin = None if asked.margin is None else _share("--margin", asked.margin)
    question = Question(better, _share("--smallest", asked.smallest), margin, asked.pairs)
    runner: Alone | Over
    if asked.over is None:
        if asked.server is not None or asked.engine != engines.WIRE:
            exits.fail("--server and --engine require --over")
        seconds = time_of(asked.limit or "60s") / 1e9
        runner = Alone(sides, asked.metric, seconds)
    else:
        from sojourn.ab.over import over

        kind = engines.find(asked.engine, engines.LABORATORY)
        runner = over(
            asked.over, sides, kind, asked.metric, better, server=asked.server, limit=asked.limit
        )
        tell_programs([one.plan for one in runner.scenarios.values()])
    begin = time.monotonic()
    planned = False
    with interrupting(), bars.working("comparing A and B") as show:

        def tell(now: Trial) -> None:
            nonlocal planned
            done, most = len(now.pilot) + len(now.pairs), len(now.pilot) + now.design.most
            if now.noise == now.noise and not planned:
                planned = True
                spent = (time.monotonic() - begin) / (2 * done + 2)
                output.note(f"{now.plan()}, in at most {_duration(2 * spent * now.design.most)}")
            show(f"pair {done}", done / most if planned else 0.0)

        try:
            found = trial(runner.measure, question, asked.seed, repeats=runner.repeats, tell=tell)
        except TrialError as error:
            exits.fail("\n  ".join([str(error), *_reasons(runner)]))
    status = {"worse": exits.FINDINGS, "inconclusive": exits.INCONCLUSIVE}.get(
        found.verdict, exits.OK
    )
    report = Report(found, asked.metric or "completion time", sides, status)
    if asked.junit is not None:
        asked.junit.write_text(report.junit(), encoding="utf-8")
    if asked.markdown is not None:
        with asked.markdown.open("a", encoding="utf-8") as file:
            file.write(report.markdown())
    if found.excluded:
        output.note(f"{found.excluded} pairs with a run that is not valid were repeated:")
        for reason in _reasons(runner):
            output.note(f"  {reason}")
    if as_json:
        data = report.as_dict()
        output.print_data(data, data["pairs"])
    else:
        typer.echo("\n".join(report.lines()))
    if status == exits.FINDINGS:
        raise typer.Exit(exits.FINDINGS)
    if status == exits.INCONCLUSIVE:
        raise typer.Exit(exits.INCONCLUSIVE)


def _reasons(runner: Alone | Over) -> list[str]:
    """Returns the most frequent reasons why runs were not valid."""
    counts: dict[str, int] = getattr(runner, "violations", {})
    return sorted(counts, key=lambda reason: -counts[reason])[:3]


def _sides(words: list[str]) -> dict[Which, list[str]]:
    """Returns the two commands, which `--` separates."""
    at = [i for i, word in enumerate(words) if word == "--"]
    if len(at) != 1 or not words[: at[0]] or not words[at[0] + 1 :]:
        exits.fail(
            "give two commands: sojourn ab [OPTIONS] -- COMMAND_A -- COMMAND_B; a command that "
            "contains `--` itself belongs in a script"
        )
    return {"A": words[: at[0]], "B": words[at[0] + 1 :]}


def _better(asked: Asked) -> Literal["lower", "higher"]:
    from sojourn.metrics import direction

    if asked.better is not None or asked.metric is None:
        return asked.better or "lower"
    word = re.match(r"[a-z_0-9]*", asked.metric)
    known = direction(word[0]) if word and word[0] else None
    return known or exits.fail(
        f"--metric {asked.metric}: say which numbers are better, --better lower or --better higher"
    )


def _share(option: str, text: str) -> float:
    """Returns a share such as `3%`, above 0 and below 1."""
    found = re.fullmatch(r"([0-9]*\.?[0-9]+) ?%", text.strip())
    if not found or not 0 < float(found[1]) < 100:
        exits.fail(f"{option} must be a share above 0% and below 100%, such as 3%; found {text!r}")
    return float(found[1]) / 100


def _duration(seconds: float) -> str:
    from sojourn.study.progress import duration

    return duration(seconds)
