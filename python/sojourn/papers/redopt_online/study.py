"""Runs of the study of REDopt on-line, their sizes, and the results of a run by phase."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from sojourn.papers.bench import Bench, runs_of
from sojourn.papers.paper import Cells, Frames, Part, estimate
from sojourn.papers.redopt_online import claims, scenarios
from sojourn.papers.redopt_online.claims import FAIR, ONLINE, STANDARD, TAIL_DROP, fixed
from sojourn.papers.taildrop import mechanisms
from sojourn.papers.taildrop import study as taildrop
from sojourn.papers.taildrop.scenarios import LINUX_TCP, STARTS
from sojourn.stats import Claim
from sojourn.study import Table
from sojourn.tune.redopt import RedParameters
from sojourn.tune.redopt_online import PLACE
from sojourn.tune.verify import verified

SOON = (20.0, 40.0)
"""Begin and end of the time *soon*, in seconds after a change of the number of flows."""
BETWEEN = 4.0
"""Seconds that a real run takes in addition to its length, to start and end hosts and programs."""


@dataclass(frozen=True, kw_only=True)
class Size:
    """Size of the study; lengths are in seconds."""

    phase: float
    """Length of a phase."""
    seeds: int
    """Number of seeds for each course and mechanism."""
    proof: float
    """Length of a run that verifies REDopt's parameters."""
    courses: tuple[tuple[int, ...], ...] = scenarios.COURSES
    starts: float = STARTS
    """Time from the beginning of a phase within which its new flows start."""
    tcp: str = LINUX_TCP
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
        return tuple(c for c in claims.made(self.loads) if not self.judged or c.id in self.judged)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """Returns the names of the compared mechanisms."""
        listed = (ONLINE, *map(fixed, self.loads), STANDARD, TAIL_DROP, FAIR)
        return tuple(name for name in listed if name not in self.without)


FULL = Size(phase=120, seeds=10, proof=200)
QUICK = Size(phase=80, seeds=6, proof=100)
#: Real runs have one change of the number of flows. Only the claims `follows` and `goodput`
#: are judged.
REAL_FULL = Size(
    phase=80, seeds=5, proof=200, courses=((16, 64),), tcp=taildrop.REAL_TCP,
    without=(STANDARD, FAIR), judged=("follows", "goodput"),
)  # fmt: skip
REAL_QUICK = replace(REAL_FULL, phase=20, seeds=3, proof=100, starts=4)


def lasting(size: Size) -> str:
    """Describes the number of real runs and their estimated duration."""
    number = len(size.mechanisms) * size.seeds
    seconds = sum(len(course) * size.phase + BETWEEN for course in size.courses)
    return estimate(f"{number * len(size.courses)} real runs", number * seconds)


def settings(size: Size) -> dict[int, RedParameters]:
    """Returns REDopt's parameters by number of flows, verified by simulation."""
    return {
        n: verified(taildrop.link(n), 2, size.proof, size.proof / 3).parameters for n in size.loads
    }


def queues(size: Size, found: dict[int, RedParameters]) -> dict[str, str]:
    """Returns each mechanism's queue as words of a scenario.

    `found` has REDopt's parameters by number of flows. REDstd and tail drop have the buffer of
    REDopt for the largest number of flows.
    """
    listed = {ONLINE: f"{PLACE} unresponsive 10%"}
    for flows, parameters in found.items():
        every = mechanisms.queues(parameters, mechanisms.DUMMYNET)
        listed[fixed(flows)] = every[mechanisms.REDOPT]
        listed |= {STANDARD: every[mechanisms.RED], TAIL_DROP: every[mechanisms.TD]}
    listed[FAIR] = "fq_codel"
    return {name: listed[name] for name in size.mechanisms}


def cells_of(size: Size, found: dict[int, RedParameters]) -> Cells:
    """Returns the cells: every course with every mechanism."""
    return [
        (
            {"course": scenarios.name(course), "mechanism": name},
            scenarios.scenario(course, size.phase, queue, size.starts, size.tcp),
        )
        for course in size.courses
        for name, queue in queues(size, found).items()
    ]


def phases(course: str, series: pd.DataFrame, phase: float) -> list[dict[str, Any]]:
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
            rows.append({
                "flows": flows,
                "when": when,
                "queue": part["bottleneck.queue"].mean(),
                "swing": part["bottleneck.queue"].std(),
                "goodput": part[goodput].sum(axis=1).mean(),
                "udp_loss": 1 - part["udp.udp_goodput"].mean() / scenarios.UDP_GOODPUT,
            })  # fmt: skip
    return rows


def measure(bench: Bench) -> dict[str, Any]:
    """Verifies REDopt for each number of flows, then runs all courses with all mechanisms.

    Returns the verified parameters under the key `settings`.
    """
    size: Size = bench.size
    found = settings(size)

    def frames(table: Table) -> Frames:
        rows, drawn = [], []
        for levels, run in runs_of(table):
            series = run.table("series")
            labels = {**levels, "seed": run.seed}
            rows += [{**labels, **row} for row in phases(levels["course"], series, size.phase)]
            drawn.append(series[["time", "bottleneck.queue"]].assign(**labels))
        # The number of flows is a level of a factor. As a number it would become NaN in invalid
        # runs, like a measurement.
        by_phase = pd.DataFrame(rows).astype({"flows": object})
        return {"": by_phase, "series": pd.concat(drawn, ignore_index=True)}

    first = claims.FIRST_SEED
    seeds: Any = range(first, first + size.seeds)
    bench.make(
        Part(
            name="courses", title="flows that come and go", cells=cells_of(size, found),
            seeds=seeds, claims=size.claims, frames=frames, tables=("series",),
        )
    )  # fmt: skip
    return {"settings": found}
