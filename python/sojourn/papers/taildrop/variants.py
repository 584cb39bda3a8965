"""Alternative readings of details that the paper does not state.

Each variant changes one such detail, and the claims are judged again. The page lists these verdicts
next to those of the main reading, which they do not replace.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from sojourn.papers.taildrop import scenarios
from sojourn.papers.taildrop.mechanisms import (
    DUMMYNET,
    MECHANISMS,
    NS2,
    REDOPT,
    WEIGHT_PARTS,
    lighter,
    queues,
)
from sojourn.scenario import Scenario
from sojourn.tune.redopt import BUFFER_SHARE, MAX_SHARE, MIN_SHARE, RedParameters

#: Loads of bulk traffic in alternative readings: those of the claims on single loads.
FLOWS = (16, 32, 128, 256)
#: The path's capacity in packets, as the paper states it.
CAPACITY = 300
#: Number of Web sessions for each session of the paper, in the reading with scaled loads. In the
#: paper, REDopt's `max_p` indicates the load and grows most from 1200 to 1400 sessions (by a factor
#: of 16.7). Here it grows most from 840 to 980 sessions (by 1.5). Steps by the same factor, 7/6,
#: were tried from 550 to 1400 sessions, with runs of 400 s and seeds 1 to 3.
WEB_SCALE = 0.7

World = Literal["bulk", "web"]
SPACING: Mapping[World, str] = {"bulk": DUMMYNET, "web": NS2}
"""Spacing of early drops in the main reading."""


def _half(redopt: RedParameters) -> RedParameters:
    return replace(
        redopt,
        minimum=round(redopt.minimum / 2),
        maximum=round(redopt.maximum / 2),
        limit=round(redopt.limit / 2),
    )


def _capacity(redopt: RedParameters) -> RedParameters:
    return replace(
        redopt,
        minimum=round(MIN_SHARE / BUFFER_SHARE * CAPACITY),
        maximum=round(MAX_SHARE / BUFFER_SHARE * CAPACITY),
        limit=CAPACITY,
    )


def _same(scenario: Scenario) -> Scenario:
    return scenario


def _frames_alone(scenario: Scenario) -> Scenario:
    return scenario.replace({"topology.overhead": 0})


@dataclass(frozen=True)
class Variant:
    """An alternative reading of the paper.

    Attributes:
        name: name of the reading in tables.
        text: description of the changed detail.
        queues: function that returns the mechanisms' queues from REDopt's parameters in the main
            reading.
        scenario: function that makes further changes to the scenario.
        tcp: TCP of bulk traffic, as words of a scenario.
        world: kind of traffic, `bulk` or `web`.
        differing: mechanisms whose runs differ from those of the main reading.
        scale: number of Web sessions for each session of the paper.
    """

    name: str
    text: str
    queues: Callable[[RedParameters], Mapping[str, str]]
    scenario: Callable[[Scenario], Scenario] = _same
    tcp: str = scenarios.LINUX_TCP
    world: World = "bulk"
    differing: tuple[str, ...] = MECHANISMS
    scale: float = 1.0

    @property
    def part(self) -> str:
        """Returns the name of the part of the study with the runs of this reading."""
        words = self.name.lower().replace(",", "").replace("/", "-").replace(" ", "-")
        return f"variants/{words}"


def _weight(world: World, part: int) -> Variant:
    return Variant(
        f"{world if world == 'bulk' else 'Web'}, weight 1/{part}",
        f"REDopt's weight is at most 1/{part} of REDstd's, with unchanged thresholds and max_p",
        lambda redopt: queues(lighter(redopt, part), SPACING[world]),
        world=world,
        differing=(REDOPT,),
    )


VARIANTS: tuple[Variant, ...] = (
    Variant(
        "plain framing",
        "a frame occupies the link for its 1514 bytes only, and TCP has no timestamps, as in ns-2",
        lambda redopt: queues(redopt, DUMMYNET),
        _frames_alone,
        scenarios.TCP,
    ),
    Variant(
        "no timestamps",
        "Ethernet framing, and TCP without timestamps, which the paper does not mention",
        lambda redopt: queues(redopt, DUMMYNET),
        tcp=scenarios.TCP,
    ),
    *(_weight("bulk", part) for part in WEIGHT_PARTS[1:]),
    Variant(
        "bulk, 300 packets",
        "buffers have the path's capacity of 300 packets at every load",
        lambda redopt: queues(_capacity(redopt), DUMMYNET),
    ),
    Variant(
        "bytes",
        "queues count bytes instead of packets, which favours the small UDP packets",
        lambda redopt: queues(redopt, DUMMYNET, "bytes"),
    ),
    Variant(
        "ns-2 spacing",
        "early drops are spaced as in ns-2, which drops a third as many packets at the same max_p",
        lambda redopt: queues(redopt, NS2),
    ),
    Variant(
        "half buffers",
        "buffers and thresholds are half of those of the reconstructed REDopt",
        lambda redopt: queues(_half(redopt), DUMMYNET),
    ),
    Variant(
        "half buffers, ns-2 spacing",
        "buffers and thresholds are halved, and early drops are spaced as in ns-2",
        lambda redopt: queues(_half(redopt), NS2),
    ),
    *(_weight("web", part) for part in WEIGHT_PARTS[1:]),
    Variant(
        "Web, 300 packets",
        "buffers have the path's capacity of 300 packets at every load",
        lambda redopt: queues(_capacity(redopt), NS2),
        world="web",
    ),
    Variant(
        "Web, scaled loads",
        f"{WEB_SCALE:g} sessions for each of the paper's, because max_p grows most at these loads",
        lambda redopt: queues(redopt, NS2),
        world="web",
        scale=WEB_SCALE,
    ),
)
"""The alternative readings of bulk and Web traffic."""
