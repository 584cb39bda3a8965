#!/usr/bin/env python3
"""Makes the records of the published studies, and their figures in the documentation.

    python docs/studies/record.py [NAME ...] [--results DIR] [--quarter | --full] [--judged]
                                  [--linux] [--workers N]
    python docs/studies/record.py [NAME ...] --replay N

Runs `sojourn paper NAME` (`--quick` unless `--quarter` or `--full`) for these studies, or for all,
into `DIR/NAME`, and writes the record that is part of the package, the trace hashes of its runs,
and `docs/images/studies/NAME-*.png`. `--linux` adds the verdicts of Linux in virtual time, on the
runs that each study names for it. `--judged` makes the runs with the seeds that follow from the
frozen claims. `--replay N` repeats N runs of each record, which the date selects, and notes in the
record that this engine gives their trace hashes. The CPU-hours of all these runs are printed first.
After an interruption, the runs in the folder are not repeated: give the same command again.
`--real NAME=FILE` adds the verdicts of real runs, from what
`sojourn paper NAME --real --json` printed. `make records` does all of this except the real runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "_figures"))

import small

DOCS = Path(__file__).resolve().parents[1]

# Figures of each study that its page shows.
FIGURES = {
    "taildrop": ("bulk", "web"),
    "daqm": (
        "published-6a",
        "published-6b",
        *(f"published-{number}" for number in range(7, 17)),
        "meant-6a",
        "meant-13",
    ),
    "queue-lb": ("throughput-iqlb", "throughput-qtm", "gains", "spacings", "ages"),
    "rrda": (
        "static-cpu",
        "static-clients",
        "scenarios",
        "exhaustion",
        "throughput-cpu",
        "throughput-clients",
        "timeouts",
        "memory",
    ),
    "edge-store": (
        "figure-2",
        "figure-3",
        "figure-4",
        "fewer-nodes",
        "clusters",
        "sizes",
        "explanations",
    ),
    "l4s": ("delays", "rtt", "rfc3168", "partial", "step"),
}


def how(name: str, outcome: Any) -> str:
    """Returns a sentence about the runs."""
    size = outcome.size
    match name:
        case "taildrop":
            return (
                f"Simulated: bulk traffic {size.bulk:g} s and {size.seeds} seeds, Web traffic "
                f"{size.web:g} s and {size.web_seeds} seeds."
            )
        case "daqm":
            return (
                f"Simulated: {size.seeds} seeds as published (short flows 11 s, long flows 61 s), "
                f"{size.meant_seeds} as meant, {size.other_seeds} in each other reading."
            )
        case "queue-lb":
            return f"Simulated: iperfs of {size.seconds:g} s, {size.seeds} seeds."
        case "l4s":
            return f"Simulated: two flows at a time for the most part, {size.seeds} seeds."
        case "rrda":
            return f"Simulated: runs of {size.seconds:g} s, {size.seeds} seeds."
        case _:
            return (
                f"Simulated: {size.writes} writes a run, {size.seeds} seeds for each combination "
                f"of levels, {len({delay for *_, delay in size.cells})} delays."
            )


def image(source: Path, target: Path) -> None:
    """Writes a figure for the pages, with few colours, as wide as the limit of its file allows."""
    from PIL import Image

    whole = Image.open(source).convert("RGB")
    for width in (1400, 1150, 900):
        shrunk = (width, round(whole.height * width / whole.width))
        drawn = whole.resize(shrunk, Image.LANCZOS) if whole.width > width else whole
        small.save(drawn, target)
        if target.stat().st_size <= small.LARGEST:
            return
    sys.exit(f"{target}: more than {small.LARGEST} B at a width of {width}")


def real_verdicts(printed: str) -> dict[str, str]:
    """Returns verdicts on real runs by claim, from `sojourn paper NAME --real --json`."""
    return {claim["id"]: claim["verdict"] for claim in json.loads(printed)["claims"]}


def planned(asked: argparse.Namespace) -> None:
    """Prints the CPU-hours of all requested studies, as far as they are known."""
    from sojourn.papers import load, records

    total, unknown = 0.0, []

    def line(name: str, what: str, expected: dict[str, float] | None, times: int = 1) -> None:
        nonlocal total
        if expected is None:
            unknown.append(f"{name} ({what})")
            return
        hours = times * expected["cpu"] / 3600
        total += hours
        print(f"{name:12}{what:34}{hours:6.2f} CPU-hours")

    for name in asked.names:
        real = load(name).real
        line(name, f"simulated, {asked.length}", records.expected(name, asked.length))
        if asked.linux and real is not None and real.linux is not None:
            line(name, "Linux in virtual time", records.expected(name, "linux"))
        elif asked.linux:
            why = real.no_linux if real is not None else "it has no real part"
            print(f"{name:12}Linux in virtual time: not possible, {why}")
    print(f"{'in all':12}{'':34}{total:6.2f} CPU-hours", flush=True)
    if unknown:
        print(f"not known yet: {', '.join(unknown)}", flush=True)


def measured(folder: Path, size: str, took: dict[str, Any], run: Callable[[Any], Any]) -> Any:
    """Returns the results of a study; adds the CPU time to `took` if it is known for all runs."""
    from sojourn.cli.bars import stages
    from sojourn.papers import records

    file = folder / "took.json"
    whole = file.exists() or not folder.exists()
    meter = records.Meter(file)
    with stages() as stage:

        def noted(title: str) -> Any:
            meter.keep()
            return stage(title)

        try:
            outcome = run(noted)
        finally:
            meter.keep()
    if whole:
        took[size] = records.took(meter.spent())
    return outcome


def tabular(title: str, frame: Any) -> dict[str, Any]:
    """Returns a table of a study for its record."""
    from sojourn.study.quantities import plain

    rows = [frame.columns, *frame.itertuples(index=False, name=None)]
    return {"title": title, "rows": ["\t".join(map(plain, row)) for row in rows]}


def write(file: Path, data: dict[str, Any]) -> None:
    """Writes the record."""
    file.parent.mkdir(exist_ok=True)
    text = json.dumps(data, indent=1, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")


def make(name: str, asked: argparse.Namespace) -> None:
    """Makes the record of a study."""
    from sojourn import _core, engines
    from sojourn.papers import frozen, load, records, replay
    from sojourn.papers.bench import Making
    from sojourn.papers.report import show
    from sojourn.show.terminal import comparisons, here

    study, length = load(name), asked.length
    options = [f"--{length}"] * (length != "full") + ["--judged"] * asked.judged
    kept = records.record(name)
    took = kept.get("took", {}) if kept else {}
    drawn: list[Path] = []
    shift = study.judging() if asked.judged else 0

    def simulated(stage: Any) -> Any:
        making = Making(stage=stage, workers=asked.workers)
        outcome = study.run(
            asked.results / name, length == "quick", making, study.sized(length), shift=shift,
            options=options,
        )  # fmt: skip
        drawn.extend(path for path in show(outcome) if path.suffix == ".png")
        return outcome

    outcome = measured(asked.results / name, length, took, simulated)
    written = {path.stem: path for path in drawn}
    others: dict[str, dict[str, str]] = {}
    commands: dict[str, str] = {}
    wall_clock = None
    if name in asked.real:
        printed = asked.real[name].read_text(encoding="utf-8")
        others["real"] = real_verdicts(printed)
        commands["real"] = json.loads(printed)["command"]
        wall_clock = json.loads(printed)["wall_clock"]
    if asked.linux and study.real is not None and study.real.linux is not None:
        kinds = map(engines.find, study.real.engines)
        virtual = next(kind for kind in kinds if kind.virtual)
        found = measured(
            asked.results / f"{name}-linux", "linux", took,
            lambda stage: study.run(
                asked.results / f"{name}-linux", False, Making(stage=stage, workers=asked.workers),
                study.sized("full", virtual), virtual.make(), shift,
                options=[f"--engine {virtual.name}", *["--judged"] * asked.judged],
            ),
        )  # fmt: skip
        commands["linux"] = found.command
        others["linux"] = {j.claim.id: j.verdict for j in found.judgements}
    record = {
        "study": name,
        "command": outcome.command,
        "commands": commands,
        "how": how(name, outcome),
        "engine": _core.fingerprint(),
        "made": datetime.now(UTC).date().isoformat(),
        "took": took,
        **({"seeds": frozen.seeds(name)} if asked.judged else {}),
        "near": json.loads(outcome.how_near().to_json(orient="records")),
        **({"wall_clock": wall_clock} if wall_clock else {}),
        "tried": list(outcome.column.readings),
        "tables": [tabular(*one) for one in (study.tables or (lambda _: ()))(outcome)],
        "withdrawn": [claim.as_dict() for claim in outcome.paper.withdrawn],
        "claims": [
            {
                "id": j.claim.id,
                "finding": j.claim.text,
                "paper": j.claim.published,
                "here": here(j, outcome.units),
                "verdict": j.verdict,
                **({"ruling": r.verdict, "conditions": r.as_list()} if r.measured else {}),
                **{key: told[j.claim.id] for key, told in others.items() if j.claim.id in told},
                "own_table": outcome.support[j.claim.id].verdict,
                "labels": outcome.labels(j.claim),
                "asides": outcome.asides(j.claim),
                "comparisons": ["\t".join(one) for one in comparisons(j, outcome.units)],
            }
            for j in outcome.judgements
            for r in [outcome.ruled(j)]
        ],
    }
    write(records.path(name), record)
    print(f"{name}: {replay.keep(outcome)} runs recorded", flush=True)
    for figure in FIGURES[name]:
        target = DOCS / "images" / "studies" / f"{name}-{figure}.png"
        if figure in written:
            image(written[figure], target)
        else:
            print(f"{name}: these runs have no figure {figure}", flush=True)
            target.unlink(missing_ok=True)
    print(f"{name}: {len(record['claims'])} findings recorded", flush=True)


def repeat(name: str, number: int, workers: int | None) -> bool:
    """Repeats a number of a record's runs; notes in the record if all have their trace hashes."""
    from sojourn import _core
    from sojourn.papers import records, replay

    kept, runs = records.record(name), replay.runs(name)
    today = datetime.now(UTC).date().isoformat()
    if kept is None or not runs:
        print(f"{name}: no runs are recorded; make its record", flush=True)
        return False
    chosen = list(replay.drawn(runs, today))[:number]
    problems = replay.repeated(name, chosen, workers)
    print(f"{name}: {len(chosen)} of {len(runs)} runs, drawn by {today}: {len(problems)} differ")
    print(*problems, sep="\n", end="\n" * bool(problems), flush=True)
    if not problems:
        seen = {"engine": _core.fingerprint(), "on": today, "runs": len(chosen), "of": len(runs)}
        write(records.path(name), {**kept, "replayed": seen})
    return not problems


def main() -> None:
    from sojourn.papers import NAMES

    def real(text: str) -> tuple[str, Path]:
        name, _, file = text.partition("=")
        return name, Path(file)

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], default=[])
    parser.add_argument("--results", type=Path, default=Path("results/records"))
    parser.add_argument("--quarter", action="store_const", const="quarter", dest="length")
    parser.add_argument("--full", action="store_const", const="full", dest="length")
    parser.add_argument("--workers", type=int)
    parser.add_argument("--replay", type=int, metavar="N")
    parser.add_argument("--judged", action="store_true")
    parser.add_argument("--linux", action="store_true")
    parser.add_argument("--real", type=real, action="append", default=[], metavar="NAME=FILE")
    parser.set_defaults(length="quick")
    asked = parser.parse_args()
    asked.real, asked.names = dict(asked.real), asked.names or list(NAMES)
    if asked.replay:
        done = [repeat(name, asked.replay, asked.workers) for name in asked.names]
        sys.exit(not all(done))
    planned(asked)
    for name in asked.names:
        make(name, asked)


if __name__ == "__main__":
    main()
