"""A suite: scenarios and their variants, which are run with all queues for one table."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from sojourn import _core, encode, study
from sojourn.arguments import hint
from sojourn.data import Json
from sojourn.metrics import view
from sojourn.scenario import Scenario
from sojourn.study.errors import StudyError
from sojourn.suites import disciplines

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    import pandas as pd

    from sojourn.study.cluster import Place
    from sojourn.study.progress import Report

NAMES = ("rfc7928", "tcp-evaluation")
"""Names of the suites of scenarios for queues."""
BBR = "bbr"
"""Name of the suite of test cases for BBR, which `sojourn.suites.bbr` has."""
MANIFEST = "suite.toml"
"""Name of the file that describes a suite."""
REVERSE = "topology.reverse.queue"
"""Key of the queue in the reverse direction of a dumbbell's bottleneck."""


class SuiteError(StudyError):
    """The name of a suite or of a scenario is unknown."""


@dataclass(frozen=True)
class Entry:
    """One scenario of a suite."""

    file: str
    """Name of the scenario's file."""
    short: str
    """Name of the scenario in tables."""
    title: str
    section: str
    """Section of the source that describes the scenario."""
    weight: str
    """Requirement level in the source: `must`, `recommended` or `may`."""
    limit: int
    """Limit of every queue in packets."""
    variants: Mapping[str, Mapping[str, Json]]
    """Changed keys by the name of the variant. A scenario without variants has one empty name."""
    both_ways: bool
    """Whether the queue under test is at both ends of the bottleneck."""


@dataclass(frozen=True)
class Suite:
    """A published set of scenarios."""

    name: str
    title: str
    source: str
    """Publication of the scenarios."""
    entries: tuple[Entry, ...]
    folder: Traversable
    """Folder with the files of the scenarios."""

    def text(self, entry: Entry) -> str:
        """Returns the text of a scenario's file."""
        return (self.folder / entry.file).read_text(encoding="utf-8")

    def scenarios(self, entry: Entry) -> dict[str, Scenario]:
        """Returns the variants of a scenario by name."""
        base = Scenario.from_toml(self.text(entry), file=entry.file)
        return {
            name: base.replace(dict(changes)) if changes else base
            for name, changes in entry.variants.items()
        }

    def queues(self, scenario: Scenario, entry: Entry) -> Mapping[str, str]:
        """Returns all disciplines by name, with settings for the scenario's bottleneck."""
        rate = scenario.bottleneck_rate
        return disciplines.every(rate, entry.limit)

    def only(self, shorts: Iterable[str]) -> Suite:
        """Returns the suite with only these scenarios; raises `SuiteError` for an unknown name."""
        known = {entry.short: entry for entry in self.entries}
        chosen = []
        for short in shorts:
            if short not in known:
                rest = hint(short, known, "existing")
                raise SuiteError(f"suite {self.name} has no scenario `{short}`{rest}")
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
        """Runs all scenarios and variants with all queues and the same seeds.

        `queues` are names of disciplines or texts in words of `tc`; the default is all disciplines.
        `on` is a Dask cluster for the runs; `None`: this machine.
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
    """The results of a suite."""

    suite: Suite
    table: study.Table

    @cached_property
    def frame(self) -> pd.DataFrame:
        """Means over variants and seeds for each scenario and queue.

        The columns are `scenario`, `queue`, `sojourn_p95` (s), `utilisation`, `loss` and `goodput`
        (bit/s).
        """
        metrics = list(view("suite"))
        grouped = self.table.frame.groupby(["scenario", "queue"], sort=False)[metrics]
        return grouped.mean().reset_index()

    @property
    def queues(self) -> list[str]:
        """Names of the queues in the order of the runs."""
        return list(dict.fromkeys(self.table.frame["queue"]))

    def as_dict(self) -> dict[str, Json]:
        """Returns the results as data for JSON."""
        return encode.fields(
            {
                "suite": self.suite.name,
                "title": self.suite.title,
                "source": self.suite.source,
                "seeds": len(self.table.seeds),
                "rows": self.frame.to_dict(orient="records"),
            }
        )


def load(name: str) -> Suite:
    """Returns the suite with this name; raises `SuiteError` for an unknown name."""
    if name not in NAMES:
        raise SuiteError(f"unknown suite `{name}`{hint(name, (*NAMES, BBR), 'existing')}")
    folder = resources.files(__package__) / name
    data = tomllib.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    entries = tuple(
        Entry(
            file=entry["file"],
            short=entry["short"],
            title=entry["title"],
            section=entry["section"],
            weight=entry["weight"],
            limit=int(_core.parse_quantity("packets", entry["limit"])),
            variants=entry.get("variants") or {"": {}},
            both_ways=entry.get("both_ways", False),
        )
        for entry in data["scenario"]
    )
    return Suite(name, data["title"], data["source"], entries, folder)
