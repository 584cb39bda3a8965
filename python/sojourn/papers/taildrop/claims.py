"""The paper's findings as claims, fixed before the runs that judge them.

If the paper gives a number, the region is this number with a margin. The paper's words are
interpreted as follows. *Practically equal* means within 3 % of each other. A *factor* f means f
within a factor of the square root of two. *Better* and *worse* mean by at least 5 %. *Marginally
below* means below by at most 3 %. *Varies* and *steep* concern the difference between the largest
and the smallest mean over the loads, in the metric's own unit.

The first claims were judged on runs with seeds from 1 on. On 2026-11-23, after these verdicts,
claims were changed and added. After short runs with seeds from 1001 on, two findings were changed
again. `WITHDRAWN` lists the replaced claims. All claims are judged on runs with seeds from
`FIRST_SEED` on, which no earlier run used.
"""

from __future__ import annotations

import math

from sojourn.papers.paper import Withdrawn
from sojourn.papers.taildrop.mechanisms import GRED, MECHANISMS, RED, REDOPT, TD
from sojourn.stats.cells import Cell
from sojourn.stats.claims import (
    AllIn,
    Claim,
    Every,
    Least,
    LeastVariation,
    MeanIn,
    Monotone,
    PracticallyEqual,
    Ratio,
)
from sojourn.stats.estimate import Region

#: First seed of the runs that judge the claims.
FIRST_SEED = 2001

_EQUAL = 0.03
_BETTER, _WORSE = Region(high=0.95), Region(low=1.05)
_LESS, _MORE = Region(high=1.0), Region(low=1.0)
_REDS = (RED, GRED, REDOPT)

RANGE = "udp_loss_range"
"""Relative range of UDP loss among the mechanisms at one load and with one seed.

The range is the largest minus the smallest loss, divided by the mean loss.
"""
LATE = "udp_loss_late"
"""Slope of UDP loss in the last step of the load, divided by the slope over all loads.

The ratio of slopes is 1 if loss grows linearly with the number of sessions or flows. Each mechanism
and seed has a value.
"""
LATE_BULK = "udp_loss_late_bulk"
"""`LATE` of bulk traffic, in the table of Web traffic."""
TAIL = "consecutive_loss_tail"
"""Ratio of the variance of consecutive losses to the variance of a geometric distribution.

The geometric distribution has the same mean. A ratio above 1 means a heavier tail than if each loss
ended the sequence with the same probability.
"""


def _factor(f: float) -> Region:
    return Region(f / math.sqrt(2), f * math.sqrt(2))


def _cell(mechanism: str, **load: int | tuple[int, ...]) -> Cell:
    return {"mechanism": mechanism, **load}


def _steepness(prefix: str, over: str, load: str, published: str) -> Claim:
    """Returns the claim that REDopt's delay in ms varies least with the load.

    `prefix` begins the claim's identifier, `over` is the factor of the load, and `load` the noun of
    the load.
    """
    return LeastVariation(
        id=f"{prefix}-delay-steepness",
        text=f"REDopt's mean queueing delay in ms varies least with the number of {load}",
        metric="sojourn_mean",
        published=published,
        among="mechanism",
        who=REDOPT,
        over=over,
        measure="spread",
        margin=0.05,
    )


def _deviation_varies(prefix: str, over: str, load: str) -> Claim:
    """Returns the claim that tail drop's standard deviation of delay varies most with the load."""
    return Every(
        id=f"{prefix}-deviation-td-varies-most",
        text=f"Tail drop's standard deviation of delay in ms varies more with the number of {load} "
        "than every RED's",
        published="TD exhibits higher variation in the standard deviation of the queueing delay "
        "as a function of the load than the RED variants",
        claims=tuple(
            LeastVariation(
                id=f"{prefix}-deviation-td-varies-most-{m}",
                text=f"{m}'s deviation varies less than tail drop's",
                metric="sojourn_sd",
                among="mechanism",
                who=m,
                over=over,
                measure="spread",
                margin=0.05,
                cell={"mechanism": (m, TD)},
            )
            for m in _REDS
        ),
    )


def _delay_grows(prefix: str, over: str, load: str, published: str) -> Claim:
    return Every(
        id=f"{prefix}-delay-grows",
        text=f"Mean queueing delay grows with the number of {load} for all mechanisms",
        published=published,
        claims=tuple(
            Monotone(
                id=f"{prefix}-delay-grows-{m}",
                text=f"{m}'s delay grows",
                metric="sojourn_mean",
                over=over,
                direction="rises",
                cell={"mechanism": m},
                at_least=0.05,
            )
            for m in MECHANISMS
        ),
    )


