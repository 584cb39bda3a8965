"""How agreement is judged: intervals of the difference at several looks, and margins fixed before.

A cell is judged with 6 seeds of each engine, and with 12, 24 and 48 while it is undecided. The
error rate of 5 % is divided among these looks. A cell is *equal* if the interval of every quantity
is inside its margin, *different* if the simultaneous interval (Bonferroni) of a quantity is
outside, and otherwise *undecided*.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING, Literal, TypeAlias

from sojourn.stats import Interval, welch_difference

if TYPE_CHECKING:
    from tests.agreement.population import Cell
    from tests.agreement.trees import TreeCell

    AnyCell: TypeAlias = Cell | TreeCell
    """A cell of a drawing, or one with a tree."""

FRAME = 1514
LOOKS = {6: 0.02, 12: 0.01, 24: 0.01, 48: 0.01}
"""Seeds of each engine at each look, and the error rate that is spent there."""
FEWEST = 200
"""Drops or marks below which the margin is a share of the packets."""

Verdict = Literal["equal", "different", "undecided"]
Metrics = Mapping[str, float]
"""The metrics of a run."""


@dataclass(frozen=True)
class Margin:
    """Margin of equality: the larger one of a share of Linux's mean and an absolute difference."""

    share: float
    absolute: float = 0.0


def margins(cell: AnyCell) -> dict[str, Margin]:
    """The margins of a cell's quantities; times are seconds."""
    time = max(FRAME * 8 / cell.rate, 0.01 * cell.rtt, 1e-4)
    found = {
        "goodput": Margin(0.03),
        "sojourn_mean": Margin(0.15, time),
        "sojourn_p95": Margin(0.15, time),
        "drops": Margin(0.2),
    }
    if cell.ecn:
        found["marks"] = Margin(0.2)
    if cell.transfer:
        found["fct_mean"] = Margin(0.1)
    found |= {f"{group}.goodput": Margin(0.03) for group in cell.groups}
    found |= {f"{group}.queueing": Margin(0.15, time) for group in cell.timed}
    return found


@dataclass(frozen=True)
class Judged:
    """A quantity of a cell."""

    verdict: Verdict
    ratio: Interval
    """The ratio of the means, with the interval that decides about equality."""
    inside: bool
    """Whether the estimate itself is inside the margin."""


def judge(
    ours: Sequence[float], theirs: Sequence[float], margin: Margin, error: float, quantities: int
) -> Judged:
    """Compare two samples of independent runs (Welch's interval of the difference of means)."""
    reference = fmean(theirs)
    room = max(margin.share * abs(reference), margin.absolute)
    found = welch_difference(ours, theirs, 1 - 2 * error).interval
    whole = welch_difference(ours, theirs, 1 - error / quantities).interval
    verdict: Verdict = "undecided"
    if -room <= found.low and found.high <= room:
        verdict = "equal"
    elif whole.high < -room or whole.low > room:
        verdict = "different"

    def ratio(of: float) -> float:
        return 1 + of / reference if reference else math.nan

    limits = ratio(found.low), ratio(found.high)
    interval = Interval(ratio(found.estimate), *limits, found.level, found.n)
    return Judged(verdict, interval, abs(found.estimate) <= room)


def judged(
    cell: AnyCell, ours: Sequence[Metrics], theirs: Sequence[Metrics]
) -> tuple[Verdict, dict[str, Judged]]:
    """The verdict of the first look that decides, or of the last one, and those of quantities."""
    verdict: Verdict = "undecided"
    found: dict[str, Judged] = {}
    # Linux reports no delay of a host's own queue.
    wanted = {n: m for n, m in margins(cell).items() if all(n in run for run in theirs)}
    for seeds, error in LOOKS.items():
        if min(len(ours), len(theirs)) < seeds or verdict != "undecided":
            break
        packets = fmean(run["departures"] for run in theirs[:seeds])
        found = {}
        for name, margin in wanted.items():
            # Without a finished short flow, a run has no completion time.
            a, b = (
                [run[name] for run in runs[:seeds] if math.isfinite(run[name])]
                for runs in (ours, theirs)
            )
            counts = name in ("drops", "marks")
            room = counted(margin, b, packets) if counts else margin
            found[name] = judge(a, b, room, error, len(wanted))
        each = {one.verdict for one in found.values()}
        if "different" in each:
            verdict = "different"
        elif each == {"equal"}:
            verdict = "equal"
    return verdict, found


def counted(margin: Margin, theirs: Sequence[float], packets: float) -> Margin:
    """The margin of a count: a thousandth of the packets where few are counted."""
    few = fmean(theirs) < FEWEST
    return Margin(margin.share, 0.001 * packets) if few else margin
