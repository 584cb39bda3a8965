"""Runs of all parts of the study, and the tables that are derived from them.

The tables have the published metrics, or the runs' own metrics. A reading's table also contains the
runs of cells that are the same in another reading.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pandas as pd

from sojourn.papers.bench import Bench, runs_of
from sojourn.papers.daqm import estimators, parts, published
from sojourn.papers.daqm.mechanisms import EIGHT, RED, RIVALS
from sojourn.papers.daqm.parts import DaqmSize
from sojourn.papers.daqm.scenarios import FLOWS
from sojourn.papers.daqm.terms import (
    AGAINST_RED,
    COMPLETION,
    DELIVERED,
    MEANT,
    PUBLISHED,
    SPREAD,
    TRIGGERS,
)
from sojourn.papers.part import Frames, Part
from sojourn.study import Table
from sojourn.study.cells import Level
from sojourn.study.stored import StoredRun


def against_published(estimates: pd.DataFrame) -> pd.DataFrame:
    """Returns each published value, the mean of our runs of the same cell, and mean / value.

    `estimates` has the published metrics of our runs. Cells that were not run are omitted.
    """
    known = published.frame()
    metrics = list(published.METRICS)
    ours = estimates.groupby(list(parts.KEY))[metrics].mean()
    rows = []
    for record in known.to_dict("records"):
        row = {str(name): value for name, value in record.items()}
        key = parts.key_of(row)
        if key not in ours.index:
            continue
        here = float(ours.loc[key, row["metric"]])
        there = float(row["published"])
        ratio = here / there if there else (1.0 if here == there else float("nan"))
        rows.append({**row, "here": here, "ratio": ratio})
    return pd.DataFrame(rows)


def against_red(frame: pd.DataFrame, sojourn: str) -> pd.DataFrame:
    """Returns the table with the column `AGAINST_RED`: sojourn times divided by RED's.

    `sojourn` is the column of sojourn times. A table without RED is returned unchanged.
    """
    cell = ["figure", "flow", "model", "load", "rate", "payload", "seed"]
    names = [name for name in cell if name in frame]
    red = frame[frame["mechanism"] == RED].groupby(names, dropna=False)[sojourn].mean()
    if red.empty:
        return frame
    base = red.reindex(frame.set_index(names).index).to_numpy()
    return frame.assign(**{AGAINST_RED: frame[sojourn] / base})


def varying(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns a part's runs with the column `TRIGGERS`; each trigger drops a queue's head."""
    return frame.assign(**{TRIGGERS: frame["drops_forced"] / frame["arrivals"]})


