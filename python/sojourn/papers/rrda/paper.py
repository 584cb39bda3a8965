"""The study put together: what is run, judged, drawn and told."""

from __future__ import annotations

from typing import Any

from sojourn.papers.outcome import Outcome, records
from sojourn.papers.paper import Beside, Paper, Real, Titled
from sojourn.papers.rrda import figures, study
from sojourn.papers.rrda.engine import engine

_READINGS = """\
The paper leaves open the message size, the handler and when a message is acknowledged, and they
decide everything: each claim is judged under two readings. *processed*: 64 KiB messages,
acknowledged when the handler is done with them, a handler of constant speed. *enqueued*: 8 KiB
messages, acknowledged when they are buffered, a handler that pauses for 300 ms in every 1.2 s."""

_RRDA = """\
RRDA is a reconstruction: rates are bytes in an epoch, discarded ones included, and the k epochs of
equation 2 end with the one of equation 4. Less CPU is a quota in periods of 100 ms, as control
groups have it. The retransmission timeout is 200 ms and up to half more, drawn, so that losses do
not march in step with pauses."""

_HANDLER = """\
The handler takes 37.5 MB/s; it needs a processor for two fifths of that time and waits for the
rest. Less CPU is a quota on that processor time, in periods of 100 ms. The other threads are not
limited. Clients are threads of one process; each sends at 100 Mbit/s at most, or at its part of
1 Gbit/s, in datagrams of 1452 bytes, by stop-and-wait, with our congestion control. A message whose
first fragment finds no room is discarded once for each time that it is sent. RRDA sees this
machine's memory."""


def _remarks(outcome: Outcome) -> list[str]:
    size = outcome.size
    return [
        " ".join(_READINGS.split()),
        " ".join(_RRDA.split()),
        (
            f"Simulated: runs of {size.seconds:g} s from the start, {size.seeds} seeds; "
            f"{size.grid_seeds} for the comparison of policies, "
            f"{size.grid:g} s each with a twelfth of warm-up."
        ),
        *outcome.notes,
    ]


def _notes(outcome: Outcome) -> list[str]:
    worse = [
        f"{where}: {', '.join(rivals)}" for where, rivals in study.beaten(outcome).items() if rivals
    ]
    return [
        "CPU per Gbit/s (about 3 % more with RRDA) cannot be told by simulation.",
        (
            "elastic is worse in discards, peak memory and p99 waiting taken together than "
            f"some other policy at: {'; '.join(worse) or 'no point of the grid'}."
        ),
    ]


def _tables(outcome: Outcome) -> Titled:
    return [
        ("Policies compared", figures.grid(outcome)),
        ("Signs in a row (equation 2)", figures.shapes(outcome)),
    ]


def _facts(outcome: Outcome) -> dict[str, Any]:
    means = outcome.frame("grid").groupby(["point", "policy"], sort=False).mean(numeric_only=True)
    return {
        "seeds": outcome.size.seeds,
        "duration": outcome.size.seconds,
        "grid": records(means.drop(columns="seed").reset_index()),
        "elastic_beaten": study.beaten(outcome),
    }


# Our UDP transport between two hosts; only real runs tell what RRDA costs in CPU


def _real_remarks(outcome: Outcome) -> list[str]:
    size = outcome.size
    return [
        (
            f"Real runs of {size.seconds:g} s from the start, {size.seeds} seeds, between two "
            "network namespaces, one after the other. The same servers were simulated with the "
            "same seeds. Verdicts are on the real runs."
        ),
        " ".join(_READINGS.split()),
        " ".join(_HANDLER.split()),
        *outcome.notes,
    ]


def _real_notes(outcome: Outcome) -> list[str]:
    about = outcome.about
    quota = (
        f"the handler's CPU is a quota of a control group, version {about['control_groups']}"
        if about["quota"] == "control group"
        else "the handler keeps its quota of CPU by itself: no control group could be made"
    )
    return [f"Real runs on Linux {about['kernel']}: {quota}.", *about["notes"]]


def _real_facts(outcome: Outcome) -> dict[str, Any]:
    return {"part": "for real", "seeds": outcome.size.seeds, "duration": outcome.size.seconds}


PAPER = Paper(
    name="rrda",
    title="Receive buffers that adapt: RRDA against buffers of one size",
    reference=(
        "H. Liu, Y. Zhang, Y. Zhou, R. Xue: A Rate and Resource Detection Based Receive Buffer "
        "Adaptation Approach for High-speed Data Transportation"
    ),
    quick=study.QUICK,
    full=study.FULL,
    measure=study.measure,
    engine=engine,
    cluster=False,
    remarks=_remarks,
    notes=_notes,
    figures=figures.simulated,
    tables=_tables,
    shown=(),
    facts=_facts,
    real=Real(
        title="Receive buffers that adapt: RRDA against buffers of one size, for real",
        quick=study.REAL_QUICK,
        full=study.REAL_FULL,
        beside=Beside(
            part="experiments", factors=study.FACTORS, metrics=("exhaustion", "throughput")
        ),
        estimate=study.lasting,
        remarks=_real_remarks,
        notes=_real_notes,
        figures=figures.real,
        facts=_real_facts,
        verdicts_shown=True,
    ),
)
