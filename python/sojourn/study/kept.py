"""Which metrics and tables of its runs a study keeps on disk, by default all.

A run of a network with many links has a column for each metric of each of them. A study of a
thousand such runs that asks about a dozen need not carry the rest.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Self

from sojourn.metrics import base, nearest, registry
from sojourn.scenario.engine import ASKED, SUMMARY, TABLES, Column
from sojourn.study.errors import StudyError

_PATTERN = re.compile(r"[*?\[\]]")
#: Every run has one: it is what makes the study's table.
_ALWAYS = SUMMARY

WITHOUT_SERIES = tuple(name for name in (*TABLES, *ASKED) if name not in (SUMMARY, "series"))
"""The tables besides the summary, but the time series: half of a run's bytes."""


@dataclass(frozen=True)
class Kept:
    """What is kept of a run; `None` stands for everything there is."""

    metrics: tuple[str, ...] | None = None
    """Columns of the summary, by name or by pattern (`lb.*`, `sojourn_*`, `port?.loss`)."""
    tables: tuple[str, ...] | None = None
    """Tables besides the summary."""

    @classmethod
    def of(cls, metrics: Iterable[str] | None, tables: Iterable[str] | None) -> Self:
        """Return it checked: an unknown metric or table is an error that names the nearest."""
        return cls(
            None if metrics is None else tuple(_metric(m) for m in _listed(metrics, "metrics")),
            None if tables is None else tuple(_table(t) for t in _listed(tables, "tables")),
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return what a manifest says, as `as_dict` wrote it; nothing said means everything."""
        return cls.of(data.get("metrics"), data.get("tables"))

    def as_dict(self) -> dict[str, list[str]]:
        """Return what a manifest says."""
        both = {"metrics": self.metrics, "tables": self.tables}
        return {name: list(words) for name, words in both.items() if words is not None}

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return self.metrics is None and self.tables is None

    def has_table(self, name: str) -> bool:
        """Whether the table is kept."""
        return self.tables is None or name == _ALWAYS or name in self.tables

    def columns(self, names: Iterable[str]) -> list[str]:
        """Return those of a summary's columns that are kept, in their order."""
        if self.metrics is None:
            return list(names)
        return [n for n in names if any(fnmatchcase(n, m) for m in self.metrics)]

    def of_table(self, name: str, table: Sequence[Column]) -> Sequence[Column]:
        """Return the part of a record's table that is kept."""
        if name != _ALWAYS or self.metrics is None:
            return table
        wanted = set(self.columns(column for column, *_ in table))
        if not wanted:
            raise StudyError(f"no column is any of those to be kept: {', '.join(self.metrics)}")
        return [column for column in table if column[0] in wanted]


def _listed(words: Iterable[str], what: str) -> list[str]:
    if isinstance(words, str):
        raise StudyError(f"{what} to keep are a list of names, not the text {words!r}")
    listed = list(words)
    for word in listed:
        if not isinstance(word, str) or not word:
            raise StudyError(f"{what} to keep are names, not {word!r}")
    return listed


def _metric(word: str) -> str:
    name = base(word)
    if ".state." in word or _PATTERN.search(name) or name in registry():
        return word
    close = nearest(name, registry())
    hint = f": did you mean {close!r}?" if close else "; `sojourn list metric` shows all"
    raise StudyError(f"no metric {name!r} to keep{hint}")


def _table(word: str) -> str:
    known = (*TABLES, *ASKED)
    if word in known:
        return word
    close = nearest(word, known)
    hint = f": did you mean {close!r}?" if close else ""
    raise StudyError(f"no table {word!r} to keep; there are {', '.join(known)}{hint}")
