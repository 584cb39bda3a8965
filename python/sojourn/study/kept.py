"""Selection of the metrics and tables that a study stores for its runs; by default, all.

A run of a large network has a column for each metric of each link. A study with a thousand such
runs can store only the columns that it needs.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Self

from sojourn.metrics import base, nearest, registry
from sojourn.scenario.engine import ASKED, SUMMARY, TABLES, Column
from sojourn.study.errors import StudyError

_PATTERN = re.compile(r"[*?\[\]]")
#: The summary is always stored, because the study's table consists of the runs' summaries.
_ALWAYS = SUMMARY

WITHOUT_SERIES = tuple(name for name in (*TABLES, *ASKED) if name not in (SUMMARY, "series"))
"""Tables other than the time series `series`, which is often the largest table of a run.

The summary is always stored, and so not listed.
"""


@dataclass(frozen=True)
class Kept:
    """The selection of metrics and tables."""

    metrics: tuple[str, ...] | None = None
    """Names or patterns (`lb.*`, `port?.loss`) of columns of the summary; `None` for all."""
    tables: tuple[str, ...] | None = None
    """Names of tables in addition to the summary; `None` for all."""

    @classmethod
    def of(cls, metrics: Iterable[str] | None, tables: Iterable[str] | None) -> Self:
        """Returns a selection; raises `StudyError` for unknown names."""
        return cls(
            None if metrics is None else tuple(_metric(m) for m in _listed(metrics, "metrics")),
            None if tables is None else tuple(_table(t) for t in _listed(tables, "tables")),
        )

    @classmethod
    def from_dict(cls, data: Mapping[str, Iterable[str]]) -> Self:
        """Returns the selection from a manifest's data in the form of `as_dict`."""
        return cls.of(data.get("metrics"), data.get("tables"))

    def as_dict(self) -> dict[str, list[str]]:
        """Returns the selection as data for a manifest; empty if everything is stored."""
        both = {"metrics": self.metrics, "tables": self.tables}
        return {name: list(words) for name, words in both.items() if words is not None}

    @property
    def everything(self) -> bool:
        """Returns whether all metrics and tables are stored."""
        return self.metrics is None and self.tables is None

    def has_table(self, name: str) -> bool:
        """Returns whether the table with this name is stored."""
        return self.tables is None or name == _ALWAYS or name in self.tables

    def columns(self, names: Iterable[str]) -> list[str]:
        """Returns the stored columns among the summary's columns `names`, in the same order."""
        if self.metrics is None:
            return list(names)
        return [n for n in names if any(fnmatchcase(n, m) for m in self.metrics)]

    def of_table(self, name: str, table: Sequence[Column]) -> Sequence[Column]:
        """Returns the stored columns of a record's table with this name.

        Raises `StudyError` if no column of the summary is selected.
        """
        if name != _ALWAYS or self.metrics is None:
            return table
        wanted = set(self.columns(column for column, *_ in table))
        if not wanted:
            raise StudyError(f"no column matches the metrics to keep: {', '.join(self.metrics)}")
        return [column for column in table if column[0] in wanted]


def _listed(words: Iterable[str], what: str) -> list[str]:
    if isinstance(words, str):
        raise StudyError(f"{what} to keep must be a list of names, not the text {words!r}")
    listed = list(words)
    for word in listed:
        if not isinstance(word, str) or not word:
            raise StudyError(f"{what} to keep must be names, not {word!r}")
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
    raise StudyError(f"no table {word!r} to keep; allowed: {', '.join(known)}{hint}")
