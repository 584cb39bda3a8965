"""Results as data frames of the library that is asked for."""

from __future__ import annotations

import math
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import sojourn
from sojourn.study import Study
from tests.cli.test_commands import SHORT
from tests.study.fakes import FakeEngine, scenario

KINDS = [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("arrow", pa.Table)]


def columns(frame: Any) -> dict[str, list[Any]]:
    """The columns as lists, for any library."""
    if isinstance(frame, pd.DataFrame):
        return frame.to_dict("list")  # type: ignore[return-value]
    if isinstance(frame, pl.DataFrame):
        return frame.to_dict(as_series=False)
    return dict(frame.to_pydict())


def same(one: Any, other: Any) -> bool:
    missing = [value is None or value != value for value in (one, other)]
    return all(missing) if any(missing) else bool(one == other)


@pytest.mark.parametrize(("library", "kind"), KINDS)
def test_a_table_as_a_frame(library: Any, kind: type) -> None:
    table = Study(scenario()).vary(queue=["pfifo", "codel"]).seeds(2).run(engine=FakeEngine())
    made = table.to_frame(library)
    assert isinstance(made, kind)
    found, whole = columns(made), table.frame
    assert list(found) == list(whole.columns)
    for name, values in found.items():
        assert all(map(same, values, whole[name].tolist())), name


@pytest.mark.parametrize(("library", "kind"), KINDS)
def test_a_comparison_as_a_frame(library: Any, kind: type) -> None:
    found = sojourn.compare(
        scenario(), ["pfifo", "codel"], seeds=3, by="sojourn_p95", engine=FakeEngine()
    )
    made = found.to_frame(library)
    assert isinstance(made, kind)
    rows = columns(made)
    assert rows["queue"] == [entry.choice for entry in found.entries]
    assert rows["sojourn_p95"] == [entry.value.estimate for entry in found.entries]
    assert all(map(same, rows["sojourn_p95.low"], (e.value.low for e in found.entries)))
    assert rows["verdict"][0] == "best"


@pytest.mark.parametrize(("library", "kind"), KINDS)
def test_a_run_as_a_frame(library: Any, kind: type) -> None:
    run = sojourn.Scenario.from_toml(SHORT).run(1)
    assert isinstance(run.to_frame(library=library), kind)
    found = columns(run.to_frame("flows", library))
    assert all(
        same(a, b) for n, v in found.items() for a, b in zip(v, run.flows[n].tolist(), strict=True)
    )
    assert math.isfinite(columns(run.to_frame(library=library))["goodput"][0])


def test_an_unknown_library_is_refused() -> None:
    table = Study(scenario()).seeds(1).run(engine=FakeEngine())
    with pytest.raises(ValueError, match="must be pandas, polars or arrow; found 'dask'"):
        table.to_frame("dask")  # type: ignore[arg-type]


def test_a_large_seed_is_whole() -> None:
    table = Study(scenario()).seeds([2**64 - 1]).run(engine=FakeEngine())
    for library, _ in KINDS:
        assert columns(table.to_frame(library))["seed"] == [2**64 - 1]  # type: ignore[arg-type]