BULK: tuple[Claim, ...] = (
    PracticallyEqual(
        id="bulk-goodput-equal",
        text="TCP goodput is equal for all mechanisms at every load, within 3 %",
        metric="goodput",
        published="practically equal for all queue management mechanisms",
        among="mechanism",
        margin=_EQUAL,
        each="flows",
    ),
    AllIn(
        id="bulk-goodput-level",
        text="Every mechanism's mean TCP goodput over all loads is 8.2 to 8.6 Mbit/s of 10 Mbit/s",
        metric="goodput",
        published="around 8.4 Mbps in all scenarios",
        cells=tuple(_cell(m) for m in MECHANISMS),
        region=Region(8.2e6, 8.6e6),
    ),
    Every(
        id="bulk-goodput-standard-light",
        text="At 16 flows, the goodput of REDstd and GREDstd is below REDopt's, by at most 3 %",
        published="marginally below optimal with GRED and REDstd for the 16 flows scenario",
        claims=tuple(
            Ratio(
                id=f"bulk-goodput-standard-light-{m}",
                text=f"{m}'s goodput is marginally below REDopt's",
                metric="goodput",
                a=_cell(m, flows=16),
                b=_cell(REDOPT, flows=16),
                region=Region(1 - _EQUAL, 1.0),
            )
            for m in (RED, GRED)
        ),
    ),
    Every(
        id="bulk-udp-loss-half",
        text="At 16 flows REDopt loses half as much UDP traffic as REDstd and GREDstd",
        published="better than REDstd and GREDstd by a factor 2 in lightly loaded scenarios",
        claims=tuple(
            Ratio(
                id=f"bulk-udp-loss-half-{m}",
                text=f"REDopt loses half as much as {m}",
                metric="udp_loss",
                a=_cell(REDOPT, flows=16),
                b=_cell(m, flows=16),
                region=_factor(0.5),
            )
            for m in (RED, GRED)
        ),
    ),
    Every(
        id="bulk-udp-loss-td-between",
        text="At 16 flows tail drop's UDP loss is above REDopt's and below REDstd's and GREDstd's",
        published="TD is in between",
        claims=tuple(
            Ratio(
                id=f"bulk-udp-loss-td-between-{m}",
                text=f"tail drop loses {'more' if m == REDOPT else 'less'} than {m}",
                metric="udp_loss",
                a=_cell(TD, flows=16),
                b=_cell(m, flows=16),
                region=_MORE if m == REDOPT else _LESS,
            )
            for m in _REDS
        ),
    ),
    Every(
        id="bulk-udp-loss-converges",
        text="Relative differences in UDP loss are smaller at 256 flows than at 16, and at most "
        "25 %",
        published="the relative differences decrease and are too small to be considered relevant",
        claims=(
            Ratio(
                id="bulk-udp-loss-converges-range",
                text="the range over the mean is smaller at 256 flows than at 16",
                metric=RANGE,
                a={"flows": 256},
                b={"flows": 16},
                region=_BETTER,
            ),
            PracticallyEqual(
                id="bulk-udp-loss-converges-equal",
                text="UDP losses are within a quarter of each other at 256 flows",
                metric="udp_loss",
                among="mechanism",
                margin=0.25,
                cell={"flows": 256},
            ),
        ),
    ),
    _delay_grows("bulk", "flows", "flows", "queueing delay increases likewise for all mechanisms"),
    Every(
        id="bulk-delay-red-smaller",
        text="Every RED's mean queueing delay is at least 5 % below tail drop's at every load",
        published="queueing delay is significantly smaller with RED",
        claims=tuple(
            Ratio(
                id=f"bulk-delay-red-smaller-{m}",
                text=f"{m}'s delay is smaller than tail drop's",
                metric="sojourn_mean",
                a=_cell(m),
                b=_cell(TD),
                region=_BETTER,
                each="flows",
            )
            for m in _REDS
        ),
    ),
    _steepness(
        "bulk",
        "flows",
        "flows",
        "varies significantly less with REDopt as a function of the number of TCP flows",
    ),
    Least(
        id="bulk-deviation-td-light",
        text="At 16 flows tail drop's standard deviation of delay is the largest, by at least 5 %",
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
        text="Tail drop's standard deviation of queueing delay falls as the load grows",
        metric="sojourn_sd",
        published="the delay variation decreases as the load increases",
        over="flows",
        direction="falls",
        cell={"mechanism": TD},
        at_least=0.25,
        tolerance=0.05,
    ),
    _deviation_varies("bulk", "flows", "flows"),
    Every(
        id="bulk-consecutive-light",
        text="Below 64 flows all REDs lose equally many packets in a row, within 5 %, and tail "
        "drop loses at least 5 % more in a row",
        published="all RED mechanisms show equal performance; TD is significantly worse than the "
        "RED variants (less than 64 flows)",
        claims=(
            PracticallyEqual(
                id="bulk-consecutive-light-equal",
                text="the REDs lose equally many in a row (within 5 %)",
                metric="consecutive_loss_mean",
                among="mechanism",
                margin=0.05,
                cell={"mechanism": _REDS, "flows": (16, 32)},
            ),
            *(
                Ratio(
                    id=f"bulk-consecutive-light-{m}",
                    text=f"tail drop loses more in a row than {m}",
                    metric="consecutive_loss_mean",
                    a=_cell(TD, flows=(16, 32)),
                    b=_cell(m, flows=(16, 32)),
                    region=_WORSE,
                )
                for m in _REDS
            ),
        ),
    ),
    MeanIn(
        id="bulk-consecutive-tail",
        text="At 256 flows REDopt's number of losses in a row has at least twice the variance of a "
        "geometric distribution",
        metric=TAIL,
        published="from time to time a traffic burst causes the average queue to approach max, "
        "causing a heavy tail in the REDopt consecutive-loss distribution",
        cell=_cell(REDOPT, flows=256),
        region=Region(low=2.0),
    ),
    Every(
        id="bulk-consecutive-heavy",
        text="At 128 and 256 flows REDopt and GREDstd lose at least 5 % fewer in a row than REDstd",
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
"""Claims on bulk traffic; their cells have the factors `flows` and `mechanism`."""

EQUAL_DELAY: tuple[Claim, ...] = (
    Every(
        id="bulk-goodput-equal-delay",
        text="If tail drop's buffer is set so that its delay is REDopt's, both have the same "
        "goodput, within 3 %",
        published="goodput, with the TD buffer size set so that TD queueing delay equals the "
        "REDopt queueing delay, is the same for TD and REDopt",
        claims=(
            Ratio(
                id="bulk-goodput-equal-delay-delay",
                text="the delays are equal (within 10 %)",
                metric="sojourn_mean",
                a=_cell(TD),
                b=_cell(REDOPT),
                region=Region(0.9, 1.1),
                each="flows",
            ),
            PracticallyEqual(
                id="bulk-goodput-equal-delay-goodput",
                text="goodput is practically equal",
                metric="goodput",
                among="mechanism",
                margin=_EQUAL,
                each="flows",
            ),
        ),
    ),
)
"""Claim on tail drop with a buffer that gives REDopt's delay; factors `flows` and `mechanism`."""

WEB: tuple[Claim, ...] = (
    PracticallyEqual(
        id="web-goodput-equal",
        text="TCP goodput of Web traffic is equal for all mechanisms at every load, within 3 %",
        metric="goodput",
        published="no significant differences",
        among="mechanism",
        margin=_EQUAL,
        each="sessions",
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
        text="At 1200 Web sessions tail drop loses at least 5 % less UDP traffic than every RED",
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
            for m in _REDS
        ),
    ),
    Every(
        id="web-udp-loss-nonlinear",
        text="UDP loss grows more than linearly at the heaviest Web load, and less than linearly "
        "at the heaviest bulk load",
        published="the increase of the UDP loss rate curves over the number of sessions is "
        "significantly non-linear and completely contrary to the loss rate curves for FTP traffic",
        claims=tuple(
            MeanIn(
                id=f"web-udp-loss-nonlinear-{world}-{m}",
                text=f"{m}'s loss grows {'more' if world == 'web' else 'less'} steeply in the last "
                f"step of {load} than over all steps",
                metric=metric,
                cell=_cell(m),
                region=region,
            )
            for world, load, metric, region in (
                ("web", "Web sessions", LATE, _WORSE),
                ("bulk", "bulk flows", LATE_BULK, _BETTER),
            )
            for m in MECHANISMS
        ),
    ),
    _delay_grows(
        "web",
        "sessions",
        "Web sessions",
        "increases proportionally with the number of Web sessions for all mechanisms",
    ),
    Every(
        id="web-delay-td-longest",
        text="Averaged over all Web loads, tail drop's mean queueing delay is at least 5 % above "
        "every RED's",
        published="for TD, the average queueing delay is generally higher than for RED",
        claims=tuple(
            Ratio(
                id=f"web-delay-td-longest-{m}",
                text=f"tail drop's delay is longer than {m}'s",
                metric="sojourn_mean",
                a=_cell(TD),
                b=_cell(m),
                region=_WORSE,
            )
            for m in _REDS
        ),
    ),
    _steepness(
        "web",
        "sessions",
        "Web sessions",
        "increases only moderately; a steep increase with all other mechanisms",
    ),
    Ratio(
        id="web-deviation-redstd-below-td",
        text="Averaged over all Web loads, REDstd's standard deviation of queueing delay is at "
        "least 5 % below tail drop's",
        metric="sojourn_sd",
        published="REDstd generally has a smaller standard deviation than TD",
        a=_cell(RED),
        b=_cell(TD),
        region=_BETTER,
    ),
    Monotone(
        id="web-deviation-td-falls",
        text="With Web traffic, tail drop's standard deviation of queueing delay falls as the load "
        "grows",
        metric="sojourn_sd",
        published="similar to FTP traffic the standard deviation of TD decreases if the load "
        "increases",
        over="sessions",
        direction="falls",
        cell={"mechanism": TD},
        at_least=0.05,
        tolerance=0.05,
    ),
    _deviation_varies("web", "sessions", "Web sessions"),
    Every(
        id="web-deviation-redopt",
        text="Averaged over all Web loads, REDopt's standard deviation of queueing delay is at "
        "least 5 % above REDstd's and GREDstd's",
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
        text="At 1400 Web sessions every RED loses at least 5 % more in a row than tail drop",
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
            for m in _REDS
        ),
    ),
)
"""Claims on Web traffic; their cells have the factors `sessions` and `mechanism`."""

