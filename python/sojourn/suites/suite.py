"""A suite: scenario files with their variants, run with all queues into one table."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sojourn import _core, study
from sojourn.metrics import view
from sojourn.scenario import Scenario
from sojourn.scenario.run import plain
from sojourn.suites import disciplines

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    import pandas as pd

    from sojourn.study.cluster import Place
    from sojourn.study.progress import Report

NAMES = ("rfc7928", "tcp-evaluation")
"""Names of the suites."""
MANIFEST = "suite.toml"
REVERSE = "topology.reverse.queue"
"""Key of the queue at the other end of a dumbbell's bottleneck."""


class SuiteError(ValueError):
    """An unknown suite, scenario or queue."""


@dataclass(frozen=True)
class Entry:
    """One scenario of a suite."""

    file: str
    short: str
    """Name in tables."""
    title: str
    section: str
    """Section of the source that describes it."""
    weight: str
    """Requirement level in the source: `must`, `recommended`, `may`."""
    limit: int
    """Buffer of every queue in packets."""
    variants: Mapping[str, Mapping[str, Any]]
    """Changes of the scenario's keys, by name; one unnamed entry without variants."""
    both_ways: bool
    """Whether the queue under test is at both ends of the bottleneck."""


@dataclass(frozen=True)
class Suite:
    """A published set of scenarios."""

    name: str
    title: str
    source: str
    entries: tuple[Entry, ...]
    folder: Traversable

    def text(self, entry: Entry) -> str:
        """Returns a scenario's file."""
        return (self.folder / entry.file).read_text(encoding="utf-8")

    def scenarios(self, entry: Entry) -> dict[str, Scenario]:
        """Returns a scenario's variants by name."""
        base = Scenario.from_toml(self.text(entry), file=entry.file)
        return {
            name: base.replace(dict(changes)) if changes else base
            for name, changes in entry.variants.items()
        }

    def queues(self, scenario: Scenario, entry: Entry) -> Mapping[str, str]:
        """Returns every discipline with settings for this scenario's initial bottleneck."""
        rate = scenario.bottleneck_rate
        return disciplines.every(rate, entry.limit)

    def only(self, shorts: Iterable[str]) -> Suite:
        """Returns the suite with some of its scenarios."""
        known = {entry.short: entry for entry in self.entries}
        chosen = []
        for short in shorts:
            if short not in known:
                near = _core.nearest(short, list(known))
                hint = f": did you mean `{near}`?" if near else f"; there are {', '.join(known)}"
                raise SuiteError(f"suite {self.name} has no scenario `{short}`{hint}")
            chosen.append(known[short])
        return Suite(self.name, self.title, self.source, tuple(chosen), self.folder)

    def run(
        self,
        seeds: int,
        out: Path | None = None,
        queues: Sequence[str] | None = None,
        workers: int | None = None,
        progress: Report | None = None,
        on: Place | None = None,
    ) -> Outcome:
        """Runs every scenario and variant with the queues, with common seeds.

        `queues` are names of disciplines, or queues in tc's words; by default all disciplines. `on`
        is a Dask cluster for the runs.
        """
        cells: list[tuple[Mapping[str, str | int | float], Scenario]] = []
        for entry in self.entries:
            for variant, scenario in self.scenarios(entry).items():
                for name, text in self._chosen(scenario, entry, queues).items():
                    factors: dict[str, str | int | float] = {
                        "scenario": entry.short,
                        "variant": variant,
                        "queue": name,
                    }
                    tested = scenario.with_queue(text)
                    if entry.both_ways:
                        tested = tested.replace({REVERSE: text})
                    cells.append((factors, tested))
        runs = study.Study.of_cells(
            f"suite {self.name}", cells, kind="suite", question={"suite": self.name}
        )
        table = runs.seeds(seeds).run(out=out, workers=workers, progress=progress, on=on)
        return Outcome(self, table)

    def _chosen(
        self, scenario: Scenario, entry: Entry, queues: Sequence[str] | None
    ) -> dict[str, str]:
        known = dict(self.queues(scenario, entry))
        if queues is None:
            return known
        rate = scenario.bottleneck_rate
        return {
            name: known[name] if name in known else disciplines.buffered(name, rate, entry.limit)
            for name in queues
        }


@dataclass(frozen=True)
class Outcome:
    """Results of a suite's runs."""

    suite: Suite
    table: study.Table

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Means over variants and seeds by scenario and queue, as in the displayed table.

        Columns: `scenario`, `queue`, `sojourn_p95` (s), `utilisation`, `loss`, `goodput` (bit/s).
        """
        metrics = list(view("suite"))
        grouped = self.table.frame.groupby(["scenario", "queue"], sort=False)[metrics]
        return grouped.mean().reset_index()

    @property
    def queues(self) -> list[str]:
        """Queues in the order of their runs."""
        return list(dict.fromkeys(self.table.frame["queue"]))

    def as_dict(self) -> dict[str, Any]:
        """Returns the comparison as data for JSON."""
        return {
            "suite": self.suite.name,
            "title": self.suite.title,
            "source": self.suite.source,
            "seeds": len(self.table.seeds),
            "rows": [
                {str(k): plain(v) for k, v in row.items()}
                for row in self.frame.to_dict(orient="records")
            ],
        }


def _entry(data: Mapping[str, Any]) -> Entry:
    return Entry(
        file=data["file"],
        short=data["short"],
        title=data["title"],
        section=data["section"],
        weight=data["weight"],
        limit=int(_core.parse_quantity("packets", data["limit"])),
        variants=data.get("variants") or {"": {}},
        both_ways=data.get("both_ways", False),
    )


def load(name: str) -> Suite:
    """Returns a suite by name; raises `SuiteError`."""
    if name not in NAMES:
        near = _core.nearest(name, list(NAMES))
        hint = f": did you mean `{near}`?" if near else f"; there are {', '.join(NAMES)}"
        raise SuiteError(f"unknown suite `{name}`{hint}")
    folder = resources.files(__package__) / name
    data = tomllib.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    entries = tuple(_entry(entry) for entry in data["scenario"])
    return Suite(name, data["title"], data["source"], entries, folder)
