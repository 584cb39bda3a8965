"""The complete study: runs, verdicts, figures and text."""

from __future__ import annotations

from typing import Any

from sojourn.papers.outcome import Outcome, records
from sojourn.papers.paper import Beside, Paper, Real, Titled
from sojourn.papers.rrda import claims, figures, study
from sojourn.papers.rrda.engine import engine
from sojourn.papers.rrda.scenarios import CLIENTS_CPU, READINGS, TIMEOUT

_READINGS = """\
The paper leaves open the message size, the handler, the retransmission time and when a message is
acknowledged, and they decide everything: each claim is judged under four readings. A claim that
holds in one says that a reading exists which gives the paper's finding, no more. Findings by which
a reading's numbers were set are no claims in it."""

_RRDA = f"""\
RRDA is a reconstruction: rates are bytes in an epoch, discarded ones included, and the k epochs of
equation 2 end with the one of equation 4. The retransmission time is {TIMEOUT} ms and up to half
more, drawn, so that losses do not march in step with pauses; it was set for the first two readings
and is varied in the third, datagram. Experiments over the number of clients have
{CLIENTS_CPU:.0%} of the CPU: with all of it figures 7 and 8 contradict each other at 35 clients."""

_HANDLER = """\
The handler takes 37.5 MB/s; it needs a processor for two fifths of that time and waits for the
rest. Less CPU is a quota on that processor time, in periods of 100 ms. The other threads are not
limited. Clients are threads of one process; each sends at 100 Mbit/s at most, or at its part of
1 Gbit/s, in datagrams of 1452 bytes, by stop-and-wait, with our congestion control. A message whose
first fragment finds no room is discarded once for each time that it is sent. RRDA sees this
machine's memory."""


def _readings(outcome: Outcome) -> list[str]:
    """Returns the common part of all readings, then each one that is run."""
    told = [f"Reading {name}: {READINGS[name].words}." for name in outcome.size.readings]
    return [" ".join(text.split()) for text in (_READINGS, *told)]


def _remarks(outcome: Outcome) -> list[str]:
    size = outcome.size
    return [
        *_readings(outcome),
        " ".join(_RRDA.split()),
        (
            f"The claims were written down on {claims.FROZEN}, with all earlier results known; "
            f"their runs have seeds from {claims.FIRST_SEED} on, which no earlier run had."
        ),
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
        "Simulation cannot decide the CPU per Gbit/s (about 3 % more with RRDA).",
        (
            "elastic is worse in discards, peak memory and p99 waiting taken together than "
            f"some other policy at: {'; '.join(worse) or 'no point of the grid'}."
        ),
    ]


def _tables(outcome: Outcome) -> Titled:
    return [
        ("In how many readings", figures.readings(outcome)),
        ("Other retransmission times (reading datagram)", figures.sweep(outcome)),
        ("Decisions of equation 2, share of epochs", figures.decisions(outcome)),
        ("Policies compared", figures.grid(outcome)),
    ]


def _facts(outcome: Outcome) -> dict[str, Any]:
    means = outcome.frame("grid").groupby(["point", "policy"], sort=False).mean(numeric_only=True)
    return {
        "seeds": outcome.size.seeds,
        "duration": outcome.size.seconds,
        "grid": records(means.drop(columns="seed").reset_index()),
        "elastic_beaten": study.beaten(outcome),
        "readings": records(figures.readings(outcome)),
        "retransmission_times": records(figures.sweep(outcome)),
    }


# Our UDP transport between two hosts; only real runs show RRDA's cost of CPU


def _real_remarks(outcome: Outcome) -> list[str]:
    size = outcome.size
    return [
        (
            f"Real runs of {size.seconds:g} s from the start, {size.seeds} seeds, between two "
            "network namespaces, one after the other. The same servers were simulated with the "
            "same seeds. Verdicts are on the real runs."
        ),
        *_readings(outcome),
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
    work=study.work,
    withdrawn=claims.WITHDRAWN,
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
        no_linux="its receive buffer is a policy of ours, and its handler would be modelled by "
        "sleeping there as in the simulation",
        verdicts_shown=True,
    ),
)
