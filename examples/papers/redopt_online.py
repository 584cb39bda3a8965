"""A study of one's own: REDopt on-line, which adapts RED to the number of flows (docs/studies).

`python examples/papers/redopt_online.py [--quick]` runs it, prints the verdicts, and writes
results/paper-redopt-online[-quick]. With `--real`, real TCP runs through the wire too.

A *course* is a sequence of numbers of flows, one for each phase of a run. In the three courses each
number of flows occurs once in the first, once in the second and once in the last phase. The network
is that of the tail-drop paper's bulk traffic: Ethernet at 10 Mbit/s, round-trip times of 120 to
180 ms, and unresponsive UDP at a tenth of the rate.

The claims are in `redopt_online.toml`. Claims are about the second half of a phase (*later*), or
about 20 to 40 s after a change of the number of flows (*soon*). Means are over the three courses.
The seeds of the runs follow from the file of the claims, as in the studies of `sojourn paper`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pandas as pd
from matplotlib.figure import Figure

from sojourn import engines
from sojourn.papers import frozen
from sojourn.papers.bench import Bench, runs_of
from sojourn.papers.claim_table import ClaimTable
from sojourn.papers.drawing import whiskers
from sojourn.papers.outcome import Outcome, Real, records
from sojourn.papers.paper import Paper
from sojourn.papers.part import Cells, Drawn, Frames, Part, Size, Titled, estimate
from sojourn.papers.report import show
from sojourn.papers.side_by_side import MeansTable
from sojourn.papers.taildrop import mechanisms
from sojourn.papers.taildrop import scenarios as bulk
from sojourn.papers.taildrop import study as taildrop
from sojourn.papers.words import FILE as WORDS
from sojourn.scenario import Scenario
from sojourn.show import style
from sojourn.stats import Claim, mean_interval
from sojourn.study import Table
from sojourn.tune.redopt import Link, RedParameters, flows_at
from sojourn.tune.settings import Verification
from sojourn.tune.verify import verified

PLACE = f'"{Path(__file__).resolve().parents[1]}/policies/redopt_online.py:RedoptOnline"'
"""Name of the queue in a scenario."""
LOADS = (16, 64, 256)
"""Numbers of TCP flows that occur in the courses."""
COURSES: tuple[tuple[int, ...], ...] = ((16, 256, 64), (256, 64, 16), (64, 16, 256))
"""Courses: numbers of TCP flows by phase."""
UDP_FRAME, UDP_PAYLOAD = 573, 531
"""Bytes of a UDP frame, and of its payload."""
UDP_GOODPUT = bulk.UDP_RATE * UDP_PAYLOAD / UDP_FRAME
"""Payload rate of the UDP sources without loss, in bit/s."""
LINK = Link(rate=10e6, rtts=(0.15,), flows=1, packet=1514, unresponsive=1e6)
"""The link as REDopt on-line's user describes it."""


def name_of(course: tuple[int, ...]) -> str:
    """Returns the level of a course in tables: its numbers of flows, separated by spaces."""
    return " ".join(map(str, course))


Group = dict[str, str | int]


def groups(course: tuple[int, ...], phase: float, starts: float, tcp: str) -> list[Group]:
    """Returns the groups of TCP flows of a course.

    Each step from one number of flows to the next larger one, such as 64 to 256, forms groups: one
    for each series of consecutive phases with at least the larger number. A group's flows start
    uniformly over `starts` seconds. `phase` is a phase's length in seconds.
    """
    found = []
    for low, high in pairwise(sorted({0, *course})):
        begin = None
        for i, wanted in enumerate((*course, 0)):
            if wanted >= high and begin is None:
                begin = i
            elif wanted < high and begin is not None:
                group: Group = {
                    "name": f"tcp{high}-{begin + 1}",
                    "from": "left",
                    "to": "right",
                    "app": "bulk",
                    "tcp": tcp,
                    "count": high - low,
                    "start": f"uniform {begin * phase:g}s {begin * phase + starts:g}s",
                }
                if i < len(course):
                    group["stop"] = f"{i * phase:g}s"
                found.append(group)
                begin = None
    return found


def scenario(
    course: tuple[int, ...],
    phase: float,
    queue: str,
    starts: float = bulk.STARTS,
    tcp: str = bulk.LINUX_TCP,
) -> Scenario:
    """Returns the scenario of a course.

    `phase` is a phase's length in seconds, and flows start within the first `starts` seconds of a
    phase.
    """
    plain = bulk.bulk(course[0], len(course) * phase, 0, queue, tcp, starts)
    data: Any = plain.as_dict()
    udp = next(flow for flow in data["flows"] if flow["name"] == "udp")
    title = f"REDopt on-line, {name_of(course)} flows"
    return plain.replace({"name": title, "flows": [udp, *groups(course, phase, starts, tcp)]})


