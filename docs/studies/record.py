#!/usr/bin/env python3
"""Makes the records of the published studies, and their figures in the documentation.

    python docs/studies/record.py [NAME ...] [--results DIR] [--full] [--linux]

Runs `sojourn paper NAME` (`--quick` unless `--full`) for these studies, or for all, into
`DIR/NAME`, and writes the record that is part of the package and `docs/images/studies/NAME-*.png`.
`--linux` adds the verdicts of Linux in virtual time, on the runs that each study names for it.
`--judged` makes the runs with the seeds that follow from the frozen claims. `--near NAME=FILE` adds
to a record how near exploratory runs are to the paper, from `sojourn paper NAME --quick --json`.
The CPU-hours of all these runs are printed first. After an interruption, the runs in the folder are
not repeated. `--real NAME=FILE` adds the verdicts of real runs, from what
`sojourn paper NAME --real --json` printed. `make records` does all of this except the real runs.
`python -m tests.papers.cells NAME` records the sampled runs.
"""

from __future__ import annotations

import argparse
import json
import re
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
    "queue-lb": ("throughput-iqlb-unequal", "throughput-qtm-unequal", "gains", "spacings", "ages"),
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


def nearer(name: str, printed: str) -> None:
    """Adds conditions and nearness of exploratory runs to a record, and rules on its contrasts.

    A claim is ruled if at least one of its conditions was measured.
    """
    from sojourn.papers import load, records
    from sojourn.papers.rule import explained, rule
    from sojourn.stats import MeanIn, Region
    from sojourn.stats.cells import describe

    kept, found = records.record(name), json.loads(printed)
    assert kept is not None
    known = {
        (c["quantity"], c["where"]): {**c, "ours": float(f"{c['ours']:.6g}")}
        for one in found["claims"]
        for c in one["conditions"]
    }
    for claim in kept["claims"]:
        probe = MeanIn(id=claim["id"], text="", metric="", region=Region())
        measured = [
            one
            for condition in load(name).conditions
            if condition.concerns(probe)
            for (quantity, where), one in known.items()
            if quantity == condition.quantity
            and (not isinstance(condition.ours, MeanIn) or where == describe(condition.ours.cell))
        ]
        former = ("near the paper", "ours / paper", "depends on", "far from the paper")
        asides = [a for a in claim.get("asides", ()) if not a.startswith(former)]
        holding = [m[1] for a in asides if (m := re.search(r"readings tried \((.*)\)", a))]
        given = [n for names in holding for n in names.split("; ") if n != "main"]
        claim["asides"] = asides
        if measured:
            near = all(one["near"] for one in measured)
            claim["conditions"], claim["ruling"] = measured, rule(claim["verdict"], near, given)
            why = explained(claim["ruling"], claim["verdict"], measured, given)
            claim["asides"] = [why, *asides]
    kept["near"] = found["how_near"]
    kept["near_from"] = f"sojourn paper {name} --quick"
    write(records.path(name), kept)
    groups = ", ".join(f"{n} {group}" for group, n in records.grouped(kept["claims"]).items())
    print(f"{name}: {groups}", flush=True)


def planned(asked: argparse.Namespace) -> None:
    """Prints the CPU-hours of all requested studies, as far as they are known."""
    from sojourn.papers import load, records

    size, total, unknown = "full" if asked.full else "quick", 0.0, []

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
        line(name, f"simulated, {size}", records.expected(name, size))
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


def write(file: Path, data: dict[str, Any]) -> None:
    """Writes the record."""
    file.parent.mkdir(exist_ok=True)
    text = json.dumps(data, indent=1, ensure_ascii=False)
    file.write_text(text + "\n", encoding="utf-8")


def make(name: str, asked: argparse.Namespace) -> None:
    """Makes the record of a study."""
    from sojourn import _core, engines
    from sojourn.papers import frozen, load, records
    from sojourn.papers.bench import Making
    from sojourn.papers.report import show
    from sojourn.show.terminal import here

    study, size = load(name), "full" if asked.full else "quick"
    kept = records.record(name)
    took = kept.get("took", {}) if kept else {}
    drawn: list[Path] = []
    seeds = frozen.seeds(name)
    shift = seeds["first"] - study.first_seed if asked.judged else 0

    def simulated(stage: Any) -> Any:
        making = Making(stage=stage)
        outcome = study.run(asked.results / name, not asked.full, making, shift=shift)
        drawn.extend(path for path in show(outcome) if path.suffix == ".png")
        return outcome

    outcome = measured(asked.results / name, size, took, simulated)
    written = {path.stem: path for path in drawn}
    others: dict[str, dict[str, str]] = {}
    wall_clock = None
    if name in asked.real:
        printed = asked.real[name].read_text(encoding="utf-8")
        others["real"] = real_verdicts(printed)
        wall_clock = json.loads(printed)["wall_clock"]
    if asked.linux and study.real is not None and study.real.linux is not None:
        virtual = next(kind for kind in study.real.engines if engines.find(kind).virtual)
        found = measured(
            asked.results / f"{name}-linux", "linux", took,
            lambda stage: study.run(
                asked.results / f"{name}-linux", making=Making(stage=stage), size=study.real.linux,
                engine=engines.find(virtual).make(), shift=shift,
            ),
        )  # fmt: skip
        others["linux"] = {j.claim.id: j.verdict for j in found.judgements}
    record = {
        "study": name,
        "command": f"sojourn paper {name}{'' if asked.full else ' --quick'}",
        "how": how(name, outcome),
        "engine": _core.fingerprint(),
        "made": datetime.now(UTC).date().isoformat(),
        "took": took,
        **({"seeds": seeds} if asked.judged else {}),
        "near": json.loads(outcome.how_near().to_json(orient="records")),
        **({"wall_clock": wall_clock} if wall_clock else {}),
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
                "asides": outcome.asides(j.claim),
            }
            for j in outcome.judgements
            for r in [outcome.ruled(j)]
        ],
    }
    write(records.path(name), record)
    for figure in FIGURES[name]:
        if figure not in written:
            sys.exit(f"no figure {figure}; there are {', '.join(sorted(written))}")
        image(written[figure], DOCS / "images" / "studies" / f"{name}-{figure}.png")
    print(f"{name}: {len(record['claims'])} findings recorded", flush=True)


def main() -> None:
    from sojourn.papers import NAMES

    def real(text: str) -> tuple[str, Path]:
        name, _, file = text.partition("=")
        return name, Path(file)

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*NAMES, []], default=[])
    parser.add_argument("--results", type=Path, default=Path("results/records"))
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--judged", action="store_true")
    parser.add_argument("--near", type=real, metavar="NAME=FILE")
    parser.add_argument("--linux", action="store_true")
    parser.add_argument("--real", type=real, action="append", default=[], metavar="NAME=FILE")
    asked = parser.parse_args()
    asked.real, asked.names = dict(asked.real), asked.names or list(NAMES)
    if asked.near:
        nearer(asked.near[0], asked.near[1].read_text(encoding="utf-8"))
        return
    planned(asked)
    for name in asked.names:
        make(name, asked)


if __name__ == "__main__":
    main()
