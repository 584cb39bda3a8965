"""Other readings of the paper's open details.

Each variant changes one detail that the paper does not state, and the same claims are judged again.
Their verdicts are listed with those of the main reading and do not replace them.
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

#: Loads of the bulk variants: light, medium and heavy, as the claims need them.
FLOWS = (16, 32, 128, 256)
#: The path's capacity in packets, as the paper gives it.
CAPACITY = 300
#: Sessions run here for each of the paper's. The paper's indicator of load, REDopt's `max_p`, grows
#: most from 1200 to 1400 sessions (16.7-fold). Of the steps from s to 7/6 s that were tried here
#: (550 to 1400 sessions, pilots of 400 s, seeds 1 to 3) it grows most from 840 to 980 (1.5-fold).
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
    """One other reading.

    Attributes:
        name: its name in tables.
        text: the changed detail, with a reason.
        queues: the mechanisms' queues; REDopt's parameters come as in the main reading.
        scenario: further changes to the scenario.
        tcp: the transport, for bulk traffic.
        world: which of the two studies it belongs to.
        differing: the mechanisms whose runs differ from the main reading's.
        scale: Web sessions that are run for each of the paper's.
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
        """Returns the name of its part of the study."""
        words = self.name.lower().replace(",", "").replace("/", "-").replace(" ", "-")
        return f"variants/{words}"


def _weight(world: World, part: int) -> Variant:
    return Variant(
        f"{world if world == 'bulk' else 'Web'}, weight 1/{part}",
        f"REDopt's weight is at most 1/{part} of REDstd's, thresholds and max_p as they are",
        lambda redopt: queues(lighter(redopt, part), SPACING[world]),
        world=world,
        differing=(REDOPT,),
    )


VARIANTS: tuple[Variant, ...] = (
    Variant(
        "plain framing",
        "the link carries 1514 bytes a frame and no more, TCP has no timestamps, as in ns-2",
        lambda redopt: queues(redopt, DUMMYNET),
        _frames_alone,
        scenarios.TCP,
    ),
    Variant(
        "no timestamps",
        "Ethernet framing, TCP without timestamps, of which the text says nothing",
        lambda redopt: queues(redopt, DUMMYNET),
        tcp=scenarios.TCP,
    ),
    *(_weight("bulk", part) for part in WEIGHT_PARTS[1:]),
    Variant(
        "bulk, 300 packets",
        "buffers of the path's capacity, 300 packets, at every load instead of growing with it",
        lambda redopt: queues(_capacity(redopt), DUMMYNET),
    ),
    Variant(
        "bytes",
        "queues count bytes instead of packets, which favours the small UDP packets",
        lambda redopt: queues(redopt, DUMMYNET, "bytes"),
    ),
    Variant(
        "ns-2 spacing",
        "early drops wait as in ns-2: at the same max_p a third as many",
        lambda redopt: queues(redopt, NS2),
    ),
    Variant(
        "half buffers",
        "half of the reconstructed REDopt's buffer, thresholds in proportion",
        lambda redopt: queues(_half(redopt), DUMMYNET),
    ),
    Variant(
        "half buffers, ns-2 spacing",
        "half of the buffers and ns-2's spacing together",
        lambda redopt: queues(_half(redopt), NS2),
    ),
    *(_weight("web", part) for part in WEIGHT_PARTS[1:]),
    Variant(
        "Web, 300 packets",
        "buffers of the path's capacity, 300 packets, at every load instead of growing with it",
        lambda redopt: queues(_capacity(redopt), NS2),
        world="web",
    ),
    Variant(
        "Web, scaled loads",
        f"{WEB_SCALE:g} sessions for each of the paper's, where max_p grows most here",
        lambda redopt: queues(redopt, NS2),
        world="web",
        scale=WEB_SCALE,
    ),
)
"""The readings that were tried."""
