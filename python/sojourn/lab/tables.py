"""The tables of a run's record."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sojourn.scenario.engine import Column


class _Record(Protocol):
    def table(self, name: str) -> Sequence[Column]: ...


@dataclass(frozen=True)
class Tables:
    """The tables of a run's record; each is a sequence of columns."""

    summary: Sequence[Column] = ()
    """The run's metrics, in one row."""
    flows: Sequence[Column] = ()
    queues: Sequence[Column] = ()
    series: Sequence[Column] = ()
    distributions: Sequence[Column] = ()
    flow_series: Sequence[Column] = ()

    @classmethod
    def of(cls, record: _Record) -> Tables:
        """Returns the tables of a record."""
        return cls(**{field.name: record.table(field.name) for field in fields(cls)})

    def table(self, name: str) -> Sequence[Column]:
        """Returns the columns of a table by its name."""
        found: Sequence[Column] = getattr(self, name)
        return found
