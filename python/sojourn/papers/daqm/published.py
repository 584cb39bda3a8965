"""The published numbers of the thesis and its follow-up.

Tables 4 to 9 are from the thesis. The other numbers are means and final values of the follow-up's
raw results, averaged as in the thesis. Numbers that are in both sources agree to all printed
digits. The follow-up has no queue lengths of FTP and streaming. All numbers have the published
averaging: unweighted means over flows including ACK flows, without samples of zero in loss, queue
length and sojourn time, and with drops at queues counted twice.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd

from sojourn.papers.daqm.mechanisms import CONFIGURATIONS, EIGHT, FEATURES
from sojourn.papers.daqm.scenarios import FLOWS

#: Units of the published metrics, by metric. `_final` is the value at the end of a run.
METRICS = {
    "fct": "s",
    "delay": "ms",
    "plr": "1",
    "queue": "packets",
    "sojourn": "ms",
    "throughput": "kbit/s",
    "delay_final": "ms",
    "plr_final": "1",
    "throughput_final": "kbit/s",
}


@dataclass(frozen=True)
class Source:
    """A published table: values by metric and mechanism in one cell of the study."""

    name: str
    cell: Mapping[str, str | float]
    """Levels of `flow` and `model`, and of the swept factor: `rate`, `payload` or `drop_rate`."""
    mechanisms: Sequence[str]
    """Mechanisms, in the order of the values."""
    values: Mapping[str, Sequence[float | None]]


#: Swept factors: the client's rate in kbit/s, the payload in bytes, and dAQM's drop rate.
SWEPT = ("rate", "payload", "drop_rate")

_MECHANISMS = {"eight": EIGHT, "features": FEATURES, "configurations": CONFIGURATIONS}


def _source(
    name: str,
    cell: Mapping[str, str | float],
    mechanisms: str = "eight",
    **values: Sequence[float | None],
) -> Source:
    return Source(name, cell, _MECHANISMS[mechanisms], values)


SOURCES = tuple(
    _source(**entry)
    for entry in tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))[
        "sources"
    ]
)
"""All published tables: the entries of `published.toml`."""


def _figures(cell: Mapping[str, str | float]) -> tuple[int, ...]:
    """Returns the numbers of the thesis' figures that contain a cell."""
    flow, model = cell["flow"], cell["model"]
    for swept, first in (("drop_rate", 11), ("rate", 13), ("payload", 15)):
        if swept in cell:
            return (first if flow == "http" else first + 1,)
    own = {"http": 9, "streaming": 10}
    return (
        *((6,) if (flow, model) == ("http", "cbr") else ()),
        *((8,) if model == "poisson-onoff" else ()),
        *((own[str(flow)],) if flow in own else ()),
    )


def by_figure() -> pd.DataFrame:
    """Returns all published values as a table: a row for each figure, cell and mechanism.

    Columns are metrics. A value that is in a table of the thesis and in the raw results is taken
    from the thesis.
    """
    rows: dict[tuple[object, ...], dict[str, object]] = {}
    for source in SOURCES:
        for figure, (number, mechanism) in product(
            _figures(source.cell), enumerate(source.mechanisms)
        ):
            cell = {"figure": figure, **source.cell, "mechanism": mechanism}
            row = rows.setdefault(tuple(cell.values()), {**cell, "seed": 1})
            for metric, values in source.values.items():
                row.setdefault(metric, values[number])
    return pd.DataFrame(rows.values())


def frame() -> pd.DataFrame:
    """Returns all published values as a table with one value in each row."""
    return pd.DataFrame(
        {
            "source": source.name,
            **{key: source.cell.get(key) for key in ("flow", "model", *SWEPT)},
            "mechanism": mechanism,
            "metric": metric,
            "published": value,
        }
        for source in SOURCES
        for metric, row in source.values.items()
        for mechanism, value in zip(source.mechanisms, row, strict=True)
        if value is not None
    )


LONGER = "table 5"
"""Published table whose rivals ran about twice as long as all other runs of the same cells."""
_COPIES = 0.005
"""Relative difference up to which two published values are one value with different digits."""


def scatter() -> dict[str, float]:
    """Returns the relative standard deviation of one published value, by metric.

    The values are those that the thesis publishes more than once for one cell, from distinct runs.
    Copies of a value and the runs of `LONGER` are omitted.
    """
    known, flows = frame(), {flow.name: flow for flow in FLOWS.values()}
    known = known[(known["published"] > 0) & (known["source"] != LONGER)]
    drop_rate = known["drop_rate"].where(known["mechanism"].isin(CONFIGURATIONS))
    known = known.assign(
        rate=known["rate"].fillna(known["flow"].map(lambda name: flows[name].rate)),
        payload=known["payload"].fillna(known["flow"].map(lambda name: flows[name].payload)),
        drop_rate=drop_rate.fillna(0.0),
    )
    variances: dict[str, list[float]] = {}
    for key, values in known.groupby(["metric", "flow", "model", *SWEPT, "mechanism"])["published"]:
        runs: list[float] = []
        for value in values:
            if all(abs(value / other - 1) > _COPIES for other in runs):
                runs.append(value)
        if len(runs) > 1:
            relative = float(np.std(runs, ddof=1) / np.mean(runs))
            variances.setdefault(str(key[0]), []).append(relative**2)
    return {metric: math.sqrt(float(np.mean(found))) for metric, found in variances.items()}
