"""The paper's findings as claims, written down before the study was run.

Where the paper gives a number, the region is that number with a margin; where it gives words, the
region says what the words are taken to mean: *practically equal* is within 3 % of each other, a
*factor* f is f within a factor of the square root of two, *better* and *worse* are by 5 % at least.
"""

from __future__ import annotations

import math

from sojourn.papers.taildrop.mechanisms import GRED, MECHANISMS, RED, REDOPT, TD
from sojourn.stats.cells import Cell
from sojourn.stats.claims import (
    AllIn,
    Claim,
    Every,
    Least,
    LeastVariation,
    Monotone,
    PracticallyEqual,
    Ratio,
)
from sojourn.stats.estimate import Region

_EQUAL = 0.03
_BETTER, _WORSE = Region(high=0.95), Region(low=1.05)


def _factor(f: float) -> Region:
    return Region(f / math.sqrt(2), f * math.sqrt(2))


def _cell(mechanism: str, **load: int | tuple[int, ...]) -> Cell:
    return {"mechanism": mechanism, **load}


BULK: tuple[Claim, ...] = (
    PracticallyEqual(
        id="bulk-goodput-equal",
        text="TCP goodput is practically equal for all mechanisms at every load",
        metric="goodput",
        published="practically equal for all queue management mechanisms",
        among="mechanism",
        margin=_EQUAL,
        each="flows",
    ),
    AllIn(
        id="bulk-goodput-level",
        text="TCP goodput is about 8.4 Mbit/s of 10",
        metric="goodput",
        published="around 8.4 Mbps in all scenarios",
        cells=tuple(_cell(m) for m in MECHANISMS),
        region=Region(8.2e6, 8.6e6),
    ),
    Ratio(
        id="bulk-udp-loss-light",
        text="In light load REDopt loses half as much UDP as REDstd",
        metric="udp_loss",
        published="better by a factor 2 in lightly loaded scenarios",
        a=_cell(REDOPT, flows=16),
        b=_cell(RED, flows=16),
        region=_factor(0.5),
    ),
    PracticallyEqual(
        id="bulk-udp-loss-heavy",
        text="In heavy load the mechanisms' UDP losses differ little (within a quarter)",
        metric="udp_loss",
        published="relative differences are too small to be considered relevant",
        among="mechanism",
        margin=0.25,
        cell={"flows": 256},
    ),
    LeastVariation(
        id="bulk-delay-varies-least",
        text="REDopt's mean queueing delay varies least with the number of flows",
        metric="sojourn_mean",
        published="varies significantly less with REDopt",
        among="mechanism",
        who=REDOPT,
        over="flows",
        margin=0.05,
    ),
    Least(
        id="bulk-deviation-td-light",
        text="In light load tail drop's queueing delay deviates most",
        metric="sojourn_sd",
        published="high with TD due to global synchronisation",
        among="mechanism",
        who=TD,
        extreme="largest",
        margin=0.05,
        cell={"flows": 16},
    ),
    Monotone(
        id="bulk-deviation-td-falls",
        text="Tail drop's deviation of queueing delay falls as load grows",
        metric="sojourn_sd",
        published="the delay variation decreases as the load increases",
        over="flows",
        direction="falls",
        cell={"mechanism": TD},
        at_least=0.25,
        tolerance=0.05,
    ),
    Ratio(
        id="bulk-consecutive-td-light",
        text="Below 64 flows tail drop loses more packets in a row than REDstd",
        metric="consecutive_loss_mean",
        published="TD is significantly worse than the RED variants below 64 flows",
        a=_cell(TD, flows=(16, 32)),
        b=_cell(RED, flows=(16, 32)),
        region=_WORSE,
    ),
    Every(
        id="bulk-consecutive-heavy",
        text="At 128 and 256 flows REDopt and GREDstd lose fewer packets in a row than REDstd",
        published="GREDstd and REDopt are significantly better in medium to heavy load",
        claims=tuple(
            Ratio(
                id=f"bulk-consecutive-heavy-{m}",
                text=f"{m} loses fewer in a row than REDstd",
                metric="consecutive_loss_mean",
                a=_cell(m, flows=(128, 256)),
                b=_cell(RED, flows=(128, 256)),
                region=_BETTER,
                each="flows",
            )
            for m in (REDOPT, GRED)
        ),
    ),
)
"""Findings with bulk transfers; factors `flows` and `mechanism`."""

