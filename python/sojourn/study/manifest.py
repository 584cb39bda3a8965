"""The manifest of a folder of results: a description of the study."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path

from sojourn import encode
from sojourn.data import Json
from sojourn.engines import SIM
from sojourn.scenario.engine import ENGINE, Engine, limits_of
from sojourn.study.cells import Level
from sojourn.study.errors import ResultsError, StudyError
from sojourn.study.kept import Kept
from sojourn.study.key import run_key, short
from sojourn.study.machine import machine, versions

FORMAT = 2
NAME = "manifest.json"


def now() -> str:
    """Returns the current time in UTC as ISO 8601, to the second."""
    return datetime.now(UTC).replace(microsecond=0).isoformat()


@dataclass(frozen=True)
class EngineEntry:
    """An engine that made the runs."""

    name: str
    fingerprint: str
    version: str
    limits: str = ""
    """Limits of the engine's results in words; empty if the engine states none."""

    @classmethod
    def of(cls, name: str, engine: Engine) -> EngineEntry:
        """Returns the entry of an engine."""
        return cls(name, engine.fingerprint(), engine.version(), limits_of(engine))


@dataclass(frozen=True)
class CellEntry:
    """A cell of the study."""

    factors: Mapping[str, Level]
    """Level of each factor."""
    plan: str
    """Hash of the plan."""
    scenario: Mapping[str, Json]
    """The user's description of the scenario with these levels."""

    @property
    def levels(self) -> str:
        """Returns the levels as a text that identifies the cell."""
        return json.dumps(self.factors, sort_keys=True)


@dataclass(frozen=True)
class Manifest:
    """The content of `manifest.json`."""

    kind: str
    """Kind of the study, such as `study`, `comparison`, `run` or `paper`."""
    name: str
    """Name of the study."""
    scenario: Mapping[str, Json]
    """The user's description of the scenario, without the changes of factors."""
    factors: Sequence[str]
    """Names of the factors."""
    cells: Sequence[CellEntry]
    seeds: Sequence[int]
    engines: Sequence[EngineEntry]
    question: Mapping[str, Json] = field(default_factory=dict)
    """The question of the study as data; empty without a question."""
    kept: Kept = field(default_factory=Kept)
    """Selection of stored metrics and tables."""
    machine: Mapping[str, Json] = field(default_factory=machine)
    versions: Mapping[str, str] = field(default_factory=versions)
    files: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Digests of the Parquet files by name: of the present file, and of one that replaces it.

    If there is no present file, its entry is `digests.ABSENT`.
    """
    created: str = field(default_factory=now)
    updated: str = field(default_factory=now)

    @property
    def engine(self) -> str:
        """Returns the fingerprint of the first engine."""
        return self.engines[0].fingerprint

    @property
    def version(self) -> str:
        """Returns the version of the first engine."""
        return self.engines[0].version

    @property
    def by(self) -> str | None:
        """Returns the deciding metric of the question; `None` without a question."""
        by = self.question.get("by")
        return None if by is None else str(by)

    @property
    def identity(self) -> str:
        """Returns the hash of kind, scenario and names of factors, which identifies the study.

        Levels and seeds may change. The study of a paper is identified by its name instead of the
        scenario, because its scenarios may depend on results of other runs.
        """
        what = self.name if self.kind == "paper" else self.scenario
        return short([self.kind, what, sorted(self.factors)])

    @property
    def columns(self) -> tuple[str, ...]:
        """Returns the names of the factors, and `engine` if there are several engines."""
        return (*self.factors, *([ENGINE] if len(self.engines) > 1 else []))

    @property
    def limits(self) -> dict[str, str]:
        """Returns the limits of the results in words, by engine, for engines that state any."""
        return {e.name: e.limits for e in self.engines if e.limits}

    def runs(self) -> Iterator[tuple[dict[str, Level], int, str]]:
        """Yields the levels, the seed and the key of each run, in the order of the table.

        With several engines, the engine's name is the level of the last factor.
        """
        for cell in self.cells:
            for engine in self.engines:
                name = {ENGINE: engine.name} if len(self.engines) > 1 else {}
                for seed in self.seeds:
                    key = run_key(cell.plan, seed, engine.fingerprint)
                    yield {**cell.factors, **name}, seed, key

    def to_bytes(self) -> bytes:
        """Returns the content of the file."""
        data = encode.fields(
            {
                "sojourn": {"format": FORMAT, "digest": ""},
                "identity": self.identity,
                **self.__dict__,
                "engine": self.engine,
                "version": self.version,
                "kept": self.kept.as_dict(),
            }
        )
        raw = json.dumps(data, indent=1, ensure_ascii=False).encode()
        return raw.replace(_digest_entry(""), _digest_entry(_digest(raw)), 1)

    def extended(self, old: Manifest) -> Manifest:
        """Returns this manifest, extended by the cells, seeds and engines of the folder's manifest.

        `old` is the folder's manifest. Without a common engine, only the date of creation is taken
        from `old`. Raises `StudyError` if the folder has another selection of metrics and tables.
        """
        same = {e.fingerprint for e in old.engines} & {e.fingerprint for e in self.engines}
        if not same:
            return replace(self, created=old.created, files=old.files)
        if not old.kept.everything and old.kept != self.kept:
            raise StudyError(
                f"the runs in this folder have only {_description(old.kept)}; keep the same "
                "metrics and tables, or choose another folder"
            )
        # The engines and the combinations of levels of the folder come first, in their order.
        mine = {e.name: e for e in self.engines}
        engines = {e.name: e for e in old.engines} | mine
        engines = mine if engines.keys() == mine.keys() else engines
        cells = {c.levels: c for c in old.cells} | {c.levels: c for c in self.cells}
        return replace(
            self,
            cells=list(cells.values()),
            seeds=sorted({*self.seeds, *old.seeds}),
            engines=list(engines.values()),
            question=self.question or old.question,
            created=old.created,
            files=old.files,
        )


def _description(kept: Kept) -> str:
    parts = kept.as_dict().items()
    return ", ".join(f"the {name} {', '.join(words) or '(none)'}" for name, words in parts)


def _digest(raw: bytes) -> str:
    """Returns the digest of a manifest whose own digest is empty."""
    return hashlib.blake2b(raw, digest_size=16).hexdigest()


def _digest_entry(digest: str) -> bytes:
    return f'"digest": "{digest}"'.encode()


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
    engines = data.get("engines") or []
    if not engines and {"engine", "version"} <= set(data):  # a manifest of an earlier version
        data["engines"] = [{"name": SIM, "fingerprint": data["engine"], "version": data["version"]}]
    data.setdefault("files", {})  # a manifest of an earlier version
    names = [field.name for field in fields(Manifest)]
    missing = [name for name in names if name not in data]
    if missing:
        raise ResultsError(
            path,
            f"incomplete: {', '.join(missing)} missing; "
            "use the version that wrote it, or choose another folder",
        )
    try:
        kept = Kept.from_dict(data["kept"])
    except (StudyError, AttributeError) as error:
        raise ResultsError(path, f"`kept` cannot be read ({error})") from error
    digest = str(mark.pop("digest", ""))
    without = raw.replace(_digest_entry(digest), _digest_entry(""), 1)
    if (digest and digest != _digest(without)) or mark.keys() != {"format"}:
        raise ResultsError(
            path, "the content is not as it was written: restore the file, or choose another folder"
        )
    typed = {
        "cells": [CellEntry(**cell) for cell in data["cells"]],
        "engines": [EngineEntry(**engine) for engine in data["engines"]],
        "kept": kept,
    }
    return Manifest(**{name: data[name] for name in names} | typed)
