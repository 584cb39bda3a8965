"""Findings on finished runs: a warm-up that is too short, an empty window, a flow that hardly ran.

All commands use these sentences. A finding states that the numbers of a run say too little.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from sojourn.data import Json
from sojourn.plan.parts import Group
from sojourn.plan.plan import Plan
from sojourn.plan.queries import bottlenecks, store_in
from sojourn.scenario.engine import SUMMARY, Column, Record
from sojourn.stats import settling

LITTLE = 0.25
"""Share of the measured time below which a flow without an own end hardly ran."""

PACKETS = 3 * 1514.0
"""Changes of a mean backlog up to this number of bytes are not findings."""

METRICS = ("backlog", "throughput")
"""Metrics of the bottleneck whose series must have settled."""

ENDING = ("transfer", "web", "command", "responsiveness", "replay")
"""Applications whose flows may end early."""

UNFINISHED = 0.01
"""Share of requests or transfers without an answer or an end above which their times mislead."""

Kind = Literal["empty", "short", "warm-up", "unsettled", "unfinished"]


@dataclass(frozen=True)
class Finding:
    """A reason for which runs say too little."""

    kind: Kind
    """*Empty*: no flow ran in the measured time. *Short*: flows ran in a small part of it.
    *Warm-up*: the measured time includes the start. *Unsettled*: the end still changes.
    *Unfinished*: times are only of requests with an answer, or of transfers that ended."""
    subject: str
    """Group of flows or link; empty for all flows."""
    text: str
    """The finding as sentences."""
    size: float = 0.0
    """Size of the effect; of several equal findings, the largest is shown."""

    def as_dict(self) -> dict[str, Json]:
        """Returns kind, subject and text as data for JSON."""
        return {"kind": self.kind, "subject": self.subject, "text": self.text}


@dataclass(frozen=True)
class Seen:
    """The measurements of a run that findings need."""

    metrics: Mapping[str, float]
    series: Mapping[str, Sequence[float]]
    """Columns of the table of time series."""


def numbers(table: Iterable[Column], wanted: Callable[[str], bool]) -> dict[str, Sequence[float]]:
    """Returns the columns of numbers whose names are `wanted`."""
    return {
        name: memoryview(data).cast("d" if dtype == "f8" else "q").tolist()
        for name, _, dtype, data in table
        if isinstance(data, bytes) and dtype in ("f8", "i8") and wanted(name)
    }


def needed(plan: Plan, column: str) -> bool:
    """Returns whether findings need this column of the time series."""
    return column in ("time", *(f"{plan.observe.bottleneck.name}.{m}" for m in METRICS))


def of_record(plan: Plan, record: Record) -> list[Finding]:
    """Returns the findings on a single run."""
    metrics = numbers(record.table(SUMMARY), lambda _: True)
    series = numbers(record.table("series"), lambda name: needed(plan, name))
    values = {name: x[0] for name, x in metrics.items()}
    return [*findings(plan, [Seen(values, series)]), *_ages(plan, values)]


def _ages(plan: Plan, run: Mapping[str, float]) -> Iterable[Finding]:
    """Yields groups whose completion times in this run leave out transfers that had not ended."""
    for name in (group.name for group in plan.groups):
        if math.isfinite(run.get(f"{name}.fct_mean_all", math.nan)):
            left, ended = (run.get(f"{name}.{m}", 0.0) for m in ("unfinished", "finished"))
            share = left / (left + ended) if left else 0.0
            if share > UNFINISHED:
                text = (
                    f"{100 * share:.2g} % of the transfers of {name} had not ended; completion "
                    "times are of the others only, and `fct_mean_all` counts these with their age."
                )
                yield Finding("unfinished", name, text, share)


def findings(plan: Plan, runs: Sequence[Seen]) -> list[Finding]:
    """Returns the findings on runs of a plan with different seeds."""
    metrics = [run.metrics for run in runs]
    found = [*_activity(plan, metrics), *_unfinished(plan, metrics)]
    if any(one.kind == "empty" and not one.subject for one in found):
        return found
    return found + list(_settling(plan, [run.series for run in runs]))


def merged(found: Mapping[str, Sequence[Finding]]) -> list[Finding]:
    """Returns one finding for each kind and subject, from the findings on several choices."""
    listed: dict[tuple[Kind, str], list[tuple[str, Finding]]] = {}
    for choice, some in found.items():
        for one in some:
            listed.setdefault((one.kind, one.subject), []).append((choice, one))
    out = []
    for each in listed.values():
        most, worst = max(each, key=lambda pair: pair[1].size)
        names = [name for name, _ in each]
        where = "" if len(names) == len(found) else f" (With {'; '.join(names)}.)"
        if worst.kind == "unfinished" and len(names) > 1:
            where = f" (With {most}; with the others less.)"
        out.append(replace(worst, text=worst.text + where))
    return out


def _activity(plan: Plan, runs: Sequence[Mapping[str, float]]) -> Iterable[Finding]:
    start, span = plan.warmup / 1e9, (plan.duration - plan.warmup) / 1e9
    window = f"the measured {span:g} s (from {start:g} s to {plan.duration / 1e9:g} s)"
    groups = [g for g in plan.groups if all(f"{g.name}.flows" in run for run in runs)]
    empty = [g for g in groups if not any(run[f"{g.name}.flows"] for run in runs)]
    if empty and len(empty) == len(plan.groups) and not plan.apps:
        yield Finding("empty", "", f"No flow was active in {window}: {_remedy(empty[0], plan)}.")
        return
    for group in empty:
        text = f"No flow of {group.name} was active in {window}: {_remedy(group, plan)}."
        yield Finding("empty", group.name, text)
    for group in groups:
        if group in empty or group.app.TAG in ENDING:
            continue
        active = sum(run.get(f"{group.name}.active_mean", math.nan) for run in runs) / len(runs)
        share = active / group.count
        if share < LITTLE:
            text = (
                f"The flows of {group.name} were active for {100 * share:.2g} % of {window}, but "
                f"rates and shares are of all this time: {_remedy(group, plan)}."
            )
            yield Finding("short", group.name, text, 1 - share)


def _unfinished(plan: Plan, runs: Sequence[Mapping[str, float]]) -> Iterable[Finding]:
    """Yields groups and stores whose times leave out what has not ended.

    The simulator counts unfinished transfers with their age, other engines do not. Transfers
    and requests under way at the end count as far as they exceed rate times latency (Little).
    """
    span = (plan.duration - plan.warmup) / 1e9
    parts: list[tuple[str, float, float, str]] = []

    def all_of(name: str, metric: str) -> float:
        return sum(run.get(f"{name}.{metric}", 0.0) for run in runs)

    for name in (g.name for g in plan.groups):
        if not any(math.isfinite(run.get(f"{name}.fct_mean_all", math.nan)) for run in runs):
            text = f"transfers of {name} had not ended; completion times"
            lost = sum(max(_beyond(run, name, span), 0.0) for run in runs)
            parts.append((name, all_of(name, "finished"), lost, text))
    if (store := store_in(plan)) is not None:
        done, took = all_of(store.name, "acknowledged"), all_of(store.name, "elapsed")
        usual = done * all_of(store.name, "latency_mean") / len(runs) / (took / len(runs) or 1.0)
        text = f"requests to {store.name} were not acknowledged; latencies"
        lost = all_of(store.name, "requests") - done - min(all_of(store.name, "pending"), usual)
        parts.append((store.name, done, lost, text))
    for name, done, lost, text in parts:
        share = lost / (done + lost) if done and lost else 0.0
        if share > UNFINISHED:
            digits = 2 if share < 0.99 else 4
            said = f"{100 * share:.{digits}g} % of the {text} are of the others only."
            yield Finding("unfinished", name, said, share)


def _remedy(group: Group, plan: Plan) -> str:
    if group.start > plan.warmup:
        return f"they start at {group.start / 1e9:g} s; start them earlier or lengthen `duration`"
    return "shorten `warmup`, or let the flows last longer"


def settles(plan: Plan, runs: Sequence[Seen]) -> dict[str, float]:
    """Returns when the bottleneck settles in these runs together, in seconds, by series.

    NaN if a series does not settle. The result is empty if the plan changes during the run, or if
    the runs have no series.
    """
    found = {}
    for column, whole, least in _steady(plan, [run.series for run in runs]):
        cut = settling.common_cut(whole, least)
        found[column] = math.nan if cut is None else runs[0].series["time"][cut]
    return found


def _steady(
    plan: Plan, runs: Sequence[Mapping[str, Sequence[float]]]
) -> Iterable[tuple[str, Sequence[Sequence[float]], float]]:
    """Yields the series of the bottleneck, unless the plan changes them on purpose.

    Each has its name, its values for each run, and the largest difference without significance.
    """
    links = bottlenecks(plan)
    scheduled = any(link.params.trace is not None or link.changes for link in links)
    late = any(
        g.start + g.start_every * (g.count - 1) > max(plan.warmup, plan.duration // 10)
        or (g.stop is not None and plan.warmup < g.stop < plan.duration)
        for g in plan.groups
    )
    if scheduled or late or not runs or "time" not in runs[0]:
        return
    for column in runs[0]:
        whole = [run.get(column, ()) for run in runs]
        if column != "time" and all(len(values) == len(runs[0]["time"]) for values in whole):
            yield column, whole, PACKETS if column.endswith(".backlog") else 0.0


def _settling(plan: Plan, runs: Sequence[Mapping[str, Sequence[float]]]) -> Iterable[Finding]:
    """Yields what the series of the bottleneck say."""
    found: dict[Kind, Finding] = {}
    for column, whole, least in _steady(plan, runs):
        times = runs[0]["time"]
        first = next((i for i, t in enumerate(times) if t >= plan.warmup / 1e9), len(times))
        window = [values[first:] for values in whole]
        if len(window[0]) < 10 or not all(map(math.isfinite, (x for w in window for x in w))):
            continue
        place, _, metric = column.rpartition(".")
        begin = settling.begins_late(window, least)
        if begin:
            cut = settling.common_cut(whole, least)
            text = (
                f"The warm-up of {plan.warmup / 1e9:g} s is too short: the {metric} of {place} is "
                f"{_than(-begin)} at the start of the measured time than in its second half. "
            )
            text += (
                "It does not settle in this run: lengthen `duration` and `warmup`."
                if cut is None
                else f"It settles after about {times[cut]:.2g} s: lengthen `warmup`."
            )
            _add(found, Finding("warm-up", "", text, abs(begin)))
        end = settling.ends_early(window, least)
        if end:
            text = (
                f"The {metric} of {place} has not settled: it is {_than(end)} in the last quarter "
                "of the measured time than in the quarter before. Lengthen `duration`."
            )
            _add(found, Finding("unsettled", "", text, abs(end)))
    yield from found.values()


def _add(found: dict[Kind, Finding], one: Finding) -> None:
    if one.kind not in found or one.size > found[one.kind].size:
        found[one.kind] = one


def _than(change: float) -> str:
    return f"{100 * abs(change):.0f} % {'higher' if change > 0 else 'lower'}"


def _beyond(run: Mapping[str, float], name: str, span: float) -> float:
    """Returns how many transfers of a group are unfinished beyond those usually under way."""
    mean = run.get(f"{name}.fct_mean", math.nan)
    usual = run.get(f"{name}.finished", 0.0) * mean / span if math.isfinite(mean) else 0.0
    return run.get(f"{name}.unfinished", 0.0) - usual