SETTINGS: tuple[Claim, ...] = tuple(
    Ratio(
        id=f"web-setting-{b}-{a}",
        text=f"REDopt's max_p grows by a factor of {factor} from {b} to {a} Web sessions",
        metric="max_p",
        published=f"a factor {factor}",
        a=_cell(REDOPT, sessions=a),
        b=_cell(REDOPT, sessions=b),
        region=_factor(factor),
    )
    for b, a, factor in ((800, 1000, 2.6), (1200, 1400, 16.7))
)
"""Claims on REDopt's parameters, which are the same in all runs of a load and have no interval."""


_DATE = "2026-11-23"

WITHDRAWN: tuple[Withdrawn, ...] = (
    Withdrawn(
        id="bulk-udp-loss-light",
        text="At 16 flows REDopt loses half as much UDP traffic as REDstd",
        verdict="holds",
        date=_DATE,
        reason="The paper's sentence also names GREDstd; replaced by bulk-udp-loss-half.",
    ),
    Withdrawn(
        id="bulk-udp-loss-heavy",
        text="At 256 flows the mechanisms' UDP losses are within 25 % of each other",
        verdict="does not hold",
        date=_DATE,
        reason="The claim covered half of the paper's sentence; replaced by "
        "bulk-udp-loss-converges.",
    ),
    Withdrawn(
        id="bulk-delay-varies-least",
        text="REDopt's mean queueing delay, relative to its mean over the loads, varies least with "
        "the number of flows",
        verdict="holds",
        date=_DATE,
        reason="The paper's sentence is about the steepness of the curve; replaced by "
        "bulk-delay-steepness.",
    ),
    Withdrawn(
        id="bulk-consecutive-td-light",
        text="Below 64 flows tail drop loses more packets in a row than REDstd",
        verdict="holds",
        date=_DATE,
        reason="The paper compares tail drop with all REDs, which it calls equal; replaced by "
        "bulk-consecutive-light.",
    ),
    Withdrawn(
        id="web-goodput-limit",
        text="TCP goodput of Web traffic is at most 8.7 Mbit/s on a link of 10 Mbit/s",
        verdict="holds",
        date=_DATE,
        reason="The Web distributions were chosen with this number known, so it cannot test them.",
    ),
    Withdrawn(
        id="web-delay-varies-least",
        text="REDopt's mean queueing delay, relative to its mean over the loads, varies least with "
        "the number of sessions",
        verdict="does not hold",
        date=_DATE,
        reason="The paper's sentence is about the steepness of the curve; replaced by "
        "web-delay-steepness.",
    ),
    Withdrawn(
        id="web-max-p-800-1000",
        text="REDopt's max_p grows by a factor of 2.6 from 800 to 1000 Web sessions",
        verdict="cannot be told",
        date=_DATE,
        reason="The claim was about estimates of the model and not about the queues' parameters; "
        "replaced by web-setting-800-1000.",
    ),
    Withdrawn(
        id="web-max-p-1200-1400",
        text="REDopt's max_p grows by a factor of 16.7 from 1200 to 1400 Web sessions",
        verdict="does not hold",
        date=_DATE,
        reason="The claim was about estimates of the model and not about the queues' parameters; "
        "replaced by web-setting-1200-1400.",
    ),
)
"""Claims that are no longer judged."""