CLAIMS = Path(__file__).with_suffix(".toml")
FIRST_SEED = frozen.seeds_of((WORDS, CLAIMS))["first"]
"""First seed of the runs, which follows from the claims."""
_TABLE = ClaimTable(CLAIMS)

ONLINE, STANDARD, TAIL_DROP, FAIR = "on-line", "REDstd", "TD", "fq_codel"


def fixed(flows: int) -> str:
    """Returns the name of the mechanism: REDopt, set by hand for `flows` TCP flows."""
    return f"REDopt {flows}"


def claims_on(loads: Sequence[int]) -> tuple[Claim, ...]:
    """Returns the claims for these numbers of flows, given in ascending order."""
    names = {"loads": tuple(loads), "light": loads[0], "heavy": loads[-1]}
    return _TABLE.claims("claims", names)


SOON = (20.0, 40.0)
"""Begin and end of the time *soon*, in seconds after a change of the number of flows."""
BETWEEN = 4.0
"""Seconds that a real run takes in addition to its length, to start and end hosts and programs."""


@dataclass(frozen=True, kw_only=True)
class CourseSize(Size):
    """Size of the study; lengths are in seconds."""

    phase: float
    """Length of a phase."""
    proof: float
    """Length of a run that verifies REDopt's parameters."""
    courses: tuple[tuple[int, ...], ...] = COURSES
    starts: float = bulk.STARTS
    """Time from the beginning of a phase within which its new flows start."""
    tcp: str = bulk.LINUX_TCP
    """TCP of the bulk flows, as a scenario's `tcp`."""
    without: tuple[str, ...] = ()
    """Names of the mechanisms to omit."""
    judged: tuple[str, ...] = ()
    """Identifiers of the claims to judge; empty for all claims."""

    @property
    def loads(self) -> tuple[int, ...]:
        """Returns the numbers of TCP flows in ascending order."""
        return tuple(sorted({flows for course in self.courses for flows in course}))

    @property
    def claims(self) -> tuple[Claim, ...]:
        """Returns the claims that these runs can judge."""
        return tuple(c for c in claims_on(self.loads) if not self.judged or c.id in self.judged)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Returns the names of the compared mechanisms."""
        listed = (ONLINE, *map(fixed, self.loads), STANDARD, TAIL_DROP, FAIR)
        return tuple(name for name in listed if name not in self.without)


Results = Outcome[CourseSize]

FULL = CourseSize(phase=120, seeds=10, proof=200)
QUICK = CourseSize(phase=80, seeds=6, proof=100)
#: Real runs have one change of the number of flows. Only the claims `follows` and `goodput`
#: are judged.
REAL_FULL = CourseSize(
    phase=80,
    seeds=5,
    proof=200,
    courses=((16, 64),),
    tcp=taildrop.REAL_TCP,
    without=(STANDARD, FAIR),
    judged=("follows", "goodput"),
)
REAL_QUICK = replace(REAL_FULL, phase=20, seeds=3, proof=100, starts=4)


def lasting(size: CourseSize) -> str:
    """Describes the number of real runs and their estimated duration."""
    number = len(size.mechanisms) * size.seeds
    seconds = sum(len(course) * size.phase + BETWEEN for course in size.courses)
    return estimate(f"{number * len(size.courses)} real runs", number * seconds)


def settings(size: CourseSize) -> dict[int, RedParameters]:
    """Returns REDopt's parameters by number of flows, verified by simulation."""
    runs = Verification(duration=size.proof, warmup=size.proof / 3)
    return {n: verified(taildrop.link(n), runs).parameters for n in size.loads}


def queues(size: CourseSize, found: dict[int, RedParameters]) -> dict[str, str]:
    """Returns each mechanism's queue as words of a scenario.

    `found` has REDopt's parameters by number of flows. REDstd and tail drop have the buffer of
    REDopt for the largest number of flows.
    """
    listed = {ONLINE: f"{PLACE} unresponsive 10%"}
    for flows, parameters in found.items():
        every = mechanisms.queues(parameters, "dummynet")
        listed[fixed(flows)] = every[mechanisms.REDOPT]
        listed |= {STANDARD: every[mechanisms.RED], TAIL_DROP: every[mechanisms.TD]}
    listed[FAIR] = "fq_codel"
    return {name: listed[name] for name in size.mechanisms}


def cells_of(size: CourseSize, found: dict[int, RedParameters]) -> Cells:
    """Returns the cells: every course with every mechanism."""
    return [
        (
            {"course": name_of(course), "mechanism": name},
            scenario(course, size.phase, queue, size.starts, size.tcp),
        )
        for course in size.courses
        for name, queue in queues(size, found).items()
    ]