WEB: tuple[Claim, ...] = (
    PracticallyEqual(
        id="web-goodput-equal",
        text="TCP goodput of Web traffic is practically equal for all mechanisms at every load",
        metric="goodput",
        published="no significant differences",
        among="mechanism",
        margin=_EQUAL,
        each="sessions",
    ),
    AllIn(
        id="web-goodput-limit",
        text="TCP goodput of Web traffic is at most 8.7 Mbit/s of 10 (8.75 before rounding)",
        metric="goodput",
        published="converges to a maximum of 8.7 Mbps",
        cells=tuple(_cell(m, sessions=1400) for m in MECHANISMS),
        region=Region(high=8.75e6),
    ),
    Monotone(
        id="web-goodput-grows",
        text="TCP goodput grows with the number of Web sessions",
        metric="goodput",
        published="increases monotonically",
        over="sessions",
        direction="rises",
        tolerance=0.01,
    ),
    Every(
        id="web-udp-loss-td",
        text="At 1200 Web sessions tail drop loses less UDP than every RED",
        published="TD generally has a lower loss rate, especially for 1200 Web sessions",
        claims=tuple(
            Ratio(
                id=f"web-udp-loss-td-{m}",
                text=f"tail drop loses less than {m}",
                metric="udp_loss",
                a=_cell(TD, sessions=1200),
                b=_cell(m, sessions=1200),
                region=_BETTER,
            )
            for m in (RED, GRED, REDOPT)
        ),
    ),
    LeastVariation(
        id="web-delay-varies-least",
        text="REDopt's mean queueing delay varies least with the number of Web sessions",
        metric="sojourn_mean",
        published="increases only moderately; steeply with the others",
        among="mechanism",
        who=REDOPT,
        over="sessions",
        margin=0.05,
    ),
    Every(
        id="web-deviation-redopt",
        text="Under Web traffic REDopt's queueing delay deviates more than (G)REDstd's",
        published="REDopt has a higher standard deviation than (G)REDstd",
        claims=tuple(
            Ratio(
                id=f"web-deviation-redopt-{m}",
                text=f"REDopt deviates more than {m}",
                metric="sojourn_sd",
                a=_cell(REDOPT),
                b=_cell(m),
                region=_WORSE,
            )
            for m in (RED, GRED)
        ),
    ),
    Every(
        id="web-consecutive-td",
        text="At 1400 Web sessions every RED loses more packets in a row than tail drop",
        published="the RED variants are significantly worse than TD",
        claims=tuple(
            Ratio(
                id=f"web-consecutive-td-{m}",
                text=f"{m} loses more in a row than tail drop",
                metric="consecutive_loss_mean",
                a=_cell(m, sessions=1400),
                b=_cell(TD, sessions=1400),
                region=_WORSE,
            )
            for m in (RED, GRED, REDOPT)
        ),
    ),
)
"""Findings with Web sessions; factors `sessions` and `mechanism`."""

SETTINGS: tuple[Claim, ...] = tuple(
    Ratio(
        id=f"web-max-p-{b}-{a}",
        text=f"REDopt's max_p grows by a factor {factor} from {b} to {a} Web sessions",
        metric="max_p",
        published=f"a factor {factor}",
        a={"sessions": a},
        b={"sessions": b},
        region=_factor(factor),
    )
    for b, a, factor in ((800, 1000, 2.6), (1200, 1400, 16.7))
)
"""Findings about REDopt's own setting; factor `sessions`."""
