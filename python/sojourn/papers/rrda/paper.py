"""The study as a `Paper`: its texts, tables and JSON fields."""

from __future__ import annotations

from sojourn.papers.bench import every
from sojourn.papers.outcome import Facts, Real, records
from sojourn.papers.paper import Paper
from sojourn.papers.part import Titled
from sojourn.papers.rrda import claims, figures, study
from sojourn.papers.rrda.engine import engine
from sojourn.papers.rrda.scenarios import COST, TIMEOUT
from sojourn.papers.rrda.study import Results
from sojourn.papers.side_by_side import MeansTable

_RRDA = f"""\
The paper does not state the message size, the handler, the effect of less CPU, the retransmission
time and the time of acknowledgement, which determine the results. In the main reading the handler's
speed is that of the paper's figure 9: 1 Gbit/s needs {COST:.1%} of the CPU. Messages have 8 KiB and
are acknowledged when they are in the buffer. Less CPU is a quota in periods of 15.6 ms, our
inference from the clock tick of Windows. A message is repeated after {TIMEOUT} ms plus a random
time of up to half of it. None of these numbers was fitted to a finding. RRDA is a reconstruction:
rates are bytes in an epoch, including discarded bytes, and the epochs of equation 2 end with the
epoch of equation 4. Experiments over the number of clients have half of the CPU, because with all
of it the paper's figures 7 and 8 contradict each other at 35 clients."""

_HANDLER = """\
The handler processes 37.5 MB/s. It computes for two fifths of its time and sleeps for the rest.
Less CPU is a quota on its computing time, in periods of 100 ms; the other threads are not limited.
Clients are threads of one process. Each sends at most 100 Mbit/s, or its share of 1 Gbit/s, in
datagrams of 1452 bytes, by stop-and-wait, with the project's congestion control. A message whose
first fragment does not fit into the buffer counts as discarded each time that it is sent. RRDA
reads the use of this machine's memory."""


def _readings(outcome: Results) -> list[str]:
    """Returns the text about the main reading, then a description of each reading that is run."""
    declared = claims.DECLARED.readings
    described = [f"Reading {name}: {declared[name].text}." for name in outcome.size.readings]
    return [" ".join(text.split()) for text in (_RRDA, *described)]


def _remarks(outcome: Results) -> list[str]:
    size = outcome.size
    return [
        *_readings(outcome),
        (
            f"Simulated runs of figures 2, 3 and 6 to 8 last {size.seconds:g} s without warm-up, "
            f"with {size.seeds} seeds. The comparison of policies has {size.grid_seeds} seeds and "
            f"runs of {size.grid:g} s, a twelfth of which is warm-up."
        ),
        *outcome.notes,
    ]


def _notes(outcome: Results) -> list[str]:
    worse = [
        f"{where}: {', '.join(rivals)}" for where, rivals in study.beaten(outcome).items() if rivals
    ]
    return [
        "Simulation cannot measure RRDA's own CPU time (by the paper about 3 % per Gbit/s).",
        (
            "Another policy is better than elastic in discards, peak memory or p99 waiting time, "
            f"and worse in none of them, at: "
            f"{'; '.join(worse) or 'no point of the grid'}."
        ),
    ]


def _tables(outcome: Results) -> Titled:
    return [
        ("Share of epochs in which equation 2 decides", figures.decisions(outcome)),
        ("Comparison of policies", figures.grid(outcome)),
        ("Runs and their cost", study.budget(outcome.size)),
    ]


def _facts(outcome: Results) -> Facts:
    means = outcome.frame("grid").groupby(["point", "policy"], sort=False).mean(numeric_only=True)
    return {
        "seeds": outcome.size.seeds,
        "duration": outcome.size.seconds,
        "grid": records(means.drop(columns="seed").reset_index()),
        "elastic_beaten": study.beaten(outcome),
    }


# The study with the project's UDP transport between two network namespaces. Only real runs show
# RRDA's cost of CPU.


def _real_remarks(outcome: Results) -> list[str]:
    size = outcome.size
    return [
        (
            f"Real runs last {size.seconds:g} s without warm-up, with {size.seeds} seeds. They are "
            "made one after the other, between two network namespaces. The same servers were "
            "simulated with the same seeds. The verdicts are from the real runs."
        ),
        *_readings(outcome),
        " ".join(_HANDLER.split()),
        *outcome.notes,
    ]


def _real_notes(outcome: Results) -> list[str]:
    about = outcome.about
    quota = (
        f"the handler's CPU is a quota of a control group, version {about['control_groups']}"
        if about["quota"] == "control group"
        else "the handler limits its CPU by itself, because no control group could be created"
    )
    return [f"Real runs on Linux {about['kernel']}: {quota}.", *about["notes"]]


def _real_facts(outcome: Results) -> Facts:
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
    quarter=study.QUARTER,
    mechanism="policy",
    measure=every(study.parts),
    question="Does a receive buffer that follows rates and memory lose less and deliver more?",
    first_seed=claims.FIRST_SEED,
    conditions=claims.CONDITIONS,
    declared=claims.DECLARED,
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
        title="Receive buffers that adapt: RRDA against buffers of one size, real runs",
        quick=study.REAL_QUICK,
        full=study.REAL_FULL,
        means=MeansTable(
            part="experiments", factors=study.FACTORS, metrics=("exhaustion", "throughput")
        ),
        estimate=study.lasting,
        remarks=_real_remarks,
        notes=_real_notes,
        figures=figures.real,
        facts=_real_facts,
        no_linux="RRDA's receive buffer is not the kernel's, and the handler would be modelled by "
        "sleeping as in the simulation",
        verdicts_shown=True,
    ),
)