def estimated(part: pd.DataFrame) -> float:
    """Returns the number of flows that the queue's formula gives for a run's samples.

    NaN without a drop.
    """
    sent, drops = part["bottleneck.throughput"].mean(), part["bottleneck.drops"].mean()
    datagrams = part["udp.udp_goodput"].mean() / (8 * UDP_PAYLOAD)
    packets = datagrams + (sent - 8 * UDP_FRAME * datagrams) / (8 * LINK.packet)
    if not drops:
        return math.nan
    return flows_at(LINK, drops / (packets + drops), part["bottleneck.queue"].mean())


def phases(course: str, series: pd.DataFrame, phase: float) -> list[dict[str, object]]:
    """Returns a run's results by phase, as rows of a table.

    The results *later* cover the second half of a phase. The results *soon* cover the time `SOON`
    after a change, if a phase is longer than this time. `series` is the run's table of samples.
    """
    goodput = series.filter(regex=r"^tcp.*\.goodput$").columns
    rows = []
    for i, flows in enumerate(map(int, course.split())):
        windows = {"later": (phase / 2, phase)} | ({"soon": SOON} if i and phase > SOON[1] else {})
        for when, (begin, end) in windows.items():
            within = (series["time"] > i * phase + begin) & (series["time"] <= i * phase + end)
            part = series[within]
            rows.append(
                {
                    "flows": flows,
                    "when": when,
                    "queue": part["bottleneck.queue"].mean(),
                    "swing": part["bottleneck.queue"].std(),
                    "goodput": part[goodput].sum(axis=1).mean(),
                    "udp_loss": 1 - part["udp.udp_goodput"].mean() / UDP_GOODPUT,
                    "estimate": estimated(part) / flows,
                }
            )
    return rows


def measure(bench: Bench[CourseSize]) -> dict[str, object]:
    """Verifies REDopt for each number of flows, then runs all courses with all mechanisms.

    Returns the verified parameters under the key `settings`.
    """
    size = bench.size
    found = settings(size)

    def frames(table: Table) -> Frames:
        rows, drawn = [], []
        for levels, run in runs_of(table):
            series = run.table("series")
            labels = {**levels, "seed": run.seed}
            rows += [{**labels, **row} for row in phases(str(levels["course"]), series, size.phase)]
            drawn.append(series[["time", "bottleneck.queue"]].assign(**labels))
        # The number of flows is a level of a factor. As a number it would become NaN in invalid
        # runs, like a measurement.
        by_phase = pd.DataFrame(rows).astype({"flows": object})
        return {"": by_phase, "series": pd.concat(drawn, ignore_index=True)}

    bench.make(
        Part(
            name="courses",
            title="flows that come and go",
            cells=cells_of(size, found),
            claims=size.claims,
            frames=frames,
            tables=("series",),
        )
    )
    return {"settings": found}


_METRICS = {
    "queue": ("Mean queue (packets)", 1.0),
    "udp_loss": ("UDP loss (%)", 100.0),
    "goodput": ("TCP goodput (Mbit/s)", 1e-6),
}


def _courses(outcome: Results) -> Figure:
    """Draws the mean queue over time, a panel for each course.

    Lines: REDopt on-line, and REDopt set for the smallest and the largest number of flows.
    """
    frame, size = outcome.frame("courses", "series"), outcome.size
    with style.styled():
        figure = style.figure(2 * style.COLUMN, 2.6)
        panels = figure.subplots(1, len(size.courses), sharey=True, squeeze=False)[0]
        shown = (ONLINE, fixed(size.loads[0]), fixed(size.loads[-1]))
        for axes, course in zip(panels, map(name_of, size.courses), strict=True):
            for i, name in enumerate(shown):
                part = frame[(frame["course"] == course) & (frame["mechanism"] == name)]
                mean = part.groupby("time")["bottleneck.queue"].mean().rolling(5).mean()
                axes.plot(mean, label=name, color=style.colour(i), linestyle=style.line(i), lw=1)
            axes.set_title(f"{course} flows")
            axes.set_xlabel("Time (s)")
        panels[0].set_ylabel("Queue (packets)")
        style.legend_above(figure, panels[0], len(shown))
    return figure


def _means(outcome: Results) -> Figure:
    frame, size = outcome.frame("courses"), outcome.size
    frame = frame[frame["when"] == "later"]
    with style.styled():
        figure = style.figure(2 * style.COLUMN, 2.8)
        panels = figure.subplots(1, len(_METRICS))
        for axes, (metric, (label, scale)) in zip(panels, _METRICS.items(), strict=True):
            for i, name in enumerate(size.mechanisms):
                part = frame[frame["mechanism"] == name]
                spans = [
                    mean_interval(
                        part[part["flows"] == n].groupby("seed")[metric].mean().to_numpy() * scale
                    )
                    for n in size.loads
                ]
                whiskers(
                    axes,
                    range(len(size.loads)),
                    spans,
                    i,
                    label=name,
                    marker=style.marker(i),
                    linestyle=style.line(i),
                    linewidth=1,
                    markersize=3,
                )
            axes.set_xticks(range(len(size.loads)), list(map(str, size.loads)))
            axes.set_xlabel("TCP flows")
            axes.set_ylabel(label)
        style.legend_above(figure, panels[0], 4)
    return figure