def derived(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns a part's runs on the switch with the derived metrics that claims use.

    If drop rates of dAQM are swept, the rows of rivals are repeated at each drop rate.
    """
    frame = varying(frame)
    by_transport = frame.filter(["clients.goodput", "clients.udp_goodput"])
    frame[DELIVERED] = by_transport.sum(axis=1, min_count=1)
    if "clients.unfinished" in frame:
        ended = frame["clients.finished"]
        waiting = frame["clients.unfinished"]
        spent = frame["clients.fct_mean"].fillna(0.0) * ended + frame["measured"] * waiting
        frame[COMPLETION] = spent / (ended + waiting)
    return _spread(frame) if "drop_rate" in frame else against_red(frame, MEANT.sojourn)


def _spread(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the table with the rows of drop rate 0 repeated at each drop rate above 0."""
    level, swept = frame[frame["drop_rate"] == 0], frame[frame["drop_rate"] > 0]
    rates = sorted(set(swept["drop_rate"]))
    return pd.concat([swept, *(level.assign(drop_rate=rate) for rate in rates)])


def judged(frame: pd.DataFrame) -> pd.DataFrame:
    """Returns the runs for the claims: those with load above 1, or all if no loads are given."""
    return frame[frame["load"] > 1] if "load" in frame else frame


def figured(estimates: pd.DataFrame) -> pd.DataFrame:
    """Returns the runs as published, with the column `figure`: the number of the thesis' figure.

    A run that belongs to several figures is repeated.
    """
    plain = estimates["drop_rate"] == 0
    cbr = estimates["model"] == "cbr"
    rate = estimates["rate"] == estimates["flow"].map({f.name: f.rate for f in FLOWS.values()})
    payload = estimates["payload"] == estimates["flow"].map(
        {f.name: f.payload for f in FLOWS.values()}
    )
    eight = estimates["mechanism"].isin(EIGHT)
    own, http = rate & payload & plain, estimates["flow"] == "http"
    found = {
        6: estimates[own & http & cbr],
        8: estimates[own & eight & (estimates["model"] == "poisson-onoff")],
        9: estimates[own & eight & http],
        10: estimates[own & eight & (estimates["flow"] == "streaming")],
    }
    for first, name in ((11, "http"), (12, "ftp")):
        flow = eight & cbr & (estimates["flow"] == name)
        rival = estimates["mechanism"].isin(RIVALS)
        found[first] = _spread(estimates[flow & rate & payload & (~plain | rival)])
        found[first + 2] = estimates[flow & plain & payload]
        found[first + 4] = estimates[flow & plain & rate]
    frame = pd.concat([rows.assign(figure=number) for number, rows in found.items()])
    return against_red(frame.reset_index(drop=True), PUBLISHED.sojourn)


def own_numbers() -> Frames:
    """Returns the published values as tables on which claims can be judged."""
    return {"": against_red(published.by_figure(), PUBLISHED.sojourn)}


def estimates(table: Table) -> pd.DataFrame:
    """Returns the published metrics and the correct counts of each run as published.

    The runs must have the tables `flow_series` and `series`.
    """
    # Cells that are the same run, such as mechanisms without drop rates, share a key.
    runs = varying(table.frame).drop_duplicates("key").set_index("key")
    spread = runs[list(SPREAD)].to_dict("index")

    def one(levels: Mapping[str, Level], run: StoredRun) -> dict[str, Level]:
        watched = run.table("flow_series")
        found = estimators.samples(watched, run.table("series"))
        return {
            **levels,
            "seed": run.seed,
            **estimators.averages(found),
            **{f"{k}_with_zeros": v for k, v in estimators.with_zeros(found).items()},
            **estimators.books(watched),
            **{name: float(spread[run.key][name]) for name in SPREAD},
        }

    return pd.DataFrame([one(*item) for item in runs_of(table)])


def watched(table: Table) -> Frames:
    """Returns the published metrics of each run, as the tables `""` and `estimates`."""
    found = estimates(table)
    return {"": found, "estimates": found}


def by_figure(table: Table) -> Frames:
    """Returns the published metrics by figure as table `""`, and of each run as `estimates`."""
    found = estimates(table)
    return {"": figured(found), "estimates": found}


def overloaded(table: Table) -> Frames:
    """Returns the runs with derived metrics: above load 1 as table `""`, all runs as `all`."""
    frame = derived(table.frame)
    return {"": judged(frame), "all": frame}


def planned(size: DaqmSize) -> list[Part]:
    """Returns all parts in order; a part comes after the parts whose runs its table includes."""
    return [
        replace(parts.as_published(size), frames=by_figure),
        *(replace(part, frames=watched) for part in parts.rates(size)),
        replace(parts.quirks(size), frames=watched),
        parts.as_described(size),
        *(replace(part, frames=overloaded) for part in parts.as_meant(size)),
        parts.as_written(size),
        *parts.variants(size),
    ]


def _with_others(found: pd.DataFrame, others: pd.DataFrame, key: list[str]) -> pd.DataFrame:
    """Returns `found` with the rows of `others` for cells that are not in `found`.

    `key` has the columns that identify a cell. Only rows with seeds of `found` are added.
    """
    made = set(found[key].itertuples(index=False, name=None))
    lacking = [row not in made for row in others[key].itertuples(index=False, name=None)]
    rest = others[lacking]
    return pd.concat([found, rest[rest["seed"].isin(found["seed"])]])


def _completed(part: Part, made: Mapping[str, Frames]) -> Callable[[Table], Frames]:
    """Returns the function that derives a part's tables.

    If the part is a reading with fewer cells, its table is completed with the runs of the part that
    has the same cells. `made` has the derived tables by part.
    """
    if part.name == "written" or part.reading in parts.VARIANTS:

        def other(table: Table) -> Frames:
            others = made["published"]["estimates"]
            return {"": figured(_with_others(estimates(table), others, list(parts.KEY)))}

        return other
    return part.frames


def measure(bench: Bench[DaqmSize]) -> None:
    """Makes all parts; with a real engine, only the part that Linux can run."""
    if bench.real:
        bench.make(replace(parts.real(bench.size), frames=overloaded))
        return
    made: dict[str, Frames] = {}
    for part in planned(bench.size):
        made[part.name] = bench.make(replace(part, frames=_completed(part, made)))
