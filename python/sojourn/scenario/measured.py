"""The measurements of one run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypeVar

from sojourn import _core
from sojourn.arguments import checked, unknown
from sojourn.frames import Library, frame
from sojourn.scenario.engine import ASKED, TABLES, values_of

if TYPE_CHECKING:
    import pandas as pd

T = TypeVar("T")


class Values(dict[str, T]):
    """Values by metric; an unknown metric raises an error with the nearest one."""

    def __missing__(self, name: str) -> T:
        raise unknown("metric", name, self)


@checked
@dataclass(frozen=True)
class Measured:
    """The measurements of one run with one seed.

    Tables are returned as data frames. The unit of each metric is in `units`.
    """

    seed: int
    seconds: float
    """Wall-clock duration of the run, in seconds."""
    record: _core.Record = field(repr=False)

    @property
    def trace_hash(self) -> str:
        """Hash of all packet events; empty for runs in real time."""
        return self.record.trace_hash

    @property
    def events(self) -> int:
        """Number of events that the simulator processed."""
        return self.record.events

    @property
    def complete(self) -> bool:
        """Returns whether the run reached its end; false if it was stopped early."""
        return self.record.complete

    @cached_property
    def metrics(self) -> Mapping[str, float]:
        """Metrics of the run by name, such as `sojourn_p95`, `<group>.goodput`, `<link>.drops`."""
        return Values({c[0]: values_of(c)[0] for c in self.record.table("summary")})

    @cached_property
    def units(self) -> Mapping[str, str]:
        """Unit of each metric in `metrics`."""
        return Values({name: unit for name, unit, *_ in self.record.table("summary")})

    @property
    def flows(self) -> pd.DataFrame:
        """Table of flows: one row for each flow."""
        return self.table("flows")

    @property
    def queues(self) -> pd.DataFrame:
        """Table of queues: one row for each direction of a link."""
        return self.table("queues")

    @property
    def series(self) -> pd.DataFrame:
        """Time series: one row for each sample, one column for each place and metric."""
        return self.table("series")

    @property
    def distributions(self) -> pd.DataFrame:
        """Table of histograms: place, metric, lower and upper bound, and count of each bin."""
        return self.table("distributions")

    @property
    def flow_series(self) -> pd.DataFrame:
        """Returns each flow's cumulative counts at each sample; empty without `observe.monitor`."""
        return self.table("flow_series")

    def columns(self, name: str) -> list[tuple[str, str, Any]]:
        """Returns a table's columns as name, unit and values: a NumPy array or a list of texts."""
        import numpy as np

        _known(name)
        return [
            (
                column,
                unit,
                np.frombuffer(data, np.dtype(f"<{dtype}")) if isinstance(data, bytes) else data,
            )
            for column, unit, dtype, data in self.record.table(name)
        ]

    def table(self, name: str) -> pd.DataFrame:
        """Returns a table as a data frame; `attrs["units"]` has the units of its columns."""
        import pandas as pd

        columns = self.columns(name)
        frame = pd.DataFrame({column: values for column, _, values in columns})
        frame.attrs["units"] = {column: unit for column, unit, _ in columns if unit}
        return frame

    def to_frame(self, name: str = "summary", library: Library = "pandas") -> Any:
        """Returns a table as a data frame of pandas or polars, or as an Arrow table."""
        if library == "pandas":
            return self.table(name)
        _known(name)
        return frame({c[0]: values_of(c) for c in self.record.table(name)}, library)


def plain(value: Any) -> Any:
    """Returns a number or text as JSON can represent it; None for a number that is not finite."""
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


def _known(name: str) -> None:
    known = [*TABLES, *ASKED]
    if name not in known:
        raise unknown("table", name, known)