def drawn(outcome: Results) -> Drawn:
    """Returns the figures `courses` and `means`, each with title and caption."""
    return {
        "courses": (_courses(outcome), "The queue while flows start and stop", "Means over seeds."),
        "means": (
            _means(outcome),
            "Queue, UDP loss and TCP goodput of each mechanism",
            "Second halves of the phases; 95 % intervals over seeds.",
        ),
    }


def _found(outcome: Results) -> dict[int, RedParameters]:
    found = outcome.found["settings"]
    assert isinstance(found, dict)
    return found


def settings_table(outcome: Results) -> pd.DataFrame:
    """Returns the verified parameters of REDopt: a row for each number of flows."""
    return pd.DataFrame(
        {
            "flows": n,
            "min": p.minimum,
            "max": p.maximum,
            "buffer": p.limit,
            "max_p": round(p.max_p, 4),
            "weight": p.weight,
        }
        for n, p in _found(outcome).items()
    )


def means_table(outcome: Results) -> pd.DataFrame:
    """Returns means over seeds and courses for each mechanism, number of flows and time span."""
    keys = ["mechanism", "flows", "when"]
    metrics = ["queue", "swing", "goodput", "udp_loss", "estimate"]
    found = outcome.frame("courses").groupby(keys, sort=False)[metrics].mean()
    return found.round(4).reset_index()


_ABOUT = """\
Our own study, which extends the tail-drop paper. Every second, REDopt on-line estimates the number
of TCP flows from its loss rate and mean queue, and uses the parameters of REDopt's model for this
number. The user of REDopt on-line sets the link's rate, a mean round-trip time and the share of
unresponsive traffic. The parameters of REDopt set for a number of flows are verified by simulation.
REDstd and tail drop have the largest of REDopt's buffers."""


def _remarks(outcome: Results) -> list[str]:
    size = outcome.size
    return [
        " ".join(_ABOUT.split()),
        (
            f"Each run has three phases of {size.phase:g} s with different numbers of flows. Each "
            f"sequence of numbers is run with {size.seeds} seeds. Claims concern the second half "
            "of a phase, or 20 to 40 s after a change of the number of flows (`soon`). The first "
            f"seed, {FIRST_SEED}, follows from the file of the claims."
        ),
    ]


def _real_remarks(outcome: Results) -> list[str]:
    size = outcome.size
    return [
        " ".join(_ABOUT.split()),
        (
            f"Real TCP ({size.tcp}) runs on Linux {outcome.about['kernel']}; the wire implements "
            f"every queue. Phases last {size.phase:g} s, and there are {size.seeds} seeds. The "
            "verdicts are from the real runs."
        ),
        *outcome.notes,
    ]


def _tables(outcome: Results) -> Titled:
    return [
        ("REDopt's parameters, verified by simulation", settings_table(outcome)),
        ("Means by mechanism, number of flows and time", means_table(outcome)),
    ]


def _facts(outcome: Results) -> dict[str, object]:
    return {
        "seeds": outcome.size.seeds,
        "phase": outcome.size.phase,
        "settings": records(settings_table(outcome)),
        "means": records(means_table(outcome)),
    }


PAPER = Paper(
    name="redopt-online",
    command="python examples/papers/redopt_online.py",
    first_seed=FIRST_SEED,
    title="REDopt on-line: RED that adapts to the number of flows",
    reference="Our own study, after the comparison of tail drop and RED (ISCC 2001)",
    quick=QUICK,
    full=FULL,
    measure=measure,
    remarks=_remarks,
    figures=drawn,
    tables=_tables,
    facts=_facts,
    units={"goodput": "bit/s"},
    real=Real(
        title="REDopt on-line, real runs",
        quick=REAL_QUICK,
        full=REAL_FULL,
        means=MeansTable(
            part="courses",
            factors=("mechanism", "flows", "when"),
            metrics=("queue", "goodput", "udp_loss"),
        ),
        estimate=lasting,
        remarks=_real_remarks,
        figures=drawn,
        tables=_tables,
        facts=_facts,
        no_linux="its queue is a Python class, and a guest cannot run Python",
    ),
)

if __name__ == "__main__":
    quick, real = "--quick" in sys.argv, "--real" in sys.argv
    folder = Path("results") / f"paper-redopt-online{'-real' * real}{'-quick' * quick}"
    show(PAPER.run(folder, quick, engine=engines.find("wire").make() if real else None))
