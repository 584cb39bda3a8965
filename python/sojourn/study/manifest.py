"""The manifest of a folder of results: a description of the study."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sojourn.engines import SIM
from sojourn.scenario.engine import ENGINE, Engine, limits_of
from sojourn.study.cells import Cell
from sojourn.study.errors import ResultsError, StudyError
from sojourn.study.kept import Kept
from sojourn.study.key import run_key, short
from sojourn.study.machine import machine, versions

FORMAT = 2
NAME = "manifest.json"


def now() -> str:
    """Returns the current time in UTC as ISO 8601, to the second."""
    return datetime.now(UTC).replace(microsecond=0).isoformat()


@dataclass
class Manifest:
    """The content of `manifest.json`."""

    kind: str
    """Kind of the study, such as `study`, `comparison`, `run` or `paper`."""
    name: str
    """Name of the study."""
    scenario: Mapping[str, Any]
    """The user's description of the scenario, without the changes of factors."""
    factors: Sequence[str]
    """Names of the factors."""
    cells: list[dict[str, Any]]
    """Cells, each with `factors` (its levels), `plan` (its plan's hash) and `scenario`."""
    seeds: list[int]
    engine: str
    """Fingerprint of the first engine."""
    version: str
    """Version of the first engine."""
    question: Mapping[str, Any] = field(default_factory=dict)
    """The question of the study as data; empty without a question."""
    kept: Mapping[str, Any] = field(default_factory=dict)
    """Selection of stored `metrics` and `tables`; empty if everything is stored."""
    engines: list[dict[str, str]] = field(default_factory=list)
    """Engines, each with `name`, `fingerprint`, `version` and `limits`."""
    machine: Mapping[str, Any] = field(default_factory=machine)
    versions: Mapping[str, str] = field(default_factory=versions)
    created: str = field(default_factory=now)
    updated: str = field(default_factory=now)

    @property
    def identity(self) -> str:
        """Returns the hash of kind, scenario and names of factors, which identifies the study.

        Levels and seeds may change. The study of a paper is identified by its name instead of the
        scenario, because its scenarios may depend on results of other runs.
        """
        what = self.name if self.kind == "paper" else self.scenario
        return short([self.kind, what, sorted(self.factors)])

    def __post_init__(self) -> None:
        if not self.engines:  # manifests of earlier versions have only `engine` and `version`
            self.engines = [
                {"name": SIM, "fingerprint": self.engine, "version": self.version, "limits": ""}
            ]

    @property
    def columns(self) -> tuple[str, ...]:
        """Returns the names of the factors, and `engine` if there are several engines."""
        return (*self.factors, *([ENGINE] if len(self.engines) > 1 else []))

    @property
    def limits(self) -> dict[str, str]:
        """Returns the limits of the results in words, by engine, for engines that state any."""
        return {e["name"]: e["limits"] for e in self.engines if e["limits"]}

    def runs(self) -> Iterator[tuple[dict[str, Any], int, str]]:
        """Yields the levels, the seed and the key of each run, in the order of the table.

        With several engines, the engine's name is the level of the last factor.
        """
        for cell in self.cells:
            for engine in self.engines:
                name = {ENGINE: engine["name"]} if len(self.engines) > 1 else {}
                for seed in self.seeds:
                    key = run_key(cell["plan"], seed, engine["fingerprint"])
                    yield cell["factors"] | name, seed, key

    def to_bytes(self) -> bytes:
        """Returns the content of the file."""
        data = {"sojourn": {"format": FORMAT}, "identity": self.identity, **self.__dict__}
        return json.dumps(data, indent=1, ensure_ascii=False, default=str).encode()

    def extended(self, old: Manifest) -> Manifest:
        """Returns this manifest, extended by the cells, seeds and engines of the folder's manifest.

        `old` is the folder's manifest. Without a common engine, only the date of creation is taken
        from `old`. Raises `StudyError` if the folder has another selection of metrics and tables.
        """
        self.created = old.created
        same = {e["fingerprint"] for e in old.engines} & {e["fingerprint"] for e in self.engines}
        if not same:
            return self
        named = {e["name"] for e in self.engines}
        more = [e for e in old.engines if e["name"] not in named]
        if more:  # engines of the folder come first, in their order
            first = [e["name"] for e in old.engines]
            both = sorted(
                [*self.engines, *more],
                key=lambda e: first.index(e["name"]) if e["name"] in first else len(first),
            )
            self.engines = both
            self.engine, self.version = both[0]["fingerprint"], both[0]["version"]
        if old.kept and old.kept != self.kept:
            raise StudyError(
                f"the runs in this folder have only {_description(old.kept)}; keep the same "
                "metrics and tables, or choose another folder"
            )
        mine = {json.dumps(c["factors"], sort_keys=True) for c in self.cells}
        rest = [c for c in old.cells if json.dumps(c["factors"], sort_keys=True) not in mine]
        # The folder's combinations of levels come first, in their order, then the new ones.
        order = {json.dumps(c["factors"], sort_keys=True): i for i, c in enumerate(old.cells)}
        self.cells = sorted(
            self.cells + rest,
            key=lambda c: order.get(json.dumps(c["factors"], sort_keys=True), len(order)),
        )
        self.seeds = sorted({*self.seeds, *old.seeds})
        if not self.question:
            self.question = old.question
        return self


def _description(kept: Mapping[str, Any]) -> str:
    return ", ".join(f"the {name} {', '.join(words) or '(none)'}" for name, words in kept.items())


def engine_entry(name: str, engine: Engine) -> dict[str, str]:
    """Returns the manifest's entry for an engine."""
    return {
        "name": name,
        "fingerprint": engine.fingerprint(),
        "version": engine.version(),
        "limits": limits_of(engine),
    }


def cell_entry(cell: Cell) -> dict[str, Any]:
    """Returns the manifest's entry for a cell."""
    return {"factors": dict(cell.factors), "plan": cell.plan_hash, "scenario": cell.scenario}


def load(folder: Path) -> Manifest | None:
    """Returns the manifest of a folder; `None` if the folder has no manifest.

    Raises `ResultsError` if the file cannot be read or is no manifest of this version.
    """
    path = folder / NAME
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise ResultsError(path, f"cannot be read ({error.strerror})") from error
    try:
        data = json.loads(raw)
    except ValueError as error:
        raise ResultsError(
            path, f"not valid JSON ({error}): restore the file, or choose another folder"
        ) from error
    mark = data.get("sojourn") if isinstance(data, dict) else None
    if not isinstance(mark, dict) or "format" not in mark:
        raise ResultsError(path, "not a manifest of Sojourn: choose another folder")
    if mark["format"] != FORMAT:
        raise ResultsError(
            path,
            f"written in format {mark['format']}; this version reads format {FORMAT}: "
            "use the version that wrote it, or choose another folder",
        )
    fields = Manifest.__dataclass_fields__
    data.setdefault("engines", [])
    missing = [name for name in fields if name not in data]
    if missing:
        raise ResultsError(
            path,
            f"incomplete: {', '.join(missing)} missing; "
            "use the version that wrote it, or choose another folder",
        )
    try:
        Kept.from_dict(data["kept"])
    except (StudyError, AttributeError) as error:
        raise ResultsError(path, f"`kept` cannot be read ({error})") from error
    return Manifest(**{name: data[name] for name in fields})
